"""Spell a reply as OpenAI's Responses API does: events, or a JSON body; pure.

Fields and the order of events are those of recorded traffic.

Source: https://platform.openai.com/docs/api-reference/responses-streaming
"""

import json
from collections.abc import Iterator

from bot.testing.model.body import Event
from bot.testing.model.cache import Usage
from bot.testing.model.openai_errors import fault_error
from bot.testing.model.reply import Call, Fault, Part, Reply, Thinking, pieces
from bot.testing.model.request import Text
from bot.testing.model.seal import seal

_CUT = ("max_tokens", "model_context_window_exceeded")


def body(reply: Reply, usage: Usage, model: str) -> Event:
    """Return the whole answer: what `stream: false` gets."""
    items = [_item(reply, number, part) for number, part in enumerate(reply.parts)]
    status = "incomplete" if reply.stopped in _CUT else "completed"
    return {**_envelope(reply, model, status), "output": items, "usage": _usage(usage, reply.tokens)}


def frames(reply: Reply, usage: Usage, model: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of each event, and whether it is a delta: what `stream: true` gets."""
    for number, event in enumerate(_events(reply, usage, model)):
        yield _sse({**event, "sequence_number": number}), str(event["type"]).endswith(".delta")


def broken(fault: Fault) -> bytes:
    """Return the event of a failure inside a stream."""
    error = fault_error(fault, 503)["error"]
    told = error if isinstance(error, dict) else {}
    return _sse({"type": "error", "code": told["code"], "message": told["message"], "param": None})


def _events(reply: Reply, usage: Usage, model: str) -> Iterator[Event]:
    begun = {**_envelope(reply, model, "in_progress"), "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for number, part in enumerate(reply.parts):
        item = _item(reply, number, part)
        place = {"output_index": number, "item_id": item["id"]}
        yield {"type": "response.output_item.added", "output_index": number, "item": _begun(item, part)}
        for event in _growth(reply, part):
            yield {**event, **place}
        yield {"type": "response.output_item.done", "output_index": number, "item": item}
    whole = body(reply, usage, model)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _growth(reply: Reply, part: Part) -> Iterator[Event]:
    """Yield how one item grows, without its place."""
    grown = pieces(_words(part), reply.pace.chunk)
    match part:
        case Text() if reply.stopped == "refusal":
            for piece in grown:
                yield {"type": "response.refusal.delta", "content_index": 0, "delta": piece}
            yield {"type": "response.refusal.done", "content_index": 0, "refusal": part.text}
        case Text():
            content = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            yield {"type": "response.content_part.added", "content_index": 0, "part": content}
            for piece in grown:
                yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", "content_index": 0, "text": part.text, "logprobs": []}
            yield {"type": "response.content_part.done", "content_index": 0, "part": {**content, "text": part.text}}
        case Thinking():
            summary = {"type": "summary_text", "text": ""}
            yield {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": summary}
            for piece in grown:
                yield {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece}
            yield {"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": part.text}
            done = {**summary, "text": part.text}
            yield {"type": "response.reasoning_summary_part.done", "summary_index": 0, "part": done}
        case Call():
            for piece in grown:
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            yield {"type": "response.function_call_arguments.done", "arguments": part.spelled()}


def _item(reply: Reply, number: int, part: Part) -> Event:
    is_cut = reply.stopped in _CUT and number == len(reply.parts) - 1
    status = "incomplete" if is_cut else "completed"
    identifier = f"{reply.key}I{number:02d}"
    match part:
        case Text():
            said: Event = {"type": "output_text", "annotations": [], "logprobs": [], "text": part.text}
            content = {"type": "refusal", "refusal": part.text} if reply.stopped == "refusal" else said
            message: Event = {"id": f"msg_{identifier}", "type": "message", "status": status}
            return {**message, "content": [content], "role": "assistant"}
        case Thinking():
            summary = [{"type": "summary_text", "text": part.text}]
            item: Event = {"id": f"rs_{identifier}", "type": "reasoning", "encrypted_content": seal(part.text)}
            return {**item, "summary": summary}
        case Call():
            call: Event = {"id": f"fc_{identifier}", "type": "function_call", "status": status}
            called = {"arguments": part.spelled(), "call_id": f"call_{reply.key}C{number:02d}", "name": part.tool}
            return {**call, **called}


def _begun(item: Event, part: Part) -> Event:
    """Return an item before anything was said."""
    empty: dict[str, object] = {"content": []} if isinstance(part, Text) else {"summary": []}
    if isinstance(part, Call):
        empty = {"arguments": ""}
    return {**item, **empty, **({} if isinstance(part, Thinking) else {"status": "in_progress"})}


def _envelope(reply: Reply, model: str, status: str) -> Event:
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{reply.key}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": details,
        "model": model,
        "store": False,
    }


def _usage(usage: Usage, output: int) -> Event:
    return {
        "input_tokens": usage.total,
        "input_tokens_details": {"cached_tokens": usage.read},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total + output,
    }


def _words(part: Part) -> str:
    return part.spelled() if isinstance(part, Call) else part.text


def _sse(event: Event) -> bytes:
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()
