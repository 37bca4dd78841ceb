"""Pictures in a prompt reach each API as it takes them, and a model that cannot see gets words."""

import base64
import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.messages import Image, ImageType, Message, Part, Prompt, TextPart, ToolCall, ToolResult
from bot.llm import anthropic_wire, google_wire, openai_chat_wire, openai_responses_wire
from bot.llm.anthropic_wire import NO_TEXT, ORPHAN
from bot.llm.google_wire import SEEN
from bot.llm.images import caption, unseen, without_images
from bot.testing.model.anthropic_check import check_body
from bot.testing.model.openai_check import check_chat, check_responses

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel
PNG = Image("image/png", DOT)
GIF = Image("image/gif", base64.b64encode(b"GIF89a").decode())
ASK = Message("user", (TextPart("Look."),))
CALL, OTHER = ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")
ANTHROPIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
RESPONSES = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{DOT}"}
CHAT = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
GOOGLE = {"inlineData": {"mimeType": "image/png", "data": DOT}}


def asked(*heard: Part, calls: tuple[ToolCall, ...] = (CALL,)) -> Prompt:
    """A prompt whose last message says this."""
    said = (ASK, Message("assistant", calls)) if calls else ()
    return Prompt("", (), (*said, Message("user", heard)))


def to_anthropic(prompt: Prompt) -> Any:
    """The messages, checked and without cache marks."""
    body = anthropic_wire.to_wire(prompt, model="anthropic:x", max_output_tokens=100)
    check_body(json.dumps(body).encode())
    for message in body["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    return body["messages"]


def to_responses(prompt: Prompt) -> Any:
    """The items, checked."""
    body = openai_responses_wire.to_wire(prompt, model="openai:x", max_output_tokens=100)
    check_responses(body)
    return body["input"]


def to_chat(prompt: Prompt) -> Any:
    """The messages, checked."""
    body = openai_chat_wire.to_wire(prompt, model="openai:x", max_output_tokens=100)
    check_chat(body)
    return body["messages"]


def to_google(prompt: Prompt, model: str = "google:gemini-3-pro") -> Any:
    """The contents."""
    return google_wire.to_wire(prompt, model=model, max_output_tokens=100)["contents"]


WRITERS: list[Callable[[Prompt], Any]] = [to_anthropic, to_responses, to_chat, to_google]


def test_anthropic_gets_them_inside_of_the_result() -> None:
    """The text, then the pictures; without a text the pictures alone."""
    both = to_anthropic(asked(ToolResult("a", "a dot", images=(PNG, GIF))))[-1]["content"]
    assert [block["type"] for block in both] == ["tool_result"]
    assert both[0]["content"][:2] == [{"type": "text", "text": "a dot"}, ANTHROPIC]
    assert both[0]["content"][2]["source"]["media_type"] == "image/gif"
    alone = to_anthropic(asked(ToolResult("a", " ", images=(PNG,))))[-1]["content"]
    assert alone == [{"type": "tool_result", "tool_use_id": "a", "content": [ANTHROPIC]}]


def test_anthropic_takes_none_in_a_failed_result() -> None:
    """They stand behind the results then, before what a person says."""
    content = to_anthropic(asked(ToolResult("a", "no", is_error=True, images=(PNG,)), TextPart("Hm")))[-1]["content"]
    failed = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    assert content == [failed, ANTHROPIC, {"type": "text", "text": "Hm"}]


def test_anthropic_keeps_what_ends_with_a_picture() -> None:
    """A picture at the end of the newest message carries the cache mark."""
    body = anthropic_wire.to_wire(asked(TextPart("x"), PNG, calls=()), model="anthropic:x", max_output_tokens=100)
    assert ["cache_control" in block for block in body["messages"][0]["content"]] == [False, True]


def test_responses_get_them_inside_of_the_result() -> None:
    """A list where there is a picture, else the text as it was; a failure says so in words."""
    results = ToolResult("a", "a dot", images=(PNG,)), ToolResult("b", "x")
    outputs = to_responses(asked(*results, calls=(CALL, OTHER)))[-2:]
    assert [item["output"] for item in outputs] == [[{"type": "input_text", "text": "a dot"}, RESPONSES], "x"]
    failed = to_responses(asked(ToolResult("a", "no", is_error=True, images=(PNG,))))[-1]["output"]
    assert failed == [{"type": "input_text", "text": "Error: no"}, RESPONSES]


def test_chat_gets_them_behind_all_results() -> None:
    """In one message of the user's, each behind the name of its call, and before what a person says."""
    results = ToolResult("a", "a dot", images=(PNG, GIF)), ToolResult("b", "another", images=(PNG,))
    messages = to_chat(asked(*results, TextPart("Nice?"), calls=(CALL, OTHER)))[2:]
    assert [message["role"] for message in messages] == ["tool", "tool", "user"]
    assert [message["content"] for message in messages[:2]] == ["a dot", "another"]
    shown = messages[2]["content"]
    assert [piece.get("text") for piece in shown] == [
        caption("`read` (a)"),
        None,
        None,
        caption("`read` (b)"),
        None,
        "Nice?",
    ]
    assert shown[1] == shown[4] == CHAT


@pytest.mark.parametrize(
    ("model", "is_nested"),
    [
        ("google:gemini-3-pro", True),
        ("google:gemini-3.8-flash", True),
        ("google:models/gemini-flash-latest", True),
        ("google:gemini-12-pro", True),
        ("google:gemini-2.5-pro", False),
        ("google:models/gemini-2.5-flash", False),
        ("google:gemini-1.5-pro", False),
        ("google:gemma-3-27b-it", False),
    ],
)
def test_google_gets_them_where_the_model_takes_them(model: str, is_nested: bool) -> None:  # noqa: FBT001 - a table
    """Inside of the result from the third generation on, behind all results before."""
    results = ToolResult("a", "a dot", images=(PNG,)), ToolResult("b", "x")
    parts = to_google(asked(*results, TextPart("Nice?"), calls=(CALL, OTHER)), model)[-1]["parts"]
    inside = {"parts": [GOOGLE]} if is_nested else {}
    behind = [] if is_nested else [{"text": caption("`read` (a)")}, GOOGLE]
    assert parts == [
        {"functionResponse": {"id": "a", "name": "read", "response": {"output": "a dot"}, **inside}},
        {"functionResponse": {"id": "b", "name": "read", "response": {"output": "x"}}},
        *behind,
        {"text": "Nice?"},
    ]


def test_google_is_told_of_a_kind_that_it_does_not_take() -> None:
    """It knows no GIF: words stand in its place, and its neighbour is sent."""
    part = to_google(asked(ToolResult("a", "dots", images=(GIF, PNG))))[-1]["parts"][0]["functionResponse"]
    assert part["response"] == {"output": f"dots\n{unseen(GIF)}"}
    assert part["parts"] == [GOOGLE]
    assert to_google(asked(GIF, calls=()))[-1]["parts"] == [{"text": unseen(GIF)}]


def test_a_picture_may_stand_by_itself() -> None:
    """In a user's message it keeps its place between the texts."""
    prompt = asked(TextPart("This"), PNG, TextPart("or that?"), calls=())
    this, that = {"text": "This"}, {"text": "or that?"}
    text = {"type": "text"}
    assert to_anthropic(prompt)[0]["content"] == [text | this, ANTHROPIC, text | that]
    assert to_chat(prompt)[0]["content"] == [text | this, CHAT, text | that]
    assert to_google(prompt)[0]["parts"] == [this, GOOGLE, that]
    text = {"type": "input_text"}
    assert to_responses(prompt)[0]["content"] == [text | this, RESPONSES, text | that]


@pytest.mark.parametrize("write", WRITERS)
def test_the_picture_of_a_lost_call_is_not_lost(write: Callable[[Prompt], Any]) -> None:
    """It stands behind the words that say so, and a picture alone is no empty message."""
    told = json.dumps(write(asked(ToolResult("gone", "a dot", images=(PNG,)), calls=())))
    assert told.index(json.dumps(ORPHAN)[1:-1]) < told.index(DOT)
    alone = json.dumps(write(asked(PNG, calls=())))
    assert DOT in alone
    assert NO_TEXT not in alone


def test_who_cannot_see_gets_words() -> None:
    """A line for each picture with its size and kind, behind the text; nothing else changes."""
    prompt = asked(ToolResult("a", "a dot", images=(PNG, GIF)), ToolResult("b", ""), PNG, calls=(CALL, OTHER))
    line, other = (
        "[an image of 1 kB (image/png), which this model cannot see]",
        "[an image of 1 kB (image/gif), which this model cannot see]",
    )
    told = without_images(prompt)
    assert told.messages[:2] == prompt.messages[:2]
    assert told.messages[2].parts == (ToolResult("a", f"a dot\n{line}\n{other}"), ToolResult("b", ""), TextPart(line))
    assert without_images(asked(ToolResult("a", "", images=(PNG,)))).messages[2].parts == (ToolResult("a", line),)
    assert without_images(prompt, seen=get_args(ImageType)) == prompt
    assert (told.system, told.tools) == (prompt.system, prompt.tools)


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 12_345])
def test_its_size_is_that_of_the_picture(size: int) -> None:
    """And not that of its base64."""
    image = Image("image/webp", base64.b64encode(b"x" * size).decode())
    assert image.size_bytes == size
    assert f"of {max(1, -(-size // 1000))} kB" in unseen(image)


