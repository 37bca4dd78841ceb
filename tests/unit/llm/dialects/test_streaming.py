"""What a parser shows while a reply comes, and where it stops reading."""

import tracemalloc

import pytest

from bot.llm.dialects.base import MESSAGE_CHARS, VALUE_CHARS, Called, Dialect, Fault, Said
from bot.llm.spoken import DIALECTS
from tests.unit.llm.dialects.told import TOKEN, TOOLS, parsed, runs

XML, JSON, PROSE = (DIALECTS[name](TOOLS, TOKEN) for name in ("xml", "json", "prose"))
OPEN = {
    "xml": (XML, f'<write>\n<path>a</path>\n<content id="{TOKEN}">\n', f'</content id="{TOKEN}">\n</write>\n'),
    "json": (JSON, '```json\n{"tool": "write", "arguments": {"path": "a", "content": "', '"}}\n```\n'),
    "prose": (PROSE, f"WRITE `a`\n```{TOKEN}\n", f"```{TOKEN}\n"),
}


def test_text_passes_at_once() -> None:
    """Text is heard as it comes, not when its line is whole."""
    parser = XML.parser()
    assert parser.feed("I loo") == [Said("I loo")]
    assert parser.feed("k.\nNo") == [Said("k.\n"), Said("No")]
    assert parser.feed("w < 3") == [Said("w < 3")]


def test_what_begins_like_a_call_waits_for_its_line() -> None:
    """Markup is never heard, and what only began like it is heard late."""
    parser = XML.parser()
    assert parser.feed("<re") == []
    assert parser.feed("ad>\n<path>a</path>\n</rea") == []
    assert parser.feed("d>\n<b") == [Called("read", '{"path": "a"}')]
    assert parser.feed(">bold</b>") == []
    assert parser.feed("\n") == [Said("<b>bold</b>\n")]
    assert PROSE.parser().feed("Hello, R") == [Said("Hello, R")]
    assert PROSE.parser().feed("R") == []


def test_behind_a_void_nothing_is_read() -> None:
    """A reply of which nothing may run is not read on."""
    parser = XML.parser()
    [fault] = parser.feed("<read x>\n<read>\n<path>a</path>\n</read>\n")
    assert isinstance(fault, Fault)
    assert fault.whole
    assert fault.written == "<read x>\n"
    assert parser.feed("more\n") == []
    assert parser.finish("end") == []


def test_a_fault_keeps_both_ends_of_what_was_written() -> None:
    """The model sees what it did, but not megabytes of it."""
    reply = f"<write>\n<path>a</path>\n<path>{'x' * 9000}</path>\n<content>\n</content>\n</write>\n"
    [fault] = parsed(XML, [reply])
    assert isinstance(fault, Fault)
    assert fault.written.startswith("<write>\n<path>a")
    assert fault.written.endswith("</write>\n")
    assert len(fault.written) < 2100


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("line", ["x" * 99 + "\n", "x" * 4096])
def test_a_value_has_a_limit(name: str, line: str) -> None:
    """A value of more than 1 MiB makes the reply void, however it comes; one that fits is read."""
    dialect, before, after = OPEN[name]
    many = line.replace("\n", "\\n") if name == "json" else line
    for size, fits in ((VALUE_CHARS - 4096, True), (VALUE_CHARS + 4096, False)):
        body = many * (size // len(many))
        end = "" if name == "json" else "\n"
        for step in (1 << 30, 4000):
            reply = f"{before}{body}{end}{after}"
            events = parsed(dialect, [reply[at : at + step] for at in range(0, len(reply), step)])
            assert len(runs(events)) == fits
            if not fits:
                assert isinstance(events[-1], Fault)
                assert events[-1].text.startswith("too_large:")


def test_a_reply_has_a_limit() -> None:
    """Behind 2 MiB nothing is read, and nothing runs, not even what was whole; the split does not matter."""
    reply = "<read>\n<path>a</path>\n</read>\n" + "x" * MESSAGE_CHARS
    whole = parsed(XML, [reply])
    assert runs(whole) == []
    assert isinstance(whole[-1], Fault)
    assert whole[-1].text.startswith("too_large: your reply")
    assert isinstance(whole[1], Said)
    assert len(whole[1].text) == MESSAGE_CHARS - len(reply) + MESSAGE_CHARS
    assert parsed(XML, [reply[at : at + 999] for at in range(0, len(reply), 999)]) == whole
    assert runs(parsed(XML, [reply[:MESSAGE_CHARS]]))


@pytest.mark.parametrize("name", OPEN)
def test_single_characters_are_no_trouble(name: str) -> None:
    """A call of 256 KiB in one line, in pieces of one character: the same as at once, and the memory stays small."""
    dialect, before, after = OPEN[name]
    reply = f"{before}{'ä' * (1 << 18)}{'' if name == 'json' else chr(10)}{after}"
    whole = parsed(dialect, [reply])
    assert len(runs(whole)) == 1
    tracemalloc.start()
    parser = dialect.parser()
    for char in reply:
        parser.feed(char)
    assert tracemalloc.get_traced_memory()[1] < 16 * len(reply)
    tracemalloc.stop()
    assert isinstance(parser, type(dialect.parser()))


@pytest.mark.parametrize("name", OPEN)
def test_an_empty_piece_says_nothing(name: str) -> None:
    """Some servers send empty deltas."""
    dialect: Dialect = OPEN[name][0]
    assert dialect.parser().feed("") == []
    assert parsed(dialect, ["", "a", "", "b", ""]) == [Said("ab")]
