"""Play a script to a client without native tool calls: calls and results stand in plain text, as it taught them; pure.

The tools are read from the system prompt, the calls and results from the messages, and the reply is spelled in the
same dialect, as a model does that has read what it was told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bot.testing.model.play import play
from bot.testing.model.reply import Call, Reply
from bot.testing.model.reply import Part as Said
from bot.testing.model.request import Message, Part, Request, Text, ToolCall, ToolResult
from bot.testing.model.script import Script
from bot.testing.model.spoken_json import Json
from bot.testing.model.spoken_lesson import Lesson, Spelling, find_calls, read_lesson
from bot.testing.model.spoken_prose import Prose
from bot.testing.model.spoken_xml import Xml

NATIVE = "native"
SPELLINGS: Mapping[str, Spelling] = {"xml": Xml(), "json": Json(), "prose": Prose()}
"""What `play_spoken` takes beside `NATIVE`."""


def play_spoken(script: Script, request: Request, dialect: str) -> Reply:
    """Return what the script answers to a client that speaks a dialect; as `play`, and `native` is just that.

    Calls of the reply are text, and it ends with `end_turn` where it would have ended with `tool_use`. The last call is
    a text of its own, so that a fault that cuts the last call does it here as well.

    A system prompt that does not teach the dialect is a problem of the reply.
    """
    if dialect == NATIVE:
        return play(script, request)
    spelling = SPELLINGS.get(dialect)
    lesson = None if spelling is None else read_lesson(request.system, spelling)
    if spelling is None or lesson is None:
        return _untaught(request, dialect)
    reply = play(script, hear(request, spelling, lesson))
    stop = "end_turn" if reply.stopped == "tool_use" else reply.stop
    return replace(reply, parts=tuple(_spoken(reply.parts, spelling, lesson)), stop=stop)


def hear(request: Request, spelling: Spelling, lesson: Lesson) -> Request:
    """Return the request as if the client had native tool calls.

    Ids of calls are made from their place in the conversation, the same in each request.
    """
    messages: list[Message] = []
    calls: list[ToolCall] = []
    for number, message in enumerate(request.messages):
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, Text):
                parts.append(part)
            elif message.role == "assistant":
                parts += _calls(part.text, f"spoken{number}p{len(parts)}", spelling, lesson)
            elif message.role == "user":
                parts += _results(part.text, lesson, calls)
            else:
                parts.append(part)
        calls = [part for part in parts if isinstance(part, ToolCall)]
        messages.append(replace(message, parts=tuple(parts)))
    return replace(request, messages=tuple(messages), tools=tuple(lesson.forms))


def _calls(text: str, key: str, spelling: Spelling, lesson: Lesson) -> Iterator[Part]:
    """Tell calls from words in what the model said earlier; ids begin with the key."""
    found = list(find_calls(text, spelling, lesson))
    places = iter(_between(text, [(one.start, one.end) for one in found]))
    yield from next(places)
    number = 0
    for one in found:
        for name, arguments in one.calls:
            yield ToolCall(f"{key}c{number}", name, arguments)
            number += 1
        yield from next(places)


def _results(text: str, lesson: Lesson, calls: Sequence[ToolCall]) -> Iterator[Part]:
    """Tell results from people's words; a result belongs to the first call of its tool that has none yet."""
    own = rf"{re.escape(lesson.token)}(?:-[0-9]+)?"
    result = re.compile(rf'^<(result|error) of="([^"]*)" id="({own})">\n(.*?)\n</\1 id="\3">', re.MULTILINE | re.DOTALL)
    found = list(result.finditer(text))
    places = iter(_between(text, [one.span() for one in found]))
    yield from next(places)
    open_calls = list(calls)
    for one in found:
        call = next((call for call in open_calls if call.name == one[2]), None)
        if call is not None:
            open_calls.remove(call)
        yield ToolResult("" if call is None else call.id, one[2], one[4], one[1] == "error")
        yield from next(places)


def _between(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Sequence[Text]]:
    """Yield the words before the first span, between each two, and behind the last; a blank line parts them."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    for start, end in zip(starts, ends, strict=True):
        words = text[start:end]
        words = words.removeprefix("\n\n") if start else words
        words = words.removesuffix("\n\n") if end < len(text) else words
        yield [Text(words)] if words.strip("\n") else []


def _spoken(parts: Sequence[Said], spelling: Spelling, lesson: Lesson) -> Iterator[Said]:
    """Spell the calls among the parts; neighbours become one text up to the last call, with a blank line between."""
    last = max((number for number, part in enumerate(parts) if isinstance(part, Call)), default=len(parts))
    words: list[str] = []
    for number, part in enumerate(parts):
        if words and (number == last or not isinstance(part, Call | Text)):
            yield Text("\n\n".join([*words, ""]))
            words = []
        if isinstance(part, Call):
            words.append(spelling.write(part, lesson))
        elif isinstance(part, Text):
            words.append(part.text)
        else:
            yield part
    if words:
        yield Text("\n\n".join(words))


def _untaught(request: Request, dialect: str) -> Reply:
    taught = [name for name, spelling in SPELLINGS.items() if read_lesson(request.system, spelling) is not None]
    instead = f"; it teaches {', '.join(taught)}" if taught else ""
    words = (
        f'The scripted model cannot go on: the system prompt does not teach the dialect "{dialect}"{instead}. '
        f"Dialects are {', '.join([NATIVE, *SPELLINGS])}."
    )
    return Reply(key="none", parts=(Text(words),), problem=words)
