"""The heart of `edit`, by table and by property."""

# ruff: noqa: RUF001 - these characters are meant

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.errors import ToolError
from bot.tools.contents import Text, decode
from bot.tools.diffs import diff
from bot.tools.edits import replace
from bot.tools.nearest import similar
from bot.tools.placeholders import is_placeholder

CASES = sorted((Path(__file__).parents[2] / "cases" / "edits").glob("*.md"))


def parts(path: Path) -> dict[str, str]:
    """Take a case apart; what a section holds ends before the line break that ends the section."""
    head, *sections = re.split(r"^--- (file|old|new|result)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    found = dict(re.findall(r"^(\w+): (.+)$", head, re.MULTILINE))
    for index in range(0, len(sections), 2):
        text = sections[index + 1].removesuffix("\n")
        if found.get("escapes"):
            text = text.replace("\n", "").encode("latin-1").decode("unicode_escape")
        found[sections[index]] = text
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    """Each case gives its result, or its error and nothing else."""
    case = parts(path)
    text = decode(case["file"].encode(), "file")
    count = int(case.get("count", "1"))
    if "error" in case:
        with pytest.raises(ToolError, match=re.escape(case["error"])):
            replace(text, case["old"], case["new"], count)
    else:
        edited = replace(text, case["old"], case["new"], count)
        assert text.encode(edited.text).decode() == case["result"]
        assert edited.how == case["how"]


def test_all_cases_are_read() -> None:
    """The folder holds every pass and every refusal."""
    assert len(CASES) > 40
    assert {parts(path)["how"] for path in CASES if "how" in parts(path)} == {
        "exact", "other line ends", "other spaces at line ends", "another indentation",
        "other quotes, dashes or spaces", "line numbers taken away",
    }  # fmt: skip


SOME = st.text("ab \n", max_size=20)
WILD = st.text('ab \t\r\n“"-–1|', max_size=40)


def apart(text: str, old: str) -> int:
    """Count the places, those that overlap too."""
    return sum(text.startswith(old, at) for at in range(len(text)))


@given(SOME, SOME.filter(bool), SOME, SOME)
def test_exact(before: str, old: str, after: str, new: str) -> None:
    """An exact edit of a place that is there once is `str.replace`, but for the end of the file."""
    text = before + old + after
    assume(apart(text, old) == 1 and old != new)
    expected = text.replace(old, new)
    assume(expected != text and (after or expected.endswith("\n") == text.endswith("\n")))
    assert replace(Text(text, bom=False), old, new).text == expected


@given(WILD, WILD, WILD)
def test_outside_the_place(text: str, old: str, new: str) -> None:
    """Whatever pass fits, all bytes before and after the place stay as they were."""
    try:
        edited = replace(Text(text, bom=False), old, new)
    except ToolError:
        return
    ((start, end),) = edited.spans
    assert edited.text.startswith(text[:start])
    assert edited.text[start:].endswith(text[end:])
    assert end == len(text) or len(edited.text) >= len(text) - (end - start)


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=3, max_size=8, unique=True), st.data())
def test_shifted_block(lines: list[str], data: st.DataObject) -> None:
    """A block that was copied without its indentation fits, and the new one gets that indentation."""
    start = data.draw(st.integers(0, len(lines) - 2))
    end = data.draw(st.integers(start + 2, len(lines)))
    text = "".join(f"    {line}\n" for line in lines)
    old = "".join(f"{line}\n" for line in lines[start:end])
    edited = replace(Text(text, bom=False), old, "new\n  more\n")
    expected = [*(f"    {line}\n" for line in lines[:start]), "    new\n      more\n"]
    assert edited.text == "".join([*expected, *(f"    {line}\n" for line in lines[end:])])


@given(st.text("ab\n", max_size=60), st.text("ab\n", max_size=60))
def test_diff_applies(old: str, new: str) -> None:
    """The diff's hunks turn the old lines into the new ones at the numbers they name."""
    before = old.removesuffix("\n").split("\n") if old else []
    after = new.removesuffix("\n").split("\n") if new else []
    shown = diff(old, new, most_lines=1000)
    if before == after:
        assert shown == "(only line ends changed)"
        return
    made, at = [], 0
    for row in shown.split("\n"):
        if found := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", row):
            first = int(found[1]) - (found[2] != "0")
            made += before[at:first]
            at = first
        elif row[0] == "+":
            made.append(row[1:])
        else:
            assert before[at] == row[1:]
            at += 1
            made += [row[1:]] if row[0] == " " else []
    assert made + before[at:] == after


def test_long_diff() -> None:
    """A diff has at most sixty lines, and says how many are missing."""
    rows = diff("".join(f"{n}\n" for n in range(100)), "".join(f"x{n}\n" for n in range(100))).split("\n")
    assert len(rows) == 61
    assert rows[-1] == "[… 141 more lines of the diff …]"
    assert "too many to show" in diff("a\n" * 5000, "b\n" * 5000)


def test_large_file() -> None:
    """A refusal over a large file comes soon."""
    text = "".join(f"    value_{n} = compute({n})\n" for n in range(50_000))
    assert "value_777 = compute(777)" in similar(text, "    value_777 = compute(778)\n    value_778 = compute(778)\n")
    with pytest.raises(ToolError, match="not_found"):
        replace(Text(text, bom=False), "    nothing\n    of this\n", "x")


@pytest.mark.parametrize(
    "line",
    ["# ... rest of the code unchanged ...",
     "// ... existing code ...", "# rest of code unchanged", "/* ... rest of file */",
     "<!-- rest of the document unchanged -->",
     "    # ... (remaining methods unchanged)",
     "... rest of the function ...", "// keep the rest of the file the same", "# existing imports...",
     "{/* ... existing code ... */}",
     "-- rest of the script is unchanged",
     "# The rest of the class remains the same.",
     "# … rest of the code …", "// ...rest of code unchanged", "# [rest of code unchanged]"],
)  # fmt: skip
def test_placeholders(line: str) -> None:
    """A comment that says that code was left out is one."""
    assert is_placeholder(line)


@pytest.mark.parametrize(
    "line",
    ["...", "# ...", "return rest", "# the rest of the file is parsed lazily", "rest of the code unchanged",
     "remaining = total - used", "# TODO: handle remaining items", "// existing users keep their token",
     "    existing_code = load()", "# same as before", "def rest(): ...", "const {a, ...rest} = props;",
     "# Remaining lines",
     "print('... rest of the code unchanged ...')", "[...existing, item]", "{...rest}", "# See the previous section."],
)  # fmt: skip
def test_no_placeholders(line: str) -> None:
    """Code, prose and ordinary comments are none."""
    assert not is_placeholder(line)


@pytest.mark.timeout(20)
def test_a_long_line_takes_no_time() -> None:
    """A line of a hundred thousand dashes, brackets or spaces is no placeholder, and is soon known to be none."""
    for text in ("x = " + "-" * 100_000 + "1", "]" * 100_000 + "x", "a" + " " * 100_000 + "x"):
        assert not is_placeholder(text)


@pytest.mark.parametrize("data", [b"a\0b", b"Z\xfcrich"])
def test_no_text(data: bytes) -> None:
    """What is not UTF-8 text is never taken for it."""
    with pytest.raises(ToolError, match=r"binary_file|not_utf8"):
        decode(data, "x")
