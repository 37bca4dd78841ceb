"""How a run stands, drawn from its events alone: what the progress comment, the status answer and the terminal show."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from bot.domain.events import (
    ActionCarriedOut,
    ActionDecided,
    ActionRequested,
    ActionsAllowed,
    BranchPushed,
    CheckFinished,
    CheckSkipped,
    CommitMade,
    DefinitionsChanged,
    Fact,
    ModelReplied,
    Notice,
    PlanProposed,
    ProofRun,
    PullOpened,
    QuestionAsked,
    RoundAnswered,
    RunEvent,
    RunFinished,
    RunHeld,
    RunQueued,
    RunStarted,
    SetupFinished,
    ToolFinished,
    WorkspaceReady,
)
from bot.domain.plan import PlanItem
from bot.domain.task import ASIDE, BESIDE, Task
from bot.github import pieces
from bot.github.comments import CommandRow, Meter, ProgressState, ProgressView, TimelineEntry
from bot.github.evidence import CheckRow, EvidenceView, SetupRow
from bot.tasks import rows


@dataclass(slots=True)
class Standing:
    """One run as its events tell it."""

    queued: RunQueued | None = None
    held: RunHeld | None = None
    started: RunStarted | None = None
    workspace: WorkspaceReady | None = None
    replies: list[ModelReplied] = field(default_factory=list)
    setup: SetupFinished | None = None
    again: SetupFinished | None = None
    """The last set-up from files that the work changed; None where the checks have what was there before it."""
    checks: list[CheckFinished | CheckSkipped] = field(default_factory=list)
    definitions: DefinitionsChanged | None = None
    """What the work does to the checks, as it was read last."""
    proof: ProofRun | None = None
    base: str = ""
    """What the first of the runs began on; empty before that."""
    tools: list[ToolFinished] = field(default_factory=list)
    plan: list[PlanItem] = field(default_factory=list)
    """As the model said it last."""
    proposed: PlanProposed | None = None
    """The last plan that stood before the work."""
    question: str = ""
    """What the model asked last; empty where it asked nothing."""
    calls: list[ActionRequested] = field(default_factory=list)
    """Those that were put to the people, who approve or deny them."""
    notices: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """What was asked, in people's words; empty for the thread's own text."""
    commit: CommitMade | None = None
    commits: int = 0
    protected: set[str] = field(default_factory=set)
    """Files that people decide about and that commits changed."""
    pushed: BranchPushed | None = None
    pull: PullOpened | None = None
    finished: RunFinished | None = None
    timeline: list[TimelineEntry] = field(default_factory=list)

    def told(self, protected: Collection[str]) -> list[str]:
        """Return what people have to know of it.

        Args:
            protected: the files that people decide about and that are changed, by this run or by others.
        """
        changed = f"This changes what people decide about: {pieces.paths(sorted(protected))}. Look at that with care."
        return [*([changed] if protected else []), *self.notices]

    @property
    def has_plan_open(self) -> bool:
        """Whether what waits is a plan, and no question or call in the middle of the work."""
        return self.proposed is not None and not self.question and not self.calls

    @property
    def approvals(self) -> int:
        """People who have to approve its plan."""
        needed = self.started.settings.get("require_approvals") if self.started else None
        return needed if isinstance(needed, int) else 1

    def meter(self) -> Meter | None:
        """Sum up what was used; None before the first reply."""
        if self.started is None:
            return None
        prices = [reply.cost_usd for reply in self.replies]
        known = [price for price in prices if price is not None]
        last = self.replies[-1] if self.replies else None
        limit = self.started.settings.get("limits.turns", 0)
        return Meter(
            turn=len(self.replies),
            max_turns=limit if isinstance(limit, int) else 0,
            tokens=sum(_tokens(reply) for reply in self.replies),
            cost_usd=sum(known) if len(known) == len(prices) else None,
            model=last.model if last else self.started.model,
            seconds=self.finished.seconds if self.finished else None,
            context_tokens=_tokens(last) if last else None,
            context_window=last.window or None if last else None,
        )

    def check_rows(self) -> list[CheckRow]:
        """Put each check's state before the work and behind it side by side."""
        return rows.check_rows(self.checks)

    def setup_rows(self) -> list[SetupRow]:
        """Say how the project was set up before the work, and then for its checks; empty where that is to come."""
        return [rows.setup_row(fact) for fact in (self.setup, self.again) if fact is not None]

    def evidence(self, setup: Sequence[SetupRow] | None = None) -> EvidenceView:
        """Gather what shows whether the change works.

        Args:
            setup: how the project was set up; None is how it was here.
        """
        if self.queued is not None and self.queued.intent == "check":
            return rows.head_view(self.setup_rows(), self.checks, self.workspace.commit if self.workspace else "")
        return rows.evidence_view(
            setup=self.setup_rows() if setup is None else setup,
            checks=self.checks,
            definitions=self.definitions,
            proof=self.proof,
            base=self.base,
            commit=self.commit,
        )

    def command_rows(self) -> list[CommandRow]:
        """List the commands that the model ran through the harness."""
        return [
            CommandRow(fact.command, fact.exit_code, fact.seconds) for fact in self.tools if fact.command is not None
        ]


