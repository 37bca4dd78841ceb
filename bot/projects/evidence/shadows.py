"""What reaches a runner of tests from aside: files that take the place of others, variables of its environment."""

import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterator

from bot.projects.evidence.called import Calls
from bot.projects.evidence.changes import Change, Finding, shown, text_of

_ANYWHERE = frozenset({"pytest", "_pytest", "unittest", "pluggy", "sitecustomize", "usercustomize"})
"""Modules that count in each folder from which Python is likely to import."""
_RUNNERS = frozenset(
    {
        "py",
        "coverage",
        "iniconfig",
        "xdist",
        "nose",
        "nose2",
        "tox",
        "nox",
        "pkg_resources",
        "setuptools",
        "packaging",
        "pygments",
        "exceptiongroup",
        "tomli",
        "attr",
        "attrs",
        "hypothesis",
        "execnet",
        "colorama",
        "typing_extensions",
        "pytest_cov",
        "pytest_asyncio",
        "pytest_mock",
    }
)
_MODULE = re.compile(
    r"^(?P<folder>(?:src/|lib/|tests?/)?)(?P<name>\w+)(?:\.pyc?|(?:\.[\w-]+){0,3}\.so|/__(?:init|main)__\.pyc?)$"
)
_PYTHON = re.compile(r"py|tox$|nox$|uvx?$|poetry$|pdm$|hatch$|coverage$|nose|django|manage\.py$|\S+\.py$")
_OTHERS = frozenset({"go", "cargo", "mvn", "mvnw", "gradle", "gradlew", "npm", "npx", "node", "yarn", "pnpm", "bun"})
"""Programs that run the tests of other languages."""
_INSTALLED = re.compile(r"(?!(?:.*/)?(?:__)?(?:fixtures?|testdata)(?:__)?/)(?:.*/)?node_modules/")
"""What tests keep as data holds such folders as well, and nothing is run from there."""
_PLUGINS = re.compile(r"^[^/]+\.(?:egg|dist)-info/[^/]+$")
_VARIABLES = re.compile(r"\bPYTEST_(?:ADDOPTS|PLUGINS|DISABLE_PLUGIN_AUTOLOAD)\b|\bpytest_plugins\s*[:+]?=")
_MORE_VARIABLES = re.compile(
    r"\b(?:NODE_OPTIONS|GOFLAGS|MAKEFLAGS|BASH_ENV|MAVEN_ARGS|MAVEN_OPTS|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|CARGO_TARGET_\w+_RUNNER)\b"
)
_TAKES_AWAY = re.compile(r"\bdelenv\b|\.pop\(|\bunset\b|^\s*(?:#|//)")
_WORDS_ONLY = re.compile(r"\.(?:md|rst|txt|adoc|html?)$")
_ENVIRONMENT = re.compile(r"(?:^|/)(?:\.env(?:rc|\.\w+)?|\w*\.env|(?:GNU)?[mM]akefile|[^/]+\.mk|conftest\.py)$")
_MAKE = frozenset({"GNUmakefile", "makefile"})


def shadows(change: Change, calls: Calls) -> Iterator[Finding]:
    """Say what a new file takes the place of.

    Python looks into the folder that it is started in before it looks where its own library and the runners are, and
    make looks for two other names before the usual one.
    """
    if change.before is None and change.after is not None and (what := place_of(change.path, calls)):
        yield Finding(change.path, 1, "configuration", f"The new file {shown(change.path)} {what}.")


def place_of(path: str, calls: Calls) -> str:
    """Say what a file takes the place of where it is new, as a part of a sentence; empty where it takes none."""
    makes = posixpath.basename(path) in _MAKE and (calls.makes or not calls.known)
    by_name: list[tuple[object, str]] = [
        (makes, "is read by make instead of a `Makefile` beside it"),
        (path in calls.targets, "has the name of a target, which make does not run where there is such a file"),
        (path.endswith(".pyc"), "is compiled code, which Python may take whatever its source says"),
        (path.endswith("/go.mod"), "makes its folder another module, which `go test ./...` above it does not enter"),
        (_INSTALLED.match(path), "takes the place of an installed package"),
        (_PLUGINS.search(path), "can put plugins into what runs the tests"),
    ]
    found = _MODULE.match(path)
    if found is not None and not (calls.words & _OTHERS and not any(map(_PYTHON.match, calls.words))):
        name = found["name"]
        is_first = name in _ANYWHERE or (not found["folder"] and name in _RUNNERS | sys.stdlib_module_names)
        words = f"is imported instead of the module {shown(name)}, which what runs the tests may use"
        by_name.append((is_first, words))
    return next((words for is_so, words in by_name if is_so), "")


def steered(change: Change) -> Iterator[Finding]:
    """Name new lines that put options of a runner into its environment; the first of a file, since one is enough."""
    if change.after is None or _WORDS_ONLY.search(change.path):
        return
    patterns = [_VARIABLES, *([_MORE_VARIABLES] if _ENVIRONMENT.search(change.path) else [])]
    text = text_of(change.after)
    if not any(pattern.search(text) for pattern in patterns):
        return
    had = Counter(line.strip() for line in text_of(change.before).split("\n"))
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        had[line] -= 1
        if had[line] < 0 and any(pattern.search(line) for pattern in patterns) and not _TAKES_AWAY.search(line):
            words = f"{shown(line)} is new, which gives options to what runs the tests."
            yield Finding(change.path, number, "configuration", words)
            return
