"""A prompt as a request: what Google's API takes, always the same bytes, and only ever appended to."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.messages import Message, Part, Prompt, Role, TextPart, ThinkingPart, ToolCall, ToolResult, ToolSpec
from bot.llm.anthropic_wire import INVALID_JSON, NO_RESULT, NO_TEXT, ORPHAN, Thinking
from bot.llm.google_wire import UNSEALED, path_of, to_wire

MODEL = "google:gemini-x"
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


def contents(*messages: Message) -> list[tuple[str, list[Any]]]:
    """Roles and parts of the body."""
    return [(content["role"], content["parts"]) for content in wire(*messages)["contents"]]


def call(identifier: str, name: str = "read", seal: str = UNSEALED, **args: Any) -> dict[str, Any]:
    """A call on the wire."""
    found = {"functionCall": {"id": identifier, "name": name, "args": args}}
    return {**found, **({"thoughtSignature": seal} if seal else {})}


def result(identifier: str, name: str = "read", **response: str) -> dict[str, Any]:
    """A result on the wire."""
    return {"functionResponse": {"id": identifier, "name": name, "response": response}}


def test_a_request_has_what_is_fixed_first() -> None:
    """System, tools by name, limits, messages; no more. The model is in the path."""
    body = wire(user("Hi"), tools=TOOLS, system="Be brief.")
    assert list(body) == ["systemInstruction", "tools", "generationConfig", "contents"]
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert body["generationConfig"] == {"maxOutputTokens": 4096}
    declared = body["tools"][0]["functionDeclarations"]
    assert [tool["name"] for tool in declared] == ["read", "write"]
    assert declared[0] == {"name": "read", "description": "Read.", "parameters": {"type": "OBJECT", "properties": {}}}
    assert list(wire(user("Hi"), system=" ")) == ["generationConfig", "contents"]
    assert path_of("google:gemini-x") == "models/gemini-x:streamGenerateContent?alt=sse"
    assert path_of("google:tunedModels/y") == "tunedModels/y:streamGenerateContent?alt=sse"


def test_thinking_is_asked_for() -> None:
    """By budget, or left to the model; shown in both."""
    config = [wire(user("x"), thinking=one)["generationConfig"] for one in (2000, "adaptive", 0)]
    assert [one["thinkingConfig"] for one in config] == [
        {"includeThoughts": True, "thinkingBudget": 2000},
        {"includeThoughts": True},
        {"includeThoughts": True, "thinkingBudget": 0},
    ]


def test_results_are_objects_in_the_order_of_the_calls() -> None:
    """Before any words; each with the name of its call, failed ones under another key."""
    told = contents(
        user("Hi"),
        assistant(ToolCall("a", "read", '{"p":1}'), ToolCall("b", "write", "{}"), ToolCall("c", "read", "")),
        user("Go on", ToolResult("c", "", is_error=True), ToolResult("b", '{"x": 1}'), ToolResult("a", "")),
    )
    assert told[1] == ("model", [call("a", p=1), call("b", "write", seal=""), call("c", seal="")])
    assert told[2] == (
        "user",
        [
            result("a", output=""),
            result("b", "write", output='{"x": 1}'),
            result("c", error=NO_TEXT),
            {"text": "Go on"},
        ],
    )


def test_results_and_calls_find_each_other() -> None:
    """An unanswered call gets a failed result, a result without call becomes text, a doubled id two ids."""
    told = contents(
        user("x"),
        assistant(ToolCall("a", "read", "{}"), ToolCall("a", "read", "{}")),
        user(ToolResult("a", "1"), ToolResult("z", "lost")),
        assistant(ToolCall("a", "read", "{}")),
        user(ToolResult("a", "2"), ToolResult("a", "3")),
    )
    first, second = told[1][1][0]["functionCall"]["id"], told[1][1][1]["functionCall"]["id"]
    assert first == "a" != second
    assert told[2][1] == [result("a", output="1"), result(second, error=NO_RESULT), {"text": ORPHAN + "lost"}]
    third = told[3][1][0]["functionCall"]["id"]
    assert third not in (first, second)
    assert told[4][1] == [result(third, output="2"), {"text": ORPHAN + "3"}]


def test_seals_go_back_to_their_maker_where_they_were() -> None:
    """On the call, the text, the thoughts or alone; calls behind the first need none."""
    seal = ThinkingPart("", signature="s", model=MODEL)
    thoughts = ThinkingPart("hm ", signature="t", model=MODEL)
    alone = ThinkingPart("", data="d", model=MODEL)
    told = contents(user("x"), assistant(thoughts, seal, ToolCall("a", "read", ""), ToolCall("b", "read", ""), alone))
    assert told[1][1] == [
        {"text": "hm ", "thought": True, "thoughtSignature": "t"},
        call("a", seal="s"),
        call("b", seal=""),
        {"text": "", "thoughtSignature": "d"},
    ]
    sealed = ThinkingPart("", signature="s", model=MODEL)
    told = contents(user("x"), assistant(sealed, "y ", ThinkingPart("hm", model=MODEL), "z"))
    assert told[1][1] == [{"text": "y ", "thoughtSignature": "s"}, {"text": "hm", "thought": True}, {"text": "z"}]


def test_what_another_model_made_has_the_documented_word() -> None:
    """Its thoughts and seals are left out; the first call of each message says that it has no seal to show."""
    foreign = [
        ThinkingPart("hm", signature="f", model="anthropic:claude-y"),
        ThinkingPart("", signature="g", model="google:gemini-y"),
        ThinkingPart("", data="h", model="openai:o"),
    ]
    told = contents(
        user("x"),
        assistant(*foreign, "so", ToolCall("a", "read", ""), ToolCall("b", "read", "")),
        user(ToolResult("a", "1"), ToolResult("b", "2")),
        assistant(foreign[1], ToolCall("c", "read", "")),
        user(ToolResult("c", "3")),
    )
    assert told[1][1] == [{"text": "so"}, call("a"), call("b", seal="")]
    assert told[3][1] == [call("c")]


def test_a_seal_never_moves_to_another_part() -> None:
    """A seal whose call is gone is left out."""
    seal = ThinkingPart("", signature="s", model=MODEL)
    told = contents(user("x"), assistant(seal, "", ToolCall("a", "read", ""), seal))
    assert told[1][1] == [call("a")]


def test_roles_take_turns() -> None:
    """An answer with nothing to send is left out and its neighbours are one; the user begins."""
    told = contents(user("a"), assistant("", ThinkingPart("x", model="o:p")), user(""), assistant("b"), assistant("c"))
    assert told == [("user", [{"text": "a"}, {"text": NO_TEXT}]), ("model", [{"text": "b"}, {"text": "c"}])]
    assert contents(assistant("a"), user("b"))[0] == ("user", [{"text": NO_TEXT}])
    assert contents(user(" \n")) == [("user", [{"text": NO_TEXT}])]


def test_ids_names_and_arguments_of_other_vendors_fit() -> None:
    """Any id becomes one of a known alphabet, the same on both sides; broken arguments are kept as text."""
    foreign = "call|item/" + "x" * 100
    told = contents(user("x"), assistant(ToolCall(foreign, "functions.read", '{"cut')), user(ToolResult(foreign, "1")))
    made, answer = told[1][1][0]["functionCall"], told[2][1][0]["functionResponse"]
    assert made["id"] == answer["id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", made["id"])
    assert made["name"] == answer["name"] == "functions_read"
    assert made["args"] == {INVALID_JSON: '{"cut'}
    twice = contents(user("x"), assistant(ToolCall("a", "read", '"{\\"b\\": 1, \\"a\\": 2.50}"')))
    assert list(twice[1][1][0]["functionCall"]["args"].items()) == [("b", 1), ("a", 2.5)]


def test_text_that_no_api_takes_is_cleaned() -> None:
    """Lone surrogates and NUL are replaced everywhere, in arguments, results and schemas too."""
    seal = ThinkingPart("\ud800", model=MODEL)
    body = wire(
        user("a\0\ud800b"),
        assistant(seal, "\udfff", ToolCall("a", "re\ud800ad", '{"k\\u0000": ["\\ud800"]}')),
        user(ToolResult("a", "\udfff"), ToolResult("b", "\0")),
        tools=[ToolSpec("t", "\0", {"type": "object", "description": "\ud800", "properties": {"\0": {}}})],
        system="\ud800",
    )
    raw = json.dumps(body, ensure_ascii=False)
    assert "\\u0000" not in raw
    raw.encode()
    assert body["contents"][0]["parts"][0]["text"] == "a\ufffd\ufffdb"


def check(body: Any) -> None:
    """Fail on what the API would answer with 400, as its documentation of function calling has it."""
    json.dumps(body, ensure_ascii=False).encode()
    told = body["contents"]
    roles = [content["role"] for content in told]
    assert roles == ["user" if place % 2 == 0 else "model" for place in range(len(told))]
    seen: list[str] = []
    for content, following in itertools.zip_longest(told, told[1:]):
        assert content["parts"]
        for part in content["parts"]:
            assert part.get("text") != "" or "thoughtSignature" in part
        asked = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if asked:
            assert content["role"] == "model"
            first = next(part for part in content["parts"] if "functionCall" in part)
            assert first["thoughtSignature"]
            assert all(isinstance(one["args"], dict) for one in asked)
            seen += [one["id"] for one in asked]
        if following is not None:
            answers = [part["functionResponse"] for part in following["parts"][: len(asked)] if asked]
            assert [(one["id"], one["name"]) for one in answers] == [(one["id"], one["name"]) for one in asked]
            assert all(one["response"].keys() in ({"output"}, {"error"}) for one in answers)
            assert not any("functionResponse" in part for part in following["parts"][len(asked) :])
    assert len(seen) == len(set(seen))


names = st.sampled_from(["read", "write", "a.b", "ü"])
texts = st.text(max_size=8) | st.sampled_from(["", " ", "ok", "\0", "\ud800", "x \n"])
ids = st.sampled_from(["a", "b", "c|d", "e" * 80])
arguments = st.sampled_from(["", "{}", '{"a": 1.50}', '{"x', "[]", '{"b":"\\ud800"}', "NaN", '"{}"'])
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


turns = st.lists(st.tuples(messages("assistant", said, 8), messages("user", heard, 8)), max_size=6)
anyhow = st.lists(messages("assistant", said, 5) | messages("user", heard, 5), max_size=8)


@settings(max_examples=200, deadline=None)
@given(messages("user", heard, 3), turns, st.sampled_from(["", "Be brief."]))
def test_a_longer_history_only_appends(first: Message, history: list[tuple[Message, Message]], system: str) -> None:
    """Request n is a byte prefix of request n+1 up to where its last message ends, and the API's rules hold."""
    before = ""
    for end in range(len(history) + 1):
        told = [first, *(message for turn in history[:end] for message in turn)]
        body = wire(*told, tools=TOOLS, system=system)
        check(body)
        raw = json.dumps(body, ensure_ascii=False)
        assert raw.startswith(before)
        before = raw.removesuffix("]}]}")


@settings(max_examples=200, deadline=None)
@given(anyhow)
def test_any_conversation_is_one_that_the_api_takes(history: list[Message]) -> None:
    """Whoever speaks when, and whatever was cut out: calls and results are paired, roles take turns."""
    body = wire(*history)
    check(body)
    asked = sum(len(message.calls) for message in history)
    assert sum("functionCall" in part for content in body["contents"] for part in content["parts"]) == asked
