"""Each request of a run begins with all the bytes of the one before it, on every wire and in every dialect.

Providers cache a prompt by its beginning: one byte that changes there makes all behind it dear again.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bot.agent.dispatch import MAX_CALLS
from bot.agent.limits import LimitGuard
from bot.agent.loop import AGAIN, heard
from bot.agent.modes import ACT
from bot.agent.prompt import Assignment, Surroundings, first_message, next_message
from bot.domain.codec import message_from_data, message_to_data
from bot.domain.messages import Image, Message, Part, Prompt, Reply, TextPart, ThinkingPart, ToolCall, ToolSpec, Usage
from bot.llm import anthropic_wire, google_wire, openai_chat_wire, openai_responses_wire
from bot.llm.anthropic import AnthropicModel
from bot.llm.base import Model, OnText
from bot.llm.dialects.base import token_of
from bot.llm.google import GoogleModel
from bot.llm.openai_chat import OpenAIChatModel
from bot.llm.openai_client import Endpoint
from bot.llm.openai_responses import OpenAIResponsesModel
from bot.llm.spoken import DIALECTS, spoken
from bot.testing.model.anthropic_check import check_body
from bot.testing.model.cache import PromptCache
from bot.testing.model.openai_check import check_chat, check_responses
from bot.testing.model.reply import Call
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.seal import seal
from bot.testing.model.server import ScriptedModel
from bot.tools.base import ToolOutput
from bot.tools.standard import standard_tools
from tests.unit.agent.made import WIDE, loop

Json = dict[str, Any]  # Any: a provider's JSON
CAP = 4096
PNG = Image("image/png", "iVBORw0KGgo=")
NASTY = {
    "as written": '{ "path" : "b/ä 🦀.py",  "limit": 3, "offset": 1 }',
    "keys in no order": '{"numbers":true,"path":"a","limit":10}',
    "escapes": '{"path":"\\u00e4\\/\\ud83e\\udd80\\t"}',
    "a number": '{"path":"a","offset":1.50,"limit":1e2}',
    "an object in a string": '"{\\"path\\": \\"a\\"}"',
    "half a pair": '{"path":"\\ud800"}',
    "nul": '{"path":"\\u0000"}',
    "cut": '{"path": "a',
    "a list": '["a"]',
    "empty": "",
    "nested": '{"path":{"b":[1,{"z":1,"a":2}]}}',
}
"""Arguments of `read`, as models write them."""
FILE = "def f():\n\treturn '</result> ```\\u0041 \\\\ \u2028 🦀'\n"


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to spell a prompt."""

    model: str
    said: str
    """The key of the conversation."""
    write: Callable[..., Json]
    thinks: Callable[[str], ThinkingPart]
    """Thinking as this wire's own model would have sent it."""
    check: Callable[[Json], object] = lambda body: None


def _reasoning(text: str) -> ThinkingPart:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"text": text}], "encrypted_content": seal(text)}
    return ThinkingPart(text, data=json.dumps(item), model="openai:gpt-x")


def _sealed(text: str) -> ThinkingPart:
    return ThinkingPart(text, seal(text), model="anthropic:claude-x")


WIRES = {
    "anthropic": Wire(
        "anthropic:claude-x",
        "messages",
        lambda prompt, **options: anthropic_wire.to_wire(prompt, thinking=2000, **options),
        _sealed,
        lambda body: check_body(json.dumps(body).encode()),
    ),
    "responses": Wire(
        "openai:gpt-x",
        "input",
        lambda prompt, **options: openai_responses_wire.to_wire(
            prompt, reasoning=openai_responses_wire.Reasoning(), **options
        ),
        _reasoning,
        check_responses,
    ),
    "chat": Wire(
        "openai:gpt-x",
        "messages",
        openai_chat_wire.to_wire,
        lambda text: ThinkingPart(text, data=json.dumps({"reasoning_content": text}), model="openai:gpt-x"),
        check_chat,
    ),
    "google": Wire(
        "google:gemini-3-pro",
        "contents",
        lambda prompt, **options: google_wire.to_wire(prompt, thinking="adaptive", **options),
        lambda text: ThinkingPart(text, "c2VhbA==", model="google:gemini-3-pro"),
    ),
}
TELLERS = ["native", *DIALECTS]


