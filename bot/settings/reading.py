"""Read YAML documents of plain values, with the place of each key."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import yaml

from bot.errors import BotError
from bot.settings.problems import Key, quoted

MAX_BYTES = 64 * 1024
"""Size of a file of settings; ours has 5 kB, and more is an attack or a mistake."""
MAX_DEPTH = 20
"""Lists and mappings inside each other."""

_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp"))
_Loader = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # the same in C


class _Mark(Protocol):
    """A place in a file, from 0, as both builds of the parser give it."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file and where each of its keys stands."""

    name: str
    values: Mapping[str, object]
    marks: Mapping[Key, tuple[int, int]]
    """Line and column, from 1, of each key and list item."""

    def where(self, key: Key) -> str:
        """Name the place of a key, or of the nearest one above it, as `config/server.yaml:3:5`."""
        while key and key not in self.marks:
            key = key[:-1]
        line, column = self.marks.get(key, (1, 1))
        return f"{self.name}:{line}:{column}"


def read_document(text: bytes | str, name: str, refuse: Callable[[str], BotError]) -> Document:
    """Read a YAML mapping of plain values; no aliases, no tags, no key twice.

    Args:
        text: UTF-8.
        name: the file's name, for messages.
        refuse: makes the error to raise of `name:line:column: what is wrong`.
    """
    reader = _Reader(name, refuse)
    try:
        return reader.read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise reader.refusal(mark, reader.plain(error)) from None
    except yaml.YAMLError as error:
        raise reader.refusal(None, f"cannot be read as YAML: {' '.join(str(error).split())[:200]}") from None


class _Reader:
    """Reads one file."""

    def __init__(self, name: str, refuse: Callable[[str], BotError]) -> None:
        self._name = name
        self._refuse = refuse
        self._marks: dict[Key, tuple[int, int]] = {}
        self._lines: list[str] = []

    def refusal(self, mark: _Mark | None, problem: str) -> BotError:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return self._refuse(f"{self._name}:{line}:{column}: {problem}")

    def read(self, text: bytes | str) -> Document:
        plain = self._decode(text)
        self._lines = plain.splitlines()
        self._check_events(plain)
        node = yaml.compose(plain, Loader=_Loader)
        if node is None:
            return Document(self._name, {}, {})
        if not isinstance(node, yaml.MappingNode):
            raise self.refusal(node.start_mark, "must be a mapping of keys to values")
        values = cast("dict[str, object]", self._value(node, ()))  # a mapping node gives a mapping
        return Document(self._name, values, self._marks)

    def plain(self, error: yaml.MarkedYAMLError) -> str:
        """Say in our words what the parser could not read."""
        problem = " ".join(str(error.problem or error.context).split())
        mark = error.problem_mark
        line = self._lines[mark.line] if mark and mark.line < len(self._lines) else ""
        if mark and "start any token" in problem and line[mark.column : mark.column + 1] == "\t":
            return "a tab cannot indent in YAML; use spaces"
        if "nesting depth" in problem:
            return f"has more than {MAX_DEPTH} levels"
        return f"cannot be read as YAML: {problem}"

    def _decode(self, text: bytes | str) -> str:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if len(data) > MAX_BYTES:
            raise self.refusal(None, f"is larger than {MAX_BYTES // 1024} KiB")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            raise self._refuse(f"{self._name}:{line}:{column}: is not UTF-8") from None

    def _check_events(self, text: str) -> None:
        """Refuse what could grow or run before anything is built of it."""
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise self.refusal(event.start_mark, "anchors and aliases are not supported; write the value out")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise self.refusal(event.start_mark, f"has more than {MAX_DEPTH} levels")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _value(self, node: yaml.Node, key: Key) -> object:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return dict(self._pairs(node, key))
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            items: list[object] = []
            for index, item in enumerate(node.value):
                self._mark((*key, index), item)
                items.append(self._value(item, (*key, index)))
            return items
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node)
        raise self.refusal(node.start_mark, f"the tag {quoted(str(node.tag))} is not supported")

    def _pairs(self, node: yaml.MappingNode, key: Key) -> Iterator[tuple[str, object]]:
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise self.refusal(name.start_mark, "a key must be plain text")
            if name.value in seen:
                raise self.refusal(name.start_mark, f"the key {quoted(name.value)} stands here twice")
            seen.add(name.value)
            self._mark((*key, name.value), name)
            yield name.value, self._value(value, (*key, name.value))

    def _mark(self, key: Key, node: yaml.Node) -> None:
        self._marks[key] = (node.start_mark.line + 1, node.start_mark.column + 1)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag.endswith((":timestamp", ":str")):
            return node.value
        loader = yaml.SafeLoader("")
        try:
            return cast("object", loader.construct_object(node))
        except (ValueError, KeyError, OverflowError):
            raise self.refusal(node.start_mark, f"{quoted(node.value)} is no {node.tag.rpartition(':')[2]}") from None
        finally:
            loader.dispose()


def packed(name: str) -> Path:
    """Return one of our own files of `config/`: inside the package where it is installed, beside it in a checkout."""
    inside = Path(__file__).parent.parent / "_config" / name
    return inside if inside.exists() else Path(__file__).parent.parent.parent / "config" / name
