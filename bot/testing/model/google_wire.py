"""Spell a reply as Google's generateContent does: chunks of a stream, or one body; pure.

Fields are those of recorded traffic. A seal stands on the first call of a reply, or on the last text of one that shows
thoughts; a stream ends with an empty text that has the reason to stop.

Source: https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import json
from collections.abc import Iterator

from bot.testing.model.body import Event
from bot.testing.model.cache import Usage
from bot.testing.model.google_errors import stream_error
from bot.testing.model.reply import Call, Fault, Part, Reply, Thinking, pieces, size
from bot.testing.model.request import Text
from bot.testing.model.seal import letter

_REASONS = {"max_tokens": "MAX_TOKENS", "model_context_window_exceeded": "MAX_TOKENS", "refusal": "SAFETY"}
_MALFORMED = "MALFORMED_FUNCTION_CALL"


def body(reply: Reply, usage: Usage, model: str) -> Event:
    """Return the whole answer: what `generateContent` gets."""
    parts = [_part(reply, number, part) for number, part in enumerate(_sent(reply))]
    if _seals_text(reply):
        parts += [{"text": ""}] if "thought" in parts[-1] else []
        parts[-1]["thoughtSignature"] = letter(reply.key)
    counts = _usage(usage, _thought(reply), _spoken(reply))
    return _chunk(reply, counts, model, parts or [{"text": ""}], _ending(reply))


def frames(reply: Reply, usage: Usage, model: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of each chunk, and whether it is a delta: what `streamGenerateContent` gets."""
    thought = said = 0
    for number, part in enumerate(_sent(reply)):
        for piece in _pieces(part, reply.pace.chunk):
            thought += size(piece) if isinstance(piece, Thinking) else 0
            said += 0 if isinstance(piece, Thinking) else size(piece)
            counts = _usage(usage, thought // 4, said // 4)
            yield sse(_chunk(reply, counts, model, [_part(reply, number, piece)], {})), True
    last: Event = {"text": "", **({"thoughtSignature": letter(reply.key)} if _seals_text(reply) else {})}
    counts = _usage(usage, _thought(reply), _spoken(reply))
    yield sse(_chunk(reply, counts, model, [last], _ending(reply))), False


def broken(fault: Fault) -> bytes:
    """Return the chunk of a failure inside a stream."""
    return sse(stream_error(fault))


def sse(event: Event) -> bytes:
    """Return the bytes of one chunk."""
    return f"data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\r\n\r\n".encode()


def _sent(reply: Reply) -> list[Part]:
    """Return the parts that can be sent: a call whose arguments are no object is none."""
    return [part for part in reply.parts if not isinstance(part, Call) or part.parsed() is not None]


def _pieces(part: Part, chunk: int) -> Iterator[Part]:
    """Cut texts; a call comes in one piece."""
    match part:
        case Text():
            yield from map(Text, pieces(part.text, chunk))
        case Thinking():
            yield from map(Thinking, pieces(part.text, chunk))
        case Call():
            yield part


def _part(reply: Reply, number: int, part: Part) -> Event:
    match part:
        case Text():
            return {"text": part.text}
        case Thinking():
            return {"text": part.text, "thought": True}
        case Call():
            identifier = f"{reply.key}C{number:02d}"
            call = {"name": part.tool, "args": part.parsed() or {}, "id": identifier}
            is_first = not any(isinstance(one, Call) for one in _sent(reply)[:number])
            return {"functionCall": call, **({"thoughtSignature": letter(identifier)} if is_first else {})}


def _seals_text(reply: Reply) -> bool:
    """Whether the seal is the text's: without calls, where thoughts are shown."""
    sent = _sent(reply)
    return any(isinstance(part, Thinking) for part in sent) and not any(isinstance(part, Call) for part in sent)


def _ending(reply: Reply) -> Event:
    reason = _REASONS.get(reply.stopped, "STOP")
    lost = [part for part in reply.parts if isinstance(part, Call) and part.parsed() is None]
    if lost and reason == "STOP":
        call = f"{lost[0].tool}({lost[0].spelled()})"
        return {"finishReason": _MALFORMED, "finishMessage": f"Malformed function call: {call}"}
    if reason == "STOP" and any(isinstance(part, Call) for part in reply.parts):
        return {"finishReason": reason, "finishMessage": "Model generated function call(s)."}
    return {"finishReason": reason}


def _chunk(reply: Reply, counts: Event, model: str, parts: list[Event], ending: Event) -> Event:
    content = {} if ending.get("finishReason") == _MALFORMED else {"parts": parts, "role": "model"}
    return {
        "candidates": [{"content": content, **ending, "index": 0}],
        "usageMetadata": counts,
        "modelVersion": model,
        "responseId": reply.key,
    }


def _thought(reply: Reply) -> int:
    """Return the tokens of thoughts."""
    return sum(size(part) for part in reply.parts if isinstance(part, Thinking)) // 4


def _spoken(reply: Reply) -> int:
    """Return the tokens of all the rest."""
    return reply.tokens - _thought(reply)


def _usage(usage: Usage, thought: int, said: int) -> Event:
    """Return the count; the prompt's tokens include those of the cache."""
    cached: Event = {}
    if usage.read:
        details = [{"modality": "TEXT", "tokenCount": usage.read}]
        cached = {"cachedContentTokenCount": usage.read, "cacheTokensDetails": details}
    return {
        "promptTokenCount": usage.total,
        **cached,
        "candidatesTokenCount": said,
        "totalTokenCount": usage.total + thought + said,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.total}],
        **({"thoughtsTokenCount": thought} if thought else {}),
        "serviceTier": "standard",
    }
