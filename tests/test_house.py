"""Rules of the house that no other tool checks."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import bot
from bot import errors

ROOT = Path(__file__).parents[1]
MODULE_LINES = 500
FUNCTION_LINES = 60
HEAVY = ("anthropic", "openai", "google.genai", "dbos", "fastapi", "githubkit", "sqlalchemy")
HELP = """\
import sys
sys.argv = ["issuewright", "--help"]
from bot.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code
"""
URL = re.compile(r"https?://")
# Put together, so that this file names none of them.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("static", "crates", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
    )
]


def kept_files() -> list[Path]:
    """Every file that is, or would be, in the repository."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this is no git repository")
    paths = [ROOT / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def modules(*folders: str) -> list[Path]:
    """The Python files of these folders."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if "__pycache__" not in path.parts]


def name_of(path: Path) -> str:
    """Name a file as people do."""
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_modules_stay_short() -> None:
    """No module of the package is longer than the hard limit."""
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules("bot")}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_functions_stay_short() -> None:
    """No function of the package is longer than the hard limit, its docstring counted."""
    long = {
        f"{name_of(path)}:{node.name}": length
        for path in modules("bot")
        for node in functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


def test_every_folder_says_what_it_is_for() -> None:
    """Each room, and each folder in it, has a docstring and nothing else in its `__init__.py`."""
    for folder in sorted({path.parent for path in modules("bot")}):
        if "project" in folder.parts:
            continue
        init = folder / "__init__.py"
        assert init.exists(), f"{name_of(folder)} has no __init__.py"
        assert ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))), f"{name_of(init)} has no docstring"


def drawn() -> dict[str, str]:
    """The tree in the docstring of `bot/errors.py`: each class and what it stands below."""
    assert errors.__doc__ is not None
    tree: dict[str, str] = {}
    above: dict[int, str] = {}
    for line in errors.__doc__.splitlines()[1:]:
        found = re.match(r"^((?:│   |    )*)(├── |└── )?([A-Z]\w+)(?:\s|$)", line)
        if found is None:
            continue
        depth = len(found[1]) // 4 + bool(found[2])
        above[depth] = found[3]
        tree[found[3]] = above[depth - 1] if depth else "Exception"
    return tree


def test_errors_drawn_are_errors_defined() -> None:
    """The drawing of the errors shows every class, below its own parent."""
    defined = {
        name: kind.__bases__[0].__name__
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == errors.__name__
    }
    assert drawn() == defined


def test_what_is_left_to_do_has_an_address() -> None:
    """A comment that promises something says where it is discussed."""
    words = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
    for path in modules("bot", "tests"):
        with tokenize.open(path) as file:
            comments = [one for one in tokenize.generate_tokens(file.readline) if one.type == tokenize.COMMENT]
        left = [one for one in comments if words.search(one.string) and not URL.search(one.string)]
        assert [f"{name_of(path)}:{one.start[0]}" for one in left] == []


def test_nothing_of_ours_is_patched() -> None:
    """Tests replace nothing in our own code: doubles come in through constructors."""
    patched = re.compile(
        r"\bmock\.patch\b|unittest\.mock|monkeypatch\.setattr\((?:\s*[\"']bot\.|\s*(?!sys\b|os\b)\w+,)"
    )
    for path in modules("tests"):
        if path != Path(__file__):
            found = patched.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{name_of(path)}: {found[0]}"


def test_the_package_itself_imports_nothing() -> None:
    """`import bot` costs nothing."""
    tree = ast.parse((ROOT / "bot/__init__.py").read_text(encoding="utf-8"))
    assert [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)] == []


@pytest.mark.parametrize("code", ["import bot", HELP], ids=["import", "help"])
def test_nothing_heavy_is_imported_early(code: str) -> None:
    """Neither `import bot` nor `--help` loads a model's SDK, GitHub's client, an engine, a database or a web server."""
    check = f"\nimport sys; print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + check], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"


def test_the_version_stands_in_two_places_that_agree() -> None:
    """The package and its metadata have one version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert bot.__version__ == project["version"]


def test_no_file_names_a_registry() -> None:
    """Addresses of package registries belong to the machine that installs, and paths of a machine to nobody."""
    machine = "/" + "work" + "/"
    for path in kept_files():
        text = path.read_bytes().decode("latin-1")
        found = [host for host in HOSTS if re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", text)]
        assert found == [], name_of(path)
        assert not re.search(rf"(?<![\w.}}$)]){machine}(?:main|shared|\.)", text), name_of(path)


def test_pins_are_names_and_versions() -> None:
    """`constraints.txt` pins every dependency exactly, and holds no address or path."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", pin) for pin in pins)
    named = {_plain(pin.split("==")[0]) for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = [one for extra in project["optional-dependencies"].values() for one in extra]
    needed = {_plain(re.split(r"[\[><=~! ]", one, maxsplit=1)[0]) for one in [*project["dependencies"], *optional]}
    assert needed - named == set()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_license_is_there() -> None:
    """The licence that the metadata names is in the repository."""
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "pattern",
    [
        "agent/prompts/*.md.j2",
        "cli/demo/script.yaml",
        "cli/demo/project/tests/test_cart.py",
        "cli/demo/project/.github/issuewright.yml",
        "store/migrations/versions/tasks/r*.py",
        "store/migrations/versions/deliveries/r*.py",
        "testing/hub/pages/templates/*.html",
        "testing/hub/pages/static/*.css",
    ],
)
def test_package_data_is_there(pattern: str) -> None:
    """What is read at run time lies inside the package, where the wheel takes it from, and is not ignored by git."""
    found = list((ROOT / "bot").glob(pattern))
    assert found
    kept = set(kept_files())
    assert [path for path in found if path not in kept] == []
