"""What is a command and what is talk about one; one case, one file in `tests/cases/commands`."""

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import catalogue
from bot.commands.parser import parse
from bot.domain.command import Command, Fix, Help
from bot.errors import CommandError
from bot.github.text import neutralise

CASES = sorted((Path(__file__).parents[2] / "cases/commands").glob("*.md"))


def read(path: Path) -> tuple[str, str]:
    """Split a case at its last `---`; in `*.escaped.md` the input has Python's escapes."""
    source, _, expected = path.read_bytes().decode().rpartition("\n---\n")
    if path.name.endswith(".escaped.md"):
        source = source.encode("ascii").decode("unicode_escape")
    return source, expected.strip()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    """As the file says."""
    source, expected = read(path)
    try:
        found = repr(parse(source))
    except CommandError as error:
        found = f"CommandError: {error}"
    assert found == expected


def test_there_are_cases() -> None:
    """An empty folder would pass."""
    assert len(CASES) >= 40


@pytest.mark.parametrize("word", ["/bot", "@issuewright", "agent:", "/AGENT"])
def test_another_word(word: str) -> None:
    """An operator may choose it."""
    assert parse(f"{word} fix it", word) == Fix("it")
    assert parse("/claude fix it", word) is None


HOSTILE = [
    " " * 65_536 + "/agent",
    "/agent " * 9_362,
    "/agent fix\n" * 5_900,
    "/agent fix " + "`" * 65_000,
    "/agent fix" + "\n|" * 32_000,
    "/agent fix\n" + "[" * 65_000,
    "/agent fix\n" + "[a]: <" * 10_000,
    "/agent fix " + "-" * 65_000,
    "/agent fix --model " + "x" * 65_000,
    "/agent " + "x" * 65_000,
    ">" * 65_000 + "/agent",
    "- " * 32_000 + "/agent",
    "[/agent" * 9_000,
    "<!--" * 16_000 + "/agent",
    "<!-- -->\n" * 7_000 + "/agent fix",
    "\u200b" * 65_000 + "/agent fix",
    "\ufeff\n" * 30_000 + "/agent fix",
    "\n" * 65_000 + "/agent fix",
    "*/agent" * 9_000,
    "/agent fix\n" + "> " * 32_000,
    "/agent fix\n" + "\t- x\n" * 10_000,
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_takes_no_time(source: str) -> None:
    """S25: 64 KiB of anything within 50 ms of this process."""
    took: list[float] = []
    for _ in range(2):
        started = time.process_time()
        with contextlib.suppress(CommandError):
            parse(source)
        took.append(time.process_time() - started)
    assert min(took) < 0.05


PIECES = st.lists(
    st.sampled_from(
        [
            "/agent",
            "fix",
            "--model",
            "a:b",
            "stop",
            " ",
            "  ",
            "    ",
            "\n",
            "\r\n",
            "\r",
            "> ",
            "- ",
            "# ",
            "```",
            "~~~",
            "<!--",
            "-->",
            "<p>",
            "[",
            "](x)",
            "\t",
            "\u200b",
            "\ufeff",
            "=",
            "*",
            "\x00",
        ]
    )
).map("".join)


@given(st.text() | PIECES)
def test_it_never_fails_otherwise(source: str) -> None:
    """A command, nothing, or a sentence for the person."""
    try:
        parse(source)
    except CommandError as error:
        assert str(error)  # noqa: PT017 - both ends are right


@given(st.text() | PIECES)
def test_what_we_post_is_never_a_command(source: str) -> None:
    """S22: harmless words contain none, whatever they were."""
    assert parse(neutralise(source)) is None


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r")))
def test_the_text_is_the_rest(words: str) -> None:
    """All lines after the first, as they were typed."""
    assert parse(f"/agent fix go\n{words}") in (Fix(f"go\n{words}".strip()), None)


def test_each_command_of_the_catalogue_is_known() -> None:
    """And its usage parses."""
    needed = {"approve": "1a2b3c4d", "budget": "2", "model": "openai:x", "retry": "", "update": "", "check": ""}
    found: list[Command | None] = [
        parse(f"/agent {entry.name} {needed.get(entry.name, 'Yes.')}") for entry in catalogue.CATALOGUE
    ]
    assert None not in found
    assert len({type(command) for command in found}) == len(found)
    assert [usage for usage, _ in catalogue.usages("/x")] == [
        "/x fix [--model NAME] [text]",
        "/x plan [text]",
        "/x approve [HASH | always PATTERN]",
        "/x deny [HASH] [reason]",
        "/x ask <question>",
        "/x answer <text>",
        "/x retry [--fresh]",
        "/x update",
        "/x check",
        "/x budget <usd>",
        "/x model <name>",
        "/x status",
        "/x stop",
        "/x help",
    ]
    assert parse("/agent") == Help()
