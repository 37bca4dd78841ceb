"""A model that calls tools in plain text: the calls are taught in the prompt and read out of the reply."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bot.domain.messages import (
    Image,
    Message,
    Part,
    Prompt,
    Reply,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unreadable,
)
from bot.llm.base import Model, OnText
from bot.llm.dialects.base import FINISHED, Called, Dialect, Event, Fault, Parser, Said, token_of
from bot.llm.dialects.json_blocks import Json
from bot.llm.dialects.prose_lines import Prose
from bot.llm.dialects.xml_tags import Xml
from bot.llm.images import caption

Speaks = Callable[[Sequence[ToolSpec], str], Dialect]
"""Makes a dialect for tools and the token of a conversation."""

DIALECTS: Mapping[str, Speaks] = {"xml": Xml, "json": Json, "prose": Prose}
"""All that need a `Spoken`; `native` is the model itself."""
NOTHING = "(nothing)"
"""Stands for a message whose only call left no text."""
_ID = re.compile(r"s([0-9]{1,9})_[0-9]+")


def spoken(model: Model, dialect: str) -> Model:
    """Return the model as one that speaks the dialect of the catalogue."""
    return model if dialect == "native" else Spoken(model, DIALECTS[dialect])


class Spoken:
    """Asks another model without tools, and looks like one that has them.

    A request depends on its prompt alone, and a longer conversation only appends to it: a replay and the provider's
    cache see the same bytes. The reply is read when it is whole, so that a wrapped model may begin anew (`Retrying`)
    or join pieces; while it streams, a second parser only tells text from calls for who listens.
    """

    def __init__(self, model: Model, speaks: Speaks) -> None:
        """Wrap a model.

        Args:
            model: whom to ask; closed with this one.
            speaks: the dialect.
        """
        self._model = model
        self._speaks = speaks

    @property
    def name(self) -> str:
        """`provider:model` of the wrapped model."""
        return self._model.name

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask and read the calls out of the reply; errors as `Model.ask` says.

        What cannot be read comes as a call too: its arguments are `Unreadable`, so it gets an exact error for a
        result and never runs. Where it is uncertain where a call ends, or the model did not finish, all calls do.
        """
        dialect = self._speaks(prompt.tools, token_of(_first(prompt.messages)))
        shown = dialect.parser()
        hear = None if on_text is None else _hearing(shown, on_text)
        reply = await self._model.ask(_told(prompt, dialect), on_text=hear)
        if on_text is not None:
            _tell(shown.finish(reply.stop), on_text)
        parts = _numbered(_read(reply, dialect), prompt.messages)
        has_calls = any(isinstance(part, ToolCall) for part in parts)
        stop: StopReason = ("tool" if has_calls else "end") if reply.stop in FINISHED else reply.stop
        return replace(reply, message=Message("assistant", parts), stop=stop)

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()


def _first(messages: Sequence[Message]) -> str:
    """Return the text that begins the conversation; what people add to the first message comes in parts behind it."""
    return next((part.text for part in messages[0].parts if isinstance(part, TextPart)), "")


def _told(prompt: Prompt, dialect: Dialect) -> Prompt:
    """Spell the tools and all earlier calls and results as text; a later call never changes what an earlier one is."""
    names: dict[str, str] = {}
    messages: list[Message] = []
    for message in prompt.messages:
        names |= {call.id: call.name for call in message.calls}
        messages.append(Message(message.role, tuple(_spelled(message.parts, dialect, names))))
    taught = f"{prompt.system}\n\n{dialect.teach()}" if prompt.tools else prompt.system
    return Prompt(taught, (), tuple(messages))


def _spelled(parts: Sequence[Part], dialect: Dialect, names: Mapping[str, str]) -> Sequence[Part]:
    """Spell the parts of one message; neighbouring texts become one, since APIs differ in what lies between two."""
    made: list[Part] = []
    for part in parts:
        if isinstance(part, ThinkingPart | Image):
            made.append(part)
            continue
        text = _text(part, dialect, names)
        if not text:
            continue
        if made and isinstance(before := made[-1], TextPart):
            made[-1] = TextPart(f"{before.text}\n\n{text}")
        else:
            made.append(TextPart(text))
        made += part.images if isinstance(part, ToolResult) else ()
    return made or [TextPart(NOTHING)]


def _text(part: TextPart | ToolCall | ToolResult, dialect: Dialect, names: Mapping[str, str]) -> str:
    if isinstance(part, ToolResult):
        name = names.get(part.call_id, "unknown")
        text = dialect.render_result(part, name)
        return f"{text}\n\n{caption(f'`{name}`')}" if part.images else text
    return dialect.render_call(part) if isinstance(part, ToolCall) else part.text


def _hearing(parser: Parser, on_text: OnText) -> OnText:
    def hear(text: str) -> None:
        _tell(parser.feed(text), on_text)

    return hear


def _tell(events: Sequence[Event], on_text: OnText) -> None:
    for event in events:
        if isinstance(event, Said):
            on_text(event.text)


def _read(reply: Reply, dialect: Dialect) -> Sequence[Part]:
    """Read a whole reply; calls have no ids yet."""
    parser = dialect.parser()
    found: list[Event | Part] = []
    for part in reply.message.parts:
        # Between two texts with something else between them there is a line break.
        found += parser.feed(part.text) if isinstance(part, TextPart) else [*parser.feed("\n"), part]
    found += parser.finish(reply.stop)
    spoils = next((event for event in found if isinstance(event, Fault) and event.whole), None)
    if spoils is not None and not spoils.written and any(isinstance(event, Called) for event in found):
        # It is about the calls before it, which tell of it.
        found.remove(spoils)
    made: list[Part] = []
    texts: list[str] = []
    for event in found:
        if isinstance(event, Said):
            texts.append(event.text)
            continue
        made += _joined(texts)
        texts.clear()
        made.append(event if isinstance(event, Part) else _call(event))
    made += _joined(texts)
    if spoils is None:
        return made
    return [_spoiled(part, spoils.text) if isinstance(part, ToolCall) else part for part in made]


def _joined(texts: Sequence[str]) -> Sequence[Part]:
    text = "".join(texts).strip()
    return [TextPart(text)] if text else []


def _call(event: Called | Fault) -> ToolCall:
    if isinstance(event, Called):
        return ToolCall("", event.name, event.arguments)
    # The name goes to other providers where the next run uses one.
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", event.name)[:64] or "unreadable"
    return ToolCall("", name, Unreadable(event.text, event.written).arguments)


def _spoiled(call: ToolCall, fault: str) -> ToolCall:
    """Keep a call of a reply of which nothing may run from running."""
    if Unreadable.found_in(call.arguments) is not None:
        return call
    return replace(call, arguments=Unreadable(fault, call.arguments).arguments)


def _numbered(parts: Sequence[Part], before: Sequence[Message]) -> tuple[Part, ...]:
    """Give ids to the calls: the place of the reply in the conversation, where no earlier call has it."""
    taken = [int(found[1]) for message in before for call in message.calls if (found := _ID.fullmatch(call.id))]
    number, index = max([len(before), *(one + 1 for one in taken)]), 0
    made: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            made.append(replace(part, id=f"s{number}_{index}"))
            index += 1
        else:
            made.append(part)
    return tuple(made)
