"""The path of one run, from a free worker to the final state, on one screen; everything it does is a step."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bot.agent.conduct import Finishing
from bot.agent.context.conversation import Compaction, Context
from bot.agent.context.window import Window
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard, Limits
from bot.agent.loop import Agent, Finished, heard
from bot.agent.modes import ACT
from bot.agent.prompt import answered
from bot.agent.threads import threads_told
from bot.agent.transcript import say
from bot.domain.events import Notice, RunFinished
from bot.domain.messages import Message
from bot.domain.task import BESIDE, Outcome, Run, Task
from bot.errors import (
    BotError,
    Cancelled,
    LimitReached,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
    Waits,
)
from bot.settings.resolve import RunSettings
from bot.tasks.approved import carry_out
from bot.tasks.asking import answer_question
from bot.tasks.checking import check_branch
from bot.tasks.checks import Checker, evidence_of, feedback
from bot.tasks.desk import Desk, Work
from bot.tasks.engines.base import Step
from bot.tasks.environment import ProjectSetup, why_no_checks
from bot.tasks.evidence import Proof
from bot.tasks.lease import Lease
from bot.tasks.opening import Begun, Prepared, Wanted, begin, prepare, transcript_of
from bot.tasks.people import Unheard, put_question
from bot.tasks.planning import make_plan
from bot.tasks.publishing import deliver, release
from bot.tasks.recorded import Ears, RecordedModel, RecordedToolset
from bot.tasks.recorder import Recorder
from bot.tasks.reporting import report
from bot.tasks.rounds import answer_round, leave_round, said_since
from bot.tasks.scene import Scene
from bot.tasks.steps import Steps
from bot.tasks.updating import update_branch
from bot.tools.base import COMMANDS, OF_CI

log = logging.getLogger(__name__)

CHECK_ROUNDS = 3
"""Times that the checks run after `finish`; between them the model may mend what fails."""
STOPPED = "Stopped on request."


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, before the world is told."""

    outcome: Outcome
    reason: str
    summary: str = ""
    kept: bool = False
    """Whether the working copy holds work that could not be published, so that it has to stay."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What the harness found wrong with the work."""

    told: str = ""
    """To the model; empty where nothing is wrong."""
    remark: str = ""
    """To people, as a sentence."""


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
        await report(
            life.scene, _finished(life, ending), life.transcript, heard=life.heard, seen=life.seen, kept=ending.kept
        )


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


async def _faults(scene: Scene, setup: ProjectSetup, checker: Checker, attempt: int) -> Faults:
    """Set up what the work needs, and run the checks in that."""
    environment = await setup.again(attempt, wanted=bool(checker.evidence.checks))
    skipped = why_no_checks(scene, environment)
    if skipped and not environment.changed:
        # As before the work, when people and the model were told.
        return Faults()
    await checker.all("after", attempt, skipped=skipped)
    failed = checker.broken()
    if skipped:
        told = environment.told_again(scene.task.id)
        return Faults(told, "what the changed files ask for could not be set up, so no check was run after the work.")
    if not failed:
        return Faults()
    names = ", ".join(f"`{check.name}`" for check in failed)
    return Faults(feedback(failed, anew=bool(environment.changed)), f"{names} still fails after the work.")


def _finishing(settings: RunSettings, prepared: Prepared, skipped: str) -> Finishing:
    """Say what has to have run before the end: the repository's own checks, else the tests that its files tell of."""
    threads = [thread.name for thread in prepared.threads if thread.is_due]
    if skipped:
        return Finishing((), (), threads)
    if settings.checks:
        return Finishing([check.run for check in settings.checks], (), threads)
    return Finishing((), [check for check in prepared.checks if check.kind == "tests"], threads)


