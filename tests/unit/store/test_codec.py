"""Messages survive the way to JSON and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.codec import message_from_data, message_to_data
from bot.domain.messages import Message, Part, TextPart, ThinkingPart, ToolCall, ToolResult

# Any code point at all, lone surrogates too: a model or a program may print it.
words = st.text(st.characters(codec=None))
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, words),
    st.builds(ThinkingPart, words, words, words, words),
    st.builds(ToolCall, words, words, words),
    st.builds(ToolResult, words, words, st.booleans()),
)
messages = st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(parts).map(tuple))


@given(messages)
def test_a_message_comes_back_equal(message: Message) -> None:
    """JSON text in between changes nothing."""
    assert message_from_data(json.loads(json.dumps(message_to_data(message)))) == message


def test_fields_of_other_versions_are_passed_over() -> None:
    """A field that a later version added is dropped, one that it left out takes its default."""
    data = {
        "role": "user",
        "later": 1,
        "parts": [{"kind": "result", "call_id": "c", "text": "t", "later": []}, {"kind": "thinking", "text": "hm"}],
    }
    assert message_from_data(data) == Message("user", (ToolResult("c", "t"), ThinkingPart("hm")))


def test_an_unknown_kind_of_part_is_an_error() -> None:
    """A transcript with a hole would break the provider's protocol."""
    with pytest.raises(KeyError, match="picture"):
        message_from_data({"role": "user", "parts": [{"kind": "picture"}]})
