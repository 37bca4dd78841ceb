"""What the commands of checks lead to: scripts, files of targets, modules; told from names that stand in text."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.projects.evidence.changes import Change, text_of
from bot.projects.evidence.languages import JAVASCRIPT, language_of
from bot.projects.evidence.parts import CALLED_SCRIPT, goals, scripts

_PROGRAMS: Sequence[tuple[re.Pattern[str], Sequence[str]]] = (
    (re.compile(r"(?:^|[^\w./-])\$?[({]?g?(?:make|MAKE)\b"), ("GNUmakefile", "makefile", "Makefile")),
    (re.compile(r"\b(?:npm|yarn|pnpm|bun)\b"), ("package.json",)),
    (re.compile(r"\bjust\b"), ("justfile", "Justfile", ".justfile")),
    (re.compile(r"\btask\b"), ("Taskfile.yml", "Taskfile.yaml")),
    (re.compile(r"\btox\b"), ("tox.ini", "tox.toml")),
    (re.compile(r"\bnox\b"), ("noxfile.py",)),
    (re.compile(r"\brake\b"), ("Rakefile",)),
    (re.compile(r"\b(?:inv|invoke)\b"), ("tasks.py",)),
    (re.compile(r"\bdocker\b"), ("Dockerfile", "compose.yml", "compose.yaml", "docker-compose.yml")),
)
"""Programs, and the files that they look for by themselves."""
_MAKES = _PROGRAMS[0][0]
_TARGETS = re.compile(rf"{_MAKES.pattern}[)}}]?((?:[ \t]+[\w./=-]+)+)")
_ALWAYS = re.compile(r"^\.PHONY\s*:(.*)$", re.MULTILINE)
"""Targets that are made whether there is such a file or not."""
_SCRIPT = re.compile(
    r"\.(?:sh|bash|zsh|cmd|bat|ps1|py|[cm]?[jt]s|rb|pl|php|mk|mak|ini|cfg|toml|rc|env|gradle|groovy|lua)$"
)
_TEXT = re.compile(r"\.(?:md|rst|txt|adoc|lock|csv|html?|svg|png)$|(?:^|/)requirements[^/]*$")
"""What no command runs."""
_TOKEN = re.compile(r"[\w.@+-]+(?:/+[\w.@+-]+)*")
_ABOVE = re.compile(r"\$(?:\{\w{1,40}\}|\(\w{1,40}\)|\w{1,40})/|\$\([^()\n]{0,80}\)/?\"?/")
"""A folder that a variable or a command names, before what lies in it."""
_MODULE = re.compile(r"\s-m\s+([\w.]{1,200})")
_SEGMENT = re.compile(r"[;&|\n]+")
_READS = re.compile(
    r"^[\s@+\"'-]*(?:\w+=\S*\s+)*(?:(?:npx|poetry run|uv run|uvx|pipx run|bundle exec|python3? -m|yarn|pnpm)\s+)?"
    r"(?:-\S+\s+)*(?:mypy|ruff|flake8|pylint|pyright|basedpyright|black|isort|bandit|eslint|prettier|tsc|biome|shellcheck"
    r"|rubocop|git|g?cc|g\+\+|clang(?:\+\+)?|javac|rustc|py_compile|compileall|pip3?|uv pip|cat|cp|mv|rm|echo|diff"
    r"|touch|grep|sed)\s"
)
"""Programs that only read the files that they are given, and run none of them."""
_REMARK = re.compile(r"^[ \t]*(?:#|//|::|rem ).*$", re.MULTILINE | re.IGNORECASE)
_UNFOLLOWED = re.compile(r"^(?:Dockerfile|(?:docker-)?compose)|\.(?:json|ya?ml|toml)$")
"""Names of files which hold more names than they run."""
_MOST = 60
"""Names of one text that are looked up."""
_MOST_CHARS = 100_000
"""Of a text that is read for names."""
_HEAD = 300
_DEEPEST = 40
"""Folders of a path that is told by its end."""
_ROUNDS = 4
"""Of scripts that call scripts."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What the checks call, as far as texts name it."""

    names: frozenset[str] = frozenset()
    """Paths, or their ends."""
    folders: frozenset[str] = frozenset()
    """Folders that the texts name; the end of a path counts below one of these."""
    modules: frozenset[str] = frozenset()
    """What Python is told to run as a module."""
    scripts: frozenset[str] = frozenset()
    """Scripts of a `package.json`."""
    makes: bool = False
    """Whether make is called."""
    targets: frozenset[str] = frozenset()
    """What make is told to make, and does not make where a file has that name."""
    known: bool = False
    """Whether it is known at all what the checks call."""
    words: frozenset[str] = frozenset()
    """Names of programs, among other words."""

    def call(self, path: str) -> bool:
        """Say whether a path is what they call, or what that names."""
        if _is_test(path) or _TEXT.search(path):
            return False
        return self._named(path) or self._is_module(path)

    def _named(self, path: str) -> bool:
        parts = path.split("/")
        if len(parts) > _DEEPEST:
            return path in self.names
        ends = ("/".join(parts[at:]) for at in range(len(parts)))
        folders = ("/".join(parts[:at]) for at in range(len(parts)))
        return any(
            end in self.names and (not folder or folder in self.folders)
            for end, folder in zip(ends, folders, strict=True)
        )

    def _is_module(self, path: str) -> bool:
        stem = re.sub(r"(?:/__main__)?\.py$", "", path)
        return stem != path and stem.removeprefix("src/").replace("/", ".") in self.modules