class _Life:
    """One run from its first step to its published work."""

    def __init__(self, desk: Desk, task: Task, run: Run, steps: Steps) -> None:
        lease = Lease(desk, task)
        self.scene = Scene(desk, task, run, steps, Recorder(desk, run), lease)
        self.guard = LimitGuard(Limits(turns=0, tokens=0, usd=0, minutes=0))
        self.transcript: list[Message] = []
        self.remark = ""
        """What people have to know of a run that is done; empty where all is well."""
        self._models: list[RecordedModel] = []
        self._questions = 0
        self._agreed = ""
        """The plan that is carried out."""
        self.seen = 0
        """The last inbox item that was there when people were asked what the run waits for."""
        self._ears: Ears | None = None
        self._before = 0
        self._proof: Proof | None = None

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
            left_out = {*(() if lease.shell else COMMANDS), *(() if lease.ci else OF_CI)}
            lease.tools = [tool for tool in tools if tool.spec.name not in left_out]
            prepared = await prepare(self.scene)
            self._before = prepared.heard
            if prepared.held is not None and self.scene.run.intent == "fix":
                work = await release(self.scene, prepared, prepared.held)
                if not self.scene.run.request or work.branch != self.scene.task.branch:
                    return Ending("done", "", work.summary)
                # What else is asked stands on that, and what was answered with it has its answer.
                threads = said_since(prepared.threads, prepared.held.threads)
                prepared = replace(prepared, base=work.commit, expected=work.commit, threads=threads)
                lease.commit = work.commit
            if self.scene.run.intent in BESIDE:
                return Ending("done", "", await self._aside(begun, prepared))
            finished = await self._loop(begun, prepared)
        except LimitReached as limit:
            ending = Ending("budget", f"A limit was reached: {self._priced(limit)}.")
        except Cancelled:
            ending = Ending("stopped", STOPPED)
        except Waits as question:
            ending, self.seen = Ending("waiting", str(question)), question.seen
        except BotError as error:
            ending = Ending("failed", self._told(error))
        except Exception:
            # A fault of ours: the person hears where to look, the log has all of it.
            log.exception("run.broken", extra={"run": self.scene.run.id})
            ending = Ending("failed", f"An internal error; the server's log has it under run `{self.scene.run.id}`.")
        if prepared is None or self.scene.run.intent in BESIDE:
            return ending
        return await self._deliver(prepared, ending, finished)

    def _priced(self, limit: LimitReached) -> LimitReached:
        """Say with a limit of tokens why no price ended the run before, where none was known."""
        if limit.what != "tokens":
            return limit
        remark = " ".join(filter(None, (model.remark for model in self._models)))
        return LimitReached(limit.what, limit.value, limit.limit, remark)

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
        for model in self._models:
            await model.close()

    async def _loop(self, begun: Begun, prepared: Prepared) -> Finished:
        scene, settings = self.scene, begun.settings
        ears = self._ears = Ears(scene, after=prepared.heard)
        wanted = Wanted(begun.open.plan, [*begun.open.asked, *begun.open.talk], scene.run.request)
        if begun.mode != "act":
            wanted = await self._plan(begun, prepared, ears)
        self._agreed = wanted.plan
        setup = ProjectSetup(scene, settings, prepared)
        environment = await setup.first()
        skipped = why_no_checks(scene, environment)
        checker = Checker(scene, evidence_of(settings, () if prepared.theirs else prepared.checks))
        proof = self._proof = Proof(scene, prepared, checker)
        await checker.all("before", skipped=skipped)
        model = self._ask(settings.model, begun, begun.window)
        told = environment.told(scene.task.id)
        self.transcript = await transcript_of(scene, begun, prepared, told, wanted)
        threads = threads_told(scene.task.id, prepared.pull, prepared.threads)
        say(self.transcript, [threads, *(heard(text) for text in wanted.said)])
        journal = Journal(lambda: self.guard.budget)
        tools = RecordedToolset(
            scene, ACT.of(scene.lease.tools, reviewed=any(thread.told for thread in prepared.threads)), waits=True
        )
        await carry_out(scene, tools, lambda text: say(self.transcript, [text]), heard=ears.heard)

        async def listen(turn: int) -> Sequence[str]:
            await tools.gate.put(ears.heard)
            return await ears.listen(turn)

        agent = Agent(
            Context(begun.window, model.ask, lambda: journal.facts, self._compacted),
            tools,
            self.guard,
            listen,
            finishing=_finishing(settings, prepared, skipped),
            journal=journal,
            together=tools.together if settings.parallel_commands else None,
        )
        for attempt in range(1, CHECK_ROUNDS + 1):
            finished = await agent.run(self.transcript)
            while finished.question:
                await self._put(finished.question, ears)
                finished = await agent.run(self.transcript)
            faults = await _faults(scene, setup, checker, attempt)
            said = await ears.listen(self.guard.spent.turns)
            # A model that stopped calling tools by itself was asked often enough already.
            if not said and (not faults.told or attempt == CHECK_ROUNDS or not finished.said_so):
                break
            say(self.transcript, [faults.told, *(heard(text) for text in said)])
        if faults.told:
            self.remark = f"Not all is well: {faults.remark}"
            await scene.recorder.note("remark", Notice(self.remark))
        await proof.whole()
        return finished

    async def _put(self, question: str, ears: Ears) -> None:
        """Put a question to the people; who said something meanwhile is heard first."""
        self._questions += 1
        with suppress(Unheard):
            words = await put_question(self.scene, self._questions, question, heard=ears.heard)
            say(self.transcript, [answered(self.scene.task.id, words)])

    async def _compacted(self, done: Compaction) -> None:
        await self.scene.recorder.note(f"compacted/{self.guard.spent.turns}", Notice(str(done)))

    async def _aside(self, begun: Begun, prepared: Prepared) -> str:
        """Do what is no work on the task itself, and return what was answered or done."""
        if self.scene.run.intent == "update":
            return await self._update(begun, prepared)
        if self.scene.run.intent == "check":
            await check_branch(self.scene, begun, prepared)
            return ""
        model = self._ask(begun.settings.planner, begun, begun.planners)
        return await answer_question(self.scene, begun, prepared, model=model, guard=self.guard, told=self._compacted)

    async def _update(self, begun: Begun, prepared: Prepared) -> str:
        return await update_branch(
            self.scene,
            begun,
            prepared,
            model=self._ask(begun.settings.model, begun, begun.window),
            guard=self.guard,
            told=self._compacted,
            transcript=self.transcript,
        )

    async def _plan(self, begun: Begun, prepared: Prepared, ears: Ears) -> Wanted:
        model = self._ask(begun.settings.planner, begun, begun.planners)
        return await make_plan(
            self.scene, begun, prepared, model=model, guard=self.guard, ears=ears, told=self._compacted
        )

    def _ask(self, name: str, begun: Begun, window: Window) -> RecordedModel:
        model = RecordedModel(self.scene, name, self.guard, started=begun.started, window=window.tokens)
        self._models.append(model)
        return model

    async def _deliver(self, prepared: Prepared, ending: Ending, finished: Finished | None) -> Ending:
        summary = finished.summary if finished else ""
        try:
            if finished is None and self._proof is not None:
                await self._proof.early()
            # What a limit or a question cut short is worth a look, and goes on from there.
            early = ending.reason if ending.outcome in {"budget", "waiting"} else ""
            work = await deliver(
                self.scene,
                prepared,
                summary=summary,
                complete=finished is not None,
                early=early,
                plan=self._agreed,
                heard=None if ending.outcome == "stopped" else self.heard,
            )
            if finished is None:
                await leave_round(self.scene, prepared, work)
            else:
                await answer_round(self.scene, prepared, work)
        except Cancelled:
            return Ending("stopped", STOPPED, summary)
        except Waits as question:
            self.seen = question.seen
            return Ending("waiting", str(question), summary)
        except BotError as error:
            return self._unpublished(ending, f"The work could not be published: {error}", summary)
        except Exception:
            log.exception("run.broken", extra={"run": self.scene.run.id})
            told = "An internal error kept the work from being published: see the server's log."
            return self._unpublished(ending, told, summary)
        return self._done(prepared, ending, work, summary)

    def _done(self, prepared: Prepared, ending: Ending, work: Work | None, summary: str) -> Ending:
        """Say how a run ended of which nothing is left to be published."""
        if work is None and ending.outcome == "done" and self.scene.task.repository.is_local and self.scene.run.seq > 1:
            # What an earlier run changed may lie in the checkout itself.
            return Ending("done", "No file was changed in this run.", summary)
        if work is None and ending.outcome == "done" and any(thread.is_asked for thread in prepared.threads):
            return Ending("done", "No file was changed; the threads are answered.", summary)
        if work is None and ending.outcome == "done":
            return Ending("failed", "No file was changed, so there is nothing to review.", summary)
        if work is not None and work.commit == prepared.base:
            return Ending(ending.outcome, ending.reason or "No file was changed in this run.", summary)
        return Ending(ending.outcome, ending.reason or self.remark, summary)

    @staticmethod
    def _unpublished(ending: Ending, why: str, summary: str) -> Ending:
        """Say that the work stays here; what people were asked can be answered all the same."""
        outcome: Outcome = "waiting" if ending.outcome == "waiting" else "failed"
        return Ending(outcome, f"{ending.reason} {why}".strip(), summary, kept=True)
