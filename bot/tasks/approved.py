"""What people decided about single actions since the last run: carried out once, or told why not."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from bot.agent import gate as words
from bot.agent.gate import Asked, always
from bot.domain.events import ActionCarriedOut, ActionsAllowed, Notice
from bot.domain.messages import ToolCall
from bot.domain.request import paths_of
from bot.errors import BotError, Cancelled
from bot.github import requests
from bot.settings.policy import COMMAND_TOOL
from bot.store.base import Decision
from bot.tasks.decisions import shared_pattern
from bot.tasks.engines.base import Json
from bot.tasks.gates import heed_stop
from bot.tasks.protection import agree, is_push
from bot.tasks.recorded import RecordedToolset
from bot.tasks.scene import Scene

WHY_BROKEN = "what is kept of it does not give its hash"


@dataclass(frozen=True, slots=True)
class _Due:
    """A decision that nobody has acted upon."""

    id: int
    hash: str
    verdict: Literal["approved", "denied", "void"]
    actor: str
    reason: str
    asked: dict[str, Any]
    pattern: str = ""
    """Of what is allowed from here on, once this is carried out; empty where that is nothing."""

    @classmethod
    def of(cls, decision: Decision, pattern: str) -> "_Due":
        asked: dict[str, Any] = json.loads(decision.question)
        verdict = cast("Literal['approved', 'denied', 'void']", decision.verdict)
        return cls(decision.id, decision.hash, verdict, decision.actor, decision.reason, asked, pattern)


async def carry_out(scene: Scene, tools: RecordedToolset, tell: Callable[[str], None], *, heard: int = 0) -> None:
    """Act upon what people decided, before the model goes on.

    A decision is taken for used inside the step that acts upon it, before it acts: a later life that finds it used and
    nothing recorded does not know how far the first one came, and does nothing.

    Args:
        scene: the run.
        tools: carry out what was approved.
        tell: tells the model, now or in a further run, what came of each.
        heard: the last inbox item that the model heard.

    Raises:
        Cancelled: somebody said stop meanwhile.
    """
    store, task = scene.desk.store, scene.task
    if scene.run.seq == 1 or scene.lease.gate is None:
        # Nobody was asked yet; a run that began with an earlier version has no such step.
        return

    async def look() -> Json:
        await heed_stop(scene, heard)
        events = await store.events(task.id)
        allowed = [event.fact for event in events if isinstance(event.fact, ActionsAllowed)]
        for number, fact in enumerate(allowed):
            told = requests.allowed_always(fact.tool, fact.pattern, fact.by)
            await scene.recorder.note(f"allowed/{number}", Notice(told))
        decided = [one for one in await store.decisions(task.id) if one.used_at is None and one.verdict is not None]
        # A push that is approved is made without the model; of one that is not it hears.
        due = [one for one in decided if one.verdict != "approved" or not is_push(one)]
        patterns: Json = [[fact.tool, fact.pattern] for fact in allowed]
        wished = {one.id: shared_pattern(await store.votes(one.id)) for one in due}
        return {"allowed": patterns, "due": [asdict(_Due.of(one, wished[one.id])) for one in due]}

    value = cast("dict[str, Any]", await scene.steps.do("approved/0", look))
    scene.lease.always = [always(tool, pattern) for tool, pattern in value["allowed"]]
    for number, one in enumerate(value["due"], 1):
        due = _Due(**one)
        try:
            tell(await _act_upon(scene, tools, number, due))
        except (BotError, Cancelled):
            # It may be used up, and the run ends here: who goes on has to know that.
            if due.verdict == "approved":
                tell(words.lost(Asked.from_data(due.asked)))
            raise


async def _act_upon(scene: Scene, tools: RecordedToolset, number: int, due: _Due) -> str:
    asked, task = Asked.from_data(due.asked), scene.task
    request, fact = asked.request, asked.fact()

    async def why_not() -> Json:
        store, now = scene.desk.store, scene.desk.clock()
        if due.verdict != "approved":
            await store.use(due.id, now)
            told = requests.is_void(fact, due.reason)
            told = requests.is_denied(fact, due.actor) if due.verdict == "denied" else told
            await scene.recorder.note(f"approved/{number}", Notice(told))
            return [due.verdict, due.reason]
        why = await _why_void(scene, due, asked)
        if await store.use(due.id, now, void=why):
            is_lost = False
        else:
            kept = next(one for one in await store.decisions(task.id) if one.id == due.id)
            is_lost, why = kept.verdict != "void", kept.reason
        if is_lost or why:
            told = requests.is_lost(fact) if is_lost else requests.is_void(fact, why)
            await scene.recorder.note(f"approved/{number}", Notice(told))
            return ["lost" if is_lost else "void", why]
        await _know(scene, asked)
        if due.pattern:
            # An approval that came to nothing allows nothing else.
            await scene.recorder.note(f"always/{number}", ActionsAllowed(request.tool, due.pattern, due.actor))
        return None

    before = scene.lease.commit
    kept_from, output = await tools.approved(number, ToolCall("", request.tool, request.arguments), why_not)
    if output is not None:
        done = ActionCarriedOut(fact.hash, due.actor, asked.shown, output.is_error)
        await scene.recorder.note(f"carried/{number}", done)
        await _let_stand(scene, number, due, asked, before, is_error=output.is_error)
        return words.carried_out(task.id, asked, due.actor, output.text)
    match cast("list[str]", kept_from):
        case ["denied", reason]:
            return words.refused(task.id, asked, due.actor, reason)
        case ["void", reason]:
            return words.void(asked, reason)
        case _:
            return words.lost(asked)


async def _let_stand(scene: Scene, number: int, due: _Due, asked: Asked, before: str | None, *, is_error: bool) -> None:
    """Ask no more about what was approved with a call that is made: its pattern, and the files that it names."""
    request = asked.request
    if due.pattern:
        scene.lease.always = [*scene.lease.always, always(request.tool, due.pattern)]
    # What a command writes nobody read before, nor what is in a file that is moved.
    paths = () if request.tool == COMMAND_TOOL else [*paths_of(json.loads(request.arguments), moved=False)]
    if paths and not is_error:
        await scene.steps.do(f"approved/{number}/left", lambda: agree(scene, before, scene.lease.commit, paths))


async def _know(scene: Scene, asked: Asked) -> None:
    """Let the tools know the files that the call names: they are as they were, and a person has agreed to it."""
    lease = scene.lease
    opened = await lease.opened()
    for path in paths_of(json.loads(asked.request.arguments)):
        data = await opened.workspace.read_at(lease.commit or opened.base, path)
        if data is not None:
            lease.ledger.seen[path] = hashlib.sha256(data).hexdigest()


async def _why_void(scene: Scene, due: _Due, asked: Asked) -> str:
    """Say why an approval does not count any more, right before it would be carried out."""
    lease, request = scene.lease, asked.request
    opened = await lease.opened()
    tree = await opened.workspace.tree_of(lease.commit or opened.base)
    if request.hash != due.hash or request.task_id != scene.task.id:
        return WHY_BROKEN
    policy = lease.gate.digest if lease.gate else ""
    return request.why_void(tree=tree, policy=policy, now=scene.desk.clock())
