"""What the tests of the dialects share: tools, and what a parser says in a form that can be compared."""

from collections.abc import Iterable, Sequence

from bot.domain.messages import StopReason, ToolSpec
from bot.llm.dialects.base import Called, Dialect, Event, Fault, Said

TOKEN = "k3f9"


def tool(name: str, required: Sequence[str], **properties: object) -> ToolSpec:
    """Make a tool; a property is its type, or its whole schema."""
    schemas = {key: found if isinstance(found, dict) else {"type": found} for key, found in properties.items()}
    parameters = {"type": "object", "properties": schemas, "required": list(required)}
    return ToolSpec(name, f"Does {name}.", parameters)


TOOLS = (
    tool("write", ["path", "content"], path="string", content="string"),
    tool("edit", ["path", "old", "new"], path="string", old="string", new="string", expected_count="integer"),
    tool("read", ["path"], path="string", offset={"type": "integer", "default": 1}, numbers="boolean"),
    tool("run", ["command"], command="string", timeout_s="integer"),
    tool("list", []),
    tool("finish", ["summary"], summary="string"),
    tool(
        "ask",
        ["topic", "count"],
        topic="string",
        count={"type": "integer", "description": "How many."},
        tags="array",
        where="object",
        note={"type": "string", "x-raw": True},
        ratio="number",
        either={"type": ["string", "null"]},
        nothing="null",
        odd="thing",
    ),
)


def joined(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring texts."""
    made: list[Event] = []
    for event in events:
        if isinstance(event, Said) and made and isinstance(before := made[-1], Said):
            made[-1] = Said(before.text + event.text)
        else:
            made.append(event)
    return made


def parsed(dialect: Dialect, pieces: Iterable[str], stop: StopReason = "end") -> list[Event]:
    """Read a reply that comes in pieces."""
    parser = dialect.parser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return joined([*events, *parser.finish(stop)])


def runs(events: Iterable[Event]) -> list[Called]:
    """The calls that may run."""
    found = list(events)
    if any(isinstance(event, Fault) and event.whole for event in found):
        return []
    return [event for event in found if isinstance(event, Called)]


def shown(events: Iterable[Event]) -> str:
    """Write events as the cases have them, one a line, and whether anything runs."""
    lines = []
    for event in events:
        if isinstance(event, Said):
            lines.append(f"text {event.text!r}")
        elif isinstance(event, Called):
            lines.append(f"call {event.name} {event.arguments}")
        else:
            lines.append(f"{'VOID' if event.whole else 'fault'} {event.name or '-'}: {event.text}")
    return "\n".join(lines)
