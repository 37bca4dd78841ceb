"""What changes a check is seen however it is written: other spellings of the same, and what comes along by itself."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bot.projects.evidence.called import told
from bot.projects.evidence.changes import APART as APART_KINDS
from bot.projects.evidence.touched import new_tests, touched
from tests.unit.projects.evidence.made import changes

Files = Mapping[str, tuple[str | None, str | None]]
PROJECT = '[project]\nname = "small"\n'
DESELECTS = '"--deselect=test_a.py"'
MODULE = '[package]\nname = "a"\n'
GO = "package small\n\nfunc TestA(t *testing.T) {\n\tt.Fatal()\n}\n"
MAIN = "\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n"


def hooked(text: str) -> Files:
    """Put something into a `conftest.py`."""
    return {"conftest.py": ("import pytest\n", f"import pytest\n{text}")}


def project(text: str) -> Files:
    """Put something into a `pyproject.toml`."""
    return {"pyproject.toml": (PROJECT, text)}


SEEN: Mapping[str, tuple[Files, str]] = {
    "before npm's script": (
        {"package.json": ('{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest", "pretest": "node fix.js"}}')},
        "The script `pretest`",
    ),
    "behind a script that is called": (
        {
            "package.json": (
                '{"scripts": {"test": "npm run spec", "spec": "jest"}}',
                '{"scripts": {"test": "npm run spec", "spec": "jest", "postspec": "true"}}',
            )
        },
        "The script `postspec`",
    ),
    "while it is set up": (
        {"package.json": ('{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest", "prepare": "node fix.js"}}')},
        "The script `prepare`",
    ),
    "go, nothing is run": ({"a_test.go": (GO, f"{GO}\nfunc TestMain(m *testing.M) {{}}\n")}, "func TestMain"),
    "go, runs and says nothing": (
        {"a_test.go": (GO + MAIN, (GO + MAIN).replace("os.Exit(m.Run())", "_ = m"))},
        "`os.Exit(m.Run())` was there",
    ),
    "go, oddly written": ({"a_test.go": (None, "package small\nfunc  TestMain(m *testing.M) {}\n")}, "TestMain"),
    "dotted, above all tables": (
        project(f"tool.pytest.ini_options.addopts = {DESELECTS}\n{PROJECT}"),
        "The section `tool.pytest.ini_options`",
    ),
    "dotted, in a table": (
        project(f"{PROJECT}[tool]\npytest.ini_options.addopts = {DESELECTS}\n"),
        "The section `tool.pytest.ini_options`",
    ),
    "quoted": (
        project(f'{PROJECT}[tool."pytest".ini_options]\naddopts = {DESELECTS}\n'),
        "The section `tool.pytest.ini_options`",
    ),
    "spaced": (
        project(f"{PROJECT}[ tool . pytest . ini_options ]\naddopts = {DESELECTS}\n"),
        "The section `tool.pytest.ini_options`",
    ),
    "indented": (
        project(f"{PROJECT}  [tool.pytest.ini_options]\naddopts = {DESELECTS}\n"),
        "The section `tool.pytest.ini_options`",
    ),
    "in one line": (
        project(f"{PROJECT}[tool]\npytest = {{ini_options = {{addopts = {DESELECTS}}}}}\n"),
        "The section `tool.pytest.ini_options`",
    ),
    "behind what looks like it": (
        {
            "pyproject.toml": (
                f'{PROJECT}[tool.pytest.ini_options]\naddopts = "-q"\n',
                (
                    f'{PROJECT}text = """\n[tool.pytest.ini_options]\naddopts = "-q"\n"""\n'
                    f"[tool]\npytest.ini_options.addopts = {DESELECTS}\n"
                ),
            )
        },
        '`addopts = "-q"` was there',
    ),
    "not to be read": (project(f"{PROJECT}# {'.' * 300}\n"), "The section has changed"),
    "pytest.toml": ({"pytest.toml": (None, f"pytest.addopts = {DESELECTS}\n")}, "The section `pytest`"),
    "cargo, dotted": ({"Cargo.toml": (MODULE, f"lib.test = false\n{MODULE}")}, "What cargo tests"),
    "cargo, in one line": ({"Cargo.toml": (MODULE, f"lib = {{ test = false }}\n{MODULE}")}, "What cargo tests"),
    "an imported hook": (hooked("from shop.hooks import pytest_runtest_makereport\n"), "pytest_runtest_makereport"),
    "an imported hook, in lines": (
        hooked("from shop import (\n    a,\n    pytest_configure,\n)\n"),
        "pytest_configure",
    ),
    "all of a module": (hooked("from shop.hooks import *\n"), "`*`"),
    "all of a module, below": (hooked("try:\n    from shop.hooks import *\nexcept ImportError:\n    pass\n"), "`*`"),
    "an assigned hook": (hooked("pytest_pyfunc_call = lambda pyfuncitem: True\n"), "pytest_pyfunc_call"),
    "a hook behind another name": (hooked("mine = pytest_pyfunc_call = print\n"), "pytest_pyfunc_call"),
    "a hook in a pair": (hooked("mine, pytest_pyfunc_call = print, print\n"), "pytest_pyfunc_call"),
    "a hook in one line": (hooked("if True: pytest_pyfunc_call = print\n"), "pytest_pyfunc_call"),
    "a hook with a type": (hooked("collect_ignore_glob: list = ['*']\n"), "collect_ignore_glob"),
    "a list below": (hooked("if True:\n    collect_ignore = ['test_a.py']\n"), "collect_ignore"),
    "a hook below": (hooked("try:\n    def pytest_pyfunc_call(): ...\nfinally:\n    pass\n"), "pytest_pyfunc_call"),
    "for all, in lines": (
        hooked("@pytest.fixture(\n    autouse=True,\n)\ndef calm(request):\n    request.node.obj = print\n"),
        "For all tests `calm`",
    ),
    "for all, by something else": (
        hooked("@pytest.fixture(autouse=1 == 1)\ndef calm(): ...\n"),
        "For all tests `calm`",
    ),
    "for all, assigned": (hooked("calm = pytest.fixture(autouse=True)(print)\n"), "For all tests `calm`"),
}


PY = "import pytest\n\ndef test_a():\n    assert total() == 3\n"
JS = "describe('x', () => {\ntest('a', () => {\n  expect(1).toBe(2)\n})\n})\n"
JAVA = "class ATest {\n    @Test\n    void a() {\n        a();\n        assertTrue(b());\n    }\n}\n"
RS = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(1, 2);\n    }\n}\n"
KTS = "tasks.test {\n    useJUnitPlatform()\n}\n"
POM = "<plugin>\n<artifactId>maven-surefire-plugin</artifactId>\n</plugin>\n"


def inside(text: str) -> Files:
    """Put something before the assertion of a test."""
    return {"test_a.py": (PY, PY.replace("    assert", f"    {text}\n    assert"))}


SEEN = {
    **SEEN,
    "an imported skip": (inside('skip("x")'), "may be left out"),
    "a mark under another name": ({"test_a.py": (PY, PY.replace("def", "@m.skip\ndef"))}, "may be left out"),
    "leaves with a value": (inside("return True"), "may be left out"),
    "leaves in any case": (inside("if True: return"), "may be left out"),
    "ends in words": (inside('pytest.exit("x", 0)'), "can end the run of all tests"),
    "ends by an import": ({"test_a.py": (PY, f"from pytest import exit\n{PY}")}, "can end the run of all tests"),
    "quits": (inside("quit(0)"), "can end the run of all tests"),
    "behind a quote in a string": (inside("x = '''\\'''#'''; pytest.skip('x')"), "may be left out"),
    "takes a test away": ({"test_a.py": (PY, f"{PY}\ndel test_a\n")}, "may be left out"),
    "loads other tests": ({"tests/__init__.py": ("", "def load_tests(*_):\n    return None\n")}, "can keep all other"),
    "never comes to it": (inside("while False:\n        pass"), "may be left out"),
    "comes to nothing": (inside("for _ in ():\n        pass"), "may be left out"),
    "for no value": (
        {"test_a.py": (PY, PY.replace("def", '@pytest.mark.parametrize("x", [])\ndef'))},
        "may be left out",
    ),
    "for no values": (
        {"test_a.py": (PY, PY.replace("def", '@pytest.mark.parametrize(("x", "y"), (), ids=[])\ndef'))},
        "may be left out",
    ),
    "leaves at once": (inside("raise SystemExit"), "can end the run of all tests"),
    "asserts a pair": ({"test_a.py": (PY, PY.replace("total() == 3", '(total() == 3, "it")'))}, "asserts less"),
    "a committed package": ({"node_modules/jest/index.js": (None, "x")}, "an installed package"),
    "a plugin by setup.cfg": (
        {"setup.cfg": ("[metadata]\n", "[metadata]\n[options.entry_points]\npytest11 =\n  a = a\n")},
        "What pytest loads",
    ),
    "a line that ends where nobody sees it": ({"a.test.js": (JS, f"// see\u2028process.exit(0)\n{JS}")}, "end the run"),
    "behind a quote in an expression": (
        {"a.test.js": (JS, f"const r = /[`]/; process.exit(0); const q = /[`]/\n{JS}")},
        "end the run",
    ),
    "within a template": ({"a.test.js": (JS, f"const r = `${{process.exit(0)}}`\n{JS}")}, "end the run"),
    "within a formatted string": ({"test_a.py": (PY, f"x = f'{{os._exit(0)}}'\n{PY}")}, "can end the run of all tests"),
    "in another encoding": ({"test_a.py": (PY, f"# coding: unicode_escape\n# \\u000aquit()\n{PY}")}, "written in"),
    "java, an escaped mark": (
        {"ATest.java": (JAVA, JAVA.replace("@Test", "\\u0040Disabled @Test"))},
        "may be left out",
    ),
    "java, an escaped end": ({"ATest.java": (JAVA, JAVA.replace("a();", "a(); // \\u000a return;"))}, "ends a line"),
    "a plugin by a test": ({"test_a.py": (PY, f'pytest_plugins = ["shop.hooks"]\n{PY}')}, "gives options"),
    "a hook by another name": (
        hooked('@pytest.hookimpl(specname="pytest_runtest_protocol")\ndef tidy(): ...\n'),
        "For all tests `tidy`",
    ),
    "a hook imported by another name": (
        hooked("from shop import x as pytest_runtest_protocol\n"),
        "For all tests `pytest_runtest_protocol`",
    ),
    "a line too long": ({"test_a.py": (PY, f"{PY}x = {' ' * 5_000}quit()\n")}, "too long"),
    "a compiled module": (
        {"unittest.cpython-311-x86_64-linux-gnu.so": (None, "x")},
        "instead of the module `unittest`",
    ),
    "compiled code": ({"shop/__pycache__/cart.cpython-311.pyc": (None, "x")}, "is compiled code"),
    "what pytest imports": ({"packaging.py": (None, "x = 1\n")}, "instead of the module `packaging`"),
    "a group that is not indented": (
        {"a.test.js": (JS, JS.replace("describe(", "describe.skip("))},
        "Any test of this file may be left out",
    ),
    "a skip under another name": ({"a.test.js": (JS, f"const t = test.skip\n{JS}")}, "may be left out"),
    "go, for another system": ({"a_test.go": (GO, None), "a_windows_test.go": (None, GO)}, "does not look for"),
    "go, among data": ({"a_test.go": (GO, None), "testdata/a_test.go": (None, GO)}, "does not look for"),
    "go, another module": ({"a/go.mod": (None, "module a\n")}, "makes its folder another module"),
    "rust, with a feature": (
        {"src/lib.rs": (RS, RS.replace("cfg(test)", 'cfg(all(test, feature = "x"))'))},
        "left out",
    ),
    "rust, never": ({"src/lib.rs": (RS, RS.replace("    #[test]", "    #[cfg(any())]\n    #[test]"))}, "left out"),
    "cargo, other members": (
        {
            "Cargo.toml": (
                "[workspace]\nmembers = ['a', 'b']\n",
                "workspace.members = ['a', 'b']\nworkspace.default-members = ['a']\n",
            )
        },
        "What cargo tests",
    ),
    "gradle, in Kotlin": (
        {"build.gradle.kts": (KTS, KTS.replace("use", "isEnabled = false\n    use"))},
        "`isEnabled = false`",
    ),
    "maven": ({"pom.xml": (POM, POM.replace("</plugin>", "<skip>true</skip>\n</plugin>"))}, "`<skip>true</skip>`"),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_same_in_other_words_is_seen(name: str) -> None:
    """Each was tried on the runner, and made a test that fails pass, or none run."""
    files, words = SEEN[name]
    found = touched(changes(files), ["CI=true npm run test", "python3 -m pytest"])
    assert any(words in one.words for one in found), found


UNSEEN: Mapping[str, Files] = {
    "a script of its own": {
        "package.json": ('{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest", "prebuild": "rm -r dist"}}')
    },
    "another spelling": {
        "pyproject.toml": (
            f"{PROJECT}[tool.pytest.ini_options]\naddopts = ['-q', '-x']\n",
            f'{PROJECT}[tool.pytest]\nini_options.addopts = [\n    "-q",  # quiet\n    "-x",\n]\n',
        )
    },
    "a fixture that is asked for, with blanks": hooked("@pytest.fixture(\n    autouse = False,\n)\ndef calm(): ...\n"),
    "a fixture that is asked for": hooked("@pytest.fixture(\n    autouse=False,\n)\ndef calm(): ...\n"),
    "a plugin's class": hooked("from pytest_mock import MockerFixture\nimport pytest_asyncio\n"),
    "a product in a function": hooked("def area(a):\n    from shop import b\n    return a * b\n"),
    "go, for this system": {"a_test.go": (GO, None), "a_linux_test.go": (None, GO)},
    "a call that is named skip": {"test_a.py": (PY, f"{PY}    skip(total())\n")},
    "a pair in brackets": {"test_a.py": (PY, PY.replace("total() == 3", 'total(1, "it") == (3, "it")'))},
    "for pairs, one of them empty": {
        "test_a.py": (PY, PY.replace("def", '@pytest.mark.parametrize("x, y", [(1, []), (2, ())])\ndef'))
    },
    "imports for types": {"test_a.py": (PY, PY.replace("\ndef", "\nif TYPE_CHECKING:\n    import a\n\ndef"))},
    "a package among data": {"tests/fixtures/a/node_modules/b/index.js": (None, "x")},
    "for some value": {"test_a.py": (None, '@pytest.mark.parametrize("x", [[], ()])\n' + PY)},
    "a group with its tests": {"a.test.js": (JS, JS.replace("describe('x'", "describe('y'"))},
    "cargo's dependencies": {"Cargo.toml": (MODULE, f'{MODULE}[dependencies]\nserde = "1"\n')},
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_only_looks_like_it_is_not_told(name: str) -> None:
    """A finding that says nothing is one that is read no more."""
    assert touched(changes(UNSEEN[name]), ["CI=true npm run test", "python3 -m pytest"]) == []


def test_a_place_is_that_of_the_table() -> None:
    """The line is told where the key stands, of two with one name that of the later one."""
    before = f"{PROJECT}[tool.coverage.run]\nomit = []\n[tool.pytest.ini_options]\naddopts = '-q'\n"
    [found] = touched(changes({"pyproject.toml": (before, before.replace("-q", "-qq"))}))
    assert found.line == 6
    two = f"[tool.ruff]\nexclude = []\n{PROJECT}[tool.mypy]\nexclude = ['a']\n"
    [found] = touched(changes({"pyproject.toml": (two, two.replace("'a'", "'a', 'b'"))}))
    assert (found.line, '`exclude = "b"` is new' in found.words) == (6, True)


def test_what_runs_tests_in_go_is_no_test() -> None:
    """It is called by none, and fails by itself."""
    assert new_tests(changes({"a_test.go": (GO, GO + MAIN + "\nfunc TestMainly(t *testing.T) {\n}\n")})) == [
        "a_test.go::TestMainly"
    ]


@pytest.mark.parametrize(
    ("makefile", "path", "is_told"),
    [
        ("test:\n\tpytest\n", "test", True),
        ("test: unit\nunit:\n\tpytest\n", "unit", True),
        ("test:\n\t$(MAKE) -C sub unit\n", "unit", True),
        (".PHONY: test\ntest:\n\tpytest\n", "test", False),
        (".PHONY: test unit\ntest: unit\nunit:\n\tpytest\n", "unit", False),
        ("test:\n\tpytest\ndocs:\n\tsphinx\n", "docs", False),
        ("test:\n\tpytest\n", "src/test", False),
    ],
)
def test_a_file_that_has_the_name_of_a_target_is_told(makefile: str, path: str, *, is_told: bool) -> None:
    """Make runs no target for which there is such a file already, unless it is told to."""
    texts = ["make test", told("Makefile", makefile, ["make test"])]
    found = touched(changes({path: (None, "x\n")}), texts)
    assert [one.path for one in found if "name of a target" in one.words] == [path] * is_told


@pytest.mark.parametrize(
    ("path", "is_told"),
    [
        ("conftest.py", True),
        ("tests", True),
        ("pytest.ini", True),
        ("test_a.py", True),
        ("sh/go", True),
        ("docs", False),
    ],
)
def test_links_in_the_place_of_checks_are_told(path: str, *, is_told: bool) -> None:
    """What is there is another file's content, which need not be one that tells of checks by its name."""
    linked = [replace(one, is_link=True) for one in changes({path: (None, "shop/hooks.py")})]
    found = [one.words for one in touched(linked, ["python3 -m pytest", "sh/go"])]
    assert any("a link to `shop/hooks.py` now" in words for words in found) == is_told


