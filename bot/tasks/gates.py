"""Gates on single actions: each call is judged before it is made, and what people have to agree to is put to them."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from bot.agent import gate as words
from bot.agent.dispatch import ENDINGS
from bot.agent.gate import WISH, Asked, lifts
from bot.agent.policy import Judgement, Surroundings, judge
from bot.domain.messages import ToolCall, Unreadable
from bot.domain.request import ActionRequest, canonical
from bot.errors import Cancelled, ToolError, Waits
from bot.github import requests
from bot.redaction import mask
from bot.tasks.engines.base import Json
from bot.tasks.lines import REQUEST
from bot.tasks.scene import Scene
from bot.tools.base import ToolOutput
from bot.tools.toolset import read_arguments

BEHIND = "Not executed: a call before it waits for a person's approval."
CWD = "."
"""Where all tools act, from the top of the work tree."""
_SHORT = 300
"""Characters of arguments that are judged at once: that takes less than to hand them to a thread."""


@dataclass(slots=True)
class Held:
    """What is not made of some calls, and why."""

    calls: dict[int, ToolCall] = field(default_factory=dict)
    """Those that are made."""
    outputs: dict[int, ToolOutput] = field(default_factory=dict)
    """What the others give."""
    asked: list[Asked] = field(default_factory=list)
    """What people are to be asked about."""


class Gatekeeper:
    """Stands before the calls of one conversation."""

    def __init__(self, scene: Scene, *, waits: bool) -> None:
        """Make one.

        Args:
            scene: the run.
            waits: whether a call may wait for people; else what they are asked about is not made.
        """
        self._scene = scene
        self._waits = waits
        self.waiting: list[Asked] = []
        """What people are to be asked about before the model goes on."""

    async def hold(self, calls: Mapping[int, ToolCall]) -> Held:
        """Judge calls, inside the step that makes them: a replay finds the verdict in its record."""
        held = Held()
        for index, call in calls.items():
            if self.waiting and call.name in ENDINGS:
                held.outputs[index] = ToolOutput(BEHIND, call.name, is_error=True)
                continue
            made, output, asked = await self._judge(call)
            if output is None:
                held.calls[index] = made
            else:
                held.outputs[index] = output
            held.asked += [] if asked is None else [asked]
        return held

    async def _judge(self, call: ToolCall) -> tuple[ToolCall, ToolOutput | None, Asked | None]:
        """Return the call to make, or what it gives instead."""
        gate, lease = self._scene.lease.gate, self._scene.lease
        live = await lease.live()
        arguments = _arguments(call, repair=live.toolset.reads_only(call.name))
        if gate is None or arguments is None:
            return call, None, None
        where = Surroundings(self._scene.desk.shelter.level, gate.minimum, live.sandbox.root)
        if len(call.arguments) <= _SHORT:
            judgement = judge(gate.policies, call.name, arguments, where)
        else:
            judgement = await asyncio.to_thread(judge, gate.policies, call.name, arguments, where)
        if judgement.verdict == "allow":
            return call, None, None
        if judgement.verdict == "deny":
            summary = f"{call.name}: denied, {judgement.why}"
            return call, ToolOutput(words.denied(judgement), summary, is_error=True), None
        if arguments.pop(WISH, None) is not None:
            # Whoever agrees fulfils the wish.
            call = replace(call, arguments=canonical(arguments))
        if await asyncio.to_thread(lifts, lease.always, call.name, arguments, where, gate.policies):
            return call, None, None
        return await self._ask(call, arguments, judgement)

    async def _ask(
        self, call: ToolCall, arguments: Mapping[str, object], judgement: Judgement
    ) -> tuple[ToolCall, ToolOutput | None, Asked | None]:
        permits = self._scene.desk.permits
        if not self._waits:
            told = words.NOBODY.format(why=judgement.why)
            return call, ToolOutput(told, f"{call.name}: nobody can be asked", is_error=True), None
        if permits is not None:
            why_not = await permits(call.name, call.arguments, judgement.why)
            return call, ToolOutput(why_not, f"{call.name}: not allowed", is_error=True) if why_not else None, None
        asked = Asked(await self._request(call.name, arguments), judgement.why, judgement.rule)
        if not requests.is_showable(asked.request):
            told = words.TOO_MUCH.format(why=judgement.why)
            return call, ToolOutput(told, f"{call.name}: too much to be asked about", is_error=True), None
        return call, ToolOutput(words.waits(asked), f"waits for approval: {asked.shown}", is_error=True), asked

    async def _request(self, tool: str, arguments: Mapping[str, object]) -> ActionRequest:
        scene, lease = self._scene, self._scene.lease
        opened = await lease.opened()
        tree = await opened.workspace.tree_of(lease.commit or opened.base)
        digest = lease.gate.digest if lease.gate else ""
        return ActionRequest(scene.task.id, tool, canonical(arguments), CWD, tree, digest, scene.desk.clock())

    async def put(self, heard: int) -> None:
        """Put what waits to the people; do nothing where nothing does.

        Args:
            heard: the last inbox item that the model heard.

        Raises:
            Waits: they decide later.
            Cancelled: somebody said stop meanwhile.
        """
        if not self.waiting:
            return
        scene, store = self._scene, self._scene.desk.store

        async def action() -> Json:
            await heed_stop(scene, heard)
            for asked in self.waiting:
                await _put(scene, asked)
            return {"seen": max((item.id for item in await store.inbox(scene.task.id, after=heard)), default=heard)}

        value = cast("dict[str, object]", await scene.steps.do("gate", action, stoppable=True, patient=True))
        told = mask(requests.waits([asked.fact() for asked in self.waiting]))
        raise Waits(told, cast("int", value["seen"]))


async def heed_stop(scene: Scene, heard: int | None) -> None:
    """Look inside a step whether somebody said stop behind an inbox item: a signal may be lost, an item is not.

    Args:
        scene: the run.
        heard: the item; None where no stop is heeded any more.

    Raises:
        Cancelled: somebody did.
    """
    if heard is not None and any(
        item.kind == "stop" for item in await scene.desk.store.inbox(scene.task.id, after=heard)
    ):
        raise Cancelled("stopped by a person")


async def _put(scene: Scene, asked: Asked) -> None:
    """Keep a call that waits, and show it."""
    gate = scene.lease.gate
    word, needed = (gate.word, gate.approvals) if gate else ("/agent", 1)
    body = requests.request(asked.request, asked.fact(), requester=scene.run.requester, word=word, approvals=needed)
    await show(scene, asked, body, needed)


async def show(scene: Scene, asked: Asked, body: str, needed: int) -> None:
    """Keep a request, and show it as a comment of its own; doing it twice changes nothing.

    Args:
        scene: the run.
        asked: what people decide about.
        body: the comment, as Markdown.
        needed: people who have to approve it.
    """
    desk, task, run, fact = scene.desk, scene.task, scene.run, asked.fact()
    kept = json.dumps({**asked.to_data(), "body": mask(body), "approvals": needed})
    decision = await desk.store.ask_decision(task.id, run.seq, fact.hash, kept, asked.request.asked_at)
    await scene.recorder.note(f"request/{fact.hash[:16]}", fact)
    # As it was written the first time: what people read is what is compared later.
    written = str(json.loads(decision.question)["body"])
    posted = await desk.publisher.request(task, run, slot_of(run.seq, fact.hash), written, asked.request)
    await desk.store.note_request(decision.id, posted.id, on_line=posted.on_line)


def slot_of(run: int, hash_: str) -> str:
    """Name the slot of a request's comment."""
    return f"{REQUEST}{run}.{hash_[:32]}"


async def nobody(name: str, arguments: str, why: str) -> str:  # noqa: ARG001 - as `Permits` has it
    """Say that nobody can be asked here, now or later: as in a job of GitHub Actions."""
    return words.NOBODY.format(why=why)


def _arguments(call: ToolCall, *, repair: bool) -> dict[str, object] | None:
    """Read a call as the tools do; None where they refuse it."""
    if Unreadable.found_in(call.arguments) is not None:
        return None
    try:
        return read_arguments(call.arguments, repair=repair)
    except ToolError:
        return None