def test_its_bytes_are_in_no_log() -> None:
    """What is printed of a message leaves the data out: a size that is taken from it counts words."""
    assert DOT not in str(asked(ToolResult("a", "a dot", images=(PNG,)), PNG))


images = st.builds(
    Image,
    st.sampled_from(get_args(ImageType)),
    st.binary(min_size=1, max_size=9).map(base64.b64encode).map(bytes.decode),
)
heard: st.SearchStrategy[Part] = (
    images
    | st.builds(TextPart, st.sampled_from(["", "x", "\0"]))
    | st.builds(
        ToolResult,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["", "ok"]),
        is_error=st.booleans(),
        images=st.lists(images, max_size=2).map(tuple),
    )
)


def shown_by(part: Part) -> tuple[Image, ...]:
    """The pictures of one part."""
    if isinstance(part, Image):
        return (part,)
    return part.images if isinstance(part, ToolResult) else ()


turns = st.lists(st.lists(heard, max_size=5), max_size=4)


@pytest.mark.parametrize("write", [*WRITERS, lambda prompt: to_google(prompt, "google:gemini-2.5-pro")])
@settings(max_examples=60, deadline=None)
@given(turns)
def test_a_longer_history_only_appends(write: Callable[[Prompt], Any], told: list[list[Part]]) -> None:
    """With pictures anywhere each API takes the request, and the next one begins with its bytes."""
    before = ""
    messages: list[Message] = [ASK]
    for parts in told:
        messages += [Message("assistant", (CALL, OTHER)), Message("user", tuple(parts))]
        text = json.dumps(write(Prompt("", (), tuple(messages))))
        assert text.startswith(before)
        before = text.removesuffix("]")
    every = [image for parts in told for part in parts for image in shown_by(part)]
    assert all(image.data in before for image in every if image.media_type in SEEN)
