"""Spell a reply as OpenAI's Chat Completions do: chunks, or a JSON body; pure.

Fields and the order of chunks are those of recorded traffic.

Source: https://platform.openai.com/docs/api-reference/chat-streaming
"""

import json
from collections.abc import Iterator

from bot.testing.model.body import Event
from bot.testing.model.cache import Usage
from bot.testing.model.openai_errors import fault_error
from bot.testing.model.reply import Call, Fault, Part, Reply, Thinking, pieces
from bot.testing.model.request import Text

DONE = b"data: [DONE]\n\n"
_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "model_context_window_exceeded": "length"}


def body(reply: Reply, usage: Usage, model: str) -> Event:
    """Return the whole answer: what `stream: false` gets."""
    calls = [_call(reply, number, part) for number, part in enumerate(_called(reply))]
    words = "".join(part.text for part in reply.parts if isinstance(part, Text))
    thinking = "".join(part.text for part in reply.parts if isinstance(part, Thinking))
    message: Event = {"role": "assistant", **_spoken(reply, words or None), "annotations": []}
    message |= {"reasoning_content": thinking} if thinking else {}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(reply)}
    kind = {"object": "chat.completion"}
    return {**_envelope(reply, model), **kind, "choices": [choice], "usage": _usage(usage, reply.tokens)}


def frames(reply: Reply, usage: Usage, model: str, *, counted: bool) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of each chunk, and whether it is a delta: what `stream: true` gets.

    Args:
        reply: the answer.
        usage: of the prompt.
        model: the id of the model.
        counted: whether the client asked for the usage, which then comes last and without a choice.
    """
    nothing: Event = {"usage": None} if counted else {}
    for delta in _deltas(reply):
        yield _sse({**_chunk(reply, model, delta, None), **nothing}), "role" not in delta
    yield _sse({**_chunk(reply, model, {}, _reason(reply)), **nothing}), False
    if counted:
        last = {**_chunk(reply, model, {}, None), "choices": [], "usage": _usage(usage, reply.tokens)}
        yield _sse(last), False
    yield DONE, False


def broken(fault: Fault) -> bytes:
    """Return the chunk of a failure inside a stream."""
    return _sse(fault_error(fault, 503))


def _deltas(reply: Reply) -> Iterator[Event]:
    yield {"role": "assistant", "content": "" if _has_text(reply) else None, "refusal": None}
    chunk = reply.pace.chunk
    numbers = {id(part): number for number, part in enumerate(_called(reply))}
    for part in reply.parts:
        if isinstance(part, Call):
            index = numbers[id(part)]
            opening = _call(reply, index, part)
            function = {"name": part.tool, "arguments": ""}
            yield {"tool_calls": [{"index": index, **opening, "function": function}]}
            for piece in pieces(part.spelled(), chunk):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            continue
        for piece in pieces(part.text, chunk):
            yield {"reasoning_content": piece} if isinstance(part, Thinking) else _piece(reply, piece)


def _piece(reply: Reply, text: str) -> Event:
    return {"refusal": text} if reply.stopped == "refusal" else {"content": text}


def _spoken(reply: Reply, words: str | None) -> Event:
    if reply.stopped == "refusal":
        return {"content": None, "refusal": words}
    return {"content": words, "refusal": None}


def _has_text(reply: Reply) -> bool:
    return reply.stopped != "refusal" and any(isinstance(part, Text) for part in reply.parts)


def _called(reply: Reply) -> list[Call]:
    return [part for part in reply.parts if isinstance(part, Call)]


def _call(reply: Reply, number: int, part: Part) -> Event:
    call = part if isinstance(part, Call) else Call("")
    function = {"name": call.tool, "arguments": call.spelled()}
    return {"id": f"call_{reply.key}C{number:02d}", "type": "function", "function": function}


def _reason(reply: Reply) -> str:
    return _REASONS.get(reply.stopped, "stop")


def _envelope(reply: Reply, model: str) -> Event:
    return {
        "id": f"chatcmpl-{reply.key}",
        "created": 0,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _chunk(reply: Reply, model: str, delta: Event, reason: str | None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return {**_envelope(reply, model), "object": "chat.completion.chunk", "choices": [choice]}


def _usage(usage: Usage, output: int) -> Event:
    return {
        "prompt_tokens": usage.total,
        "completion_tokens": output,
        "total_tokens": usage.total + output,
        "prompt_tokens_details": {"cached_tokens": usage.read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _sse(event: Event) -> bytes:
    return f"data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
