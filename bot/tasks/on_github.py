"""The side of a task that people see on GitHub: progress comment, branch, pull request, final state."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bot.domain.command import Fix
from bot.domain.events import PlanProposed, RoundAnswered
from bot.domain.proposal import Sheet, short
from bot.domain.request import ActionRequest
from bot.domain.task import ASIDE, Run, Task
from bot.errors import Conflict, Forbidden, NotFound, RepositoryConfigError, TaskRefused
from bot.github import comments, markers, moved, plan_pull, questions
from bot.github.base import GitHub, GitHubApp, Pull
from bot.github.questions import PlanView
from bot.github.reviews import Reaction
from bot.github.rounds import RoundView
from bot.github.text import cut
from bot.settings.repository import PATH, RepositorySettings, parse_repository
from bot.settings.resolve import RunSettings, resolve
from bot.settings.server import ServerSettings
from bot.store.base import Effect, TaskStore
from bot.tasks import independent, sheets
from bot.tasks.ci import GitHubCi
from bot.tasks.desk import Posted, Published, Shelter, Threads, Work
from bot.tasks.effects import ensure_comment, plan_slot, posted_slot, progress_slot
from bot.tasks.lines import mark_lines, post_request
from bot.tasks.repairs import Repairs
from bot.tasks.sheets import view_of
from bot.tasks.showing import is_ours, mark_outdated, show_evidence
from bot.tasks.standing import progress_view, stand
from bot.tasks.statuses import show_status
from bot.tasks.threads import answer_there, open_threads, post_answers
from bot.workspace.base import Identity, Origin, Workspace

log = logging.getLogger(__name__)

PLANS_NEED_SERVER = (
    "`mode: plan` applies here, and plans need the server: a job of GitHub Actions has no memory, so nobody could "
    "approve one."
)
NO_DRAFTS = "This repository allows no drafts, so unfinished work is on its branch alone."
_REFUSED_DRAFT = "draft pull requests are not supported"
"""GitHub's words on repositories whose plan has none: the status is that of all that is wrong with a request."""
REACTIONS: dict[str, Reaction] = {"done": "rocket", "failed": "confused", "budget": "confused", "stopped": "confused"}


