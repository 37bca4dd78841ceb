"""The path of one run, from a free worker to the final state, on one screen; everything it does is a step."""

import logging
from dataclasses import dataclass

from bot.agent.conduct import Finishing
from bot.agent.context.conversation import Compaction, Context
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard, Limits
from bot.agent.loop import Agent, Finished, heard
from bot.agent.prompt import system_prompt
from bot.domain.events import Notice, RunFinished
from bot.domain.messages import Message, TextPart
from bot.domain.task import Outcome, Run, Task
from bot.errors import (
    BotError,
    Cancelled,
    LimitReached,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
)
from bot.tasks.checks import Checker, feedback
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Step
from bot.tasks.environment import Environment, set_up
from bot.tasks.lease import Lease
from bot.tasks.opening import Begun, Prepared, begin, prepare, transcript_of
from bot.tasks.publishing import deliver
from bot.tasks.recorded import Ears, RecordedModel, RecordedToolset
from bot.tasks.recorder import Recorder
from bot.tasks.reporting import report
from bot.tasks.scene import Scene
from bot.tasks.steps import Steps

log = logging.getLogger(__name__)

CHECK_ROUNDS = 3
"""Times that the checks run after `finish`; between them the model may mend what fails."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, before the world is told."""

    outcome: Outcome
    reason: str
    summary: str = ""
    kept: bool = False
    """Whether the working copy holds work that could not be published, so that it has to stay."""


