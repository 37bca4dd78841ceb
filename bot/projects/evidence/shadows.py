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
    {"py", "coverage", "iniconfig", "xdist", "nose", "nose2", "tox", "nox", "pkg_resources", "setuptools"}
)
_MODULE = re.compile(r"^(?P<folder>(?:src/|lib/|tests?/)?)(?P<name>\w+)(?:\.pyc?|\.so|/__(?:init|main)__\.pyc?)$")
_PLUGINS = re.compile(r"^[^/]+\.(?:egg|dist)-info/[^/]+$")
_VARIABLES = re.compile(r"\bPYTEST_(?:ADDOPTS|PLUGINS|DISABLE_PLUGIN_AUTOLOAD)\b")
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
    if posixpath.basename(path) in _MAKE and (calls.makes or not calls.known):
        return "is read by make instead of a `Makefile` beside it"
    if _PLUGINS.search(path):
        return "can put plugins into what runs the tests"
    found = _MODULE.match(path)
    if found is None:
        return ""
    name = found["name"]
    if name in _ANYWHERE or (not found["folder"] and (name in _RUNNERS or name in sys.stdlib_module_names)):
        return f"is imported instead of the module {shown(name)}, which what runs the tests may use"
    return ""


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
