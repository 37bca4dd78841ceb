"""Takes a file that defines checks apart, so that only what defines them is compared."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

Lines = Sequence[tuple[int, str]]
"""Numbers from 1 and texts, without the spaces around them, empty lines and comments."""
Parts = Mapping[str, Lines]
"""By the name of a section, a script, a target, or a hook; a whole file has the empty name."""
Reader = Callable[[str], Parts]

_COMMENT = re.compile(r"^(?:#(?!!)|;|//(?!go:build| \+build)|/?\*|<!--|--\s)")
_HEADER = re.compile(r"^\[+\s*([^\[\]]+?)\s*\]+")
_VARIABLE = re.compile(r"^(?:export\s+)?(\w{0,60}(?:TEST|COV|LINT|CHECK)\w{0,60})\s*[:?+]?=")
_CHECKS = re.compile(
    r"^(?:pre|post)?(?:tests?|unit|e2e|integration|checks?|lint|types?|typecheck|tsc|ci|cov|coverage|verify|validate)(?:$|[:_.-])",
    re.IGNORECASE,
)
"""Names of scripts and targets that check something."""
CALLED_SCRIPT = re.compile(
    r"\b(?:run(?:-[sp]|-script)?|yarn|pnpm|npm-run-all|bun)(?:\s--?[\w-]{1,40}(?:=\S{1,80})?){0,5}\s+([\w:.-]{1,100})"
)
"""The name of a script of a `package.json`, where a command calls it."""
_WORDS = re.compile(r"[\w./-]+")
_MOST_HEADS = 20
"""Targets of one rule that are told apart."""
_RUNNERS = ("jest", "vitest", "mocha", "ava", "nyc", "c8")
_HOOK = re.compile(
    r"^(?:async )?def (pytest_\w+)|^(collect_ignore\w*|pytest_plugins|pytestmark)\s*[=+]|^@.*\b(autouse)\s*=\s*True"
)


def whole(text: str) -> Parts:
    """Take all of it."""
    return {"": _lines(text)}


def matching(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Reader:
    """Take the lines that match."""
    found = re.compile(pattern, flags)
    return lambda text: {"": [line for line in _lines(text) if found.search(line[1])]}


def sections(pattern: str) -> Reader:
    """Take the sections whose names match, of an INI or a TOML file."""
    wanted = re.compile(pattern)

    def parts(text: str) -> Parts:
        found: dict[str, list[tuple[int, str]]] = {}
        name = ""
        raw = text.split("\n")
        for number, line in _lines(text):
            # A list in a list is indented, which a header is not.
            if raw[number - 1].startswith("[") and (header := _HEADER.match(line)):
                name = header[1]
            elif wanted.match(name):
                found.setdefault(name, []).append((number, line))
        return found

    return parts


def scripts(text: str, called: Iterable[str] = ()) -> Parts:
    """Take the scripts of a `package.json` that check something or are called, and those that they call."""
    given = _package(text).get("scripts")
    known = {name: body for name, body in given.items() if isinstance(body, str)} if isinstance(given, dict) else {}
    found: set[str] = set()
    fresh = {name for name in known if _CHECKS.search(name)} | (set(called) & known.keys())
    while fresh:
        found |= fresh
        around = {f"{when}{name}" for name in fresh for when in ("pre", "post")}
        fresh = ((around | set(CALLED_SCRIPT.findall(" ".join(known[name] for name in fresh)))) & known.keys()) - found
    return {name: [(_where(text, name), known[name].strip())] for name in sorted(found)}


def runners(text: str) -> Parts:
    """Take what a `package.json` says of how runners of tests go about it."""
    package = _package(text)
    parts = {name: json.dumps(package[name], indent=1) for name in _RUNNERS if name in package}
    return {name: [(_where(text, name), line.strip()) for line in said.split("\n")] for name, said in parts.items()}


def _package(text: str) -> dict[str, object]:
    try:
        # Numbers stay text: turning a long one into an int takes for ever.
        said = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def targets(text: str) -> Parts:
    """Take the targets of a Makefile or a justfile that check something, and variables named for it."""
    found: dict[str, list[tuple[int, str]]] = {}
    names: list[str] = []
    raw = text.split("\n")
    for number, line in _lines(text):
        if raw[number - 1][:1] in (" ", "\t"):
            for name in names:
                found[name].append((number, line))
        elif variable := _VARIABLE.match(line):
            names = []
            found.setdefault(variable[1], []).append((number, line))
        else:
            head, colon, rest = line.partition(":")
            heads = head.replace("@", "").split() if colon and not rest.startswith("=") else []
            names = [name for name in heads if _CHECKS.search(name)]
            for name in names:
                found.setdefault(name, []).append((number, line))
    return found


def beside(text: str) -> Parts:
    """Take of a Makefile or a justfile what `targets` does not: further targets, variables, what is included."""
    taken = {number for lines in targets(text).values() for number, _ in lines}
    return {"": [line for line in _lines(text) if line[0] not in taken]}


def goals(text: str, wanted: AbstractSet[str]) -> str:
    """Take of a Makefile what counts for some of its targets: those, what they need, and what belongs to no target.

    Args:
        text: the Makefile.
        wanted: words, of which those count that are targets; where none is, the first target does.
    """
    loose: list[str] = []
    bodies: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.split("\n"):
        head, colon, rest = line.partition(":")
        if line.startswith("\t"):
            for name in names:
                bodies[name].append(line)
        elif colon and not rest.startswith("=") and "=" not in head and not line.startswith(("#", " ")):
            names = head.split()[:_MOST_HEADS]
            for name in names:
                bodies.setdefault(name, []).append(rest)
        else:
            loose.append(line)
    first = next((name for name in bodies if not name.startswith(".")), "")
    fresh = (wanted & bodies.keys() or {first} & bodies.keys()) | {
        name for name in bodies if "%" in name or "$" in name
    }
    found: set[str] = set()
    while fresh:
        found |= fresh
        fresh = (set(_WORDS.findall(" ".join(line for name in fresh for line in bodies[name]))) & bodies.keys()) - found
    return "\n".join([*loose, *(line for name in sorted(found) for line in bodies[name])])


def hooks(text: str) -> Parts:
    """Take what a `conftest.py` does to tests that do not ask for it: hooks, lists of plugins, fixtures for all."""
    found: dict[str, list[tuple[int, str]]] = {}
    block: list[tuple[int, str]] = []
    raw = text.split("\n")
    for number, line in [*_lines(text), (0, "")]:
        starts = not number or not raw[number - 1].startswith((" ", "\t", ")", "]", "}"))
        if starts and block and not block[-1][1].startswith("@"):
            if name := _hook(block):
                found.setdefault(name, []).extend(block)
            block = []
        block.append((number, line))
    return found


def _hook(block: Lines) -> str:
    for _, line in block:
        if found := _HOOK.match(line):
            hook = next(group for group in found.groups() if group)
            named = next((name[1] for _, text in block if (name := re.match(r"(?:async )?def (\w+)", text))), hook)
            return named if hook == "autouse" else hook
    return ""


def _lines(text: str) -> list[tuple[int, str]]:
    lines = ((number, " ".join(line.split())) for number, line in enumerate(text.split("\n"), 1))
    return [(number, line) for number, line in lines if line and not _COMMENT.match(line)]


def _where(text: str, key: str) -> int:
    at = text.find(f"{json.dumps(key)}:")
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
