"""A prompt as a request on OpenAI's two wires: what the APIs take, always the same bytes, and only ever appended to."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.messages import Message, Part, Prompt, Role, TextPart, ThinkingPart, ToolCall, ToolResult, ToolSpec
from bot.llm import openai_chat_wire as chat
from bot.llm import openai_responses_wire as responses
from bot.llm.anthropic_wire import INVALID_JSON, NO_RESULT, NO_TEXT, ORPHAN, wire_id
from bot.llm.pairing import wire_arguments, wire_name
from bot.testing.model.openai_check import check_chat, check_responses, decode
from bot.testing.model.seal import seal

MODEL = "openai:gpt-x"
TOOLS = (ToolSpec("write", "Write.", {"type": "object"}), ToolSpec("read", "Read.", {"type": "object"}))
SEALED = json.dumps({"type": "reasoning", "id": "rs_1", "encrypted_content": seal("hm"), "summary": [{"text": "hm"}]})


def user(*parts: Part | str) -> Message:
    """A user message."""
    return Message("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> Message:
    """An assistant message."""
    return Message("assistant", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def to_responses(*messages: Message, tools: Sequence[ToolSpec] = (), system: str = "", **more: Any) -> Any:
    """The body of a request to the Responses API."""
    options: Any = {"reasoning": responses.Reasoning(), **more}
    return responses.to_wire(Prompt(system, tools, messages), model=MODEL, max_output_tokens=4096, **options)


def to_chat(*messages: Message, tools: Sequence[ToolSpec] = (), system: str = "", **more: Any) -> Any:
    """The body of a request for a chat completion."""
    return chat.to_wire(Prompt(system, tools, messages), model=MODEL, max_output_tokens=4096, **more)


def test_a_request_has_what_is_fixed_first() -> None:
    """Model, cap, tools by name, system, then what grows; nothing is stored at the provider."""
    body = to_responses(user("Hi"), tools=TOOLS, system="Be brief.")
    assert list(body) == [
        *("model", "max_output_tokens", "store", "prompt_cache_key", "include", "instructions", "tools", "input")
    ]
    assert (body["model"], body["store"], body["include"]) == ("gpt-x", False, ["reasoning.encrypted_content"])
    assert [tool["name"] for tool in body["tools"]] == ["read", "write"]
    body = to_chat(user("Hi"), tools=TOOLS, system="Be brief.")
    assert list(body) == ["model", "max_completion_tokens", "prompt_cache_key", "tools", "messages"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["read", "write"]
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


def test_what_a_server_takes_is_what_it_gets() -> None:
    """The name of the cap, the key of the cache, effort, deployment and reasoning."""
    assert list(to_chat(user("Hi"), habits=chat.COMPATIBLE)) == ["model", "max_tokens", "messages"]
    assert to_chat(user("Hi"), effort="low", wire_model="mine")["reasoning_effort"] == "low"
    assert (
        to_chat(user("Hi"), wire_model="mine")["model"]
        == to_responses(user("Hi"), wire_model="mine")["model"]
        == "mine"
    )
    asked = to_responses(user("Hi"), reasoning=responses.Reasoning("high", "auto"))
    assert asked["reasoning"] == {"effort": "high", "summary": "auto"}
    assert not {"include", "reasoning"} & set(to_responses(user("Hi"), reasoning=None))


@pytest.mark.parametrize("write", [to_responses, to_chat])
def test_the_key_of_the_cache_is_the_conversations(write: Callable[..., Any]) -> None:
    """Another beginning is another key; a longer history has the same."""
    one = write(user("Hi"), system="s")["prompt_cache_key"]
    assert one == write(user("Hi"), assistant("x"), user("y"), system="s")["prompt_cache_key"]
    assert len({one, write(user("Ho"), system="s")["prompt_cache_key"], write(user("Hi"))["prompt_cache_key"]}) == 3
    assert re.fullmatch(r"[0-9a-f]{32}", one)


def test_results_come_right_behind_their_calls() -> None:
    """In the user's order, before the words, and failures say so."""
    history = (
        user("Hi"),
        assistant(ToolCall("a", "read", "{}"), ToolCall("b", "read", '{"x": 1.50}')),
        user("Go on", ToolResult("b", "2", is_error=True), ToolResult("a", "Error: 1", is_error=True)),
    )
    assert to_chat(*history)["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "read", "arguments": '{"x": 1.50}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "Error: 2"},
        {"role": "tool", "tool_call_id": "a", "content": "Error: 1"},
        {"role": "user", "content": "Go on"},
    ]
    assert to_responses(*history)["input"][1:] == [
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "read", "arguments": '{"x": 1.50}'},
        {"type": "function_call_output", "call_id": "b", "output": "Error: 2"},
        {"type": "function_call_output", "call_id": "a", "output": "Error: 1"},
        {"role": "user", "content": "Go on"},
    ]


