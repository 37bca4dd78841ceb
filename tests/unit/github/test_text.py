"""Harmless words."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.github import text

PIECES = st.lists(
    st.sampled_from(
        [
            "@",
            "ada",
            "/",
            "agent",
            "fix",
            "closes",
            " ",
            "#",
            "1",
            "<",
            "!",
            "--",
            "[",
            "]",
            "(",
            ")",
            ":",
            "www.",
            "&",
            "#64;",
            "commat;",
            "\n",
            "\r",
            "> ",
            "- ",
            "`",
            "```",
            "~~~",
            "\u200b",
            "\u202e",
            "\x1b[0m",
            "img",
            "<details>",
            "\\",
            "😀",
        ]
    )
    | st.just("|")
).map("".join)


@pytest.mark.parametrize(
    "hostile",
    [
        "@ada",
        "ask @org/team now",
        "\\@ada",
        "(@ada)",
        "&#64;ada",
        "&#x40;ada",
        "&commat;ada",
        "@-ada",
        "![x](https://evil.example/?d=1)",
        "&#33;[x](https://evil.example)",
        "<img src=x>",
        "</details>",
        "<!-- hidden -->",
        "<!-- issuewright:v1:x -->",
        "<?php",
        "<![CDATA[x",
        "/agent fix",
        "  /agent fix",
        "> /agent fix",
        "- /approve",
        "1. /merge",
        "\u200b/agent fix",
        "\ufeff /agent fix",
        "x\r/agent fix",
        "closes #1",
        "Fixes: #1",
        "FIXED #1",
        "resolves ada/engine#1",
        "close GH-1",
        "closes https://github.com/ada/engine/issues/1",
        "closes **#1**",
        "fixes\n#1",
        "see https://evil.example/x and HTTP://evil.example",
        "www.evil.example, _WWW.evil.example",
        "[l](http://evil.example)",
        "[l](//evil.example)",
        "[l](/\\evil.example)",
        "[l](http:evil.example)",
        "[l](http\\://evil.example)",
        "[l](http&colon;evil.example)",
        "[l](<//evil.example>)",
        "[l](\n//evil.example)",
        '[l](src/app.py "title")',
        "[l]\n\n[l]: //evil.example",
        "[a\nb]\n\n> [a\nb]:\n  http:evil.example",
        "<https://evil.example>",
    ],
)
def test_power_is_taken_and_words_are_kept(hostile: str) -> None:
    """S99, S100: mentions, images, HTML, commands and closing keywords."""
    harmless = text.neutralise(hostile)
    assert not re.search(r"@[\w-]|!\[|<[A-Za-z/!?]|&#|&commat;", harmless)
    assert not re.search(r"^[\s>\-\d.\u200b\ufeff]*/[a-z]", harmless, re.MULTILINE)
    assert not re.search(
        r"\b(close[sd]?|fix(e[sd])?|resolve[sd]?)\b[\s:*]*(#|GH-|https?:|[\w/]+#)", harmless, re.IGNORECASE
    )
    assert not re.search(r"://|www\.|\]:|\]\((?![\w/#])|\]\(//|\]\([^)]*[:\\&\s]", harmless, re.IGNORECASE)
    seen = harmless.replace("\u200b", "").replace("&amp;", "&")
    assert seen == text.clean(hostile).replace("\u200b", "")


@pytest.mark.parametrize(
    "harmless",
    [
        "a@",
        "1 < 2 and 3 > 2",
        "see #12 and src/app.py",
        "path/to/file",
        "it closes the file, then #1 is next in line of business",
        "prefix #1 and enclose #2",
        "&lt;T&gt;",
        "wow!",
        "[file](src/app.py#L3), [top](/docs) and [part](#part)",
        "[x] done",
        "twice: once // and 3:1",
    ],
)
def test_plain_words_stay(harmless: str) -> None:
    """Nothing is changed that does nothing."""
    assert text.neutralise(harmless) == harmless


@given(st.text() | PIECES)
@example("\x1b\x1b[0m[31m")
def test_neutralising_twice_is_as_once(words: str) -> None:
    """And it never fails, also where pieces that are taken out let others meet."""
    once = text.neutralise(words)
    assert text.neutralise(once) == once
    assert not re.search(r"@[A-Za-z0-9_\-]|!\[|<[A-Za-z/!?]|[\x00-\x08\x1b\u202e]|://|\]:|\]\(//", once)
    commit = text.neutralise_commit(words)
    assert text.neutralise_commit(commit) == commit


@given(st.text() | PIECES)
def test_a_fence_cannot_be_closed_from_within(output: str) -> None:
    """Whatever a program prints."""
    lines = text.fence(output).split("\n")
    assert len(lines[0]) >= 3
    assert set(lines[0]) == {"`"}
    assert lines[-1] == lines[0]
    assert not any(len(run) >= len(lines[0]) for line in lines[1:-1] for run in re.findall("`+", line))
    assert "<!--" not in text.fence(output)


@given(st.text() | PIECES)
def test_a_quote_is_a_quote_to_its_end(words: str) -> None:
    """No line leaves it."""
    assert all(line.startswith(">") for line in text.quote(words).split("\n"))


@given(st.text() | PIECES)
def test_code_and_cells_stay_on_their_line(words: str) -> None:
    """And in their column."""
    assert "\n" not in text.code(words)
    assert "\n" not in text.cell(words)
    for made in (text.cell(words), text.cell_code(words)):
        assert not re.search(r"(?<!\\)\|", made)


def test_line_ends_are_one() -> None:
    """As GitHub reads them."""
    assert text.clean("a\r\nb\rc\n") == "a\nb\nc\n"


def test_code_with_backticks() -> None:
    """The shortest fence that holds."""
    assert text.code("a") == "`a`"
    assert text.code("a`b") == "``a`b``"
    assert text.code("`a`") == "`` `a` ``"
    assert text.code(" \n ") == "` `"


@given(st.text(max_size=300) | PIECES, st.integers(80, 400))
def test_a_cut_text_fits_and_keeps_its_tail(words: str, limit: int) -> None:
    """In GitHub's count, characters beyond the basic plane being two."""
    cut = text.cut(words, limit, tail="<!-- mark -->")
    assert len(cut) + sum(letter > "\uffff" for letter in cut) <= limit
    assert cut.endswith("\n\n<!-- mark -->")