class Workflow:
    """Takes a run's id and brings the run to its end; the body that engines replay."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, run_id: str, step: Step) -> None:
        """Work on one run; returns when its end is recorded and told."""
        task_id, _, seq = run_id.rpartition("-")
        task = await self._desk.store.task(task_id)
        run = await self._desk.store.run(task_id, int(seq))
        if task is None or run is None:
            raise BotError(f"run {run_id} is unknown to the store")
        life = _Life(self._desk, task, run, Steps(step, self._desk.store, self._desk.stop_of(run_id)))
        try:
            ending = await life.work()
        finally:
            await _closed(life)
        await report(life.scene, _finished(life, ending), life.transcript, heard=life.heard, kept=ending.kept)


async def _closed(life: "_Life") -> None:
    """Give back what a run held; what fails there must not keep the run from its end."""
    try:
        await life.close()
    except Exception:
        log.exception("run.unclosed", extra={"run": life.scene.run.id})


def _finished(life: "_Life", ending: Ending) -> RunFinished:
    spent = life.guard.spent
    return RunFinished(
        outcome=ending.outcome,
        reason=ending.reason,
        summary=ending.summary,
        turns=spent.turns,
        tokens=spent.usage.total_tokens,
        cost_usd=spent.usd,
        seconds=spent.seconds,
    )


def _why_no_checks(scene: Scene, environment: Environment) -> str:
    if not scene.lease.shell:
        return "commands are not run here"
    return "the set-up failed" if environment.failed else ""


class _Life:
    """One run from its first step to its published work."""

    def __init__(self, desk: Desk, task: Task, run: Run, steps: Steps) -> None:
        lease = Lease(desk, task)
        self.scene = Scene(desk, task, run, steps, Recorder(desk, run), lease)
        self.guard = LimitGuard(Limits(turns=0, tokens=0, usd=0, minutes=0))
        self.transcript: list[Message] = []
        self.remark = ""
        """What people have to know of a run that is done; empty where all is well."""
        self._model: RecordedModel | None = None
        self._ears: Ears | None = None
        self._before = 0

    @property
    def heard(self) -> int:
        """The last inbox item that reached the model, in this run or before it."""
        return self._ears.heard if self._ears is not None else self._before

    async def work(self) -> Ending:
        """Do everything up to the published work; every expected failure is an ending with its reason."""
        prepared: Prepared | None = None
        finished: Finished | None = None
        ending = Ending("done", "")
        try:
            begun = await begin(self.scene)
            settings, limits = begun.settings, begun.settings.limits
            self.guard = LimitGuard(Limits(limits.turns, limits.tokens, limits.usd, limits.minutes))
            lease = self.scene.lease
            tools = self.scene.desk.tools(settings)
            lease.tools = [tool for tool in tools if lease.shell or tool.spec.name != "run"]
            prepared = await prepare(self.scene)
            self._before = prepared.heard
            finished = await self._loop(begun, prepared)
        except LimitReached as limit:
            ending = Ending("budget", f"A limit was reached: {self._priced(limit)}.")
        except Cancelled:
            ending = Ending("stopped", "Stopped on request.")
        except BotError as error:
            ending = Ending("failed", self._told(error))
        except Exception:
            # A fault of ours: the person hears where to look, the log has all of it.
            log.exception("run.broken", extra={"run": self.scene.run.id})
            ending = Ending("failed", f"An internal error; the server's log has it under run `{self.scene.run.id}`.")
        return ending if prepared is None else await self._deliver(prepared, ending, finished)

    def _priced(self, limit: LimitReached) -> LimitReached:
        """Say with a limit of tokens why no price ended the run before, where none was known."""
        if self._model is None or limit.what != "tokens":
            return limit
        return LimitReached(limit.what, limit.value, limit.limit, self._model.remark)

    def _told(self, error: BotError) -> str:
        """Say to the people on the thread why the run failed; the operator hears of what only they can mend."""
        if isinstance(error, ModelRejected | OperatorError):
            log.error("run.operator_needed", extra={"run": self.scene.run.id, "error": str(error)})
            return f"{error}. Only who runs this server can mend that."
        if isinstance(error, ModelUnavailable):
            return f"{error}. It was asked several times; ask me again later."
        return str(error)

    async def close(self) -> None:
        """Give back what this process held."""
        await self.scene.lease.close()
        if self._model is not None:
            await self._model.close()

    async def _loop(self, begun: Begun, prepared: Prepared) -> Finished:
        scene, settings = self.scene, begun.settings
        environment = await set_up(scene, settings, prepared)
        skipped = _why_no_checks(scene, environment)
        checker = Checker(scene, settings.checks, skipped=skipped)
        await checker.all("before")
        model = self._model = RecordedModel(
            scene, settings.model, self.guard, started=begun.started, window=begun.window.tokens
        )
        ears = self._ears = Ears(scene, after=prepared.heard)
        self.transcript = await transcript_of(scene, settings, prepared, environment.told(scene.task.id))
        journal = Journal(lambda: self.guard.budget)
        agent = Agent(
            Context(begun.window, model.ask, lambda: journal.facts, self._compacted),
            RecordedToolset(scene, scene.lease.tools),
            self.guard,
            ears.listen,
            finishing=Finishing(() if skipped else [check.run for check in settings.checks]),
            journal=journal,
        )
        for attempt in range(1, CHECK_ROUNDS + 1):
            finished = await agent.run(system_prompt(), self.transcript)
            failed = [check for check in await checker.all("after", attempt) if not check.passed]
            said = await ears.listen(self.guard.spent.turns)
            # A model that stopped calling tools by itself was asked often enough already.
            if not said and (not failed or attempt == CHECK_ROUNDS or not finished.said_so):
                break
            self._say(feedback(failed) if failed else "", *(heard(text) for text in said))
        if failed:
            names = ", ".join(f"`{check.name}`" for check in failed)
            self.remark = f"Not all is well: {names} still fails after the work."
            await scene.recorder.note("remark", Notice(self.remark))
        return finished

    async def _compacted(self, done: Compaction) -> None:
        await self.scene.recorder.note(f"compacted/{self.guard.spent.turns}", Notice(str(done)))

    def _say(self, *texts: str) -> None:
        parts = tuple(TextPart(text) for text in texts if text)
        last = self.transcript[-1]
        if last.role == "user":
            self.transcript[-1] = Message("user", (*last.parts, *parts))
        else:
            self.transcript.append(Message("user", parts))

    async def _deliver(self, prepared: Prepared, ending: Ending, finished: Finished | None) -> Ending:
        summary = finished.summary if finished else ""
        try:
            # What a limit cut short is worth a look, and goes on from there.
            early = ending.reason if ending.outcome == "budget" else ""
            work = await deliver(self.scene, prepared, summary=summary, complete=finished is not None, early=early)
        except BotError as error:
            reason = f"{ending.reason} The work could not be published: {error}".strip()
            return Ending("failed", reason, summary, kept=True)
        except Exception:
            log.exception("run.broken", extra={"run": self.scene.run.id})
            reason = f"{ending.reason} An internal error kept the work from being published: see the server's log."
            return Ending("failed", reason.strip(), summary, kept=True)
        if work is None and ending.outcome == "done":
            return Ending("failed", "No file was changed, so there is nothing to review.", summary)
        if work is not None and work.commit == prepared.base:
            return Ending(ending.outcome, ending.reason or "No file was changed in this run.", summary)
        return Ending(ending.outcome, ending.reason or self.remark, summary)