def stand(events: Sequence[RunEvent], run: int | None) -> Standing:
    """Fold a task's stream into how one of its runs stands.

    None folds all runs that do the task's work, of which the last one shows: answers and checks leave it as it is, and
    what was done on a branch that the task has left is another pull request's.
    """
    standing, aside = Standing(), set[int]()
    left = _left_behind(events) if run is None else 0
    for event in events:
        if isinstance(event.fact, RunQueued) and event.fact.intent in ASIDE:
            aside.add(event.run)
        if event.run in aside or event.run <= left if run is None else event.run != run:
            continue
        _take(standing, event.fact)
        if (line := line_of(event.fact)) is not None:
            standing.timeline.append(TimelineEntry(event.at, line, _is_error(event.fact)))
    return standing


def _left_behind(events: Sequence[RunEvent]) -> int:
    """Return the last run on a branch that is not the task's any more, as it was merged; 0 where there is none."""
    worked = [(event.run, event.fact.branch) for event in events if isinstance(event.fact, WorkspaceReady)]
    return max((run for run, branch in worked if branch != worked[-1][1]), default=0)


def worked_on(events: Sequence[RunEvent], *, before: int) -> tuple[str, int]:
    """Return the branch of the last run before this one that had one, and which run that was; empty and 0 for none."""
    worked = [(event.fact.branch, event.run) for event in events if isinstance(event.fact, WorkspaceReady)]
    return next((one for one in reversed(worked) if one[1] < before), ("", 0))


def pushed_by_us(events: Sequence[RunEvent], task: Task) -> str:
    """Return the last commit that we pushed to the task's branch; empty where there is none."""
    pushed = [event.fact for event in events if isinstance(event.fact, BranchPushed)]
    return next((fact.sha for fact in reversed(pushed) if fact.branch == task.branch), "")


def left_elsewhere(events: Sequence[RunEvent], task: Task, *, before: int) -> str:
    """Say where the last commit of earlier runs lies where a further one begins without it; empty where it has it.

    Args:
        events: the task's stream.
        task: whose branch each run begins on.
        before: the run that begins.
    """
    place = ""
    # What was merged is in it.
    own = {event.fact.branch for event in events if isinstance(event.fact, WorkspaceReady)} | {task.branch}
    for event in events:
        if event.run >= before:
            continue
        if isinstance(event.fact, BranchPushed):
            place = "" if event.fact.branch in own else f"on the branch `{event.fact.branch}`"
        elif isinstance(event.fact, CommitMade) and not task.repository.is_local:
            # Until it is pushed; at the terminal it may lie in the checkout itself.
            place = "nowhere but in this transcript, since it could not be published"
    return place


