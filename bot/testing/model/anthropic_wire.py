"""Spell a reply as the Anthropic Messages API does: SSE events, a JSON body, error bodies; pure.

Fields, their order and the order of events are those of recorded traffic.

Source: https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

import json
from collections.abc import Iterator, Mapping

from bot.testing.model.body import Event, Rejected
from bot.testing.model.cache import Usage
from bot.testing.model.reply import Call, Fault, Part, Reply, Thinking, pieces
from bot.testing.model.request import Text
from bot.testing.model.seal import seal

ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("invalid_request_error", "Error"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out."),
    529: ("overloaded_error", "Overloaded"),
}
"""Type and usual message for each status. Source: https://docs.anthropic.com/en/api/errors"""


def message_body(reply: Reply, usage: Usage, model: str) -> Event:
    """Return the whole answer as JSON: what `stream: false` gets."""
    content = [_block(reply, number, part) for number, part in enumerate(reply.parts)]
    return {**_envelope(reply, model, content, reply.stopped), "usage": _usage(usage, reply.tokens)}


def message_events(reply: Reply, usage: Usage, model: str) -> Iterator[Event]:
    """Yield the answer as events: what `stream: true` gets."""
    start = {**_envelope(reply, model, [], None), "usage": _usage(usage, 1)}
    yield {"type": "message_start", "message": start}
    for number, part in enumerate(reply.parts):
        yield {"type": "content_block_start", "index": number, "content_block": _opening(reply, number, part)}
        if number == 0:
            yield {"type": "ping"}
        for delta in _deltas(part, reply.pace.chunk):
            yield {"type": "content_block_delta", "index": number, "delta": delta}
        if not (reply.stopped == "max_tokens" and number == len(reply.parts) - 1 and isinstance(part, Thinking)):
            yield from _signed(number, part)
        yield {"type": "content_block_stop", "index": number}
    tokens = {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.read,
        "output_tokens": reply.tokens,
    }
    ending = {"stop_reason": reply.stopped, "stop_sequence": None, "stop_details": None}
    yield {"type": "message_delta", "delta": ending, "usage": tokens}
    yield {"type": "message_stop"}


def frames(reply: Reply, usage: Usage, model: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of each event, and whether it is a delta."""
    for event in message_events(reply, usage, model):
        yield sse(event), event["type"] == "content_block_delta"


def broken(fault: Fault, request_id: str) -> bytes:
    """Return the event of a failure inside a stream."""
    return sse(fault_error(fault, 529, request_id))


def sse(event: Event) -> bytes:
    """Return the bytes of one event; its name is its `type`."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def error_event(kind: str, message: str, request_id: str) -> Event:
    """Return an error: the body of a 4xx or 5xx, or an event inside a stream."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


def fault_error(fault: Fault, status: int, request_id: str) -> Event:
    """Return the error of a fault, with the usual type and message of the status where the fault has none."""
    kind, message = ERRORS.get(status, ERRORS[500])
    return error_event(fault.error or kind, fault.message or message, request_id)


def rejection(rejected: Rejected, request_id: str) -> Event:
    """Return the error of a request that is refused."""
    return error_event(ERRORS[rejected.status][0], str(rejected), request_id)


def _envelope(reply: Reply, model: str, content: list[Event], stop: str | None) -> Event:
    return {
        "model": model,
        "id": f"msg_01{reply.key}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": None,
    }


def _usage(usage: Usage, output: int) -> Event:
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written_5m,
            "ephemeral_1h_input_tokens": usage.written_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
        "inference_geo": "not_available",
    }


def _opening(reply: Reply, number: int, part: Part) -> Event:
    """Return a block before anything was said."""
    match part:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case Call():
            call_id = f"toolu_01{reply.key}C{number:02d}"
            return {"type": "tool_use", "id": call_id, "name": part.tool, "input": {}, "caller": {"type": "direct"}}


def _block(reply: Reply, number: int, part: Part) -> Event:
    """Return a whole block; a call whose JSON is broken has no input, since JSON cannot carry half of one."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking():
            return {"type": "thinking", "thinking": part.text, "signature": seal(part.text)}
        case Call():
            return {**_opening(reply, number, part), "input": part.parsed() or {}}


def _deltas(part: Part, chunk: int) -> Iterator[Event]:
    match part:
        case Text():
            for piece in pieces(part.text, chunk):
                yield {"type": "text_delta", "text": piece}
        case Thinking():
            for piece in pieces(part.text, chunk):
                yield {"type": "thinking_delta", "thinking": piece}
        case Call():
            yield {"type": "input_json_delta", "partial_json": ""}
            spelled = part.spelled()
            for piece in pieces("" if spelled == "{}" else spelled, chunk):
                yield {"type": "input_json_delta", "partial_json": piece}


def _signed(number: int, part: Part) -> Iterator[Event]:
    """Yield the signature that ends thinking; thinking cut off has none."""
    if isinstance(part, Thinking):
        delta = {"type": "signature_delta", "signature": seal(part.text)}
        yield {"type": "content_block_delta", "index": number, "delta": delta}
