"""What people are asked in the middle of a run: a plan, a question. Who cannot answer at once is not waited for."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import cast

from bot.domain.events import PlanProposed, QuestionAsked
from bot.domain.proposal import Proposal, Sheet, hash_of
from bot.errors import Cancelled, Waits
from bot.store.base import WORDS
from bot.tasks.engines.base import Json
from bot.tasks.scene import Scene

YES = frozenset({"y", "yes"})
NO = frozenset({"n", "no", ""})


class Unheard(Exception):  # noqa: N818 - no error: the model hears them first
    """People said something while the model thought; what it asks may be answered by that already."""


async def put_plan(
    scene: Scene,
    number: int,
    proposal: Proposal,
    waits: str,
    *,
    heard: int,
    put_file: Callable[[PlanProposed], Awaitable[Sheet]] | None = None,
) -> str:
    """Put a plan to the people, and return what they want changed; empty where it is to be carried out.

    Args:
        scene: the run.
        number: 1 for the first plan of the run.
        proposal: the plan.
        waits: why people have to decide, as a sentence; empty where they only read it.
        heard: the last inbox item that the model heard.
        put_file: puts a plan that waits on the branch, to be reviewed there; None where it stands in a comment.

    Raises:
        Unheard: the plan waits, and people said something else meanwhile; it was not put to them.
        Waits: people have to decide, and do so later.
        Cancelled: somebody does not want it at all.
    """
    fact = PlanProposed(number, waits=waits, hash=hash_of(scene.task.id, proposal), **asdict(proposal))

    async def put() -> str | None:
        await scene.recorder.note(f"plan/{number}", fact)
        sheet = await put_file(fact) if waits and put_file else None
        return await scene.desk.publisher.propose(scene.task, scene.run, fact, sheet)

    if not waits:
        await scene.steps.do(f"plan/{number}", put, stoppable=True, patient=True)
        return ""
    words = (await _put(scene, f"plan/{number}", put, waits, heard)).strip()
    if words.casefold() in NO:
        raise Cancelled("the plan is not wanted")
    return "" if words.casefold() in YES else words


async def put_question(scene: Scene, number: int, question: str, *, heard: int) -> str:
    """Put a question to the people, and return what they say.

    Args:
        scene: the run.
        number: 1 for the first question of the run.
        question: in the model's words.
        heard: the last inbox item that the model heard.

    Raises:
        Unheard: people said something meanwhile; the question was not put to them.
        Waits: they answer later.
    """

    async def put() -> str | None:
        await scene.recorder.note(f"question/{number}", QuestionAsked(question))
        return await scene.desk.publisher.ask(scene.task, scene.run, question, number)

    return await _put(scene, f"question/{number}", put, f"The model asks: {question}", heard)


async def _put(scene: Scene, name: str, put: Callable[[], Awaitable[str | None]], waits: str, heard: int) -> str:
    """Put something to the people as a step, and return what they say to it."""
    store, task = scene.desk.store, scene.task

    async def action() -> Json:
        items = await store.inbox(task.id, after=heard)
        if any(item.kind == "stop" or (item.kind in WORDS and item.text) for item in items):
            return {"unheard": True}
        words = await put()
        # Whatever was said before this moment was not said to what people read only now.
        seen = max((item.id for item in await store.inbox(task.id, after=heard)), default=heard)
        return {"words": words, "seen": seen}

    value = cast("dict[str, object]", await scene.steps.do(name, action, stoppable=True, patient=True))
    if "unheard" in value:
        raise Unheard
    if value["words"] is None:
        raise Waits(waits, cast("int", value["seen"]))
    return str(value["words"])