def progress_view(standing: Standing, *, marker: str, word: str) -> ProgressView:
    """Turn a standing into what the progress comment shows."""
    queued, finished, pull = standing.queued, standing.finished, standing.pull
    return ProgressView(
        state=_state(standing),
        marker=marker,
        word=word,
        requester=queued.requester if queued else "",
        reason=_reason(standing),
        position=queued.position if queued else 0,
        about_plan=standing.has_plan_open,
        about_calls=bool(standing.calls),
        last_activity=standing.timeline[-1] if standing.timeline else None,
        meter=standing.meter(),
        plan=standing.plan,
        evidence=standing.evidence(),
        timeline=standing.timeline,
        notices=standing.told(standing.protected),
        summary=finished.summary if finished else "",
        pull_number=pull.number if pull else None,
        pull_url=pull.url if pull else "",
    )


def _state(standing: Standing) -> ProgressState:
    if standing.finished is not None:
        return standing.finished.outcome
    return "working" if standing.started is not None else "queued"


def _reason(standing: Standing) -> str:
    held = standing.held
    if standing.finished is None:
        if held is None or standing.started is not None:
            return ""
        return pieces.daily_ceiling(held.whose, held.usd, datetime.fromisoformat(held.until))
    reason, pushed = standing.finished.reason, standing.pushed
    if standing.finished.outcome != "done" and standing.pull is None and pushed is not None:
        reason = f"{reason} What was done so far is on the branch `{pushed.branch}`.".strip()
        if standing.workspace is not None and standing.workspace.branch != pushed.branch:
            reason += f" A further run begins on `{standing.workspace.branch}`, without it."
    return reason


def _take(standing: Standing, fact: Fact) -> None:  # noqa: C901, PLR0912 - one case for each kind of fact
    match fact:
        case RunQueued():
            standing.queued = fact
            if fact.intent not in BESIDE and not fact.repair:
                standing.requests.append(fact.request)
        case RunHeld():
            standing.held = fact
        case RunStarted():
            standing.started = fact
            ignored = fact.settings.get("ignored")
            if isinstance(ignored, list):
                standing.notices.extend(str(one) for one in ignored)
        case WorkspaceReady():
            standing.workspace = fact
            standing.base = standing.base or fact.commit
        case SetupFinished():
            standing.setup = standing.setup if fact.changed else fact
            standing.again = fact if fact.changed else None
        case CheckFinished() | CheckSkipped():
            standing.checks.append(fact)
        case DefinitionsChanged() | ProofRun():
            _judge(standing, fact)
        case ModelReplied():
            standing.replies.append(fact)
        case ToolFinished():
            standing.tools.append(fact)
            if fact.plan is not None:
                standing.plan = [PlanItem(str(item.get("text")), item.get("done") is True) for item in fact.plan]
        case PlanProposed():
            standing.proposed = fact
        case QuestionAsked():
            standing.question = fact.text
        case ActionRequested():
            standing.calls.append(fact)
        case ActionDecided() | ActionsAllowed() | ActionCarriedOut() | RoundAnswered():
            pass
        case Notice():
            standing.notices.append(fact.text)
        case CommitMade():
            _commit(standing, fact)
        case BranchPushed():
            standing.pushed = fact
        case PullOpened():
            standing.pull = fact
        case RunFinished():
            standing.finished = fact
        case _:
            assert_never(fact)


def _commit(standing: Standing, fact: CommitMade) -> None:
    standing.commit = fact
    standing.commits += not fact.put_from
    standing.base = fact.merges or standing.base
    standing.protected.update(fact.protected)


def _judge(standing: Standing, fact: DefinitionsChanged | ProofRun) -> None:
    if isinstance(fact, ProofRun):
        standing.proof = fact
        return
    # What was shown of earlier work says nothing of this.
    standing.checks = [check for check in standing.checks if check.phase in {"before", "after"}]
    standing.definitions, standing.proof = fact, None


