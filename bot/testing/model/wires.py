"""The wires that the scripted model speaks: one value for each, and nothing else in the house knows all of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bot.testing.model import (
    anthropic_check,
    anthropic_read,
    anthropic_wire,
    google_check,
    google_errors,
    google_read,
    google_wire,
    openai_chat_wire,
    openai_check,
    openai_errors,
    openai_read,
    openai_responses_wire,
)
from bot.testing.model.body import Asked, Body, Event, Rejected
from bot.testing.model.cache import Segment, Usage
from bot.testing.model.reply import Fault, Reply
from bot.testing.model.request import Request


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to speak; all of it is pure."""

    base: str
    """What a client has behind host and port in its base URL."""
    paths: tuple[str, ...]
    """Where it is served, as Starlette spells routes."""
    check: Callable[[Asked, str | None], Body]
    """The decoded body; raises `Rejected` where the API would refuse the request. The last argument is the only key."""
    read: Callable[[Body], Request]
    segments: Callable[[Body], list[Segment]]
    """The prompt as the cache sees it."""
    overflow: str
    """What is said to a prompt of `{tokens}` in a `{window}`."""
    body: Callable[[Reply, Usage, str], Event]
    """The whole answer; the last argument is the id of the model."""
    frames: Callable[[Reply, Usage, str, Body], Iterable[tuple[bytes, bool]]]
    """The answer as a stream: bytes, and whether they are a delta; the last argument is what was asked."""
    failure: Callable[[Fault, int, str], Event]
    """The body of a fault with this HTTP status; the last argument is the id of the request, here and below."""
    refusal: Callable[[Rejected, str], Event]
    broken: Callable[[Fault, str], bytes]
    """The frame of a failure inside a stream."""
    overloaded: int
    """HTTP status of such a failure where nothing streams."""


ANTHROPIC = Wire(
    base="",
    paths=("/v1/messages",),
    check=anthropic_check.check,
    read=anthropic_read.read_request,
    segments=anthropic_read.segments,
    overflow="prompt is too long: {tokens} tokens > {window} maximum",
    body=anthropic_wire.message_body,
    frames=lambda reply, usage, model, _: anthropic_wire.frames(reply, usage, model),
    failure=anthropic_wire.fault_error,
    refusal=anthropic_wire.rejection,
    broken=anthropic_wire.broken,
    overloaded=529,
)
RESPONSES = Wire(
    base="/v1",
    paths=("/v1/responses", "/openai/responses"),
    check=openai_check.responses,
    read=openai_read.read_responses,
    segments=lambda body: openai_read.segments(body, "input"),
    overflow=openai_errors.OVERFLOW_WORDS,
    body=openai_responses_wire.body,
    frames=lambda reply, usage, model, _: openai_responses_wire.frames(reply, usage, model),
    failure=lambda fault, status, _: openai_errors.fault_error(fault, status),
    refusal=lambda rejected, _: openai_errors.rejection(rejected),
    broken=lambda fault, _: openai_responses_wire.broken(fault),
    overloaded=503,
)
CHAT = Wire(
    base="/v1",
    paths=("/v1/chat/completions", "/openai/deployments/{deployment}/chat/completions"),
    check=openai_check.chat,
    read=openai_read.read_chat,
    segments=lambda body: openai_read.segments(body, "messages"),
    overflow=openai_errors.OVERFLOW_WORDS,
    body=openai_chat_wire.body,
    frames=lambda reply, usage, model, asked: openai_chat_wire.frames(
        reply, usage, model, counted=openai_read.counts_usage(asked)
    ),
    failure=lambda fault, status, _: openai_errors.fault_error(fault, status),
    refusal=lambda rejected, _: openai_errors.rejection(rejected),
    broken=lambda fault, _: openai_chat_wire.broken(fault),
    overloaded=503,
)
GOOGLE = Wire(
    base="",
    paths=tuple(
        f"/{version}/{{model:path}}:{method}"
        for version in ("v1beta", "v1")
        for method in ("generateContent", "streamGenerateContent")
    ),
    check=google_check.check,
    read=google_read.read_request,
    segments=google_read.segments,
    overflow="The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
    body=google_wire.body,
    frames=lambda reply, usage, model, _: google_wire.frames(reply, usage, model),
    failure=lambda fault, status, _: google_errors.fault_error(fault, status),
    refusal=lambda rejected, _: google_errors.rejection(rejected),
    broken=lambda fault, _: google_wire.broken(fault),
    overloaded=google_errors.OVERLOADED,
)
SPOKEN: Mapping[str, Wire] = {
    "anthropic": ANTHROPIC,
    "openai-responses": RESPONSES,
    "openai-chat": CHAT,
    "google": GOOGLE,
}
WIRES = tuple(SPOKEN)
"""The names of all wires."""
