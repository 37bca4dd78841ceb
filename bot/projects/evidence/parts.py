"""Takes a file that defines checks apart, so that only what defines them is compared."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_NAMES = r"pytest_\w+|collect_ignore\w*|pytestmark"
_HOOK = re.compile(
    rf"(?:^|[;:]\s*)(?:(?:async )?def (?P<defined>pytest_\w+)"
    rf"|(?:\w+\s*[,=]\s*)*(?P<bound>{_NAMES})\s*(?:[,:][^=]{{0,200}})?[+:]?=(?!=))"
)
"""What binds the name of a hook or of a list, alone or with others."""
_IMPORTS = re.compile(r"\bfrom\b[^()]{0,300}?\bimport\b\s*(?P<names>\(?\s*\*|[\w\s,()]*)")
_IMPORTED = re.compile(rf"\b(?:{_NAMES})|\*")
_FOR_ALL = re.compile(r"\bautouse\s*=(?!\s*False\b)|\bspecname\s*=")
_DEFINES = re.compile(r"(?:(?:async )?def|class)\b")
_MOST_DOTS = 200
"""In one line of TOML: reading a key takes the longer for each of its parts the more there are."""
_DEEPEST = 20
"""Tables in tables that are looked into."""
_INSTALLS = frozenset({"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"})
"""Scripts that run whenever the project is set up."""


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


def tables(pattern: str) -> Reader:
    """Take the tables of a TOML file whose names match, however they are written; all of what cannot be read."""
    wanted = re.compile(pattern)

    def parts(text: str) -> Parts:
        if (settings := _settings(text)) is None:
            return whole(text)
        found: dict[str, list[tuple[int, str]]] = {}
        for name, _, line in settings:
            if wanted.match(name):
                found.setdefault(name, []).append(line)
        return found

    return parts


def keys(pattern: str) -> Reader:
    """Take the keys of a TOML file that match, in whatever table; all of what cannot be read."""
    wanted = re.compile(pattern)

    def parts(text: str) -> Parts:
        if (settings := _settings(text)) is None:
            return whole(text)
        return {"": [line for _, key, line in settings if wanted.fullmatch(key)]}

    return parts


def _settings(text: str) -> list[tuple[str, str, tuple[int, str]]] | None:
    """Read a TOML file: of each value, and each item of a list, the table, the key and a line; None where it is broken.

    The number is that of a line in which such a key stands; of several tables with one key, in their order.
    """
    lines = text.split("\n")
    if any(line.count(".") > _MOST_DOTS for line in lines):
        return None
    try:
        leaves = [*_below(tomllib.loads(text), ())]
    except (ValueError, RecursionError):
        return None
    places: dict[str, list[int]] = {}
    for number, raw in enumerate(lines, 1):
        key, equals, _ = raw.partition("=")
        if equals:
            places.setdefault(key.rpartition(".")[2].strip(" \t\"'"), []).append(number)
    left = {key: iter(numbers) for key, numbers in places.items()}
    at: dict[tuple[str, str], int] = {}
    for name, key, _ in leaves:
        if (name, key) not in at:
            at[name, key] = next(left.get(key, iter(())), places.get(key, [1])[-1])
    return [(name, key, (at[name, key], f"{key} = {value}")) for name, key, value in leaves]


def _below(table: Mapping[str, object], above: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    for key, value in table.items():
        if value in ([], {}):
            yield ".".join(above), key, json.dumps(value)
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                yield ".".join(above), key, json.dumps(one, ensure_ascii=False, default=str)
            elif len(above) < _DEEPEST:
                yield from _below(one, (*above, key))


def scripts(text: str, called: Iterable[str] = ()) -> Parts:
    """Take the scripts of a `package.json` that check something or are called, and those that they call."""
    given = _package(text).get("scripts")
    known = {name: body for name, body in given.items() if isinstance(body, str)} if isinstance(given, dict) else {}
    found: set[str] = set()
    fresh = {name for name in known if _CHECKS.search(name) or name in _INSTALLS} | (set(called) & known.keys())
    while fresh:
        found |= fresh
        around = {f"{when}{name}" for name in fresh for when in ("pre", "post")}
        fresh = ((around | set(CALLED_SCRIPT.findall(" ".join(known[name] for name in fresh)))) & known.keys()) - found
    return {name: [(_where(text, name), known[name].strip())] for name in sorted(found)}


def comes_along(name: str, before: Parts) -> bool:
    """Say whether a script that is new runs because of those that were there, before or behind one of them."""
    around = re.fullmatch(r"(?:pre|post)(.+)", name)
    return name in _INSTALLS or (around is not None and around[1] in before)


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
    # As if each were called by itself: what has the name of a target keeps make from running it.
    called = [f"make {name}" for name in sorted(found)]
    always = [f".PHONY: {rest}" for rest in bodies.get(".PHONY", ())]
    return "\n".join([*loose, *always, *called, *(line for name in sorted(found) for line in bodies[name])])


def hooks(text: str) -> Parts:
    """Take what a `conftest.py` does to tests that do not ask for it: hooks, lists of plugins, fixtures for all."""
    found: dict[str, list[tuple[int, str]]] = {}
    block: list[tuple[int, str]] = []
    raw = text.split("\n")
    is_decorated = False
    for number, line in [*_lines(text), (0, "")]:
        starts = not number or not raw[number - 1].startswith((" ", "\t", ")", "]", "}"))
        if starts and block and not (is_decorated and number):
            if name := _hook(block):
                found.setdefault(name, []).extend(block)
            block = []
        block.append((number, line))
        # A function belongs to the decorators above it, which may take several lines.
        is_decorated = line.startswith("@") if len(block) == 1 else is_decorated and not _DEFINES.match(line)
    return found


def _hook(block: Lines) -> str:
    """Name what a block does to all tests; empty where that is nothing."""
    for _, line in block:
        if found := _HOOK.search(line):
            return found["defined"] or found["bound"]
    words = " ".join(line for _, line in block)
    imported = (_IMPORTED.search(found["names"]) for found in _IMPORTS.finditer(words))
    if one := next(filter(None, imported), None):
        return one[0]
    if not _FOR_ALL.search(words):
        return ""
    named = re.search(r"\bdef (\w+)", words) or re.search(r"(\w+)", words)
    return named[1] if named else ""


def entry(pattern: str) -> Reader:
    """Take the functions whose heads match, to their closing brace."""
    head = re.compile(pattern)

    def parts(text: str) -> Parts:
        raw, found, within = text.split("\n"), list[tuple[int, str]](), False
        for number, line in _lines(text):
            begins = head.match(raw[number - 1]) is not None
            if begins or within:
                found.append((number, line))
                within = not raw[number - 1].startswith("}") and not (begins and line.endswith("}"))
        return {"": found}

    return parts


def _lines(text: str) -> list[tuple[int, str]]:
    lines = ((number, " ".join(line.split())) for number, line in enumerate(text.split("\n"), 1))
    return [(number, line) for number, line in lines if line and not _COMMENT.match(line)]


def _where(text: str, key: str) -> int:
    at = text.find(f"{json.dumps(key)}:")
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
