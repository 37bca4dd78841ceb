"""How a project is built and checked is told from its files alone."""

import json

import pytest

from bot.projects.checks import FoundCheck, find_checks, is_read
from tests.e2e.checked import GO, JAVA, NODE, PYTHON, RUST, Checked

SCRIPTS = {
    "build": "tsc -b", "lint": "eslint .", "tsc": "tsc --noEmit", "typecheck": "tsc", "test": "vitest", "start": "x",
}  # fmt: skip


def found(files: dict[str, str]) -> list[FoundCheck]:
    """Find checks as in a run: of most files only that they are there."""
    return list(find_checks(list(files), {path: text.encode() for path, text in files.items() if is_read(path)}))


def commands(files: dict[str, str]) -> list[str]:
    """Name what would be run."""
    return [check.command for check in found(files)]


@pytest.mark.parametrize("project", [PYTHON, NODE, GO, RUST, JAVA], ids=["python", "node", "go", "rust", "java"])
def test_each_ecosystem_is_told(project: Checked) -> None:
    """The small projects have the checks that people would run, with the file that told."""
    checks = found(dict(project.files))
    assert [(check.kind, check.name, check.command) for check in checks] == list(project.checks)
    assert {check.marker for check in checks} <= set(project.files)
    assert {check.program for check in checks} <= set(project.needs)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": "[project]\nname='a'\n[dependency-groups]\ndev = ['pytest']\n"}, ["python3 -m pytest -q"]),
        ({"requirements-dev.txt": "pytest==8\n"}, ["python3 -m pytest -q"]),
        ({"tests/conftest.py": ""}, ["python3 -m pytest -q"]),
        ({"tests/test_a.py": "", "setup.cfg": "[metadata]\n"}, ["python3 -m unittest discover -s tests"]),
        ({"tests/test_a.py": "", "tests/__init__.py": ""}, ["python3 -m unittest"]),
        ({"test_a.py": ""}, ["python3 -m unittest"]),
        ({"manage.py": "", "tests/__init__.py": ""}, ["python3 manage.py test"]),
        ({"ruff.toml": ""}, ["ruff check ."]),
        ({"pyproject.toml": "[tool.ruff.lint]\nselect = []\n"}, ["ruff check ."]),
        ({"setup.cfg": "[flake8]\n", "mypy.ini": "[mypy]\n"}, ["python3 -m flake8", "python3 -m mypy ."]),
        ({"pyproject.toml": "[tool.mypy]\nstrict = true\nfiles = ['a']\n"}, ["python3 -m mypy"]),
        ({"pyproject.toml": "[tool.mypy]\nstrict = true\n[tool.other]\nfiles = ['a']\n"}, ["python3 -m mypy ."]),
        (
            {"package.json": json.dumps({"scripts": SCRIPTS})},
            ["npm run build", "npm run lint", "npm run typecheck", "CI=true npm run test"],
        ),
        ({"package.json": json.dumps({"scripts": {"lint": "x"}}), "pnpm-lock.yaml": ""}, ["pnpm run lint"]),
        ({"package.json": json.dumps({"scripts": {"lint": "x"}}), "yarn.lock": ""}, ["yarn run lint"]),
        ({"Cargo.toml": "[lints.clippy]\nall = 'warn'\n"}, ["cargo build", "cargo clippy", "cargo test"]),
        ({"pom.xml": ""}, ["mvn --batch-mode --quiet test-compile", "mvn --batch-mode --no-transfer-progress test"]),
        (
            {"pom.xml": "", "mvnw": ""},
            ["sh ./mvnw --batch-mode --quiet test-compile", "sh ./mvnw --batch-mode --no-transfer-progress test"],
        ),
        ({"build.gradle.kts": "", "gradlew": ""}, ["sh ./gradlew testClasses", "sh ./gradlew test"]),
        ({"Makefile": "check: lint\n\tx\nlint:\n\ty\n"}, ["make lint", "make check"]),
        ({"Makefile": "test:\n\tpytest\nlint:\n\ty\n", "pytest.ini": ""}, ["make lint", "python3 -m pytest -q"]),
        (
            {"go.mod": "", "ruff.toml": ""},
            ["go build -o /dev/null ./...", "ruff check .", "go vet ./...", "go test ./..."],
        ),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_each_kind_of_file_has_its_checks(files: dict[str, str], expected: list[str]) -> None:
    """What is quick comes first, and a target of make only where nothing else tells."""
    assert commands(files) == expected


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "pytest"},
        {"pyproject.toml": "[project]\nname = 'a'\n"},
        {"pyproject.toml": "not toml ["},
        {"web/package.json": json.dumps({"scripts": SCRIPTS})},
        {"package.json": "{"},
        {"package.json": "[]"},
        {"package.json": "[" * 100_000},
        {"package.json": '{"scripts": ["test"]}'},
        {"package.json": '{"scripts": {"test": 1}}'},
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        {"package.json": '{"devDependencies": {"lint": "1"}}'},
        {"Makefile": "test := x\ntests: y\nall: test\n"},
        {"sub/go.mod": "", "sub/Cargo.toml": "", "src/test_a.py": ""},
    ],
    ids=lambda files: "+".join(f"{name} {text[:30]}" for name, text in files.items()),
)
def test_where_nothing_tells_there_is_none(files: dict[str, str]) -> None:
    """Broken files, and those of a part of the repository, lead to nothing."""
    assert found(files) == []


def test_no_two_have_one_name() -> None:
    """A project of everything can name each of its checks."""
    everything: dict[str, str] = {}
    for project in (PYTHON, NODE, GO, RUST, JAVA):
        everything |= project.files
    names = [check.name for check in found(everything)]
    assert len(set(names)) == len(names) == 14
