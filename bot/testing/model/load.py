"""Read a script from YAML; whatever is wrong with it is reported as `file:line:column: what`."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import yaml

from bot.testing.model.play import NAME
from bot.testing.model.reply import Call, Fault, FaultKind, Pace, Stop
from bot.testing.model.script import Choose, Condition, Conversation, Script, Step, Turn

Parser = Callable[[yaml.Node], Any]  # Any: each parser returns the type of its own field


class ScriptError(ValueError):
    """The script is wrong; the message begins with `file:line:column`, counted from one."""


def load_script(path: Path) -> Script:
    """Read a script from a file.

    Raises:
        ScriptError: bad YAML, an unknown key, a wrong type, a bad regular expression, a `${name}` never captured.
        OSError: the file cannot be read.
    """
    return parse_script(path.read_text(encoding="utf-8"), str(path))


def parse_script(text: str, filename: str = "script.yaml") -> Script:
    """Read a script from YAML text; `filename` is for messages. Raises as `load_script`."""
    return _Reader(text, filename).script()


class _Reader:
    """Walks the nodes of one document, since only nodes know their line."""

    def __init__(self, text: str, filename: str) -> None:
        self._filename = filename
        self._loader = yaml.SafeLoader(text)
        self._names: list[tuple[str, yaml.Node]] = []
        self._fields: dict[str, dict[str, Parser]] = {
            "the script": {
                "script": self._string,
                "values": self._strings,
                "window": self._whole,
                "pace": self._pace,
                "conversations": self._list(self._conversation),
            },
            "pace": {"delay_s": self._number, "chunk_s": self._number, "chunk": self._whole},
            "a conversation": {
                "name": self._string,
                "match": self._match,
                "match_last": self._match,
                "turns": self._list(self._step),
            },
            "a turn": {
                "text": self._words,
                "thinking": self._words,
                "calls": self._list(self._call),
                "stop": self._one_of(get_args(Stop)),
                "when": self._condition,
                "expect": self._conditions,
                "capture": self._patterns,
                "faults": self._list(self._fault),
                "delay_s": self._number,
                "chunk_s": self._number,
                "chunk": self._whole,
                "repeat": self._whole,
            },
            "a call": {"tool": self._string, "arguments": self._data, "json": self._words, "unknown": self._flag},
            "a condition": {
                "tool": self._string,
                "matches": self._pattern,
                "lacks": self._pattern,
                "is_error": self._flag,
                "said": self._pattern,
            },
            "a fault": {
                "kind": self._one_of(get_args(FaultKind)),
                "times": self._whole,
                "status": self._whole,
                "error": self._string,
                "message": self._string,
                "retry_after_s": self._number,
                "after": self._whole,
                "seconds": self._number,
            },
        }

    def script(self) -> Script:
        try:
            node = self._loader.get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
            raise ScriptError(f"{self._filename}:{where}: {error.problem or error}") from error
        except yaml.YAMLError as error:
            raise ScriptError(f"{self._filename}:1:1: {error}") from error
        if node is None:
            raise ScriptError(f"{self._filename}:1:1: the script is empty")
        found = self._read(node, "the script", needs=("script", "conversations"))
        script = Script(name=found.pop("script"), **found)
        self._check_names(script)
        return script

    def _check_names(self, script: Script) -> None:
        """Refuse a `${name}` that nothing in the script captures: at run time it could never be filled."""
        steps = [step for conversation in script.conversations for step in conversation.turns]
        known = set(script.values)
        for step in steps:
            turns = step.of if isinstance(step, Choose) else [step] if isinstance(step, Turn) else []
            known.update(name for turn in turns for name in turn.capture)
        for name, node in self._names:
            if name not in known:
                raise self._error(node, f"${{{name}}} is captured nowhere; write $${{{name}}} if the text means that")

    def _conversation(self, node: yaml.Node) -> Conversation:
        return Conversation(**self._read(node, "a conversation", needs=("name", "turns")))

    def _step(self, node: yaml.Node) -> Step:
        items = self._items(node)
        if [key.value for key, _ in items] == ["choose"]:
            return Choose(self._list(self._turn)(items[0][1]))
        turn = self._turn(node)
        if turn.when is not None:
            raise self._error(node, "`when` belongs to an alternative under `choose`; `expect` states what must hold")
        return turn

    def _turn(self, node: yaml.Node) -> Turn:
        return Turn(**self._read(node, "a turn"))

    def _pace(self, node: yaml.Node) -> Pace:
        return replace(Pace(), **self._read(node, "pace"))

    def _call(self, node: yaml.Node) -> Call:
        """Read `{tool: read, arguments: {...}}` or its short form `{read: {...}}`."""
        items = self._items(node)
        if len(items) == 1 and items[0][0].value not in self._fields["a call"]:
            return Call(self._string(items[0][0]), self._data(items[0][1]))
        found = self._read(node, "a call", needs=("tool",))
        if "arguments" in found and "json" in found:
            raise self._error(node, "a call has either `arguments` or `json`")
        return Call(**found)

    def _condition(self, node: yaml.Node) -> Condition:
        return Condition(**self._read(node, "a condition"))

    def _conditions(self, node: yaml.Node) -> tuple[Condition, ...]:
        if isinstance(node, yaml.SequenceNode):
            return tuple(self._condition(item) for item in node.value)
        return (self._condition(node),)

    def _fault(self, node: yaml.Node) -> Fault:
        return Fault(**self._read(node, "a fault"))

    def _read(self, node: yaml.Node, what: str, needs: tuple[str, ...] = ()) -> dict[str, Any]:
        """Read a mapping by the table of its fields."""
        table, found = self._fields[what], dict[str, Any]()
        for key, value in self._items(node):
            if key.value not in table:
                near = difflib.get_close_matches(str(key.value), table, 1)
                hint = f'did you mean "{near[0]}"?' if near else f"it has: {', '.join(table)}"
                raise self._error(key, f'{what} has no "{key.value}"; {hint}')
            found[key.value] = table[key.value](value)
        for need in needs:
            if need not in found:
                raise self._error(node, f'{what} needs "{need}"')
        return found

    def _items(self, node: yaml.Node) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, "a mapping is needed here")
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key is a plain word")
            if key.value in seen:
                raise self._error(key, f'"{key.value}" is there twice')
            seen.add(key.value)
        return list(node.value)

    def _list(self, item: Parser) -> Parser:
        def parse(node: yaml.Node) -> tuple[Any, ...]:
            if not isinstance(node, yaml.SequenceNode):
                raise self._error(node, "a list is needed here")
            return tuple(item(inner) for inner in node.value)

        return parse

    def _one_of(self, words: tuple[str, ...]) -> Parser:
        def parse(node: yaml.Node) -> str:
            value = self._string(node)
            if value not in words:
                raise self._error(node, f'"{value}" is none of: {", ".join(words)}')
            return value

        return parse

    def _plain(self, node: yaml.Node) -> object:
        """Build the value of a node, as `yaml.safe_load` does."""
        try:
            return self._loader.construct_object(node, deep=True)
        except yaml.MarkedYAMLError as error:
            raise self._error(node, str(error.problem)) from error

    def _string(self, node: yaml.Node) -> str:
        if not isinstance(value := self._plain(node), str):
            raise self._error(node, f"a text is needed here, not {value!r}; put it in quotes")
        return value

    def _number(self, node: yaml.Node) -> float:
        value = self._plain(node)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise self._error(node, f"a number from 0 is needed here, not {value!r}")
        return float(value)

    def _whole(self, node: yaml.Node) -> int:
        value = self._plain(node)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._error(node, f"a whole number from 0 is needed here, not {value!r}")
        return value

    def _flag(self, node: yaml.Node) -> bool:
        if not isinstance(value := self._plain(node), bool):
            raise self._error(node, f"true or false is needed here, not {value!r}")
        return value

    def _words(self, node: yaml.Node) -> str:
        text = self._string(node)
        self._note_names(text, node)
        return text

    def _data(self, node: yaml.Node) -> Mapping[str, object]:
        self._items(node)
        value = self._plain(node)
        if not isinstance(value, Mapping):
            raise self._error(node, "a mapping is needed here")
        self._note_deep(node)
        return value

    def _note_deep(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.ScalarNode):
            self._note_names(node.value, node)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self._note_deep(item)
        elif isinstance(node, yaml.MappingNode):
            for _, value in node.value:
                self._note_deep(value)

    def _note_names(self, text: str, node: yaml.Node) -> None:
        self._names += [(found[2], node) for found in NAME.finditer(text) if not found[1]]

    def _strings(self, node: yaml.Node) -> dict[str, str]:
        return {str(key.value): self._string(value) for key, value in self._items(node)}

    def _patterns(self, node: yaml.Node) -> dict[str, str]:
        return {str(key.value): self._pattern(value) for key, value in self._items(node)}

    def _pattern(self, node: yaml.Node) -> str:
        return self._compiled(node, self._string(node))

    def _match(self, node: yaml.Node) -> str:
        text = self._string(node)
        if len(text) > 1 and text.startswith("/") and text.endswith("/"):
            self._compiled(node, text[1:-1])
        return text

    def _compiled(self, node: yaml.Node, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise self._error(node, f"bad regular expression: {error}") from error
        return pattern

    def _error(self, node: yaml.Node, what: str) -> ScriptError:
        mark = node.start_mark
        return ScriptError(f"{self._filename}:{mark.line + 1}:{mark.column + 1}: {what}")
