"""Tells from a repository's files how it is built and checked; no I/O.

A further check is a row of `_TABLE`.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.projects import node
from bot.projects.base import Files, expression

Kind = Literal["build", "lint", "types", "tests"]


@dataclass(frozen=True, slots=True)
class FoundCheck:
    """A command that tells whether a project is well, as its files name it."""

    kind: Kind
    name: str
    """For people and models, as `pytest`; no two of a project are the same."""
    command: str
    """Shell command, run in the repository's top directory."""
    marker: str
    """The file that led to it."""
    program: str
    """What has to be installed."""
    alike: str = ""
    """Regular expression of commands that tell as much, as one for a single test; empty where none is known."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One check, and the files that lead to it."""

    kind: Kind
    name: str
    command: str
    program: str
    where: Mapping[str, str]
    """For the glob of a file, what its text has to fit; empty where it is enough that the file is there."""
    alike: str = ""


_REQUIREMENTS = ("*requirements.txt", "requirements*.txt", "requirements/*.txt")
_PYTEST, _UNITTEST, _MAVEN, _GRADLE = r"\bpytest\b", r"\bunittest\b", r"\bmvnw?\b", r"\bgradlew?\b"
_SAYS_PYTEST = dict.fromkeys(("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", *_REQUIREMENTS), _PYTEST)
_FILES = r"(\n(?!\[).*)*?\n(files|packages|modules)\s*="
"""In the same section: with one of these mypy knows by itself what to look at."""
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_MVN, _MVNW = "mvn --batch-mode", "sh ./mvnw --batch-mode"
_COUNTED = "--no-transfer-progress"
"""A Maven that is quiet does not say how many tests passed."""


def _there(*globs: str) -> dict[str, str]:
    return dict.fromkeys(globs, "")


def _target(name: str) -> dict[str, str]:
    return dict.fromkeys(_MAKEFILES, rf"^{name}\s*:(?!=)")


_GRADLE_BUILDS = _there("build.gradle", "build.gradle.kts")
_TABLE: Sequence[Sequence[_Row]] = (
    # Tox is no row: it installs everything again, for which commands mostly have no network.
    (
        _Row(
            "lint", "ruff", "ruff check .", "python3",
            {**_there("ruff.toml", ".ruff.toml"), "pyproject.toml": r"^\[tool\.ruff\b"},
        ),
    ),
    (
        _Row(
            "lint", "flake8", "python3 -m flake8", "python3",
            {".flake8": "", "setup.cfg": r"^\[flake8\]", "tox.ini": r"^\[flake8\]"},
        ),
    ),
    (
        _Row(
            "types", "mypy", "python3 -m mypy", "python3",
            {
                **dict.fromkeys(("mypy.ini", ".mypy.ini", "setup.cfg"), rf"^\[mypy\]{_FILES}"),
                "pyproject.toml": rf"^\[tool\.mypy\]{_FILES}",
            },
        ),
        _Row(
            "types", "mypy", "python3 -m mypy .", "python3",
            {**_there("mypy.ini", ".mypy.ini"), "setup.cfg": r"^\[mypy\]", "pyproject.toml": r"^\[tool\.mypy\]"},
        ),
    ),
    (
        _Row(
            "tests", "pytest", "python3 -m pytest -q", "python3",
            {**_there("pytest.ini", "conftest.py", "tests/conftest.py"), **_SAYS_PYTEST}, _PYTEST,
        ),
        _Row("tests", "django", "python3 manage.py test", "python3", _there("manage.py"), r"\bmanage\.py test\b"),
        _Row(
            "tests", "unittest", "python3 -m unittest", "python3",
            _there("test*.py", "tests/__init__.py", "test/__init__.py"), _UNITTEST,
        ),
        _Row(
            "tests", "unittest", "python3 -m unittest discover -s tests", "python3",
            _there("tests/test*.py"), _UNITTEST,
        ),
    ),
    # Without `-o` a single program would be left in the tree.
    (_Row("build", "go build", "go build -o /dev/null ./...", "go", _there("go.mod")),),
    (_Row("lint", "go vet", "go vet ./...", "go", _there("go.mod")),),
    (_Row("tests", "go test", "go test ./...", "go", _there("go.mod"), r"\bgo test\b"),),
    (_Row("build", "cargo build", "cargo build", "cargo", _there("Cargo.toml")),),
    (
        # A component of its own, which a project that uses it names somewhere.
        _Row(
            "lint", "cargo clippy", "cargo clippy", "cargo",
            {
                **_there("clippy.toml", ".clippy.toml"),
                **dict.fromkeys(("Cargo.toml", "rust-toolchain.toml", "rust-toolchain"), r"\bclippy\b"),
            },
        ),
    ),
    (_Row("tests", "cargo test", "cargo test", "cargo", _there("Cargo.toml"), r"\bcargo (nex)?test\b"),),
    (
        _Row("build", "maven build", f"{_MVNW} --quiet test-compile", "java", _there("mvnw")),
        _Row("build", "maven build", f"{_MVN} --quiet test-compile", "mvn", _there("pom.xml")),
        _Row("build", "gradle build", "sh ./gradlew testClasses", "java", _there("gradlew")),
        _Row("build", "gradle build", "gradle testClasses", "gradle", _GRADLE_BUILDS),
    ),
    (
        _Row("tests", "maven test", f"{_MVNW} {_COUNTED} test", "java", _there("mvnw"), _MAVEN),
        _Row("tests", "maven test", f"{_MVN} {_COUNTED} test", "mvn", _there("pom.xml"), _MAVEN),
        _Row("tests", "gradle test", "sh ./gradlew test", "java", _there("gradlew"), _GRADLE),
        _Row("tests", "gradle test", "gradle test", "gradle", _GRADLE_BUILDS, _GRADLE),
    ),
)  # fmt: skip
"""Of the rows that stand together the first that fits counts."""
_MAKE: Sequence[Sequence[_Row]] = (
    (_Row("lint", "make lint", "make lint", "make", _target("lint")),),
    (
        _Row("tests", "make test", "make test", "make", _target("test"), r"\bmake test\b"),
        _Row("tests", "make check", "make check", "make", _target("check"), r"\bmake check\b"),
    ),
)
"""For kinds of which nothing else was found: mostly a target only calls what was."""

