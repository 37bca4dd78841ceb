"""Reading the body of an Anthropic request."""

from typing import Any

from bot.testing.model.anthropic_read import read_request
from bot.testing.model.request import Message, Request, Text, ToolCall, ToolResult


def test_a_body_is_read_into_no_vendors_words() -> None:
    """Texts, calls and results keep order and content; a result knows the name of its tool; the rest is left out."""
    body: dict[str, Any] = {
        "model": "m",
        "max_tokens": 7,
        "stream": True,
        "thinking": {"type": "adaptive"},
        "system": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}],
        "tools": [{"name": "run", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web"}],
        "messages": [
            {"role": "user", "content": "Go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": "s"},
                    {"type": "tool_use", "id": "a", "name": "run", "input": {"x": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "one"},
                            {"type": "image"},
                            {"type": "text", "text": "two"},
                        ],
                    },
                    {"type": "text", "text": "Hurry"},
                ],
            },
        ],
    }
    assert read_request(body) == Request(
        model="m",
        system="Be\nbrief.",
        tools=("run", "web"),
        stream=True,
        thinking=True,
        max_tokens=7,
        messages=(
            Message("user", (Text("Go"),)),
            Message("assistant", (ToolCall("a", "run", {"x": 1}),)),
            Message("user", (ToolResult("a", "run", "one\ntwo", is_error=True), Text("Hurry"))),
        ),
    )
