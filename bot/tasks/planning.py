"""The part of a run that comes before the work: a plan, made with tools that only read, and what people say to it."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from bot.agent.conduct import Finishing
from bot.agent.context.conversation import Context, Told
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard
from bot.agent.loop import Agent
from bot.agent.modes import PLAN, why_wait
from bot.agent.prompt import SHORTEN_PLAN, change_plan, revise_plan
from bot.agent.threads import threads_told
from bot.agent.transcript import say
from bot.domain.events import PlanProposed
from bot.domain.messages import Message
from bot.domain.proposal import Proposal, Sheet
from bot.errors import ModelRefused
from bot.github import questions
from bot.github.text import clean
from bot.tasks import sheets
from bot.tasks.opening import Begun, Prepared, Wanted, first_of
from bot.tasks.people import Unheard, put_plan
from bot.tasks.recorded import Ears, RecordedModel, RecordedToolset
from bot.tasks.scene import Scene


async def make_plan(  # noqa: PLR0913 - a conversation has this many sides
    scene: Scene,
    begun: Begun,
    prepared: Prepared,
    *,
    model: RecordedModel,
    guard: LimitGuard,
    ears: Ears,
    told: Told,
) -> Wanted:
    """Let the model plan until its plan may be carried out.

    Raises:
        Waits: people decide about it later.
        Cancelled: somebody does not want it.
        LimitReached: a limit of the run is reached.
        ModelError: the model cannot be used, or makes no plan.
    """
    said: list[str] = []

    async def listen(turn: int) -> Sequence[str]:
        texts = await ears.listen(turn)
        said.extend(texts)
        return texts

    journal = Journal(lambda: guard.budget)
    agent = Agent(
        Context(begun.planners, model.ask, lambda: journal.facts, told),
        RecordedToolset(scene, PLAN.of(scene.lease.tools)),
        guard,
        listen,
        finishing=Finishing(()),
        journal=journal,
        phase=PLAN,
    )
    standing, run = begun.open.plan, scene.run
    # What is asked of a plan that stands is not the task: that was asked before.
    asked = [*begun.open.asked, *filter(None, [] if standing else [run.request])]
    transcript = _first(scene, begun, prepared, asked)
    put_file = _put_file(scene, begun, prepared)
    for number in itertools.count(1):
        finished = await agent.run(transcript)
        proposal = _visible(finished.proposal or Proposal(finished.summary))
        if not proposal.text.strip():
            raise ModelRefused("The model made no plan.")
        if not questions.is_shown_whole(proposal):
            say(transcript, [SHORTEN_PLAN])
            continue
        waits = why_wait(begun.mode, proposal, guard.limits.turns)
        try:
            change = await put_plan(scene, number, proposal, waits, heard=ears.heard, put_file=put_file)
        except Unheard:
            continue
        if not change:
            break
        say(transcript, [change_plan(scene.task.id, change)])
    # What was read for the plan is not known to the work: its conversation begins anew.
    scene.lease.ledger.seen.clear()
    asked += [*begun.open.talk, *([run.request] if standing and run.request else [])]
    return Wanted(proposal.text, asked, said=said)


def _visible(proposal: Proposal) -> Proposal:
    """Take out what no reader sees: what people read, what they approve, and what is carried out are one text."""
    files, asked = ([clean(one) for one in texts] for texts in (proposal.files, proposal.questions))
    return replace(proposal, text=clean(proposal.text), files=files, questions=asked)


def _first(scene: Scene, begun: Begun, prepared: Prepared, asked: Sequence[str]) -> list[Message]:
    """Tell who plans of the task, of the plan that stands, and of what was said on its lines."""
    transcript = [first_of(scene, begun.settings, prepared, "", Wanted(asked=asked), plans=True)]
    if begun.open.plan:
        say(transcript, [revise_plan(scene.task.id, begun.open.plan, scene.run.request, begun.open.talk)])
    say(transcript, [threads_told(scene.task.id, prepared.pull, prepared.threads, answers=False)])
    return transcript


def _put_file(scene: Scene, begun: Begun, prepared: Prepared) -> Callable[[PlanProposed], Awaitable[Sheet]] | None:
    """Return how a plan is put as a file of a pull request; None where it is a comment."""
    task = scene.task
    as_pull = begun.settings.plan_as == "pull" and task.kind == "issue" and not task.repository.is_local
    # A branch that holds work already is no place for a plan.
    if not as_pull or (prepared.expected is not None and not prepared.sheet):
        return None

    async def put(fact: PlanProposed) -> Sheet:
        return await sheets.put(scene, prepared.base, fact, begun.settings.command)

    return put