def test_a_cut_closes_what_is_open() -> None:
    """A fence within a folded part: nothing of the rest is swallowed."""
    body = "intro\n<details>\n<summary>x</summary>\n\n````sh\n" + "line\n</details>\n```\n" * 60
    cut = text.cut(body, 400, tail="<!-- mark -->")
    assert len(cut) <= 400
    assert cut.endswith("\n````\n</details>\n\n*Shortened: the text was longer than GitHub takes.*\n\n<!-- mark -->")
    balanced = "<details>\n\n```\nx\n```\n\n</details>\n" + "y\n" * 400
    assert "```\n\n</details>" in text.cut(balanced, 400)
    assert not text.cut(balanced, 400).split("*Shortened")[0].endswith("</details>\n\n")


def test_pictures_count_twice() -> None:
    """As in a count of UTF-16 units."""
    assert text.cut("😀" * 50, 100) == "😀" * 50
    assert len(text.cut("a\n" * 10 + "😀" * 50, 100)) < 100


def test_a_text_that_fits_is_not_touched() -> None:
    """Up to the very last character."""
    assert text.cut("x" * 65_536) == "x" * 65_536
    assert len(text.cut("x" * 65_537)) <= 65_536
    assert len(text.cut("x" * 65_537)) > 30_000


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("Add a flag", "Add a flag"),
        ("  Two\nlines\r\n", "Two lines"),
        ("🎉🎉", "fallback"),
        ("", "fallback"),
        ("\u200b\u202e", "fallback"),
        ("...", "fallback"),
        ("修正する", "修正する"),
        ("ping @ada", "ping @\u200bada"),
        ("Fix: closes #1", "Fix: c\u200bloses #1"),
        ("x" * 130, "x" * 119 + "…"),
    ],
)
def test_a_title_is_one_visible_line(words: str, line: str) -> None:
    """With words in it, and at most 120 characters."""
    assert text.title(words, fallback="fallback") == line


def test_a_commit_message_signs_for_nobody() -> None:
    """S100: no trailers in others' names, and no switching off of checks."""
    words = (
        "Do it [skip ci] [ci skip]\n\nSigned-off-by: Ada <ada@example.com>\nCo-authored-by: X\nskip-checks: true\nend"
    )
    made = text.neutralise_commit(words)
    assert "-by" not in made
    assert "skip-checks" not in made
    assert not re.search(r"\[(skip ci|ci skip)\]", made)
    assert made.endswith("end")


PIECE_OF_MANY = ["@a", "closes ", "<", "/a\n", "> ", "&#", "```\n", "a/", "[skip ", "\x1b[", "](", "](a", "://", "www."]


@pytest.mark.parametrize("piece", PIECE_OF_MANY)
def test_hostile_text_takes_no_time(piece: str) -> None:
    """Linear in the length: 64 KiB within the time that the whole suite has for one test."""
    words = piece * (65_536 // len(piece))
    text.neutralise_commit(words)
    text.cut(text.quote(words))
    text.fence(words)