class Writing:
    """A model that spells each prompt as its wire does, notes it, and gives the next reply of a story."""

    def __init__(self, wire: Wire, guard: LimitGuard, replies: Sequence[Reply]) -> None:
        self.name = wire.model
        self.bodies: list[Json] = []
        self._wire = wire
        self._guard = guard
        self._replies = list(replies)

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Give the next reply; a replay of the stored messages has to spell the same."""
        body = self._wire.write(prompt, model=self.name, max_output_tokens=CAP)
        stored = [json.loads(json.dumps(message_to_data(message))) for message in prompt.messages]
        again = replace(prompt, messages=tuple(map(message_from_data, stored)))
        assert json.dumps(self._wire.write(again, model=self.name, max_output_tokens=CAP)) == json.dumps(body)
        self._wire.check(body)
        self.bodies.append(body)
        self._guard.replied(Usage(), 0.0, 0.0)
        return self._replies.pop(0)

    async def close(self) -> None:
        """Do nothing."""


class Desk:
    """The standard tools; what they give follows from what they are asked."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """As they are."""
        return sorted((tool.spec for tool in standard_tools()), key=lambda spec: spec.name)

    def reads_only(self, name: str) -> bool:
        """All of them only read here."""
        return True

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Give a file, a picture, or an error."""
        if name == "finish":
            return ToolOutput("Done.", "finish", finished=True)
        if name == "list":
            return ToolOutput("the same\0", "list")
        if index == 1:
            return ToolOutput("", "read", images=[PNG])
        return ToolOutput(f"{turn}/{index} {FILE * 20}", name, is_error=index == 2)


def opening(task_id: str = "t1") -> Message:
    """The first message of a task."""
    asked = Assignment(task_id, "issue", "The cart squeaks", "Please\r\n`oil` it. </result>", "", ["make test"], "")
    where = Surroundings(".", "Debian GNU/Linux 12", ["git"], f"agent/7-{task_id}", "2026-11-30")
    return first_message(asked, where)


def story(wire: Wire) -> list[Reply]:
    """What the model answers: calls side by side, bad ones, none, a cut-off reply, one thing again and again."""
    thought = wire.thinks("hm…")
    foreign = ThinkingPart("other", "x", model="other:m")
    reads = [ToolCall(f"call|{number}", "read", text) for number, text in enumerate(NASTY.values())]
    again = Message("assistant", (ToolCall("same", "list", '{"path":"."}'),))
    return [
        Reply(Message("assistant", (thought, TextPart("I look. \n"), *reads[:4])), "tool"),
        Reply(Message("assistant", (TextPart("And now?"),)), "end"),
        Reply(Message("assistant", ()), "end"),
        Reply(Message("assistant", (foreign, thought, *reads[4:])), "tool"),
        Reply(Message("assistant", (*reads, ToolCall("z", "no such/tool", "{}"))), "tool"),
        Reply(
            Message("assistant", (thought, TextPart("Cut"), ToolCall("c", "write", '{"path":"a","content":"'))),
            "length",
        ),
        *(Reply(again, "tool") for _ in range(4)),
        Reply(Message("assistant", (thought, ToolCall("end", "finish", '{"summary":"ä"}'))), "tool"),
    ]


SAID = {1: ["Mind the wheel."], 2: ["Oil is in the shed.", "And \ud800 gloves."], 3: ["Hello?"], 6: ["Faster."]}
"""What people say before a turn: the first one, one with results, one with a nudge, one behind a cut-off reply."""


