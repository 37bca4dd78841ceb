"""The part of a run that comes before the work: a plan, made with tools that only read, and what people say to it."""

import itertools
from collections.abc import Sequence

from bot.agent.conduct import Finishing
from bot.agent.context.conversation import Context, Told
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard
from bot.agent.loop import Agent
from bot.agent.modes import PLAN, why_wait
from bot.agent.prompt import change_plan
from bot.agent.transcript import say
from bot.domain.proposal import Proposal
from bot.errors import ModelRefused
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
    transcript = [first_of(scene, begun.settings, prepared, "", None)]
    for number in itertools.count(1):
        finished = await agent.run(transcript)
        proposal = finished.proposal or Proposal(finished.summary)
        if not proposal.text.strip():
            raise ModelRefused("The model made no plan.")
        waits = why_wait(begun.mode, proposal, guard.limits.turns)
        try:
            change = await put_plan(scene, number, proposal, waits, heard=ears.heard)
        except Unheard:
            continue
        if not change:
            break
        say(transcript, [change_plan(scene.task.id, change)])
    # What was read for the plan is not known to the work: its conversation begins anew.
    scene.lease.ledger.seen.clear()
    return Wanted(proposal.text, [scene.run.request] if scene.run.request else [], said=said)