def _setup_line(fact: SetupFinished) -> str:
    since = f" for the changed {', '.join(fact.changed)}" if fact.changed else ""
    if fact.exit_code != 0:
        return f"set-up{since} failed: {fact.command}: {_exit(fact.exit_code)} in {fact.seconds:.1f} s"
    if not fact.command:
        return f"nothing was set up{since}: {fact.remark or 'nothing is asked for'}"
    how = "taken from an earlier task" if fact.cached else f"done in {fact.seconds:.1f} s"
    rest = f"; {fact.remark}" if fact.remark else ""
    return f"set-up of {fact.names or 'the project'}{since} {how}{rest}"


def _decided(protected: Sequence[str]) -> str:
    return f"; it changes what people decide about: {', '.join(protected)}" if protected else ""


def _exit(code: int | None) -> str:
    return "out of time" if code is None else f"exit {code}"


_PHASES = {
    "before": "before the work",
    "after": "after the work",
    "base": "with the base's definition",
    "proof": "on the old code with the work's tests",
    "head": "on the branch as it stands",
}
_VERDICTS = {
    "shown": "fail on the old code and pass now",
    "red": "fail on the old code, and not all is well now",
    "green": "pass on the old code too",
    "unclear": "say nothing for certain of the old code",
}


def _proved(fact: ProofRun) -> str:
    if fact.verdict == "not run":
        return f"no new test was run on the old code: {fact.reason}"
    return f"the new or changed tests {_VERDICTS[fact.verdict]}"


_LINES: dict[type[Fact], Callable[..., str | None]] = {
    RunQueued: lambda fact: f"{'begun by failed checks, for' if fact.repair else 'requested by'} {fact.requester}",
    RunHeld: lambda fact: f"waits: the daily ceiling of this {fact.whose} is reached",
    RunStarted: lambda fact: f"started with {fact.model}",
    WorkspaceReady: lambda fact: f"working copy of {fact.files} files at {fact.commit[:8]}",
    SetupFinished: _setup_line,
    CheckSkipped: lambda fact: f"check {fact.name} not run: {fact.reason}",
    CheckFinished: lambda fact: (
        f"check {fact.name} {_PHASES[fact.phase]}: {_exit(fact.exit_code)} in {fact.seconds:.1f} s"
    ),
    DefinitionsChanged: lambda fact: (
        f"the work changes what its checks mean; places to look at: {len(fact.findings)}" if fact.findings else None
    ),
    ProofRun: _proved,
    ModelReplied: lambda _: None,
    ToolFinished: lambda fact: f"{fact.name}: {fact.summary}" + (f" ({_exit(fact.exit_code)})" if fact.command else ""),
    PlanProposed: lambda fact: f"plan {fact.number} proposed" + (f": {fact.waits}" if fact.waits else ""),
    QuestionAsked: lambda fact: f"asks: {fact.text}",
    ActionRequested: lambda fact: f"waits for approval: {fact.shown}",
    ActionDecided: lambda fact: f"{fact.verdict} by {fact.by}: {fact.hash[:8]}",
    ActionsAllowed: lambda fact: f"allowed always by {fact.by}: {fact.pattern}",
    ActionCarriedOut: lambda fact: f"carried out, as {fact.by} approved: {fact.shown}",
    Notice: lambda fact: fact.text,
    CommitMade: lambda fact: f"commit {fact.sha[:8]}: {fact.subject}" + _decided(fact.protected),
    BranchPushed: lambda fact: f"pushed to {fact.branch}",
    PullOpened: lambda fact: f"pull request #{fact.number} {'updated' if fact.updated else 'opened'}",
    RoundAnswered: lambda fact: f"{fact.threads} review threads answered, {fact.resolved} resolved",
    RunFinished: lambda fact: f"{fact.outcome}{': ' + fact.reason if fact.reason else ''}",
}


def line_of(fact: Fact) -> str | None:
    """Say in one line what happened; None for what is no news to people."""
    return _LINES[type(fact)](fact)


def _is_error(fact: Fact) -> bool:
    return (isinstance(fact, ToolFinished) and fact.is_error) or (
        isinstance(fact, SetupFinished) and fact.exit_code != 0
    )


def _tokens(reply: ModelReplied) -> int:
    return reply.input_tokens + reply.cache_read_tokens + reply.cache_write_tokens + reply.output_tokens