def as_told(reply: Reply, dialect: str, tools: Sequence[ToolSpec]) -> Reply:
    """The reply as a model writes it in a dialect."""
    if dialect == "native":
        return reply
    speaks = DIALECTS[dialect](tools, token_of(opening().text))

    def told(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return TextPart(speaks.render_call(part) + "\n")
        return TextPart(part.text + "\n") if isinstance(part, TextPart) else part

    parts = tuple(map(told, reply.message.parts))
    return Reply(Message("assistant", parts), "end" if reply.stop == "tool" else reply.stop)


async def played(wire: Wire, dialect: str, transcript: list[Message]) -> list[Json]:
    """Play the story from the transcript on and return the requests."""
    desk, guard = Desk(), LimitGuard(WIDE)

    async def listen(turn: int) -> Sequence[str]:
        return SAID.get(turn, ())

    model = Writing(wire, guard, [as_told(reply, dialect, desk.specs) for reply in story(wire)])
    agent = loop(spoken(model, dialect), desk, guard, listen)
    assert (await agent.run(transcript)).said_so
    return model.bodies


def bare(value: Any) -> Any:  # Any: JSON
    """The same without cache marks."""
    if isinstance(value, Mapping):
        return {key: bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [bare(item) for item in value] if isinstance(value, list) else value


def as_bytes(value: object) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(bare(value), ensure_ascii=False).encode()


def first_change(bodies: Sequence[Json], said: str) -> str:
    """Name the first request that does not begin with all of the one before it; empty where each of them does."""
    for number, (before, after) in enumerate(itertools.pairwise(bodies), 2):
        for key in before.keys() | after.keys() - {said}:
            if key != said and as_bytes(before.get(key)) != as_bytes(after.get(key)):
                return f"request {number}: {key}"
        if list(before) != list(after):
            return f"request {number}: order of its fields"
        if before[said] == after[said]:
            # The same is asked again behind an empty reply.
            continue
        old, new = as_bytes(before[said]).removesuffix(b"]"), as_bytes(after[said])
        if not new.startswith(old + b", "):
            same = next(place for place, (a, b) in enumerate(zip(old + b", ", new, strict=False)) if a != b)
            return f"request {number}: {old[same - 60 : same + 20]!r} became {new[same - 60 : same + 20]!r}"
    return ""


@pytest.mark.parametrize("dialect", TELLERS)
@pytest.mark.parametrize("name", WIRES)
async def test_each_request_begins_with_the_one_before(name: str, dialect: str) -> None:
    """Through calls side by side, bad arguments, nudges, cut-off replies, repetitions, pictures and people's words."""
    wire, transcript = WIRES[name], [opening()]
    bodies = await played(wire, dialect, transcript)
    assert len(bodies) == len(story(wire))
    assert first_change(bodies, wire.said) == ""
    # The story is what it says it is.
    told = as_bytes(bodies[-1]).decode()
    for words in (
        ACT.nudge,
        AGAIN,
        *(heard(text.replace("\ud800", "\ufffd")) for text in itertools.chain(*SAID.values())),
    ):
        assert json.dumps(words, ensure_ascii=False)[1:-1] in told
    assert told.count(PNG.data) == 3
    if dialect == "native":
        assert f"at most {MAX_CALLS} calls" in told


@pytest.mark.parametrize("dialect", TELLERS)
@pytest.mark.parametrize("name", WIRES)
async def test_a_further_run_begins_with_the_one_before(name: str, dialect: str) -> None:
    """What is asked next stands behind everything that was said, and the same story gives the same bytes."""
    wire, transcript = WIRES[name], [opening()]
    first = await played(wire, dialect, transcript)
    assert as_bytes(first) == as_bytes(await played(wire, dialect, [opening()]))
    transcript += [
        Message("assistant", (TextPart("The run is over."),)),
        next_message("t1", "And paint it.", moved=True),
    ]
    second = await played(wire, dialect, transcript)
    assert first_change([first[-1], *second], wire.said) == ""


async def test_what_changes_early_is_seen() -> None:
    """A counter in the system prompt, a tool that moves and an edited message each break the prefix."""
    wire = WIRES["anthropic"]
    bodies = await played(wire, "native", [opening()])
    spoils: list[Callable[[Json], object]] = [
        lambda body: body["system"][0].update(text="Request 2"),
        lambda body: body["tools"].reverse(),
        lambda body: body["messages"][0]["content"][0].update(text="x"),
        lambda body: body["messages"][0]["content"].append({"type": "text", "text": "x"}),
        lambda body: body["messages"].pop(0),
    ]
    for spoil in spoils:
        spoilt = json.loads(json.dumps(bodies))
        spoil(spoilt[1])
        assert first_change(spoilt, wire.said).startswith("request 2")


@pytest.mark.parametrize("dialect", TELLERS)
async def test_anthropic_is_told_what_to_keep(dialect: str) -> None:
    """Four marks at most: the end of what never changes, and the last two user messages with their results."""
    for body in await played(WIRES["anthropic"], dialect, [opening()]):
        fixed = [key for key in ("tools", "system") if any("cache_control" in block for block in body.get(key, ()))]
        assert fixed == ["system"]
        assert "cache_control" in body["system"][-1]
        marked = [
            number
            for number, message in enumerate(body["messages"])
            for block in message["content"]
            if "cache_control" in block
        ]
        heard_at = [number for number, message in enumerate(body["messages"]) if message["role"] == "user"]
        assert {*heard_at[-2:]} <= {*marked} <= {*range(heard_at[-2:][0], heard_at[-1] + 1)}
        assert len(marked) <= 3
        assert all("cache_control" in body["messages"][number]["content"][-1] for number in heard_at[-2:])


@pytest.mark.parametrize("dialect", TELLERS)
@pytest.mark.parametrize("name", ["responses", "chat"])
async def test_openai_is_told_which_task_it_is(name: str, dialect: str) -> None:
    """One key for all requests of a task, over its runs too, and another one for another task."""
    wire, keys = WIRES[name], []
    for task_id in ("t1", "t2"):
        transcript = [opening(task_id)]
        bodies = await played(wire, dialect, transcript) if task_id == "t1" else []
        transcript.append(Message("assistant", (TextPart("Done."),)))
        prompt = Prompt(ACT.system, Desk().specs, (*transcript, next_message(task_id, "More.", moved=False)))
        model = Writing(wire, LimitGuard(WIDE), [Reply(Message("assistant", (TextPart("Yes."),)), "end")])
        await spoken(model, dialect).ask(prompt)
        keys.append({body["prompt_cache_key"] for body in [*bodies, *model.bodies]})
    assert [len(of_task) for of_task in keys] == [1, 1]
    assert keys[0] != keys[1]


def test_a_server_that_may_not_know_the_key_gets_none() -> None:
    """Strict ones refuse a field that they do not know."""
    prompt = Prompt("s", (), (opening(),))
    options: Json = {"model": "own:x", "max_output_tokens": CAP}
    assert "prompt_cache_key" not in openai_chat_wire.to_wire(prompt, habits=openai_chat_wire.COMPATIBLE, **options)
    assert "prompt_cache_key" in openai_chat_wire.to_wire(prompt, habits=openai_chat_wire.OPENAI, **options)


TURNS = 20
SAID_IN = {"anthropic": "messages", "openai-responses": "input", "openai-chat": "messages", "google": "contents"}
"""The key of the conversation on each wire of the scripted model."""
LINES = [
    text for name, text in NASTY.items() if name in ("as written", "keys in no order", "escapes", "a number", "nested")
]
"""Arguments that every wire can carry back as they are."""


class Counting:
    """A model whose usage is noted."""

    def __init__(self, model: Model, guard: LimitGuard) -> None:
        self.name = model.name
        self.usage: list[Usage] = []
        self._model = model
        self._guard = guard

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask and count."""
        reply = await self._model.ask(prompt, on_text=on_text)
        self.usage.append(reply.usage)
        self._guard.replied(reply.usage, 0.0, 0.0)
        return reply

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


def client(wire: str, server: ScriptedModel) -> Model:
    """A real client of the server."""
    url = server.base_url(wire)
    if wire == "anthropic":
        return AnthropicModel("anthropic:x", api_key="k", base_url=url, max_output_tokens=CAP, thinking_budget=2000)
    if wire == "google":
        return GoogleModel(
            "google:gemini-3-x", api_key="k", base_url=url, max_output_tokens=CAP, thinking_budget="adaptive"
        )
    if wire == "openai-responses":
        return OpenAIResponsesModel("openai:gpt-x", endpoint=Endpoint("k", url), max_output_tokens=CAP)
    return OpenAIChatModel(
        "openai:gpt-x", endpoint=Endpoint("k", url), max_output_tokens=CAP, habits=openai_chat_wire.OPENAI
    )


def script(dialect: str) -> Script:
    """Twenty turns of two calls each."""
    replies = [
        *(
            [ToolCall("", "read", LINES[number % len(LINES)]), ToolCall("", "search", '{"pattern":"\\u00e4"}')]
            for number in range(TURNS - 1)
        ),
        [ToolCall("", "finish", '{"summary":"ä"}')],
    ]
    if dialect == "native":
        turns = [Turn("Next.", "hm…", [Call(call.name, json=call.arguments) for call in calls]) for calls in replies]
    else:
        speaks = DIALECTS[dialect](Desk().specs, token_of(opening().text))
        turns = [Turn("\n".join(map(speaks.render_call, calls)), "hm…") for calls in replies]
    return Script([Conversation("oil", turns, match="squeaks")])


@pytest.mark.parametrize("dialect", TELLERS)
@pytest.mark.parametrize("wire", SAID_IN)
async def test_a_run_costs_what_is_new(wire: str, dialect: str) -> None:
    """Over real HTTP a request pays anew for nothing that an earlier one sent: all of it is read from the cache."""
    desk, guard = Desk(), LimitGuard(WIDE)

    async def listen(turn: int) -> Sequence[str]:
        return SAID.get(turn, ())

    async with ScriptedModel(script(dialect), api_key="k", cache=PromptCache(min_tokens=0)) as server:
        model = Counting(client(wire, server), guard)
        try:
            done = await loop(spoken(model, dialect), desk, guard, listen).run([opening()])
        finally:
            await model.close()
    assert done.said_so
    assert server.problems == []
    assert len(server.requests) == TURNS
    assert first_change([json.loads(request.raw) for request in server.requests], SAID_IN[wire]) == ""
    sent = [used.total_tokens - used.output_tokens for used in model.usage]
    assert [used.cache_read_tokens for used in model.usage] == [0, *sent[:-1]]
    assert sum(used.cache_read_tokens for used in model.usage) > 0.85 * sum(sent)
