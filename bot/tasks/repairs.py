"""What comes of the checks of others on our own pull request: red ones begin a run, green ones make it ready.

Looked at when GitHub tells of an end, when a run of ours ends (what was told meanwhile was left for that moment), and
again by `Later` where that was too early. Looking twice changes nothing.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

from bot.domain.ci import CiCheck
from bot.domain.events import BranchPushed, CheckFinished, CommitMade, Notice, RunEvent
from bot.domain.task import ASIDE, REPAIR, Run, Task
from bot.domain.trigger import CiFinished
from bot.errors import BotError, Conflict, Forbidden, NotFound
from bot.github import comments
from bot.github import repairs as words
from bot.github.base import GitHub, GitHubApp, Pull
from bot.redaction import mask_tokens
from bot.settings.server import ServerSettings
from bot.store.base import Effect, NewRequest, TaskStore
from bot.tasks.effects import ensure_comment, progress_slot
from bot.tasks.further import further
from bot.tasks.later import Later
from bot.tasks.orders import Handled
from bot.tasks.protection import kept as held_back
from bot.tasks.standing import progress_view, stand

log = logging.getLogger(__name__)

ROUNDS = 2
"""Runs that red checks begin after the last request of a person."""
_AGAIN_S = (2.0, 10.0, 60.0, 300.0, 1500.0)
"""Waits before further looks where GitHub could not be asked: half an hour in all."""
_PATIENCE = timedelta(minutes=30)
"""After a push, for checks that may begin; then our own decide."""
_AGE = timedelta(days=1)
"""A server that begins looks at what was asked for so lately: nobody told it of what ended before."""
_BRANCH = re.compile(r"agent/([0-9]{1,18})-[0-9a-f]{8}(?:-[0-9]+)?")
_BY = "ci"
"""Stands for a person in the audit log."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The pull request as it stands, and how it came to that."""

    task: Task
    pull: Pull
    pushed: BranchPushed
    pushed_at: datetime
    pushed_by: int
    """The run that pushed it."""
    events: Sequence[RunEvent]
    runs: Sequence[Run]

    @property
    def last(self) -> Run:
        """The last run that changes how the task stands."""
        return next((run for run in reversed(self.runs) if _counts(run)), self.runs[-1])

    @property
    def worked(self) -> Run:
        """The run whose work the head is: a round that came to nothing leaves that of another one as it was."""
        if self.last.is_repair and self.last.outcome != "done":
            return next(run for run in self.runs if run.seq == self.pushed_by)
        return self.last

    @property
    def asked(self) -> Run:
        """The last one that a person asked for."""
        wanted = (run for run in reversed(self.runs) if _counts(run) and not run.is_repair)
        return next(wanted, self.runs[0])

    @property
    def rounds(self) -> list[Run]:
        """Those that red checks began after it."""
        return [run for run in self.runs if run.is_repair and run.seq > self.asked.seq]