def test_results_and_calls_find_each_other() -> None:
    """An unanswered call gets a failed result, a result without call becomes text, a doubled id two ids."""
    history = (
        user("x"),
        assistant(ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")),
        user(ToolResult("b", "2"), ToolResult("z", "lost")),
        assistant(ToolCall("a", "read", "{}")),
        assistant("And"),
        user(ToolResult("a", "3"), " "),
    )
    messages = to_chat(*history)["messages"]
    assert [m["role"] for m in messages] == [
        *("user", "assistant", "tool", "tool", "user"),
        *("assistant", "tool", "assistant", "user"),
    ]
    assert [m["content"] for m in messages[2:5]] == ["2", f"Error: {NO_RESULT}", f"{ORPHAN}lost"]
    assert messages[5]["tool_calls"][0]["id"] == messages[6]["tool_call_id"] != "a"
    assert messages[8]["content"] == f"{ORPHAN}3"
    items = to_responses(*history)["input"]
    assert [item.get("output", item.get("content")) for item in items[3:6]] == [
        "2",
        f"Error: {NO_RESULT}",
        f"{ORPHAN}lost",
    ]


def test_two_calls_of_one_id_keep_their_results() -> None:
    """The first result is the first call's."""
    twice = assistant(ToolCall("a", "read", "{}"), ToolCall("a", "read", "{}"))
    history = (user("x"), twice, user(ToolResult("a", "1"), ToolResult("a", "2")))
    _, first, second, one, two = to_responses(*history)["input"]
    assert (first["call_id"], second["call_id"]) == (one["call_id"], two["call_id"])
    assert (one["output"], two["output"]) == ("1", "2")


def test_empty_texts_are_none() -> None:
    """A user message that is left empty says so, as does an empty result; an empty answer is left out."""
    history = (
        user(" \n"),
        assistant("", ToolCall("a", "read", "")),
        user(ToolResult("a", ""), ""),
        assistant(" "),
        user("x"),
    )
    assert [m["content"] for m in to_chat(*history)["messages"]] == [NO_TEXT, None, NO_TEXT, "x"]
    assert [i.get("content", i.get("output")) for i in to_responses(*history)["input"]] == [NO_TEXT, None, NO_TEXT, "x"]


def test_texts_of_one_message_stay_one() -> None:
    """With blank lines between them; an answer of several texts is one for a chat."""
    history = (user("a", "b"), assistant("c", "d"), user("e", "f"))
    assert [m["content"] for m in to_chat(*history)["messages"]] == ["a\n\nb", "c\n\nd", "e\n\nf"]
    assert [i["content"] for i in to_responses(*history)["input"]] == ["a\n\nb", "c", "d", "e\n\nf"]


def test_sealed_reasoning_goes_back_only_to_its_maker() -> None:
    """As it came and before what it led to; another model's, an unsealed and a last one are left out."""
    call = ToolCall("a", "read", "{}")
    mine = ThinkingPart("hm", data=SEALED, model=MODEL)
    others = ThinkingPart("hm", data=SEALED, model="openai:gpt-y")
    odd = [
        ThinkingPart("x", signature="s", model=MODEL),
        ThinkingPart("", data="d", model=MODEL),
        ThinkingPart("", data="[]", model=MODEL),
    ]
    items = to_responses(user("Hi"), assistant(mine, others, *odd, call), user(ToolResult("a", "1")))["input"]
    assert items[1] == json.loads(SEALED)
    assert [item.get("type") for item in items[1:]] == ["reasoning", "function_call", "function_call_output"]
    assert to_responses(user("Hi"), assistant(mine, mine, " "), user("x"))["input"][1:] == [
        {"role": "user", "content": "x"}
    ]


def test_the_phase_of_a_text_goes_back_with_it() -> None:
    """To the model that said it, for that text and no further one."""
    phase = ThinkingPart("", data='{"phase": "commentary"}', model=MODEL)
    foreign = ThinkingPart("", data='{"phase": "commentary"}', model="openai:gpt-y")
    items = to_responses(user("Hi"), assistant(phase, "a", mine_or_not(), "b", foreign, "c"), user("x"))["input"]
    assert [item.get("phase") for item in items if item.get("role") == "assistant"] == ["commentary", None, None]
    assert "phase" not in json.dumps(to_chat(user("Hi"), assistant(phase, "a"), user("x")))


def mine_or_not() -> ThinkingPart:
    """Reasoning of this model."""
    return ThinkingPart("hm", data=SEALED, model=MODEL)


def test_reasoning_of_a_chat_goes_back_within_a_tool_loop() -> None:
    """In the field it came in, to the same model, with calls only."""
    details: Any = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]}
    for fields in ({"reasoning_content": "hm"}, {"reasoning": "hm"}, details):
        mine = ThinkingPart("hm", data=json.dumps({**fields, "role": "system"}), model=MODEL)
        foreign = ThinkingPart("hm", data=json.dumps(fields), model="openai:gpt-y")
        call, result = ToolCall("a", "read", "{}"), user(ToolResult("a", "1"))
        message = to_chat(user("Hi"), assistant(mine, "x", call), result)["messages"][1]
        assert {key: message[key] for key in fields} == fields
        assert message["role"] == "assistant"
        assert not set(fields) & set(to_chat(user("Hi"), assistant(mine, "x"), user("y"))["messages"][1])
        assert not set(fields) & set(to_chat(user("Hi"), assistant(foreign, "x", call), result)["messages"][1])


