"""The meter counts on from what the provider said, and says it in few characters."""

import pytest

from bot.agent.context.gauge import Gauge
from bot.agent.context.sizes import IMAGE_TOKENS, prompt_size, size_of
from bot.agent.context.window import Window
from bot.domain.context import ContextMeter
from bot.domain.messages import (
    Image,
    Message,
    Part,
    Prompt,
    Reply,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from tests.unit.agent.context.made import SUMMARY, TASK, context, prompt_of, said, turn
from tests.unit.agent.context.made import Summariser as Model

ASKED = prompt_of([TASK])


def test_before_the_first_reply_three_bytes_are_a_token() -> None:
    """Nobody has counted yet: the system prompt, the tools and all messages are taken by their size."""
    assert Gauge().tokens(ASKED) == -(-prompt_size(ASKED) // 3)


def test_then_it_is_the_last_count_and_what_was_added() -> None:
    """The reply is in the count already; of what came behind it three bytes are a token."""
    gauge = Gauge()
    gauge.replied(ASKED, said("I look.", usage=Usage(100, 900, 50, 7)))
    behind = turn(ToolCall("a", "run", "{}"), gives=["é" * 30], text="I look.")
    assert gauge.tokens(prompt_of([TASK, *behind])) == 1057 + 20


def test_a_transcript_that_was_rewritten_is_measured_by_what_a_byte_weighed() -> None:
    """Behind a compaction the last count says nothing of the sum, but much of the text."""
    gauge, before = Gauge(), prompt_of([TASK, *turn(ToolCall("a", "run", "{}"), gives=["x" * 9_000])])
    gauge.replied(before, said("Ah.", usage=Usage(2 * prompt_size(before))))
    after = prompt_of([TASK, *turn(ToolCall("a", "run", "{}"), gives=["x"])])
    assert gauge.tokens(after) == 2 * prompt_size(after)


def test_a_count_that_is_larger_than_expected_is_believed() -> None:
    """What was added may have been dense: a provider knows better."""
    gauge = Gauge()
    gauge.replied(ASKED, said("One.", usage=Usage(1000, output_tokens=5)))
    more = prompt_of([TASK, Message("assistant", (TextPart("One."),)), Message("user", (TextPart("Go on."),))])
    counted = 2 * gauge.tokens(more)
    gauge.replied(more, said("Two.", usage=Usage(counted, output_tokens=5)))
    last = prompt_of([*more.messages, Message("assistant", (TextPart("Two."),)), Message("user", (TextPart("Go"),))])
    assert gauge.tokens(last) == counted + 5 + 1


@pytest.mark.parametrize("usage", [Usage(), Usage(output_tokens=9), Usage(3)])
def test_a_provider_that_counts_nothing_or_too_little_is_not_believed(usage: Usage) -> None:
    """Where nothing was counted, or only what no cache had, size decides: too much rather than too little."""
    gauge, large = Gauge(), prompt_of([Message("user", (TextPart("x" * 80_000),))])
    gauge.replied(large, said("Ah.", usage=usage))
    assert gauge.tokens(large) >= 10_000


def test_sizes_are_what_the_model_reads() -> None:
    """Bytes of UTF-8, lone surrogates too; a picture is as much as its largest useful size."""
    parts: list[tuple[Part, int]] = [
        (TextPart("é界\ud800"), 8),
        (ThinkingPart("ab", "cde", "f"), 6),
        (ToolCall("id", "run", "{}"), 5),
        (ToolResult("id", "ab", images=(Image("image/png", "aGk="),)), 2 + 3 * IMAGE_TOKENS),
        (Image("image/png", "aGk="), 3 * IMAGE_TOKENS),
    ]
    assert [size_of([Message("user", (part,))]) for part, _ in parts] == [size for _, size in parts]
    assert prompt_size(Prompt("ab", (ToolSpec("n", "de", {}),), ())) == 7


@pytest.mark.parametrize(
    ("tokens", "window", "text"),
    [
        (127_700, 200_000, "ctx 127.7K/200K"),
        (0, 128_000, "ctx 0/128K"),
        (999, 1_000_000, "ctx 999/1M"),
        (999_960, 1_048_576, "ctx 1M/1M"),
        (1_250_000, 2_000_000, "ctx 1.2M/2M"),
    ],
)
def test_the_meter_is_short(tokens: int, window: int, text: str) -> None:
    """As people see it in the comment, the log and the terminal."""
    assert str(ContextMeter(tokens, window)) == text


async def test_the_context_shows_the_whole_window() -> None:
    """What is kept free for the reply is no smaller window to people."""
    model = Model(said(SUMMARY, usage=Usage(1_500, output_tokens=20)))
    watched, transcript = context(model, tokens=200_000), [TASK]
    reply = await watched.ask("Be brief.", (), transcript)
    transcript += [reply.message, Message("user", (TextPart("abc"),))]
    assert str(watched.measure(prompt_of(transcript))) == "ctx 1.5K/200K"


@pytest.mark.parametrize(
    ("tokens", "output", "usable"),
    [
        (200_000, 64_000, 126_000),
        (1_000_000, 128_000, 822_000),
        (128_000, 8_192, 113_408),
        (128_000, 100, 113_408),
        (8_192, 8_192, 4_096),
    ],
)
def test_a_request_leaves_room_for_the_reply(tokens: int, output: int, usable: int) -> None:
    """The longest reply and a twentieth stay free, but never more than half of the window."""
    window = Window.of(tokens, output)
    assert (window.tokens, window.usable) == (tokens, usable)
    assert window.tail < window.target < window.compact_at < window.usable


def test_a_window_that_was_too_large_is_believed_no_more() -> None:
    """Where the provider found a request too long, its size is the most that is usable; a larger one says nothing."""
    window = Window.of(128_000, 8_192)
    assert window.refused(30_000).compact_at == 24_000
    assert window.refused(500_000) == window
    assert Reply(TASK, "end").usage.total_tokens == 0
