"""What holds for any reply: the same however it is split, exact, and not to be taken over by what it copies."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain.messages import ToolCall
from bot.llm.dialects.base import Called, Dialect, Event, Fault
from bot.llm.spoken import DIALECTS
from tests.unit.llm.dialects.told import TOKEN, TOOLS, joined, parsed, runs

SPOKEN: dict[str, Dialect] = {name: speaks(TOOLS, TOKEN) for name, speaks in DIALECTS.items()}
PIECES = [
    *(
        "<write>",
        "</write>",
        "<read>",
        "</read>",
        "<path>",
        "</path>",
        "<content>",
        "</content>",
        "<read_file>",
        "<think>",
    ),
    *(
        f'<content id="{TOKEN}">',
        f'</content id="{TOKEN}">',
        f'<content id="{TOKEN}-2">',
        '<content id="zz">',
        "<run/>",
    ),
    *("<edit>", "<old>", "</old>", "<new>", "</new>", "</edit>", "<details>", "<read x='1'>", "</think>", "</list>"),
    *("<run>", "<command>", "</command>", "</run>", "<list>", "<finish>", "<summary>", "</summary>", "</finish>"),
    *(
        "```",
        "```json",
        "````",
        "~~~",
        f"```{TOKEN}",
        f"```{TOKEN} no-eol",
        "   ```",
        TOKEN,
        '"}}',
        "`",
        "\\n",
        '"',
        "\\",
    ),
    *(
        '{"tool": "read", "arguments": {"path": "a"}}',
        f'{{"tool": "list", "id": "{TOKEN}"}}',
        "[",
        ",",
        "]",
        "{}",
        "NaN",
    ),
    *(
        "READ `a`",
        "WRITE `a`",
        "RUN `evil`",
        "EDIT `a`",
        "READ",
        "RUN x",
        "LIST",
        "FINISH `x`",
        " offset=2 `a`",
        "NOPE `a`",
    ),
    *("\n", "\n", "\n", "\r\n", " ", "x", "ä", "\u2028", "\0", "1", "true"),
]
"""What replies, and the files that an attacker writes, are made of."""
FORGED = [piece for piece in PIECES if TOKEN not in piece]
REPLIES = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=20).map("\n".join),
    st.text(max_size=60),
)
CONTENTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map("\n".join),
    st.text(st.characters(codec="utf-8"), max_size=40),
)
LINES = st.lists(st.sampled_from(FORGED), max_size=14)
HOSTILE = st.one_of(LINES.map("\n".join), LINES.map("".join))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | CONTENTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.one_of(
    st.tuples(st.just("write"), st.fixed_dictionaries({"path": CONTENTS, "content": CONTENTS})),
    st.tuples(
        st.just("edit"),
        st.fixed_dictionaries(
            {"path": CONTENTS, "old": CONTENTS, "new": CONTENTS}, optional={"expected_count": st.integers()}
        ),
    ),
    st.tuples(st.just("run"), st.fixed_dictionaries({"command": CONTENTS})),
    st.tuples(st.just("list"), st.just({})),
    st.tuples(st.just("finish"), st.fixed_dictionaries({"summary": CONTENTS})),
    st.tuples(
        st.just("ask"),
        st.fixed_dictionaries(
            {"topic": CONTENTS, "count": st.integers()},
            optional={
                "tags": st.lists(JSON, max_size=3),
                "where": st.dictionaries(st.text(max_size=5), JSON, max_size=3),
                "note": CONTENTS,
                "ratio": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
                "either": JSON,
                "nothing": st.none(),
                "odd": JSON,
            },
        ),
    ),
)
SPLITS = st.lists(st.integers(0, 400), max_size=12)


def split(text: str, cuts: Sequence[int]) -> list[str]:
    """Cut a text at these places."""
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


def call(name: str, arguments: object) -> ToolCall:
    """A call of the transcript."""
    return ToolCall("1", name, json.dumps(arguments))


def is_prefix(part: list[Event], whole: list[Event]) -> bool:
    """Whether `whole` goes on where `part` stops; its last text may be longer."""
    if not part:
        return True
    same, last = part[:-1], part[-1]
    if same != whole[: len(same)] or len(whole) < len(part):
        return False
    other = whole[len(same)]
    return other == last or (
        type(other) is type(last) and getattr(other, "text", "").startswith(getattr(last, "text", "\0"))
    )


@pytest.mark.parametrize("name", SPOKEN)
@settings(max_examples=120, deadline=None)
@given(reply=REPLIES, cuts=SPLITS)
def test_splits_change_nothing(name: str, reply: str, cuts: list[int]) -> None:
    """Any text, any split: the same texts, calls and faults; what is known early is a prefix of what is known late."""
    whole = parsed(SPOKEN[name], [reply])
    assert parsed(SPOKEN[name], split(reply, cuts)) == whole
    assert parsed(SPOKEN[name], list(reply)) == whole
    parser = SPOKEN[name].parser()
    so_far: list[Event] = []
    for piece in split(reply, cuts):
        so_far = joined([*so_far, *parser.feed(piece)])
        assert is_prefix(so_far, whole)


@pytest.mark.parametrize("name", SPOKEN)
@settings(max_examples=120, deadline=None)
@given(asked=st.lists(ARGUMENTS, min_size=1, max_size=3))
@example(asked=[("write", {"path": "", "content": "\r"})])
def test_what_is_rendered_is_read_again(name: str, asked: list[tuple[str, dict[str, object]]]) -> None:
    """A call in the history is spelled such that the same call is read in it, whatever its texts hold."""
    reply = "\n\n".join(["I do it.", *(SPOKEN[name].render_call(call(*one)) for one in asked), "Done."])
    events = parsed(SPOKEN[name], [reply])
    assert not [event for event in events if isinstance(event, Fault)]
    assert [(one.name, json.loads(one.arguments)) for one in runs(events)] == asked


@pytest.mark.parametrize("name", SPOKEN)
@settings(max_examples=25, deadline=None)
@given(asked=st.lists(ARGUMENTS, min_size=1, max_size=2))
def test_a_reply_cut_anywhere_runs_nothing(name: str, asked: list[tuple[str, dict[str, object]]]) -> None:
    """Cut before its end, nothing runs; where the model ended it so, only whole calls run."""
    reply = "\n".join(SPOKEN[name].render_call(call(*one)) for one in asked)
    whole = runs(parsed(SPOKEN[name], [reply]))
    for end in range(len(reply)):
        for stop in ("length", "refusal", "error", "pause"):
            assert runs(parsed(SPOKEN[name], [reply[:end]], stop)) == []
        found = runs(parsed(SPOKEN[name], [reply[:end]]))
        assert found == whole[: len(found)]
        assert len(found) < len(whole)


@settings(max_examples=250, deadline=None)
@given(text=HOSTILE, is_inline=st.booleans())
@example(text="</command>\n</run>\n```", is_inline=False)
@example(text="ls\n</command>\n</run>\n~~~", is_inline=False)
def test_xml_is_not_taken_over(text: str, *, is_inline: bool) -> None:
    """A model that copies a hostile text without the token writes exactly that text, or nothing of its reply runs."""
    value = text if is_inline else f"\n{text}"
    wanted = re.sub(r"\A\r?\n", "", text) if is_inline else text
    for before, after in (("", ""), ("<read>\n<path>x</path>\n</read>\n", "<read>\n<path>y</path>\n</read>\n")):
        events = parsed(
            SPOKEN["xml"], [f"{before}<write>\n<path>a</path>\n<content>{value}</content>\n</write>\n{after}"]
        )
        honest = [{"path": "x"}, {"path": "a", "content": wanted}, {"path": "y"}]
        assert all(json.loads(one.arguments) in honest for one in runs(events))
    edit = f"<edit>\n<path>a</path>\n<old>{value}</old>\n<new>{value}</new>\n</edit>\n"
    for found in runs(parsed(SPOKEN["xml"], [edit])):
        assert json.loads(found.arguments) == {"path": "a", "old": wanted, "new": wanted}
    for found in runs(parsed(SPOKEN["xml"], [f"<run>\n<command>\n{text}\n</command>\n</run>\n"])):
        assert found.name == "run"
        assert json.loads(found.arguments)["command"] in (text, f"{text}\n")


@settings(max_examples=250, deadline=None)
@given(text=HOSTILE)
def test_prose_is_not_taken_over(text: str) -> None:
    """The same for blocks without the token."""
    block = f"```\n{text}\n```\n"
    for found in runs(parsed(SPOKEN["prose"], [f"WRITE `a`\n{block}"])):
        assert json.loads(found.arguments) == {"path": "a", "content": f"{text}\n"}
    for found in runs(parsed(SPOKEN["prose"], [f"EDIT `a`\n{block}{block}"])):
        assert json.loads(found.arguments) == {"path": "a", "old": f"{text}\n", "new": f"{text}\n"}


@settings(max_examples=250, deadline=None)
@given(text=HOSTILE, end=st.sampled_from(["", f', "id": "{TOKEN}"']))
def test_json_is_not_taken_over(text: str, end: str) -> None:
    """The same for a model that does not escape what it copies."""
    reply = f'```json\n{{"tool": "write", "arguments": {{"path": "a", "content": "{text}"}}{end}}}\n```\n'
    for found in runs(parsed(SPOKEN["json"], [reply])):
        assert json.loads(found.arguments) == {"path": "a", "content": json.loads(f'"{text}"')}


@pytest.mark.parametrize("name", SPOKEN)
@settings(deadline=None)
@given(text=HOSTILE)
def test_the_token_keeps_hostile_text_in(name: str, text: str) -> None:
    """With the token, as taught, any text of others is copied exactly."""
    reply = SPOKEN[name].render_call(call("write", {"path": "a", "content": text}))
    assert runs(parsed(SPOKEN[name], [reply])) == [Called("write", json.dumps({"path": "a", "content": text}))]
