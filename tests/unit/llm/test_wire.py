"""A prompt as a request: what the API takes, always the same bytes, and only ever appended to."""

import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.messages import Message, Part, Prompt, Role, TextPart, ThinkingPart, ToolCall, ToolResult, ToolSpec
from bot.llm.anthropic_wire import INVALID_JSON, NO_RESULT, NO_TEXT, ORPHAN, Thinking, to_wire, wire_id, wire_input
from bot.testing.model.anthropic_check import check_body

MODEL = "anthropic:claude-x"
TOOLS = (ToolSpec("write", "Write.", {"type": "object"}), ToolSpec("read", "Read.", {"type": "object"}))


def user(*parts: Part | str) -> Message:
    """A user message."""
    return Message("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> Message:
    """An assistant message."""
    return Message("assistant", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def wire(*messages: Message, tools: Sequence[ToolSpec] = (), system: str = "", thinking: Thinking = None) -> Any:
    """The body of a request."""
    return to_wire(Prompt(system, tools, messages), model=MODEL, max_output_tokens=4096, thinking=thinking)


def contents(body: Any) -> list[list[dict[str, Any]]]:
    """The blocks of each message, without cache marks."""
    return [
        [{key: value for key, value in block.items() if key != "cache_control"} for block in message["content"]]
        for message in body["messages"]
    ]


def marked(body: Any) -> list[tuple[Any, ...]]:
    """Where the cache marks are."""
    places: list[tuple[Any, ...]] = []
    for room in ("tools", "system"):
        places += [(room, number) for number, item in enumerate(body.get(room, ())) if "cache_control" in item]
    for number, message in enumerate(body["messages"]):
        places += [(number, place) for place, block in enumerate(message["content"]) if "cache_control" in block]
    return places


def test_a_request_has_what_is_fixed_first() -> None:
    """Model, cap, tools by name, system, messages; no more."""
    body = wire(user("Hi"), tools=TOOLS, system="Be brief.")
    assert list(body) == ["model", "max_tokens", "tools", "system", "messages"]
    assert (body["model"], body["max_tokens"]) == ("claude-x", 4096)
    assert [tool["name"] for tool in body["tools"]] == ["read", "write"]
    assert body["tools"][0] == {"name": "read", "description": "Read.", "input_schema": {"type": "object"}}


def test_results_come_before_words() -> None:
    """In a user message the results are first, in their order."""
    call = ToolCall("a", "read", "{}")
    body = wire(
        user("Hi"),
        assistant(call, ToolCall("b", "read", "{}")),
        user("Go on", ToolResult("a", "1"), ToolResult("b", "2")),
    )
    assert [block["type"] for block in contents(body)[2]] == ["tool_result", "tool_result", "text"]
    assert [block.get("content") for block in contents(body)[2]] == ["1", "2", None]


def test_thinking_goes_back_only_to_its_maker() -> None:
    """Verbatim with its seal, redacted parts too; another model's and an unsealed one are left out."""
    call = ToolCall("a", "read", "{}")
    mine = ThinkingPart("hm ", signature="s", model=MODEL)
    sealed = ThinkingPart("", data="d", model=MODEL)
    others = ThinkingPart("foreign", signature="f", model="anthropic:claude-y")
    broken = ThinkingPart("cut", model=MODEL)
    body = wire(user("Hi"), assistant(mine, sealed, others, broken, call), user(ToolResult("a", "1")))
    assert contents(body)[1][:-1] == [
        {"type": "thinking", "thinking": "hm ", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ]


def test_a_message_of_thinking_alone_is_left_out() -> None:
    """The API takes no message that ends with thinking."""
    body = wire(user("Hi"), assistant(ThinkingPart("hm", signature="s", model=MODEL)), user("And?"))
    assert contents(body) == [[{"type": "text", "text": "Hi"}], [{"type": "text", "text": "And?"}]]


def test_the_user_begins() -> None:
    """Where a model speaks first, as behind what was cut out, something stands before it."""
    text = {"type": "text", "text": NO_TEXT}
    assert contents(wire(assistant("Hi"), user("x")))[0] == [text]
    assert contents(wire(assistant(" "), user("x"))) == [[{"type": "text", "text": "x"}]]


def test_empty_texts_are_no_blocks() -> None:
    """Texts of blanks go; a user message that is left empty says so; an empty result has no content."""
    body = wire(
        user(" \n"), assistant("", ToolCall("a", "read", "")), user(ToolResult("a", ""), ""), assistant(" "), user("x")
    )
    assert contents(body) == [
        [{"type": "text", "text": NO_TEXT}],
        [{"type": "tool_use", "id": "a", "name": "read", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "a"}],
        [{"type": "text", "text": "x"}],
    ]


def test_an_empty_failure_has_words() -> None:
    """The API takes no failed result without content."""
    body = wire(user("x"), assistant(ToolCall("a", "read", "")), user(ToolResult("a", " ", is_error=True)))
    expected = {"type": "tool_result", "tool_use_id": "a", "content": NO_TEXT, "is_error": True}
    assert contents(body)[2] == [expected]


def test_a_final_assistant_text_has_no_blanks_at_its_end() -> None:
    """Only there: elsewhere a text goes back as it came."""
    body = wire(user("a"), assistant("b \n"), user("c"), assistant("d \n"))
    assert [blocks[0]["text"] for blocks in contents(body)] == ["a", "b \n", "c", "d"]


def test_results_and_calls_find_each_other() -> None:
    """An unanswered call gets a failed result, a result without call becomes text, a doubled id two ids."""
    body = wire(
        user("x"),
        assistant(ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")),
        user(ToolResult("b", "2"), ToolResult("z", "lost")),
        assistant(ToolCall("a", "read", "{}")),
        user(ToolResult("a", "3")),
    )
    blocks = contents(body)
    assert blocks[2] == [
        {"type": "tool_result", "tool_use_id": "b", "content": "2"},
        {"type": "tool_result", "tool_use_id": "a", "content": NO_RESULT, "is_error": True},
        {"type": "text", "text": ORPHAN + "lost"},
    ]
    assert blocks[3][0]["id"] == blocks[4][0]["tool_use_id"] != "a"


def test_ids_and_names_of_other_vendors_fit() -> None:
    """Any id becomes one the API takes, the same on both sides; so does a tool's name."""
    foreign = "call|item/" + "x" * 100
    body = wire(user("x"), assistant(ToolCall(foreign, "functions.read", "{}")), user(ToolResult(foreign, "1")))
    call, result = contents(body)[1][0], contents(body)[2][0]
    assert call["id"] == result["tool_use_id"] == wire_id(foreign)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["id"])
    assert call["name"] == "functions_read"


@given(st.text(st.characters(), max_size=90), st.text(st.characters(), max_size=90))
def test_ids_stay_apart(one: str, other: str) -> None:
    """Different ids never meet, not even broken ones."""
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_id(one))
    assert (wire_id(one) == wire_id(other)) is (one == other)


def test_broken_arguments_do_no_harm() -> None:
    """What is no JSON object is kept as text; the order of keys is the model's."""
    assert list(wire_input('{"b": 1, "a": 2.50}').items()) == [("b", 1), ("a", 2.5)]
    assert wire_input("") == wire_input(" {} ") == {}
    deep = '{"a":' * 100 + "1" + "}" * 100
    for text in ('{"a": "tru', "[1]", "null", '"x"', "NaN", '{"a": NaN}', '{"a": 1e999}', deep, '{"a":' * 100_000, " "):
        assert wire_input(text) == {INVALID_JSON: text}
    assert wire_input('{"a": ' + "9" * 5000 + "}")[INVALID_JSON]


def test_text_that_no_api_takes_is_cleaned() -> None:
    """Lone surrogates and NUL are replaced everywhere, in arguments too."""
    body = wire(
        user("a\0\ud800b"),
        assistant(ToolCall("a", "re\ud800ad", '{"k\\u0000": ["\\ud800"]}')),
        user(ToolResult("a", "\udfff")),
        tools=[ToolSpec("t", "\0", {"type": "object", "description": "\ud800"})],
        system="\ud800",
    )
    raw = json.dumps(body, ensure_ascii=False)
    assert "\0" not in raw
    raw.encode()
    assert contents(body)[0][0]["text"] == "a\ufffd\ufffdb"
    assert contents(body)[1][0]["input"] == {"k\ufffd": ["\ufffd"]}


def test_marks_are_on_what_stays_and_on_the_newest_turns() -> None:
    """One on the system text (without one: on the last tool), one on each of the last two user messages."""
    turn = (assistant(ToolCall("a", "read", "{}")), user(ToolResult("a", "1")))
    assert marked(wire(user("x"), tools=TOOLS, system="s")) == [("system", 0), (0, 0)]
    assert marked(wire(user("x"), tools=TOOLS)) == [("tools", 1), (0, 0)]
    assert marked(wire(user("x"), *turn, *turn, system="s")) == [("system", 0), (2, 0), (4, 0)]
    assert wire(user("x"))["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


def test_a_long_turn_has_a_mark_in_its_middle() -> None:
    """The API looks back twenty blocks; a mark lies no further from the last one, and there are four at most."""
    calls = [ToolCall(f"c{n}", "read", "{}") for n in range(15)]
    results = [ToolResult(call.id, "1") for call in calls]
    body = wire(user("x"), assistant(*calls), user(*results), system="s")
    assert marked(body) == [("system", 0), (0, 0), (1, 9), (2, 14)]
    calls, results = calls[:9], results[:9]
    assert len(marked(wire(user("x"), assistant(*calls), user(*results), system="s"))) == 3


def test_thinking_is_asked_for() -> None:
    """By budget, or left to the model."""
    assert wire(user("x"), thinking=2000)["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert wire(user("x"), thinking="adaptive")["thinking"] == {"type": "adaptive"}
    assert "thinking" not in wire(user("x"))


def test_thinking_waits_for_the_next_turn_after_a_change_of_model() -> None:
    """A tool loop that another model began has no thinking at its head, and the API takes no budget there."""
    call, result = ToolCall("a", "read", "{}"), ToolResult("a", "1")
    foreign = ThinkingPart("x", signature="s", model="openai:o")
    own = ThinkingPart("x", signature="s", model=MODEL)
    loop = [user("x"), assistant(foreign, call), user(result)]
    assert "thinking" not in wire(*loop, thinking=2000)
    assert "thinking" not in wire(*loop, assistant(own, call), user(result), thinking=2000)
    assert "thinking" in wire(
        user("x"), assistant(own, call), user(result), assistant(call), user(result), thinking=2000
    )
    assert "thinking" in wire(*loop, assistant("Done"), user("Next"), thinking=2000)


names = st.sampled_from(["read", "write", "a.b", "ü"])
texts = st.text(max_size=8) | st.sampled_from(["", " ", "ok", "\0", "\ud800", "x \n"])
ids = st.sampled_from(["a", "b", "c|d", "e" * 80])
arguments = st.sampled_from(["", "{}", '{"a": 1.50}', '{"x', "[]", '{"b":"\\ud800"}', "NaN"])
thoughts = st.builds(
    ThinkingPart,
    texts,
    signature=st.sampled_from(["", "s"]),
    data=st.sampled_from(["", "d"]),
    model=st.sampled_from([MODEL, "o:x"]),
)
said: st.SearchStrategy[Part] = st.builds(TextPart, texts) | thoughts | st.builds(ToolCall, ids, names, arguments)
heard: st.SearchStrategy[Part] = st.builds(TextPart, texts) | st.builds(ToolResult, ids, texts, is_error=st.booleans())


def messages(role: Role, parts: st.SearchStrategy[Part], most: int) -> st.SearchStrategy[Message]:
    """Messages of one side."""
    return st.builds(Message, st.just(role), st.lists(parts, max_size=most).map(tuple))


turns = st.lists(st.tuples(messages("assistant", said, 14), messages("user", heard, 14)), max_size=6)


def stripped(value: Any) -> Any:
    """The same without cache marks."""
    if isinstance(value, dict):
        return {key: stripped(inner) for key, inner in value.items() if key != "cache_control"}
    return [stripped(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=200, deadline=None)
@given(messages("user", heard, 3), turns, st.sampled_from(["", "Be brief."]))
def test_a_longer_history_only_appends(first: Message, history: list[tuple[Message, Message]], system: str) -> None:
    """Request n without cache marks is a byte prefix of request n+1, and the API's rules hold for each of them."""
    before = ""
    for end in range(len(history) + 1):
        told = [first, *(message for turn in history[:end] for message in turn)]
        body = wire(*told, tools=TOOLS, system=system)
        assert len(marked(body)) <= 4
        check_body(json.dumps(body).encode())
        text = json.dumps(stripped(body), ensure_ascii=False)
        assert text.startswith(before)
        before = text.removesuffix("]}")
