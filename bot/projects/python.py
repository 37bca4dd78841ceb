"""Python: a virtual environment, filled by uv or Poetry where their lock says so, else by pip."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from bot.projects.base import SHARED, Files, Recipe, quoted

WANTED = (
    "pyproject.toml", "setup.py", "setup.cfg", "uv.lock", "poetry.lock", ".python-version", "requirements*.txt",
    "*requirements.txt", "constraints*.txt", "requirements/*.txt",
)  # fmt: skip
_WORDS = ("dev", "develop", "development", "test", "tests", "testing", "ci")
_REQUIREMENTS = re.compile(
    rf"requirements(?:[-_.](?:{'|'.join(_WORDS)}))?\.txt|(?:{'|'.join(_WORDS)})[-_.]requirements\.txt"
    rf"|requirements/(?:{'|'.join(_WORDS)})\.txt"
)
"""What is installed; others, as those of the documentation, only count where one of these names them."""
_PIP = "pip install --no-input --disable-pip-version-check"


def recipe(files: Files) -> Recipe | None:
    """Say how the Python part is set up; None where there is none."""
    requirements = [path for path in sorted(files) if _REQUIREMENTS.fullmatch(path)]
    project = _table(files.get("pyproject.toml", b""))
    package = _is_package(files, project)
    if not requirements and not package:
        return None
    commands = _commands(files, project, requirements, package=package)
    return Recipe(
        name="python",
        needs=("python3",),
        first=('python3 -m venv "$VIRTUAL_ENV"',),
        commands=commands,
        inputs=sorted(files),
        versions="python3 --version",
        variables={
            "VIRTUAL_ENV": f"{SHARED}/venv",
            "UV_PROJECT_ENVIRONMENT": f"{SHARED}/venv",
            # The files of later tasks must not be names of files in a cache of this one.
            "UV_LINK_MODE": "copy",
            "UV_COMPILE_BYTECODE": "1",
            "UV_PYTHON_DOWNLOADS": "never",
        },
        offline={"PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "UV_NO_SYNC": "1"},
        programs=(f"{SHARED}/venv/bin",),
        bound=package,
    )


def _commands(files: Files, project: Mapping[str, object], requirements: Sequence[str], *, package: bool) -> list[str]:
    extras = [name for name in _keys(project, "project", "optional-dependencies") if name.lower() in _WORDS]
    if "uv.lock" in files:
        chosen = "".join(f" --extra {quoted(name)}" for name in extras)
        return [*_tool("uv"), f'"$VIRTUAL_ENV/../uv"/bin/uv sync --frozen{chosen}']
    if "poetry.lock" in files or {"dependencies", "group"} & set(_keys(project, "tool", "poetry")):
        # Nobody else understands its dependencies; it takes the active environment for its own.
        return [*_tool("poetry"), '"$VIRTUAL_ENV/../poetry"/bin/poetry install --no-interaction --all-extras']
    words = [f"-r {quoted(path)}" for path in requirements]
    if package:
        words.append("-e " + quoted("." + (f"[{','.join(extras)}]" if extras else "")))
    words += [quoted(one) for one in _grouped(project)]
    return [f"{_PIP} {' '.join(words)}"]


def _tool(name: str) -> list[str]:
    """Install an installer beside the environment, so that nothing of it is in the project's way."""
    place = f'"$VIRTUAL_ENV/../{name}"'
    return [f"python3 -m venv {place}", f"{place}/bin/{_PIP} {name}"]


def _is_package(files: Files, project: Mapping[str, object]) -> bool:
    """Say whether the repository itself can be installed; a `pyproject.toml` may hold settings of tools alone."""
    if "setup.py" in files or "project" in project or "build-system" in project:
        return True
    if _keys(project, "tool", "poetry"):
        return True
    return re.search(rb"^\s*name\s*=", files.get("setup.cfg", b""), re.MULTILINE) is not None


def _grouped(project: Mapping[str, object]) -> list[str]:
    """List the requirements of the dependency groups for developers and tests, with the groups that they include."""
    groups = project.get("dependency-groups")
    if not isinstance(groups, dict):
        return []
    named = {re.sub(r"[-_.]+", "-", str(name)).lower(): rows for name, rows in groups.items()}

    def rows(name: str, above: tuple[str, ...]) -> Iterator[str]:
        for row in cast("list[object]", named.get(name) if isinstance(named.get(name), list) else []):
            if isinstance(row, str):
                yield row
            elif isinstance(row, dict) and isinstance(other := row.get("include-group"), str):
                plain = re.sub(r"[-_.]+", "-", other).lower()
                if plain not in above:
                    yield from rows(plain, (*above, plain))

    return list(dict.fromkeys(row for name in named if name in _WORDS for row in rows(name, (name,))))


def _table(text: bytes) -> Mapping[str, object]:
    """Read TOML; a broken file says nothing here, and the installer says what is wrong with it."""
    try:
        return tomllib.loads(text.decode())
    except ValueError:
        return {}


def _keys(table: Mapping[str, object], *path: str) -> list[str]:
    """List the keys of an inner table; none where there is no such table."""
    found: object = table
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return [str(key) for key in found] if isinstance(found, dict) else []