class Repairs:
    """Acts on what others' checks say."""

    def __init__(
        self, store: TaskStore, settings: ServerSettings, clock: Callable[[], datetime], later: Later | None = None
    ) -> None:
        """Take what it acts on.

        Args:
            store: where runs are queued.
            settings: the operator's.
            clock: the present time.
            later: looks again after a while; None where nobody is there then, so that one look has to do.
        """
        self._store = store
        self._settings = settings
        self._clock = clock
        self._later = later
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._green_since: dict[str, tuple[object, datetime]] = {}
        """By task: the head and its checks, and when they were first seen green."""

    async def heard(self, trigger: CiFinished, github: GitHub) -> Handled:
        """Act on checks that ended."""
        task = await self._find(trigger)
        if task is None:
            return Handled("ignored", "checks of no pull request of ours")
        return await self.look(task, github, trigger.head_sha)

    async def look(self, task: Task, github: GitHub, sha: str | None = None) -> Handled:
        """Look at the head of a task's pull request, and act.

        Args:
            task: whose.
            github: as the right installation.
            sha: the commit that something was said of; None for whatever stands there.
        """
        lock = self._locks.setdefault(task.id, asyncio.Lock())
        # A suite and the run of a workflow end in one moment.
        async with lock:
            head = await self._head(task.id, github)
            if isinstance(head, str):
                return Handled("ignored", head)
            if sha is not None and head.pull.head_sha != sha:
                return Handled("ignored", "checks of a commit that is no head any more")
            return await self._judge(head, github)

    async def ended(self, task: Task, github: GitHub, tries: int = 0) -> None:
        """Look at a task whose run ended, again where GitHub is away: no event need come behind it.

        Args:
            task: whose.
            github: as the right installation.
            tries: looks that failed before this one.
        """
        try:
            handled = await self.look(task, github)
        except BotError as error:
            if self._later is None or not error.retryable or tries >= len(_AGAIN_S):
                raise
            log.warning("ci.again", extra={"task": task.id, "error": str(error), "wait_s": _AGAIN_S[tries]})
            self._later.ask(task.id, _AGAIN_S[tries], partial(self.ended, task, github, tries + 1))
        else:
            log.info("ci.looked", extra={"task": task.id, "note": handled.note})

    async def began(self, app: GitHubApp) -> None:
        """Let pull requests be looked at, one a second, of which an earlier life may have been told nothing.

        Args:
            app: makes the client of each installation.
        """
        if self._later is None:
            return
        since, wait_s = self._clock() - _AGE, 0.0
        for task in await self._store.tasks():
            if task.kind != "issue" or task.pull_number is None:
                continue
            if max(run.created_at for run in await self._store.runs(task.id)) > since:
                wait_s += 1.0
                self._later.ask(task.id, wait_s, partial(self.ended, task, app.installation(task.installation_id)))

    async def _find(self, trigger: CiFinished) -> Task | None:
        repository = trigger.context.thread.repository
        for number in trigger.pulls:
            task = await self._store.task_of(repository.id, number)
            if task is not None and task.kind == "issue" and task.pull_number == number:
                return task
        for named in filter(None, (_BRANCH.fullmatch(branch) for branch in trigger.branches)):
            task = await self._store.task_of(repository.id, int(named[1]))
            if task is not None and task.kind == "issue" and task.branch == named[0]:
                return task
        return None

    async def _head(self, task_id: str, github: GitHub) -> _Head | str:
        """Return where the task's pull request stands, or why nothing is done about it."""
        task = await self._store.task(task_id)
        if task is None or task.kind != "issue" or task.pull_number is None:
            return "the task has no pull request of its own"
        runs = await self._store.runs(task_id)
        if any(run.state != "finished" for run in runs):
            return "a run is open, and looks itself when it ends"
        pull = await github.pull(task.repository, task.pull_number)
        if pull.state != "open" or pull.head_branch != task.branch or pull.head_repository_id != task.repository.id:
            return "the pull request is closed, or on another branch"
        if pull.author is None or pull.author.id != (await github.identity()).id:
            return "the pull request is none of ours"
        events = await self._store.events(task_id)
        for event in events:
            fact = event.fact
            if isinstance(fact, BranchPushed) and (fact.branch, fact.sha) == (pull.head_branch, pull.head_sha):
                return _Head(task, pull, fact, event.at, event.run, events, runs)
        return "the head is none of ours"

    async def _judge(self, head: _Head, github: GitHub) -> Handled:
        repository, last = head.task.repository, head.last
        if last.outcome != "done" and not (last.is_repair and last.outcome in {"failed", "budget", "stopped"}):
            return Handled("ignored", f"the last run is {last.outcome}")
        try:
            checks = await _of_others(github, head.task, head.pull.head_sha)
            if any(check.is_running for check in checks):
                return Handled("ignored", "other checks still run")
            if red := [check for check in checks if check.is_red]:
                return await self._red(head, github, red)
            if not checks and (wait_s := await self._to_come(head, github)) > 0:
                if self._later is not None:
                    self._later.ask(head.task.id, wait_s, partial(self.ended, head.task, github))
                return Handled("ignored", "checks are still to come")
        except Forbidden as error:
            log.warning("ci.unread", extra={"repository": repository.full_name, "error": str(error)})
            return Handled("ignored", str(error))
        return await self._green(head, github, checks)

    async def _to_come(self, head: _Head, github: GitHub) -> float:
        """Return for how many seconds checks may still begin: workflows need not be for pull requests."""
        wait_s = (head.pushed_at + _PATIENCE - self._clock()).total_seconds()
        if wait_s <= 0 or head.pushed.workflows:
            return wait_s
        try:
            return wait_s if await _of_others(github, head.task, head.pull.base_branch) else 0.0
        except (Conflict, NotFound):
            # The base branch is gone.
            return 0.0

    async def _red(self, head: _Head, github: GitHub, red: Sequence[CiCheck]) -> Handled:
        """Begin a round, or hand over where a round is of no use any more."""
        if head.last.outcome == "stopped":
            return Handled("ignored", "the last run is stopped")
        if not any(check.has_failed for check in red):
            return Handled("ignored", "what is not green was cancelled, or waits for a person")
        if head.last.outcome == "done" and len(head.rounds) < ROUNDS:
            accepted = await self._store.accept(_request(head, red), self._clock())
            run = accepted.run
            if accepted.kind == "again":
                await self._store.audit(self._clock(), _BY, "run.again", run.id, head.pull.head_sha)
                log.info("run.accepted", extra={"run": run.id, "kind": "repair"})
                return Handled("done", f"repair: {run.id}", accepted)
            if accepted.kind == "busy" or run.state != "finished":
                return Handled("ignored", "a run is open, and looks itself when it ends")
            # This head had its round, which left it as it is.
        return await self._hand_over(head, github, red)

    async def _hand_over(self, head: _Head, github: GitHub, red: Sequence[CiCheck]) -> Handled:
        task, sha, rounds = head.task, head.pull.head_sha, head.rounds
        slot = f"handover.{sha}"
        if await self._store.effect(task.id, slot) is not None:
            return Handled("ignored", "handed over before")
        seqs = {run.seq for run in rounds}
        made = [(e.fact.sha, e.fact.subject) for e in head.events if e.run in seqs and isinstance(e.fact, CommitMade)]
        standing = stand(head.events, head.last.seq)
        meter = standing.meter()
        view = words.HandOver(
            head=sha,
            red=red,
            # This very head may have had its round before a person asked for more.
            rounds=max(1, len(rounds)),
            tried=made,
            summary=standing.finished.summary if standing.finished and head.last.is_repair else "",
            model=meter.model if meter else "",
            requester=head.asked.requester,
            word=self._settings.command,
        )
        await ensure_comment(
            self._store,
            github,
            task.repository,
            head.pull.number,
            task_id=task.id,
            slot=slot,
            body=words.hand_over(view),
        )
        await self._store.audit(self._clock(), _BY, "task.handed_over", task.id, sha)
        return Handled("done", "handed over")

    async def _green(self, head: _Head, github: GitHub, checks: Sequence[CiCheck]) -> Handled:
        """Mark it ready, once for each head, and ask who asked for the work to look at it."""
        task, last, sha, foreign = head.task, head.last, head.pull.head_sha, bool(checks)
        started = stand(head.events, last.seq).started
        setting = (started.settings if started else {}).get("ready", self._settings.pull.ready)
        slot = f"ready.{sha}"
        if setting == "never":
            return Handled("ignored", "`ready: never`")
        if head.worked.outcome != "done" or await held_back(self._store, task) is not None:
            return Handled("ignored", "the work is not done")
        if not _are_well([event for event in head.events if event.run <= head.worked.seq], foreign=foreign):
            return Handled("ignored", "our own checks do not pass")
        if await self._store.effect(task.id, slot) is not None:
            return Handled("ignored", "marked ready before")
        if self._later is not None and (wait_s := self._settling(head, checks)) > 0:
            self._later.ask(task.id, wait_s, partial(self.ended, task, github))
            return Handled("ignored", "green, and looked at again: others may still begin")
        refused = ""
        if head.pull.draft:
            try:
                await github.reviews.ready_for_review(task.repository, head.pull.number)
            except Forbidden as error:
                log.warning("ready.refused", extra={"task": task.id, "error": str(error)})
                refused = str(error)
        asked = await self._ask(head, github)
        await self._store.keep_effect(task.id, Effect(slot, "ready", asked))
        self._green_since.pop(task.id, None)
        notice = Notice(words.ready(foreign=foreign, was_draft=head.pull.draft, asked=asked, refused=refused))
        await self._store.record(task.id, last.seq, f"ready/{sha}", notice, self._clock())
        await self._store.audit(self._clock(), _BY, "pull.ready", task.id, sha)
        await self._show(task, last, github)
        return Handled("done", "ready for review")

    def _settling(self, head: _Head, checks: Sequence[CiCheck]) -> float:
        """Return for how many seconds these very checks have to stay green: a quick one may end before others begin."""
        seen = (head.pull.head_sha, frozenset((check.app, check.name) for check in checks))
        known, now = self._green_since.get(head.task.id), self._clock()
        if known is None or known[0] != seen:
            known = self._green_since[head.task.id] = (seen, now)
        return self._settings.pull.settle_s - (now - known[1]).total_seconds()

    async def _ask(self, head: _Head, github: GitHub) -> str:
        """Ask for a review; returns whom, and nothing where that cannot be."""
        login = head.last.requester
        if not login or login == "ghost" or login.endswith("[bot]"):
            return ""
        try:
            await github.reviews.request_review(head.task.repository, head.pull.number, [login])
        except (Conflict, NotFound, Forbidden) as error:
            # They may have left, or never have worked here.
            log.info("review.unasked", extra={"task": head.task.id, "error": str(error)})
            return ""
        return login

    async def _show(self, task: Task, run: Run, github: GitHub) -> None:
        slot = progress_slot(run)
        if await self._store.effect(task.id, slot) is None:
            return
        view = progress_view(stand(await self._store.events(task.id), run.seq), marker="", word=self._settings.command)
        body = comments.progress(view)
        await ensure_comment(self._store, github, task.repository, run.number, task_id=task.id, slot=slot, body=body)