def test_ids_and_names_of_other_vendors_fit() -> None:
    """Any id becomes one the API takes, the same on both sides; so does a tool's name."""
    foreign = "call|item/" + "x" * 100
    history = (user("x"), assistant(ToolCall(foreign, "functions.read", "{}")), user(ToolResult(foreign, "1")))
    call, result = to_responses(*history)["input"][1:]
    assert call["call_id"] == result["call_id"] == wire_id(foreign)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["call_id"])
    assert call["name"] == wire_name("functions.read") == "functions_read"
    _, message, tool = to_chat(*history)["messages"]
    assert message["tool_calls"][0]["id"] == tool["tool_call_id"] == call["call_id"]
    assert wire_name("") == "unnamed"


def test_arguments_go_back_as_the_model_wrote_them() -> None:
    """Byte for byte, unless a server would stumble: then as an object that says so."""
    for text in ('{"b": 1, "a": 2.50}', " {} ", '{"a":"\\u00e4"}', '{"a": ' + "9" * 400 + "}"):
        assert wire_arguments(text) == text
    assert wire_arguments("") == wire_arguments(" \n") == "{}"
    assert wire_arguments('"{\\"a\\": 1}"') == '{"a": 1}'
    assert json.loads(wire_arguments('{"k\\u0000": ["\\ud800"]}')) == {"k\ufffd": ["\ufffd"]}
    for text in ('{"a": "tru', "[1]", "null", '"x"', "NaN", '{"a": NaN}', "\0", '"\\"x\\""'):
        assert json.loads(wire_arguments(text)) == {INVALID_JSON: text.replace("\0", "\ufffd")}


@pytest.mark.parametrize("write", [to_responses, to_chat])
def test_text_that_no_api_takes_is_cleaned(write: Callable[..., Any]) -> None:
    """Lone surrogates and NUL are replaced everywhere, in arguments and schemas too."""
    body = write(
        user("a\0\ud800b"),
        assistant(ToolCall("a\ud800", "re\ud800ad", '{"k\\u0000": ["\\ud800"]}'), "\udfff"),
        user(ToolResult("a\ud800", "\udfff")),
        tools=[ToolSpec("t", "\0", {"type": "object", "description": "\ud800"})],
        system="\ud800",
    )
    raw = json.dumps(body, ensure_ascii=False)
    assert "\0" not in raw
    assert "\\u0000" not in raw
    raw.encode()


names = st.sampled_from(["read", "write", "a.b", "ü"])
texts = st.text(max_size=8) | st.sampled_from(["", " ", "ok", "\0", "\ud800", "x \n"])
ids = st.sampled_from(["a", "b", "c|d", "e" * 80])
arguments = st.sampled_from(["", "{}", '{"a":"\\u0000"}', '{"a": 1.50}', '{"x', "[]", '{"b":"\\ud800"}', "NaN", '"{}"'])
thoughts = st.builds(
    ThinkingPart,
    texts,
    data=st.sampled_from(["", "d", SEALED, '{"reasoning_content":"hm"}', '{"phase":"commentary"}']),
    model=st.sampled_from([MODEL, "o:x"]),
)
said: st.SearchStrategy[Part] = st.builds(TextPart, texts) | thoughts | st.builds(ToolCall, ids, names, arguments)
heard: st.SearchStrategy[Part] = st.builds(TextPart, texts) | st.builds(ToolResult, ids, texts, is_error=st.booleans())


def messages(role: Role, parts: st.SearchStrategy[Part], most: int) -> st.SearchStrategy[Message]:
    """Messages of one side."""
    return st.builds(Message, st.just(role), st.lists(parts, max_size=most).map(tuple))


turns = st.lists(st.tuples(messages("assistant", said, 14), messages("user", heard, 14)), max_size=6)


@pytest.mark.parametrize(("write", "check"), [(to_responses, check_responses), (to_chat, check_chat)])
@settings(max_examples=200, deadline=None)
@given(messages("user", heard, 3), turns, st.sampled_from(["", "Be brief."]))
def test_a_longer_history_only_appends(
    write: Callable[..., Any],
    check: Callable[[Any], None],
    first: Message,
    history: list[tuple[Message, Message]],
    system: str,
) -> None:
    """Request n is a byte prefix of request n+1, and the API's rules, pairing among them, hold for each of them."""
    before = ""
    for end in range(len(history) + 1):
        told = [first, *(message for turn in history[:end] for message in turn)]
        body = write(*told, tools=TOOLS, system=system)
        check(decode(json.dumps(body).encode()))
        text = json.dumps(body, ensure_ascii=False)
        assert text.startswith(before)
        before = text.removesuffix("]}")