_SCRIPTS: Mapping[str, Kind] = {
    "build": "build",
    "lint": "lint",
    "typecheck": "types",
    "type-check": "types",
    "check-types": "types",
    "tsc": "types",
    "test": "tests",
}
"""Scripts of a `package.json`, and what each is for; of each kind the first counts."""
_NO_TEST = "no test specified"
"""What npm writes into the script of a new package, which then always fails."""
_NODE_FILES = ("package.json", "yarn.lock", "pnpm-lock.yaml", "package-lock.json", "npm-shrinkwrap.json", ".yarnrc.yml")
_NODE_TEST = (
    r"\b(npm|pnpm|yarn) (run )?t(est)?\b|\bnode\b[^;&|\n]{0,80} --test\b|\b(jest|vitest|mocha|ava|playwright test)\b"
)
_READ = re.compile(
    "|".join(expression(glob) for rows in (*_TABLE, *_MAKE) for row in rows for glob, text in row.where.items() if text)
    + "|package\\.json"
)


def is_read(path: str) -> bool:
    """Say whether `find_checks` wants to see what a file says."""
    return _READ.fullmatch(path) is not None


def find_checks(paths: Collection[str], files: Files) -> Sequence[FoundCheck]:
    """Name the checks of a project: builds and linters first, tests last, so that what is quick comes first.

    Args:
        paths: of all files of the repository.
        files: contents of those for which `is_read` holds.
    """
    # Everything that leads to a check lies at the top or one folder below it.
    near = sorted(path for path in paths if path.count("/") <= 1)
    texts = {path: data.decode(errors="replace") for path, data in files.items()}
    found = [*_fitting(_TABLE, near, texts), *_scripts(near, files)]
    kinds = {check.kind for check in found}
    found += [check for check in _fitting(_MAKE, near, texts) if check.kind not in kinds]
    order: Sequence[Kind] = ("build", "lint", "types", "tests")
    return sorted(found, key=lambda check: order.index(check.kind))


def _fitting(table: Sequence[Sequence[_Row]], paths: Sequence[str], texts: Mapping[str, str]) -> Iterator[FoundCheck]:
    for rows in table:
        for row in rows:
            if marker := _marker(row, paths, texts):
                yield FoundCheck(row.kind, row.name, row.command, marker, row.program, row.alike)
                break


def _marker(row: _Row, paths: Sequence[str], texts: Mapping[str, str]) -> str:
    """Return the file that leads to a check; empty where there is none."""
    for glob, text in row.where.items():
        fits = re.compile(expression(glob)).fullmatch
        for path in filter(fits, paths):
            if not text or re.search(text, texts.get(path, ""), re.MULTILINE):
                return path
    return ""


def _scripts(paths: Sequence[str], files: Files) -> Iterator[FoundCheck]:
    """Name the scripts of a package that check it, run by its package manager."""
    try:
        said = json.loads(files.get("package.json", b""))
    except (ValueError, RecursionError):
        return
    scripts = said.get("scripts") if isinstance(said, dict) else None
    if not isinstance(scripts, dict):
        return
    locks = {path: b"" for path in paths if path in _NODE_FILES}
    program, _ = node.manager({**locks, "package.json": files["package.json"]})
    done: set[Kind] = set()
    for script, kind in _SCRIPTS.items():
        if isinstance(text := scripts.get(script), str) and _NO_TEST not in text and kind not in done:
            done.add(kind)
            # Some runners of tests wait for changes of files unless they are told that nobody makes any.
            prefix = "CI=true " if kind == "tests" else ""
            command = f"{prefix}{program} run {script}"
            yield FoundCheck(kind, f"{program} {script}", command, "package.json", "node", _alike(kind))


def _alike(kind: Kind) -> str:
    return _NODE_TEST if kind == "tests" else ""