def calls_of(texts: Sequence[str]) -> Calls:
    """Read what commands call, and the files that they lead to.

    Args:
        texts: the checks' commands, and what `told` gives of the files that these call; empty where no check is known.
    """
    texts = [text[:_MOST_CHARS] for text in texts]
    programs = [name for text in texts for program, files in _PROGRAMS if program.search(text) for name in files]
    tokens = {posixpath.normpath(token) for text in texts for token in _TOKEN.findall(text)}
    return Calls(
        frozenset([*programs, *(name for text in texts for name in _names(text))]),
        frozenset(folder for token in tokens for folder in _above(token)),
        frozenset(name for text in texts for name in _MODULE.findall(text)),
        frozenset(name for text in texts for name in CALLED_SCRIPT.findall(text)),
        any(_MAKES.search(text) for text in texts),
        frozenset(_targets(texts, _TARGETS)) - frozenset(_targets(texts, _ALWAYS)),
        bool(texts),
        frozenset(posixpath.basename(token) for token in tokens),
    )


def told(path: str, text: str, texts: Sequence[str]) -> str:
    """Take from a file that is called what it calls itself.

    Args:
        path: of the file.
        text: what stands in it.
        texts: what calls it, which says what of it is meant.
    """
    name = posixpath.basename(path)
    if name == "package.json":
        bodies = scripts(text, [word for one in texts for word in CALLED_SCRIPT.findall(one)])
        return "\n".join(body for lines in bodies.values() for _, body in lines)
    if name.lower() in {"makefile", "gnumakefile"}:
        return goals(text, {word for one in texts for word in re.findall(r"[\w.-]+", one[:_MOST_CHARS])})
    return "" if _UNFOLLOWED.search(name) else _REMARK.sub("", text[:_MOST_CHARS])


def leads(text: str, folder: str = "") -> list[str]:
    """Name the paths that a text may lead to, in a fixed order; most of them are nowhere.

    Args:
        text: a command, or a file that one calls.
        folder: where the file lies; empty for the top.
    """
    found = [name for program, files in _PROGRAMS if program.search(text) for name in files]
    found += sorted(_names(text), key=lambda name: "." not in name and "/" not in name)
    modules = [name.replace(".", "/") for name in _MODULE.findall(text)[:_MOST]]
    found += [path for name in modules for path in (f"{name}.py", f"{name}/__main__.py")]
    near = [posixpath.normpath(f"{folder}/{name}") for name in found] if folder else []
    return [path for path in dict.fromkeys([*near, *found]) if not _is_test(path) and not _TEXT.search(path)][:_MOST]


def within(changes: Sequence[Change], texts: Sequence[str]) -> Calls:
    """Follow calls through the files of a change as well, as they were and as they are.

    Args:
        changes: all files of a change.
        texts: as for `calls_of`.
    """
    texts, calls = [*texts], calls_of(texts)
    left = {change.path: change for change in changes} if texts else {}
    for _ in range(_ROUNDS):
        fresh = [path for path in left if calls.call(path)]
        if not fresh:
            break
        for path in fresh:
            change = left.pop(path)
            sides = dict.fromkeys([text_of(change.before), text_of(change.after)])
            texts += [told(path, side, texts) for side in sides]
        calls = calls_of(texts)
    return calls


def _names(text: str) -> list[str]:
    """Read the names that may be those of files which are run; a word alone where a program is named."""
    found: dict[str, None] = {}
    for segment in _SEGMENT.split(_ABOVE.sub("", text)):
        if not _READS.match(segment[:_HEAD]):
            for at, token in enumerate(_TOKEN.findall(segment)):
                if _SCRIPT.search(token) or (("/" in token or not at) and "." not in posixpath.basename(token)):
                    found[posixpath.normpath(token).lstrip("/")] = None
    return list(found)


def _targets(texts: Sequence[str], pattern: re.Pattern[str]) -> Iterable[str]:
    return (name for text in texts for names in pattern.findall(text) for name in names.split() if name[0] != "-")


def _above(name: str) -> Iterable[str]:
    """Yield the folders that a name may stand for: itself, and those of which it is a file."""
    parts = name.split("/", _DEEPEST)[:_DEEPEST]
    return ("/".join(parts[:at]) for at in range(1, len(parts) + 1))


def _is_test(path: str) -> bool:
    """Whether a file holds tests by its name, which are compared test by test."""
    language = language_of(path)
    if language is None:
        return False
    if language is JAVASCRIPT:
        return re.search(r"[.-](?:test|spec|cy|e2e)\.", path) is not None
    return path.endswith((".rs", "conftest.py")) or language.run.search(path) is not None
