"""A change that alters what a check means is told, and one that does not is not."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.projects.evidence.changes import Change
from bot.projects.evidence.touched import touched
from bot.settings.repository import PATH
from tests.unit.projects.evidence.made import changes

Files = Mapping[str, tuple[str | None, str | None]]

PY = """
    import pytest
    from small import add

    class TestAdd:
        def test_two(self):
            value = add(1, 1)
            assert value == 2
            assert value > 0

        @pytest.mark.parametrize("one", [1, 2])
        def test_zero(self, one):
            with pytest.raises(ValueError):
                add(one, None)

    def test_text():
        text = "def test_inner():\\n    assert False"
        assert text
"""
JS = """
    import {add} from './add';
    describe('add', () => {
      it('adds two', () => {
        expect(add(1, 1)).toBe(2);
        expect(add(1, 1)).not.toBe(3);
      });
      it.each([[1, 2]])('adds %s', (one) => {
        expect(add(one, one)).toBe(2 * one);
      });
    });
"""
GO = """
    package small

    func TestAdd(t *testing.T) {
    \tif Add(1, 1) != 2 {
    \t\tt.Error("no")
    \t}
    \trequire.Equal(t, 2, Add(1, 1))
    }

    func TestZero(t *testing.T) {
    \tassert.Panics(t, func() { Add(0, 0) })
    }
"""
RUST = """
    pub fn add(a: u8, b: u8) -> u8 { a + b }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn two() {
            assert_eq!(add(1, 1), 2);
        }

        #[test]
        fn zero() {
            let none = 0;
            assert!(add(none, 0) == 0);
        }
    }
"""
JAVA = """
    class SmallTest {
        @Test
        void two() {
            assertEquals(2, Small.add(1, 1));
        }

        @Test
        void zero() {
            assertThat(Small.add(0, 0)).isZero();
        }
    }
"""
PACKAGE = """\
{
  "name": "small",
  "scripts": {
    "start": "node .",
    "test": "npm run spec",
    "spec": "jest"
  }
}
"""
WORKFLOW = """
    jobs:
      test:
        steps:
          - run: python -m pytest
"""
MAKE = """
    PYTEST_ARGS = -q
    build:
    \tcc a.c
    test: build
    \tpytest $(PYTEST_ARGS)
"""
PROJECT = """
    [project]
    name = "small"
    [tool.pytest.ini_options]
    addopts = ["-ra"]
    [tool.coverage.report]
    fail_under = 90
