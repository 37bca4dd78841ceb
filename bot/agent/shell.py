"""Read a bash command into the simple commands that it would run; nothing is run or looked up.

The grammar is tree-sitter's. Only what stands in `_READ` is taken for understood: whatever else there is leaves a note
in `Script.unread`, and the commands inside it are listed all the same. So a rule that forbids sees as much as possible,
and one that allows can ask for a script without a note. None of this is a boundary, which is the sandbox.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from bot.agent.wrappers import (
    SHELLS,
    WRAPPERS,
    Command,
    Redirection,
    Word,
    script_of,
    started_by_find,
    unwrapped,
    within,
)

MAX_BYTES = 8 * 1024
"""Of UTF-8 that are read; what stands behind them is not. Commands are read in 10 ms, but what the grammar can make no
sense of costs it the square of the length: 0.5 s for so much, 7 s for 32 KiB. A recorded session's longest has 2 kB."""
_MAX_DEPTH = 100
"""Nodes inside each other, scripts as in `sh -c ls` included; a longer way down is not gone."""
_MAX_SCRIPTS = 3
"""Scripts inside each other."""
_MAX_WRAPPERS = 16
_LANGUAGE = Language(tree_sitter_bash.language())
_READ = frozenset(
    {
        *("program", "list", "pipeline", "negated_command", "subshell", "compound_statement", "comment"),
        *("command", "command_name", "variable_assignment", "variable_assignments", "variable_name"),
        *("word", "number", "string", "string_content", "raw_string", "concatenation"),
        *("redirected_statement", "file_redirect", "file_descriptor"),
        *("heredoc_redirect", "heredoc_start", "heredoc_body", "heredoc_content", "heredoc_end"),
    }
)
"""Kinds of nodes that are understood: plain words, lists, pipes, groups, redirections, assignments."""
_SIGNS = frozenset(
    {
        *(";", "&", "&&", "||", "|", "|&", "(", ")", "{", "}", "!", "\n", '"', "="),
        *(">", ">>", ">|", "&>", "&>>", "<", "<>", ">&", "<&", "<<", "<<-"),
    }
)
_QUOTED = frozenset({'"', "string_content", "$"})
_DUPLICATES = frozenset({">&", "<&"})
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_CONTINUED = re.compile(r"[^\s]\\\n[^\s]")
"""A line that goes on in the middle of a word: bash makes one word of it, the grammar two."""
_NO_COMMENT = re.compile(rb"(?<!\\)((?:\\\\)*\\[ \t])#")
"""A blank that is escaped begins a word, and the grammar skips it: what stands behind it is no comment."""
_ESCAPED = re.compile(r"\\(?:\n|(.))", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\(?:\n|([$`"\\]))')
_DOLLAR = re.compile(r'(?:^|[^\\])(?:\\\\)*[$`](?![|) ]|"$)')
"""What may stand for something else in double quotes; `"^a$"` and `"a$|b"` do not."""
_UNQUOTED = re.compile(r"\\.|[*?\[{\s]", re.DOTALL)
_BLANKS = re.compile(rb"(?:[ \t]|\\\n)*")
_BLANK_LINES = re.compile(rb"(?:[ \t\n]|\\\n)*")


@dataclass(frozen=True, slots=True)
class Script:
    """All of a bash command."""

    commands: tuple[Command, ...]
    """In the order of the text, also those in branches that may not run."""
    unread: str | None = None
    """The first thing that was not understood; None where all of it was."""


def parse(text: str) -> Script:
    """Read what `bash -c text` would run; never raises, and its time is bounded by `MAX_BYTES`."""
    return _parse(text, 0, 0)


def _parse(text: str, scripts: int, depth: int) -> Script:
    if scripts > _MAX_SCRIPTS:
        return Script((), "too many scripts inside each other")
    source = _NO_COMMENT.sub(rb"\1_", text.encode("utf-8", "replace"))
    reader = _Reader(source[:MAX_BYTES], scripts)
    if len(source) > MAX_BYTES:
        reader.note(f"more than {MAX_BYTES // 1024} KiB")
    if _odd(text):
        reader.note("characters that cannot be seen")
    if _CONTINUED.search(text):
        reader.note("a line that goes on inside a word")
    root = Parser(_LANGUAGE).parse(source[:MAX_BYTES]).root_node
    if root.has_error:
        reader.note("what is no bash")
    reader.edges(root)
    reader.walk(root, (), depth)
    return Script(tuple(reader.commands), reader.unread)


def _odd(text: str) -> bool:
    """Whether there is a character that bash and the grammar, or people, may see differently."""
    return any(
        (unicodedata.category(letter) in _HIDDEN and letter not in "\n\t")
        or (letter.isspace() and not letter.isascii())
        for letter in text
    )


def _is_word(node: Node) -> bool:
    return node.type in {"command_name", "word", "number", "string", "raw_string", "concatenation"}


class _Reader:
    """Walks one tree."""

    def __init__(self, source: bytes, scripts: int) -> None:
        self._source = source
        self._scripts = scripts
        self._depth = 0
        self.commands: list[Command] = []
        self.unread: str | None = None

    def note(self, what: str) -> None:
        """Remember the first thing that is not understood."""
        self.unread = self.unread or what

    def walk(self, node: Node, around: tuple[Redirection, ...], depth: int) -> None:
        """List the commands of a node; `around` is where the streams of the groups around it go."""
        if depth > _MAX_DEPTH:
            return self.note("too many levels")
        if node.type not in (_READ if node.is_named else _SIGNS):
            self.note(f"`{node.type}`")
        match node.type:
            case "command":
                self._gaps(node)
                self._command(node, around, depth)
            case "redirected_statement":
                self._gaps(node)
                self._redirected(node, around, depth)
            case "variable_assignment":
                self._add(Command((), (self._name(node),), around))
                self._inner(node, depth)
            case "heredoc_body":
                self._inner(node, depth)
            case _:
                for child in self._parts(node):
                    self.walk(child, around, depth + 1)
        return None

    def _parts(self, node: Node) -> Iterator[Node]:
        """Give the children; of `a && b && c`, which the grammar puts inside each other, all at once."""
        left = [node]
        while left:
            one = left.pop()
            if one is node or (one.type == node.type == "list"):
                self._gaps(one)
                left += reversed(one.children)
            else:
                yield one

    def edges(self, root: Node) -> None:
        """Look at what stands in front of all commands and behind them, as `_gaps` does at what is between."""
        end = len(self._source)
        first, last = (root.children[0].start_byte, root.children[-1].end_byte) if root.children else (end, end)
        if not all(map(_BLANK_LINES.fullmatch, (self._source[:first], self._source[last:]))):
            self.note("words that may be one")

    def _gaps(self, node: Node) -> None:
        """Look at what stands between the parts of a node: the grammar skips escaped blanks, which bash does not."""
        if node.type in {"heredoc_body", "string", "concatenation"}:
            return
        blank = _BLANKS if node.type in {"command", "file_redirect", "redirected_statement"} else _BLANK_LINES
        for one, following in pairwise(node.children):
            between = self._source[one.end_byte : following.start_byte]
            if not blank.fullmatch(between) or (not between and _is_word(one) and _is_word(following)):
                self.note("words that may be one")

    def _inner(self, node: Node, depth: int) -> None:
        """Walk what stands inside words: substitutions run commands of their own."""
        for child in node.children:
            self.walk(child, (), depth + 1)

    def _command(self, node: Node, around: tuple[Redirection, ...], depth: int, more: Sequence[Node] = ()) -> None:
        self._depth = depth
        words: list[Word] = []
        assignments: list[str] = []
        redirections: list[Redirection] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self._name(child))
                self._inner(child, depth)
            elif child.type in {"file_redirect", "heredoc_redirect"}:
                to, rest = self._redirect(child, depth)
                redirections += to
                words += [self._word(one, depth) for one in rest]
            elif child.type == "herestring_redirect":
                self.walk(child, (), depth + 1)
            else:
                words.append(self._word(child, depth))
        words += [self._word(one, depth) for one in more]
        self._add(Command(tuple(words), tuple(assignments), (*redirections, *around)))

    def _redirected(self, node: Node, around: tuple[Redirection, ...], depth: int) -> None:
        to: list[Redirection] = []
        more: list[Node] = []
        body: Node | None = None
        for child in node.children:
            if child.type in {"file_redirect", "heredoc_redirect"}:
                found, rest = self._redirect(child, depth)
                to += found
                more += rest
            elif child.type == "herestring_redirect":
                self.walk(child, (), depth + 1)
            else:
                body = child
        inside = (*to, *around)
        if body is not None and body.type == "command":
            return self._command(body, inside, depth + 1, more)
        if more:
            self.note("words behind a redirection")
        before = len(self.commands)
        if body is not None:
            self.walk(body, inside, depth + 1)
        if len(self.commands) == before:  # an empty group writes to its file as well
            self.commands.append(Command((), (), inside))
        return None

    def _redirect(self, node: Node, depth: int) -> tuple[list[Redirection], list[Node]]:
        """Return where streams go, and the words that stand behind: the grammar takes a command's words for targets."""
        self._gaps(node)
        operator = ""
        found: list[Redirection] = []
        words: list[Node] = []
        for child in node.children:
            if not child.is_named:
                operator = operator or self._text(child)
                self.walk(child, (), depth + 1)
            elif child.type == "file_redirect":  # behind the mark of a here-document
                to, rest = self._redirect(child, depth)
                found += to
                words += rest
            elif child.type.startswith("heredoc_"):
                self._document(child, node, depth)
            elif child.type == "file_descriptor":
                if not self._text(child).isdecimal():
                    self.note("a stream that is no number")
            elif child.type in {"pipeline", "list", "command", "redirected_statement"}:
                self.walk(child, (), depth + 1)
            else:
                words.append(child)
        if node.type == "file_redirect" and words:
            target = self._word(words.pop(0), depth)
            copy = operator in _DUPLICATES and target.kind == "plain" and re.fullmatch(r"\d+-?|-", target.text)
            found += [] if copy else [Redirection(operator, target)]
        elif node.type == "file_redirect" and operator not in {">&-", "<&-"}:
            self.note("a redirection to nothing")
        return found, words

    def _document(self, node: Node, redirect: Node, depth: int) -> None:
        """Walk a part of a here-document; what bash would expand in it is not understood."""
        start = next((self._text(one) for one in redirect.children if one.type == "heredoc_start"), "")
        if node.type == "heredoc_body":
            if not set(start) & set("'\"\\") and re.search(r"[$`\\]", self._text(node)):
                self.note("a here-document that is expanded")
            self.walk(node, (), depth + 1)

    def _word(self, node: Node, depth: int) -> Word:
        if depth > _MAX_DEPTH:
            self.note("too many levels")
            return Word(self._text(node), "unknown")
        if node.type not in (_READ if node.is_named else _SIGNS):
            self.note(f"`{node.type}`")
        text = self._text(node)
        if node.type == "string" and _DOLLAR.search(text):
            self.note("a dollar sign in quotes")
        match node.type:
            case "command_name" if node.child_count == 1:
                return self._word(node.children[0], depth + 1)
            case "word" | "number" if not node.child_count:
                return self._bare(text)
            case "raw_string" | "string" if all(child.type in _QUOTED for child in node.children):
                return Word(text[1:-1] if node.type == "raw_string" else _ESCAPED_IN_QUOTES.sub(r"\1", text[1:-1]))
            case "concatenation":
                return self._joined(node, depth)
            case _:
                self._inner(node, depth)
                return Word(text, "unknown")

    def _joined(self, node: Node, depth: int) -> Word:
        texts = [self._text(child) for child in node.children]
        # Nothing between braces stays as it is.
        pairs = [at for at, pair in enumerate(pairwise(texts)) if pair == ("{", "}")]
        literal = {*pairs, *(at + 1 for at in pairs)}
        parts = [
            Word(texts[at]) if at in literal else self._word(child, depth + 1) for at, child in enumerate(node.children)
        ]
        ends = [node.start_byte, *(child.end_byte for child in node.children)]
        if any(child.start_byte != end for child, end in zip(node.children, ends, strict=False)):
            self.note("a word in pieces")
        text = "".join(part.text for part in parts)
        kinds = {part.kind for part in parts}
        if "unknown" in kinds:
            return Word(self._text(node), "unknown")
        return Word(text, "pattern" if "pattern" in kinds else "plain")

    def _bare(self, text: str) -> Word:
        """Read a word, or a part of one, that stands without quotes."""
        signs = {sign for sign in _UNQUOTED.findall(text) if len(sign) == 1}
        if "{" in signs:
            self.note("braces")
            return Word(text, "unknown")
        if any(sign.isspace() for sign in signs):
            self.note("words that may be one")
        plain = _ESCAPED.sub(lambda found: found[1] or "", text)
        return Word(plain, "pattern" if signs & set("*?[") else "plain")

    def _name(self, assignment: Node) -> str:
        return self._text(assignment).partition("=")[0].removesuffix("+")

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _add(self, command: Command) -> None:
        """List a command, out of what only starts it."""
        for _ in range(_MAX_WRAPPERS):
            name = command.words[0].text if command.words else ""
            base = name.rpartition("/")[2]
            for one in started_by_find(command) if base == "find" else ():
                self._add(one)
            if base in SHELLS or base == "eval":
                return self._script(command, base)
            wrapper = WRAPPERS.get(base) if command.words[:1] and command.words[0].kind == "plain" else None
            inner = unwrapped(command, wrapper) if wrapper else None
            if wrapper is None or inner is None:
                return self.commands.append(command)
            if wrapper.kept or name != base:
                self.commands.append(command)
            command = inner
        self.note("too many wrappers")
        return self.commands.append(command)

    def _script(self, command: Command, base: str) -> None:
        """List what is inside `sh -c '…'` or `eval …`, or the command itself where no text of a script is given."""
        script = script_of(command, base)
        inner = Script((), "a script made when it runs" if script else None)
        if script and script.kind != "unknown":
            inner = _parse(script.text, self._scripts + 1, self._depth + 1)
        if script and script.kind == "pattern":
            self.note("a script made of names of files")
        if inner.unread:
            self.note(inner.unread)
        # A script without commands may still have a file to write to.
        if not inner.commands or "/" in command.words[0].text:
            self.commands.append(command)
        self.commands.extend(within(one, command) for one in inner.commands)
