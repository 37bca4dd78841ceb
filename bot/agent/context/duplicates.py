"""Results that stand in a transcript twice: the older one goes, and nothing is lost.

Only the very same result of the same call is a duplicate. Another range of the same file, or the file before an edit,
is information of its own: in real sessions most of what was read twice by path was not the same text.
"""

import hashlib
import json
import posixpath
from collections.abc import Sequence
from dataclasses import replace

from bot.agent.context.sizes import part_size
from bot.domain.messages import Message, Part, ToolCall, ToolResult

SAME = "[Left out: the very same as the result of a later call, further down.]"


def without_duplicates(messages: Sequence[Message]) -> list[Message]:
    """Return the transcript with a note in place of each result that comes again later, word for word.

    The newest one is kept, since older turns go first where more has to go. Calls stay as they are.
    """
    kept: set[str] = set()
    made = list(messages)
    for index in range(len(made) - 1, 0, -1):
        calls = {call.id: call for call in made[index - 1].calls}
        parts = made[index].parts
        told = [_told(part, calls, kept) for part in reversed(parts)][::-1]
        if any(new is not old for new, old in zip(told, parts, strict=True)):
            made[index] = replace(made[index], parts=tuple(told))
    return made


def _told(part: Part, calls: dict[str, ToolCall], kept: set[str]) -> Part:
    if not isinstance(part, ToolResult) or part.call_id not in calls or part_size(part) <= len(SAME):
        return part
    key = _key(calls[part.call_id], part)
    if key in kept:
        return ToolResult(part.call_id, SAME, part.is_error)
    kept.add(key)
    return part


def _key(call: ToolCall, result: ToolResult) -> str:
    """Name what was asked and what came of it.

    The first line of what `read` gives names the range, so path and text are enough there: a range may be spelled in
    several ways.
    """
    asked = call.arguments
    try:
        values = json.loads(asked)
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, dict):
        path = values.get("path")
        is_read = call.name == "read" and isinstance(path, str)
        asked = posixpath.normpath(str(path)) if is_read else json.dumps(values, sort_keys=True)
    seen = "\0".join(image.data for image in result.images)
    text = f"{call.name}\0{asked}\0{result.is_error}\0{result.text}\0{seen}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