def _counts(run: Run) -> bool:
    """Say whether a run changes how the task stands; an update that came to nothing leaves it as it was."""
    return run.intent not in ASIDE and (run.intent != "update" or run.outcome in {"done", "waiting"})


async def _of_others(github: GitHub, task: Task, ref: str) -> list[CiCheck]:
    return [check for check in await github.ci_status(task.repository, ref) if not check.ours]


def _are_well(events: Sequence[RunEvent], *, foreign: bool) -> bool:
    """Say whether our own checks say nothing against the work; where there are no others, they have to speak for it."""
    facts = [(event.run, event.fact) for event in events if isinstance(event.fact, CheckFinished)]
    newest = max((run for run, fact in facts if fact.phase == "after"), default=0)
    before = {fact.name: fact.exit_code == 0 for run, fact in facts if run == newest and fact.phase == "before"}
    after = {fact.name: fact for run, fact in facts if run == newest and fact.phase == "after"}
    if not foreign:
        return bool(after) and all(fact.exit_code == 0 for fact in after.values())
    # Nobody said that a check which was found has to pass.
    return all(fact.exit_code == 0 or (fact.found and not before.get(name)) for name, fact in after.items())


def _request(head: _Head, red: Sequence[CiCheck]) -> NewRequest:
    task, asked, sha = head.task, head.asked, head.pull.head_sha
    key = f"{REPAIR}{task.repository.id}:{sha}"
    return replace(
        further(task, head.pull.number, "pull", key, asked.requester),
        requester_id=asked.requester_id,
        request=mask_tokens(words.request(sha, red)),
        model=asked.model,
        pull_number=head.pull.number,
        commanded=True,
        joins=False,
    )
