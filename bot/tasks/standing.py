"""How a run stands, drawn from its events alone: what the progress comment, the status answer and the terminal show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from bot.domain.events import (
    BranchPushed,
    CheckFinished,
    CheckSkipped,
    CommitMade,
    Fact,
    ModelReplied,
    Notice,
    PullOpened,
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
from bot.github import pieces
from bot.github.comments import (
    CheckResult,
    CheckRow,
    CommandRow,
    Meter,
    ProgressState,
    ProgressView,
    SetupRow,
    TimelineEntry,
)


@dataclass(slots=True)
class Standing:
    """One run as its events tell it."""

    queued: RunQueued | None = None
    held: RunHeld | None = None
    started: RunStarted | None = None
    workspace: WorkspaceReady | None = None
    replies: list[ModelReplied] = field(default_factory=list)
    setup: SetupFinished | None = None
    checks: list[CheckFinished | CheckSkipped] = field(default_factory=list)
    tools: list[ToolFinished] = field(default_factory=list)
    plan: list[PlanItem] = field(default_factory=list)
    """As the model said it last."""
    notices: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """What was asked, in people's words; empty for the thread's own text."""
    commit: CommitMade | None = None
    commits: int = 0
    pushed: BranchPushed | None = None
    pull: PullOpened | None = None
    finished: RunFinished | None = None
    timeline: list[TimelineEntry] = field(default_factory=list)

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
        rows: dict[str, CheckRow] = {}
        made = self.commit
        for fact in self.checks:
            if isinstance(fact, CheckSkipped):
                row = rows.get(fact.name, CheckRow(fact.name, fact.command))
                rows[fact.name] = replace(row, skipped=fact.reason)
                continue
            row = rows.get(fact.name, CheckRow(fact.name, fact.command))
            # People can look up the commit that was made; the checks ran on its very files before it was.
            commit = made.sha if made is not None and made.same_tree_as == fact.commit else fact.commit
            result = CheckResult(fact.exit_code, fact.seconds, commit)
            # Over several runs the first state and the last are what a reviewer compares.
            before, after = (row.before or result, row.after) if fact.phase == "before" else (row.before, result)
            rows[fact.name] = CheckRow(fact.name, fact.command, before, after, row.skipped)
        return list(rows.values())

    def setup_row(self) -> SetupRow | None:
        """Say how the project was set up; None where that is still to come."""
        fact = self.setup
        if fact is None:
            return None
        return SetupRow(fact.names, fact.command, fact.exit_code, fact.seconds, fact.cached, fact.output, fact.remark)

    def command_rows(self) -> list[CommandRow]:
        """List the commands that the model ran through the harness."""
        return [
            CommandRow(fact.command, fact.exit_code, fact.seconds) for fact in self.tools if fact.command is not None
        ]


def stand(events: Sequence[RunEvent], run: int | None) -> Standing:
    """Fold a task's stream into how one of its runs stands; None folds all runs, of which the last one shows."""
    standing = Standing()
    for event in events:
        if run is not None and event.run != run:
            continue
        _take(standing, event.fact)
        if (line := line_of(event.fact)) is not None:
            standing.timeline.append(TimelineEntry(event.at, line, _is_error(event.fact)))
    return standing


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
        last_activity=standing.timeline[-1] if standing.timeline else None,
        meter=standing.meter(),
        setup=standing.setup_row(),
        plan=standing.plan,
        checks=standing.check_rows(),
        timeline=standing.timeline,
        notices=standing.notices,
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
        case SetupFinished():
            standing.setup = fact
        case CheckFinished() | CheckSkipped():
            standing.checks.append(fact)
        case ModelReplied():
            standing.replies.append(fact)
        case ToolFinished():
            standing.tools.append(fact)
            if fact.plan is not None:
                standing.plan = [PlanItem(str(item.get("text")), item.get("done") is True) for item in fact.plan]
        case Notice():
            standing.notices.append(fact.text)
        case CommitMade():
            standing.commit = fact
            standing.commits += 1
        case BranchPushed():
            standing.pushed = fact
        case PullOpened():
            standing.pull = fact
        case RunFinished():
            standing.finished = fact
        case _:
            assert_never(fact)


def _setup_line(fact: SetupFinished) -> str:
    if fact.exit_code != 0:
        return f"set-up failed: {fact.command}: {_exit(fact.exit_code)} in {fact.seconds:.1f} s"
    if not fact.command:
        return f"nothing was set up: {fact.remark}"
    how = "taken from an earlier task" if fact.cached else f"done in {fact.seconds:.1f} s"
    rest = f"; {fact.remark}" if fact.remark else ""
    return f"set-up of {fact.names or 'the project'} {how}{rest}"


def _exit(code: int | None) -> str:
    return "out of time" if code is None else f"exit {code}"


_LINES: dict[type[Fact], Callable[..., str | None]] = {
    RunQueued: lambda fact: f"requested by {fact.requester}",
    RunHeld: lambda fact: f"waits: the daily ceiling of this {fact.whose} is reached",
    RunStarted: lambda fact: f"started with {fact.model}",
    WorkspaceReady: lambda fact: f"working copy of {fact.files} files at {fact.commit[:8]}",
    SetupFinished: _setup_line,
    CheckSkipped: lambda fact: f"check {fact.name} not run: {fact.reason}",
    CheckFinished: lambda fact: (
        f"check {fact.name} {fact.phase} the work: {_exit(fact.exit_code)} in {fact.seconds:.1f} s"
    ),
    ModelReplied: lambda _: None,
    ToolFinished: lambda fact: f"{fact.name}: {fact.summary}" + (f" ({_exit(fact.exit_code)})" if fact.command else ""),
    Notice: lambda fact: fact.text,
    CommitMade: lambda fact: f"commit {fact.sha[:8]}: {fact.subject}",
    BranchPushed: lambda fact: f"pushed to {fact.branch}",
    PullOpened: lambda fact: f"pull request #{fact.number} {'updated' if fact.updated else 'opened'}",
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