class GitHubPublisher:
    """Shows tasks on GitHub; everything it makes is looked up first."""

    def __init__(  # noqa: PLR0913 - it stands where everything meets
        self,
        store: TaskStore,
        app: GitHubApp,
        settings: ServerSettings,
        *,
        shelter: Shelter,
        answerable: bool = True,
        repairs: Repairs | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Work for one server.

        Args:
            store: what tasks are known by.
            app: GitHub, as who we are there.
            settings: the operator's.
            shelter: what commands are shut in by.
            answerable: whether what people say later finds the run that they answer; else none may wait for them.
            repairs: what acts on the checks of others; None where no server hears of them later.
            monotonic: seconds that only grow.
        """
        self._answerable = answerable
        self._repairs = repairs
        self._store = store
        self._app = app
        self._settings = settings
        self._shelter = shelter
        self._monotonic = monotonic
        self._shown: dict[str, tuple[float, int]] = {}

    async def settings(self, task: Task, run: Run) -> RunSettings:
        """Resolve what applies, with the repository's file as it stands on the default branch now."""
        github = self._github(task)
        repository = await github.repository(task.repository.id)
        text = (
            await github.read_file(repository, PATH, repository.default_branch) if repository.default_branch else None
        )
        try:
            kept = parse_repository(text) if text is not None else RepositorySettings(version=1)
        except RepositoryConfigError as error:
            raise RepositoryConfigError(comments.config_broken(PATH, str(error))) from error
        settings = resolve(self._settings, kept, Fix(run.request, run.model), usd=run.usd)
        if not settings.enabled:
            raise TaskRefused(f"`{PATH}` says `enabled: false`.")
        if self._answerable:
            return settings
        if run.intent == "plan" or (settings.mode == "plan" and run.intent != "check"):
            raise TaskRefused(PLANS_NEED_SERVER)
        return replace(settings, mode="act")

    async def held(self, task: Task, run: Run) -> None:
        """Make the run's progress comment before it starts."""
        await self._show(task, run)

    async def announce(self, task: Task, run: Run, settings: RunSettings) -> None:
        """Make the run's progress comment; an answer and what the checks say are comment enough."""
        if run.intent not in ASIDE:
            await self._show(task, run)

    async def origin(self, task: Task) -> Origin:
        """Name the repository and a way to its token."""
        github = self._github(task)
        repository = await github.repository(task.repository.id)

        async def token() -> str | None:
            return await github.git_token(repository)

        return Origin(f"github-{repository.id}", await github.clone_url(repository), token)

    def ci(self, task: Task, head: Callable[[], str | None]) -> GitHubCi:
        """Ask about the task's own repository."""
        return GitHubCi(lambda: self._github(task), task.repository, head)

    async def author(self, task: Task) -> Identity:
        """Commit as the account that we are."""
        us = await self._github(task).identity()
        return Identity(us.login, f"{us.id}+{us.login}@users.noreply.github.com")

    async def push(
        self, task: Task, workspace: Workspace, commit: str, branch: str, *, expected: str | None, workflows: bool
    ) -> bool:
        """Push to GitHub; a token that may change workflows is asked for only where people agreed to that."""
        github = self._github(task)

        async def token() -> str | None:
            return await github.git_token(task.repository, workflows=True)

        await workspace.push(commit, branch, expected=expected, credentials=token if workflows else None)
        return True

    async def takes_unfinished(self, task: Task, *, offered: bool) -> bool:
        """Say whether a draft may be made of it: no open pull request carries the branch, or one of ours is one."""
        if not offered:
            return False
        github = self._github(task)
        pull = await github.find_pull(task.repository, task.branch)
        return pull is None or pull.state != "open" or (pull.draft and await is_ours(self._store, github, task, pull))

    async def publish(self, task: Task, run: Run, work: Work) -> Published | None:
        """Open the pull request, or bring ours up to date.

        Unfinished work stays on its branch, but for what is offered as a draft: that is opened where the task has no
        pull request yet, and where the repository allows drafts.
        """
        offered = work.early and (work.branch == task.branch or task.pull_number is None)
        if not (work.complete or offered):
            return None
        github = self._github(task)
        pull = await github.find_pull(task.repository, work.branch)
        if pull is None or pull.state != "open":
            pull = await self._open(github, task, run, work)
            if pull is None:
                return Published(None, "", NO_DRAFTS)
        elif await is_ours(self._store, github, task, pull):
            was_plan = pull.title == plan_pull.title(task.title, number=task.number)
            title = comments.pull_title(task.title, number=task.number) if was_plan else None
            body = await self._body(task, run, work)
            pull = await github.update_pull(task.repository, pull.number, title=title, body=body)
        if work.branch != task.branch:
            return Published(pull.number, pull.url)
        await sheets.drop(self._store, task)
        remark = ""
        # A job hears of no review that comes later.
        if self._settings.independent_review and self._answerable and task.kind == "issue":
            remark = await independent.show(self._store, github, task, pull.number, work.commit)
        return Published(pull.number, pull.url, remark)

    async def propose(self, task: Task, run: Run, plan: PlanProposed, sheet: Sheet | None = None) -> None:
        """Post the plan under those before it, as a comment or a pull request; what people say comes as a command."""
        await self._show(task, run)
        view = await self._plan_view(task, run, plan)
        put = await self._put_plan(task, view, sheet) if sheet else ""
        if sheet and isinstance(put, Pull):
            # The issue, or the pull request on which the plan was asked to be another one.
            body = plan_pull.comment(view, path=sheet.path, number=put.number)
        else:
            body = questions.plan(view, plan_pull.not_put(str(put)) if sheet else "")
        slot = plan_slot(run.seq, plan.number)
        await self._post(task, run, slot, body)
        if plan.waits:
            await self._store.keep_effect(task.id, Effect(posted_slot(slot), "text", body))
            await self._supersede(task, run, plan)

    async def _put_plan(self, task: Task, view: PlanView, sheet: Sheet) -> Pull | str:
        """Open the draft that carries a plan, or bring it up to date; where that cannot be done, return why."""
        if sheet.refused:
            return sheet.refused
        github = self._github(task)
        title = plan_pull.title(task.title, number=task.number)
        mark = markers.make(task.id, "pull", await self._store.state_key())
        body = cut(plan_pull.body(view, path=sheet.path, number=task.number), tail=mark)
        pull = await github.find_pull(task.repository, task.branch)
        try:
            if pull is None or pull.state != "open":
                pull = await _opened(github, task, task.branch, title, body, draft=True)
            if not await is_ours(self._store, github, task, pull):
                return plan_pull.not_ours(pull.number)
            pull = await github.update_pull(task.repository, pull.number, title=title, body=body)
        except Conflict as conflict:
            if _REFUSED_DRAFT not in str(conflict).casefold():
                raise
            return plan_pull.no_drafts()
        except Forbidden as refused:
            return str(refused)
        await self._store.set_pull(task.id, pull.number)
        return pull

    async def _plan_view(self, task: Task, run: Run, plan: PlanProposed, *, superseded: str = "") -> PlanView:
        return await view_of(self._store, task, run, plan, self._settings.command, superseded=superseded)

    async def _supersede(self, task: Task, run: Run, plan: PlanProposed) -> None:
        """Mark the plan that stood before this one."""
        before: tuple[int, PlanProposed] | None = None
        for event in await self._store.events(task.id):
            if isinstance(event.fact, PlanProposed) and event.fact.waits:
                if (event.run, event.fact.number) == (run.seq, plan.number):
                    break
                before = event.run, event.fact
        earlier = before and await self._store.run(task.id, before[0])
        if before is None or earlier is None:
            return
        slot = plan_slot(earlier.seq, before[1].number)
        if await self._store.effect(task.id, slot) is not None:
            view = await self._plan_view(task, earlier, before[1], superseded=short(plan.hash))
            await self._post(task, earlier, slot, questions.plan(view))

    async def threads(self, task: Task, run: Run) -> Threads:
        """Fetch what people said on lines."""
        return await open_threads(self._store, self._github(task), task, run)

    async def answer_threads(self, task: Task, run: Run, commit: str | None, view: RoundView) -> RoundAnswered:
        """Answer in threads, as one review, and resolve some of them."""
        model, word = await self._model_of(task, run), self._settings.command
        marker = markers.make(task.id, f"answers.{run.seq}", await self._store.state_key())
        github = self._github(task)
        return await post_answers(self._store, github, task, commit, view, model=model, word=word, marker=marker)

    async def evidence(self, task: Task, run: Run, head: str) -> str:
        """Show it as a check run, and in a comment where somebody asked for it."""
        return await show_evidence(self._store, self._github(task), task, run, head)

    async def outdated(self, task: Task, head: str) -> None:
        """Mark it in the text of our own pull request."""
        await mark_outdated(self._store, self._github(task), task, head)

    async def answer(self, task: Task, run: Run, answer: str, thread: str) -> None:
        """Post the answer to a person's question where that was asked."""
        body, slot = questions.answer(run.request, answer, model=await self._model_of(task, run)), f"answer.{run.seq}"
        mark = markers.make(task.id, slot, await self._store.state_key())
        if not thread or not await answer_there(self._github(task), task, thread, cut(body), mark):
            await self._post(task, run, slot, body)

    async def ask(self, task: Task, run: Run, question: str, number: int) -> None:
        """Post the question; the answer comes as a command."""
        model, word = await self._model_of(task, run), self._settings.command
        body = questions.question(question, model=model, requester=run.requester, word=word)
        await self._post(task, run, f"question.{run.seq}.{number}", body)

    async def _model_of(self, task: Task, run: Run) -> str:
        meter = stand(await self._store.events(task.id), run.seq).meter()
        return meter.model if meter else ""

    async def _post(self, task: Task, run: Run, slot: str, body: str) -> None:
        await ensure_comment(
            self._store, self._github(task), task.repository, run.number, task_id=task.id, slot=slot, body=body
        )

    async def request(self, task: Task, run: Run, slot: str, body: str, call: ActionRequest) -> Posted:
        """Post what waits for approval, on a line or in the thread; the decision comes as a command."""
        return await post_request(self._store, self._github(task), task, run, slot=slot, body=body, call=call)

    async def point_out(self, task: Task, run: Run, commit: str, marks: Sequence[tuple[str, int, str]]) -> None:
        """Comment on lines of the pull request."""
        await mark_lines(self._store, self._github(task), task, run, commit, marks)

    async def progress(self, task: Task, run: Run) -> None:
        """Edit the progress comment where the run went on and the last edit is long enough ago."""
        if await self._store.effect(task.id, progress_slot(run)) is None:
            return
        at, seen = self._shown.get(run.id, (float("-inf"), 0))
        events = await self._store.events(task.id, after=seen)
        if not events or self._monotonic() - at < self._settings.progress.interval_s:
            return
        await self._show(task, run)

    async def report(self, task: Task, run: Run) -> None:
        """Show the final state, and react to what asked for the run."""
        standing = stand(await self._store.events(task.id), run.seq)
        outcome = standing.finished.outcome if standing.finished else "failed"
        if run.intent not in ASIDE or outcome != "done":
            await self._show(task, run)
        self._shown.pop(run.id, None)
        await show_status(self._store, self._github(task), task, self._settings.command)
        if (run.commanded or run.intent not in ASIDE) and (content := REACTIONS.get(outcome)):
            try:
                await self._github(task).react(task.repository, run.number, run.comment_id, content)
            except NotFound:
                # The comment may have been deleted; the final state stands in ours.
                log.info("react.gone", extra={"run": run.id})

    async def ended(self, task: Task) -> None:
        """Look at the checks of others."""
        if self._repairs is not None:
            await self._repairs.ended(task, self._github(task))

    async def _show(self, task: Task, run: Run) -> None:
        events = await self._store.events(task.id)
        self._shown[run.id] = (self._monotonic(), events[-1].seq if events else 0)
        body = comments.progress(progress_view(stand(events, run.seq), marker="", word=self._settings.command))
        await self._post(task, run, progress_slot(run), body)

    async def _open(self, github: GitHub, task: Task, run: Run, work: Work) -> Pull | None:
        """Open a pull request; None where the work is fit for a draft alone, and the repository allows none."""
        title = comments.pull_title(task.title, number=task.number)
        body = await self._body(task, run, work)
        started = stand(await self._store.events(task.id), run.seq).started
        # People mark it ready when the rest is there: GitHub's REST API cannot.
        draft = bool(work.early) or bool((started.settings if started else {}).get("draft", self._settings.pull.draft))
        try:
            return await _opened(github, task, work.branch, title, body, draft=draft)
        except Conflict as conflict:
            if not draft or _REFUSED_DRAFT not in str(conflict).casefold():
                raise
        return None if work.early else await _opened(github, task, work.branch, f"[agent] {title}", body, draft=False)

    async def _body(self, task: Task, run: Run, work: Work) -> str:
        events = await self._store.events(task.id)
        # What was used and what applied are this run's; what was asked and what shows that it works are the task's.
        standing, whole = stand(events, run.seq), stand(events, None)
        meter = standing.meter()
        if meter is None:
            raise TaskRefused("The run has no record of its start.")
        commit, beside = whole.commit, [moved.heard(self._settings.command)] if work.branch != task.branch else []
        # A bare command asks for what stands there already.
        asked = dict.fromkeys(request or f"{task.title}\n\n{task.body}" for request in whole.requests)
        return comments.pull_body(
            comments.PullView(
                marker=markers.make(task.id, "pull", await self._store.state_key()),
                requester=run.requester,
                request="\n\n---\n\n".join(asked),
                summary=work.summary,
                meter=meter,
                sandbox=self._shelter.level if self._shelter.shell else "",
                closes=task.number if task.kind == "issue" else None,
                files=commit.files if commit else 0,
                insertions=commit.insertions if commit else 0,
                deletions=commit.deletions if commit else 0,
                commits=whole.commits,
                evidence=whole.evidence(standing.setup_rows()),
                commands=whole.command_rows(),
                settings=_applied(standing.started.settings) if standing.started else {},
                notices=[*beside, *standing.told(whole.protected)],
                unfinished=work.early,
                word=self._settings.command,
            )
        )

    def _github(self, task: Task) -> GitHub:
        return self._app.installation(task.installation_id)


async def _opened(github: GitHub, task: Task, branch: str, title: str, body: str, *, draft: bool) -> Pull:
    try:
        return await github.open_pull(
            task.repository, head=branch, base=task.base_branch, title=title, body=body, draft=draft
        )
    except Conflict:
        # Somebody, or an earlier life of ours, opened it in between.
        pull = await github.find_pull(task.repository, branch)
        if pull is None or pull.state != "open":
            raise
        return pull


def _applied(settings: Mapping[str, object]) -> dict[str, object]:
    """Put each setting and who decided it into one line."""
    origins = settings.get("origins")
    by = origins if isinstance(origins, dict) else {}
    shown = {name: value for name, value in settings.items() if name not in {"origins", "ignored"}}
    return {name: f"{_plain(value)} ({by.get(name, 'default')})" for name, value in shown.items()}


def _plain(value: object) -> str:
    return ", ".join(str(one) for one in value) or "none" if isinstance(value, list) else str(value)