"""


def edited(path: str, text: str, old: str, new: str) -> Files:
    """Change one place of a file."""
    assert old in text
    return {path: (text, text.replace(old, new, 1))}


FORGED: Mapping[str, tuple[Files, str, str]] = {
    "script is true": (
        edited("package.json", PACKAGE, "npm run spec", "true"),
        "script",
        "`npm run spec` was there, `true`",
    ),
    "script called by the script": (edited("package.json", PACKAGE, '"jest"', '"true"'), "script", "The script `spec`"),
    "script ignores": (edited("package.json", PACKAGE, '"jest"', '"jest || true"'), "ignored failure", "count as one"),
    "script is gone": (
        edited("package.json", PACKAGE, '"test": "npm run spec",', ""),
        "script",
        "`npm run spec` is gone",
    ),
    "jest looks elsewhere": (
        edited("package.json", PACKAGE, '"name"', '"jest": {"testMatch": []}, "name"'),
        "configuration",
        "`jest`",
    ),
    "target": (edited("Makefile", MAKE, "pytest $(PYTEST_ARGS)", "@echo passed"), "script", "The target `test`"),
    "target ignores": (edited("Makefile", MAKE, "\tpytest", "\t-pytest"), "ignored failure", "a check that fails"),
    "variable of a target": (edited("Makefile", MAKE, "= -q", "= -q -k 'not slow'"), "skip", "leaves tests out"),
    "shell script": ({"scripts/test.sh": ("set -e\npytest\n", "set +e\npytest\n")}, "ignored failure", "`set +e`"),
    "script ends well": ({"ci/run_tests.sh": ("pytest\n", "pytest\nexit 0\n")}, "ignored failure", "`exit 0`"),
    "script of checks is gone": ({"run_tests.sh": ("pytest\n", None)}, "script", "is gone, which defined checks"),
    "addopts": (
        edited("pyproject.toml", PROJECT, '["-ra"]', '["-ra", "--ignore=tests/hard"]'),
        "skip",
        "leaves tests out",
    ),
    "coverage": (edited("pyproject.toml", PROJECT, "= 90", "= 50"), "threshold", "was 90 and is 50 now"),
    "coverage is gone": (
        edited("pyproject.toml", PROJECT, "fail_under = 90", ""),
        "threshold",
        "90 until now, is gone",
    ),
    "maxfail": (
        {"tox.ini": ("[testenv]\ncommands = pytest --maxfail=9\n", "[testenv]\ncommands = pytest --maxfail=1\n")},
        "threshold",
        "`maxfail` was 9 and is 1",
    ),
    "warnings": (
        {
            "tox.ini": (
                "[testenv]\ncommands = eslint --max-warnings=0\n",
                "[testenv]\ncommands = eslint --max-warnings=99\n",
            )
        },
        "threshold",
        "was 0 and is 99",
    ),
    "new pytest.ini": (
        {"pytest.ini": (None, "[pytest]\npython_files = none.py\n")},
        "configuration",
        "The section `pytest`",
    ),
    "hook": (
        {"conftest.py": (None, "def pytest_collection_modifyitems(items):\n    items.clear()\n")},
        "configuration",
        "`pytest_collection_modifyitems`",
    ),
    "fixture for all": (
        {"tests/conftest.py": ("", "@pytest.fixture(autouse=True)\ndef calm():\n    os._exit(0)\n")},
        "configuration",
        "For all tests `calm`",
    ),
    "collect_ignore": ({"conftest.py": ("", "collect_ignore = ['test_a.py']\n")}, "skip", "leaves tests out"),
    "sitecustomize": ({"sitecustomize.py": (None, "import os\n")}, "configuration", "`import os` is new"),
    "jest config": (
        {"jest.config.js": ("module.exports = {}\n", "module.exports = {testMatch: []}\n")},
        "configuration",
        "",
    ),
    "go build tag": (
        edited("a_test.go", GO, "package small", "//go:build never\n\n    package small"),
        "skip",
        "never",
    ),
    "cargo": (
        {"Cargo.toml": ('[package]\nname = "a"\n', '[package]\nname = "a"\nautotests = false\n')},
        "skip",
        "leaves tests out",
    ),
    "pom": ({"pom.xml": ("<a>\n</a>", "<a>\n<skipTests>true</skipTests>\n</a>")}, "skip", "leaves tests out"),
    "ci": (
        edited(".github/workflows/ci.yml", WORKFLOW, "python -m pytest", "echo fine"),
        "ci",
        "`- run: echo fine` is there now",
    ),
    "ci goes on": (
        edited(".github/workflows/ci.yml", WORKFLOW, "- run", "- continue-on-error: true\n            run"),
        "ignored failure",
        "continue-on-error",
    ),
    "ci is gone": ({".gitlab-ci.yml": ("test:\n  script: make\n", None)}, "ci", "is gone"),
    "our own file": ({PATH: (None, "version: 1\nchecks: []\n")}, "configuration", "What Issuewright itself checks"),
    "skip": (
        edited("tests/test_a.py", PY, "def test_text", "@pytest.mark.skip\n    def test_text"),
        "skip",
        "`test_text`",
    ),
    "skip of a class": (
        edited("tests/test_a.py", PY, "class TestAdd", "@pytest.mark.xfail\n    class TestAdd"),
        "skip",
        "`TestAdd::test_two`, `TestAdd::test_zero`",
    ),
    "skip in the body": (
        edited("tests/test_a.py", PY, "value = add", "pytest.skip('x')\n            value = add"),
        "skip",
        "test_two",
    ),
    "skip of a file": (
        edited("tests/test_a.py", PY, "from small", "pytestmark = pytest.mark.skip\n    from small"),
        "skip",
        "Any test of this file may be left out",
    ),
    "skip of one case": (
        edited("tests/test_a.py", PY, "[1, 2]", "[1, pytest.param(2, marks=pytest.mark.xfail)]"),
        "skip",
        "test_zero",
    ),
    "skip and another name": (
        edited("tests/test_a.py", PY, "def test_two(self):", "@pytest.mark.skip\n        def test_both(self):"),
        "skip",
        "test_both",
    ),
    "unittest skip": (
        {
            "test_a.py": (
                "class A(TestCase):\n    def test_a(self):\n        self.fail()\n",
                "class A(TestCase):\n    @unittest.skip('x')\n    def test_a(self):\n        self.fail()\n",
            )
        },
        "skip",
        "`A::test_a`",
    ),
    "return": (
        edited("tests/test_a.py", PY, "value = add", "return\n            value = add"),
        "skip",
        "`return` is new",
    ),
    "if False": (
        edited("tests/test_a.py", PY, "        assert text", "        if False:\n            assert text"),
        "skip",
        "test_text",
    ),
    "it.skip": (edited("add.test.js", JS, "it('adds", "it.skip('adds"), "skip", "`add adds two`"),
    "a group that is left out": (
        edited("add.test.js", JS, "describe(", "x" + "describe("),
        "skip",
        "`add adds two`, `add adds %s`",
    ),
    "it.only": (
        edited("add.test.js", JS, "it('adds", "it.only('adds"),
        "skip",
        "can keep all other tests from running",
    ),
    "t.skip": (
        {"test/a.js": ("test('a', t => {\n  t.ok(1);\n});\n", "test('a', t => {\n  t.skip();\n  t.ok(1);\n});\n")},
        "skip",
        "",
    ),
    "option": (
        {"test/a.js": ("test('a', t => {\n  t.ok(a);\n});\n", "test('a', {skip: true}, t => {\n  t.ok(a);\n});\n")},
        "skip",
        "",
    ),
    "t.Skip": (edited("a_test.go", GO, "\tif Add", "\tt.Skip()\n    \tif Add"), "skip", "`TestAdd`"),
    "ignore": (
        edited("src/lib.rs", RUST, "#[test]\n        fn two", "#[test]\n        #[ignore]\n        fn two"),
        "skip",
        "tests::two",
    ),
    "Disabled": (edited("src/test/java/SmallTest.java", JAVA, "@Test", "@Disabled @Test"), "skip", "SmallTest::two"),
    "assertion gone": (
        edited("tests/test_a.py", PY, "            assert value > 0\n", ""),
        "assertions",
        "`assert value > 0` is gone",
    ),
    "assertions gone": (
        edited("tests/test_a.py", PY, "assert value == 2\n            assert value > 0", "pass"),
        "assertions",
        "`assert value == 2`, `assert value > 0` are gone",
    ),
    "assertion as a comment": (
        edited("tests/test_a.py", PY, "assert text", "# assert text"),
        "assertions",
        "test_text",
    ),
    "assertion in a string": (
        edited("tests/test_a.py", PY, "assert text", "'''assert text'''"),
        "assertions",
        "test_text",
    ),
    "assertion that always holds": (
        edited("tests/test_a.py", PY, "        assert text", "        assert True"),
        "assertions",
        "test_text",
    ),
    "raises gone": (
        edited("tests/test_a.py", PY, "with pytest.raises(ValueError):", "if one:"),
        "assertions",
        "test_zero",
    ),
    "expect gone": (edited("add.test.js", JS, "    expect(add(1, 1)).toBe(2);\n", ""), "assertions", "adds two"),
    "expect nothing": (
        edited("add.test.js", JS, "expect(add(one, one)).toBe(2 * one)", "expect(one).toBe(one)"),
        "assertions",
        "adds %s",
    ),
    "t.Error gone": (edited("a_test.go", GO, '\t\tt.Error("no")\n', ""), "assertions", "TestAdd"),
    "assert_eq gone": (edited("src/lib.rs", RUST, "assert_eq!(add(1, 1), 2)", "add(1, 1)"), "assertions", "tests::two"),
    "assertThat gone": (
        edited("SmallTest.java", JAVA, "assertThat(Small.add(0, 0)).isZero()", "Small.add(0, 0)"),
        "assertions",
        "zero",
    ),
    "helper gone": (
        {
            "tests/test_a.py": (
                "def check(a):\n    assert a == 1\n\ndef test_a():\n    check(b)\n",
                "def check(a):\n    pass\n\ndef test_a():\n    check(b)\n",
            )
        },
        "assertions",
        "What the tests of this file share",
    ),
    "test gone": (
        edited(
            "tests/test_a.py",
            PY,
            'def test_text():\n        text = "def test_inner():\\n    assert False"\n        assert text',
            "",
        ),
        "removed",
        "The test `test_text` is gone.",
    ),
    "no test any more": (
        edited("tests/test_a.py", PY, "def test_text", "def _test_text"),
        "removed",
        "`test_text` is gone",
    ),
    "file gone": ({"add.test.js": (JS, None)}, "removed", "are gone with the file"),
    "file called otherwise": ({"test_a.py": (PY, None), "a.py.off": (None, PY)}, "removed", "are gone with the file"),
    "file not looked for": ({"tests/test_a.py": (PY, None), "tests/a.py": (None, PY)}, "removed", "does not look for"),
    "failure taken": (
        edited(
            "tests/test_a.py",
            PY,
            "        assert text",
            "        try:\n            assert text\n        except AssertionError:\n            return",
        ),
        "skip",
        "`except AssertionError:` is new",
    ),
    "any failure taken": (
        edited(
            "tests/test_a.py",
            PY,
            "        assert text",
            "        try:\n            assert text\n        except:\n            n = 1",
        ),
        "skip",
        "`except:` is new",
    ),
    "failure lost on return": (
        edited(
            "tests/test_a.py",
            PY,
            "        assert text",
            "        try:\n            assert text\n        finally:\n            return",
        ),
        "skip",
        "`finally:` is new",
    ),
    "failure suppressed": (
        edited(
            "tests/test_a.py",
            PY,
            "        assert text",
            "        with contextlib.suppress(Exception):\n            assert text",
        ),
        "skip",
        "test_text",
    ),
    "failure taken in JavaScript": (
        edited(
            "add.test.js",
            JS,
            "    expect(add(1, 1)).toBe(2);",
            "    try {\n          expect(add(1, 1)).toBe(2);\n        } catch (e) {\n        }",
        ),
        "skip",
        "`add adds two`",
    ),
    "failure taken in Java": (
        edited(
            "SmallTest.java",
            JAVA,
            "assertEquals(2, Small.add(1, 1));",
            "try {\n                assertEquals(2, 2);\n            } catch (Throwable e) {\n            }",
        ),
        "skip",
        "two",
    ),
    "the same twice": (
        edited("tests/test_a.py", PY, "value == 2\n            assert value > 0", "add(1, 1) == add(1, 1)"),
        "assertions",
        "`assert value == 2`",
    ),
    "end of the process": (
        {
            "conftest.py": (
                "",
                "import atexit, os\ndef end():\n    print('5 passed')\n    os._exit(0)\natexit.register(end)\n",
            )
        },
        "ignored failure",
        "(and 2 more)",
    ),
    "end in a package of tests": (
        {"tests/__init__.py": (None, "import sys\nsys.exit(0)\n")},
        "ignored failure",
        "`sys.exit(0)` is new",
    ),
    "end in JavaScript": ({"test/setup.js": (None, "process.exit(0);\n")}, "ignored failure", "process.exit"),
    "end in Go": (
        {"main_test.go": (None, "package a\nfunc TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}\n")},
        "ignored failure",
        "os.Exit",
    ),
    "snapshots": (
        {f"__snapshots__/{name}.snap": ("old\n", "new\n") for name in "abcde"},
        "snapshots",
        "5 files of snapshots",
    ),
    "test without an assertion gone": (
        {"test_a.py": ("def test_a():\n    run()\n\ndef test_b():\n    assert b\n", "def test_b():\n    assert b\n")},
        "removed",
        "The test `test_a` is gone.",
    ),
    "one of two alike gone": (
        {
            "test_a.py": (
                "def test_a():\n    assert a\n    b()\n    assert a\n",
                "def test_a():\n    assert a\n    b()\n",
            )
        },
        "assertions",
        "`assert a` is gone",
    ),
    "binary": ({"tests/test_a.py": (PY, "\0")}, "unread", "binary or too long"),
    "too long": ({"conftest.py": ("#" * (1 << 20) + "\n", "#" * (1 << 20))}, "unread", "binary or too long"),
    "a long snapshot": ({"a.snap": ("old\n" * 90, "new\n" * 90)}, "snapshots", "90 lines are no longer there"),
}
"""What is changed, and of one finding its kind and a part of its words."""


@pytest.mark.parametrize("name", FORGED)
def test_what_weakens_a_check_is_told(name: str) -> None:
    """Each way to make a check say yes gives a sentence that says so."""
    files, kind, words = FORGED[name]
    found = touched(changes(files))
    assert [one for one in found if one.kind == kind and words in one.words], found
    assert {one.path for one in found} <= set(files)


HONEST: Mapping[str, Files] = {
    "nothing": {"tests/test_a.py": (PY, PY), "package.json": (PACKAGE, PACKAGE)},
    "code": {"small.py": ("def add(): ...\n", "def add(): assert True\n")},
    "another script": edited("package.json", PACKAGE, "node .", "node index.js"),
    "a version": edited("package.json", PACKAGE, '"small"', '"small", "version": "2.0.0"'),
    "a first test script": {"package.json": ('{"name": "a"}', '{"name": "a", "scripts": {"test": "jest"}}')},
    "another target": edited("Makefile", MAKE, "cc a.c", "cc b.c"),
    "a dependency": edited("pyproject.toml", PROJECT, 'name = "small"', 'name = "small"\n    dependencies = ["a"]'),
    "a comment": edited("pyproject.toml", PROJECT, "fail_under", "# as agreed\n    fail_under"),
    "a new workflow": {".github/workflows/new.yml": (None, WORKFLOW)},
    "a fixture": {"conftest.py": ("", "@pytest.fixture\ndef small():\n    return 1\n")},
    "a renamed test": edited("tests/test_a.py", PY, "def test_two", "def test_one_and_one"),
    "a renamed test in JavaScript": edited("add.test.js", JS, "adds two", "adds one and one"),
    "a renamed file": {"tests/test_a.py": (PY, None), "tests/test_b.py": (None, PY)},
    "a moved file": {"a_test.go": (GO, None), "b/a_test.go": (None, GO)},
    "a moved assertion": edited(
        "tests/test_a.py",
        PY,
        "assert value == 2\n            assert value > 0",
        "assert value > 0\n            assert value == 2",
    ),
    "an assertion in another test": edited(
        "tests/test_a.py",
        edited("tests/test_a.py", PY, "            assert value > 0\n", "")["tests/test_a.py"][0] or "",
        "            assert value > 0\n\n        @pytest",
        "\n        def test_more(self):\n            assert value > 0\n\n        @pytest",
    ),
    "an assertion in a helper": {
        "test_a.py": (
            "def test_a():\n    assert a == 1\n",
            "def check():\n    assert a == 1\n\ndef test_a():\n    check()\n",
        )
    },
    "another expectation": edited("tests/test_a.py", PY, "value == 2", "value == 3"),
    "two in one": edited(
        "tests/test_a.py",
        PY,
        "assert value == 2\n            assert value > 0",
        "assert (value, value > 0) == (2, True)",
    ),
    "a fixture that skips": edited(
        "tests/test_a.py",
        PY,
        "class TestAdd",
        "@pytest.fixture\n    def there():\n        pytest.skip('no')\n\n    class TestAdd",
    ),
    "an assertion instead, further on": edited(
        "tests/test_a.py",
        PY,
        "            assert value == 2\n            assert value > 0",
        "            assert value > 0\n            more = add(value, 1)\n            assert more == 3",
    ),
    "another reason": {
        "test_a.py": (
            "@pytest.mark.skip(reason='a')\ndef test_a():\n    assert a\n",
            "@pytest.mark.skip(reason='b')\ndef test_a():\n    assert a\n",
        ),
    },
    "no skip any more": {
        "test_a.py": ("@pytest.mark.skip\ndef test_a():\n    assert a\n", "def test_a():\n    assert a\n")
    },
    "a skip in words": edited("tests/test_a.py", PY, "text = ", 'other = "@pytest.mark.skip"\n        text = '),
    "a higher limit": {"codecov.yml": ("minimum: 80\n", "minimum: 80\n# higher soon\n")},
    "one snapshot": {"a.snap": ("old\n", "new\n"), "b.snap": (None, "new\n" * 200)},
    "pages of a query": {
        "test/a.js": (
            "test('a', t => {\n  t.is(a, 1);\n});\n",
            "test('a', t => {\n  find({skip: 10});\n  t.is(a, 1);\n});\n",
        )
    },
    "a failure that is told otherwise": edited(
        "tests/test_a.py",
        PY,
        "        assert text",
        "        try:\n            assert text\n        except AssertionError as e:\n            raise Told from e",
    ),
    "a clean-up that may fail": edited(
        "tests/test_a.py",
        PY,
        "        assert text",
        "        assert text\n        try:\n            rm()\n        except Exception:\n            pass",
    ),
    "a clean-up that is let fail": edited(
        "tests/test_a.py",
        PY,
        "        assert text",
        "        assert text\n        with suppress(Exception):\n            rm()",
    ),
    "the end of a program": edited(
        "tests/test_a.py",
        PY,
        "        assert text",
        "        assert text\n        app.exit()\n        code = 'os._exit(0)'",
    ),
    "the end of a program in Rust": edited("src/lib.rs", RUST, "{ a + b }", "{ std::process::exit(0) }"),
    "assertions of a program": edited("src/lib.rs", RUST, "{ a + b }", "{ a.wrapping_add(b) }"),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_weakens_nothing_is_not_told(name: str) -> None:
    """Honest work gives no finding."""
    assert touched(changes(HONEST[name])) == []


def test_what_ignored_failures_before_is_not_told_anew() -> None:
    """A line that is changed otherwise is told, but not that it lets failures pass, as it did."""
    files = edited(".github/workflows/ci.yml", WORKFLOW.replace("pytest", "pytest || true"), "pytest", "pytest -q")
    assert [one.kind for one in touched(changes(files))] == ["ci"]


def test_a_finding_points_to_its_line() -> None:
    """The line is the one after the change."""
    files = edited("tests/test_a.py", PY, "def test_text", "@pytest.mark.skip\n    def test_text")
    assert [(one.path, one.line) for one in touched(changes(files))] == [("tests/test_a.py", 15)]


def test_quoted_text_is_one_short_line() -> None:
    """What is quoted of a file neither ends the code that it stands in nor fills a page."""
    files = {"package.json": ('{"scripts": {"test": "jest"}}', '{"scripts": {"test": "a`b\\n' + "c" * 999 + '"}}')}
    (found,) = touched(changes(files))
    assert "a'b" in found.words
    assert "\n" not in found.words
    assert len(found.words) < 250


ADDED = (
    ("tests/test_a.py", PY, "    def test_new():\n        assert add(2, 2) == 4\n"),
    (
        "tests/test_a.py",
        PY,
        "    @pytest.mark.skipif(not there, reason='x')\n    def test_new():\n        assert 1 == a\n",
    ),
    (
        "tests/test_a.py",
        PY,
        "    @pytest.mark.skip\n    class TestNew:\n        def test_new(self):\n            assert 1 == a\n",
    ),
    ("add.test.js", JS, "    it('is new', () => { expect(add(2, 2)).toBe(4); });\n"),
    ("a_test.go", GO, "    func TestNew(t *testing.T) {\n    \tt.Skip()\n    }\n"),
    (
        "src/lib.rs",
        RUST,
        "    #[cfg(test)]\n    mod more {\n        #[test]\n        fn four() { assert_eq!(4, 4) }\n    }\n",
    ),
)


@given(st.lists(st.sampled_from(ADDED), unique_by=lambda one: one[0]), st.booleans())
def test_adding_tests_finds_nothing(added: list[tuple[str, str, str]], anew: bool) -> None:  # noqa: FBT001
    """More tests are no finding, in files that were there and in new ones."""
    assert touched(changes({path: (None if anew else text, text + more) for path, text, more in added})) == []


PATHS = [
    "tests/test_a.py",
    "conftest.py",
    "a.test.ts",
    "a_test.go",
    "src/lib.rs",
    "ATest.java",
    "package.json",
    "Makefile",
    "pyproject.toml",
    "tox.ini",
    ".github/workflows/a.yml",
    "jest.config.js",
    "pom.xml",
    "test.sh",
    "a.snap",
    "makefile",
    "run.sh",
    ".npmrc",
    PATH,
    "Cargo.toml",
]
PIECES = [
    "def test_a():\n",
    "    assert a\n",
    "@skip\n",
    "class A:\n",
    "it('a', () => {\n",
    "})\n",
    '"',
    "'",
    "`",
    "'''",
    "/*",
    "#[test]\n",
    "fn a() {\n",
    "}\n",
    "@Test void a() {\n",
    "func TestA(t) {\n",
    "[tool.pytest]\n",
    "test:\n",
    "\t",
    "{",
    '"scripts":',
    "    try:\n",
    "    except AssertionError:\n",
    "os._exit(0)\n",
    "PYTEST_ADDOPTS",
    "\\",
    "\n",
    "\r",
]
FILES = (
    st.none() | st.binary() | st.lists(st.sampled_from(PIECES), max_size=30).map(lambda some: "".join(some).encode())
)


@given(st.lists(st.builds(Change, st.sampled_from(PATHS) | st.text(), FILES, FILES), max_size=4))
def test_no_bytes_bring_it_down(some: list[Change]) -> None:
    """Whatever the files hold, there is an answer."""
    touched(some)
    touched(some, ["make test && ./run.sh", "npm run a"])


@given(
    st.lists(
        st.builds(lambda path, data: Change(path, data, data), st.sampled_from(PATHS), FILES),
        unique_by=lambda one: one.path,
    )
)
def test_a_change_of_nothing_finds_nothing(some: list[Change]) -> None:
    """Files that stay as they are weaken nothing."""
    assert touched(some) == []