LONG = [
    " ",
    "\t",
    "\n",
    "{",
    "}",
    "(",
    ")",
    "'",
    '"',
    "`",
    "/",
    "*",
    "#",
    "\\",
    "a",
    "@",
    "=",
    ":",
    ";",
    ".",
    "f'{",
    "${",
]


@pytest.mark.parametrize(
    "path", ["test_a.py", "a.test.js", "a_test.go", "tests/a.rs", "ATest.java", "run.sh", "conftest.py"]
)
def test_no_run_of_one_character_keeps_it(path: str) -> None:
    """One file of them would keep the whole server; this ends in seconds, where it is quadratic in hours."""
    for part in [*LONG, "catch", "from ", "import ", "x = 1\n", "[/", "(/["]:
        text = part * (100_000 // len(part))
        touched(changes({path: ("", text), "pyproject.toml": ("", text)}), ["sh run.sh"])
        told(path, text, ["sh run.sh"])
    limit = f"[tool.coverage]\nfail_under{' ' * 100_000}x\n"
    touched(changes({path: ("", "x"), "pyproject.toml": ("", limit)}), ["sh run.sh"])


APART: Mapping[str, Files] = {
    "ruff": {"pyproject.toml": (PROJECT, f"{PROJECT}[tool.ruff]\nline-length = 120\n")},
    "mypy": {"setup.cfg": ("[mypy]\nstrict = true\n", "[mypy]\nstrict = false\n")},
    "pre-commit": {".pre-commit-config.yaml": ("rev: 1\n", "rev: 2\n")},
    "eslint": {"eslint.config.js": ("a\n", "b\n")},
    "types": {"tsconfig.json": ('{"strict": true}', '{"strict": false}')},
    "gone": {".flake8": ("[flake8]\nignore = E1\n", None)},
    "a module of the product": {"tools/check.py": ("a = 1\n", "a = 2\n")},
    "ci": {".github/workflows/ci.yml": ("a@v3\n", "a@v4\n")},
    "ci, which lets something fail": {".github/workflows/deploy.yml": ("a\n", "a\nrun: clean || true\n")},
}


@pytest.mark.parametrize("name", APART)
def test_checks_that_nothing_here_runs_are_told_apart(name: str) -> None:
    """They change nothing of what was run; where a command leads to them, or none is known, they do."""
    kinds = {one.kind for one in touched(changes(APART[name]), ["python3 -m pytest -q"])}
    assert kinds
    assert kinds <= APART_KINDS
    if not name.startswith("ci"):
        run = ["ruff check; mypy; pre-commit run; npx eslint .; npx tsc; flake8; python tools/check.py"]
        assert not {one.kind for one in touched(changes(APART[name]), run)} & APART_KINDS
        assert not {one.kind for one in touched(changes(APART[name]))} & APART_KINDS


def test_modules_take_no_place_where_no_python_runs() -> None:
    """Go looks for none; who calls make may call anything."""
    new = changes({"calendar.py": (None, "x = 1\n")})
    assert touched(new, ["go test ./..."]) == []
    assert len(touched(new, ["./all.sh"])) == len(touched(new, ["go test ./... && pytest"])) == len(touched(new)) == 1
    kts = 'implementation("a") {\n    exclude(group = "b")\n}\n'
    assert touched(changes({"build.gradle.kts": ("", kts)})) == []
