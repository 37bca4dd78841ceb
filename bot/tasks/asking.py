"""A person asks, and the model answers from the code: nothing is changed, and what waits goes on waiting."""

from bot.agent.conduct import Finishing
from bot.agent.context.conversation import Context, Told
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard
from bot.agent.loop import Agent
from bot.agent.modes import ASK
from bot.agent.prompt import question_about
from bot.agent.threads import place_told
from bot.agent.transcript import say
from bot.errors import ModelRefused
from bot.tasks.engines.base import Json
from bot.tasks.opening import Begun, Prepared, Wanted, first_of
from bot.tasks.recorded import RecordedModel, RecordedToolset, deaf
from bot.tasks.scene import Scene


async def answer_question(
    scene: Scene, begun: Begun, prepared: Prepared, *, model: RecordedModel, guard: LimitGuard, told: Told
) -> str:
    """Let the model answer what the run asks, show the answer and return it.

    What people say meanwhile is for the work, and reaches the next run.

    Raises:
        Cancelled: somebody wants no answer any more.
        LimitReached: a limit of the run is reached.
        ModelError: the model cannot be used, or does not answer.
    """
    journal = Journal(lambda: guard.budget)
    agent = Agent(
        Context(begun.planners, model.ask, lambda: journal.facts, told),
        RecordedToolset(scene, ASK.of(scene.lease.tools)),
        guard,
        deaf,
        finishing=Finishing(()),
        journal=journal,
        phase=ASK,
    )
    transcript = [first_of(scene, begun.settings, prepared, "", Wanted(asked=begun.open.asked), plans=True)]
    place = place_told(scene.task.id, prepared.pull, prepared.threads)
    say(transcript, [place, question_about(scene.task.id, scene.run.request, begun.open.plan)])
    answer = (await agent.run(transcript)).summary.strip()
    if not answer:
        raise ModelRefused("The model gave no answer.")

    thread = next((one.id for one in prepared.threads), "")

    async def show() -> Json:
        await scene.desk.publisher.answer(scene.task, scene.run, answer, thread)
        return None

    await scene.steps.do("answer", show, patient=True)
    return answer
