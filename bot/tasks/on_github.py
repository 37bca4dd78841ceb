"""The side of a task that people see on GitHub: progress comment, branch, pull request, final state."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from bot.domain.command import Fix
from bot.domain.events import PlanProposed
from bot.domain.task import Run, Task
from bot.errors import Conflict, NotFound, RepositoryConfigError, TaskRefused
from bot.github import comments, markers, questions
from bot.github.base import GitHub, GitHubApp, Pull, Reaction
from bot.settings.repository import PATH, RepositorySettings, parse_repository
from bot.settings.resolve import RunSettings, resolve
from bot.settings.server import ServerSettings
from bot.store.base import TaskStore
from bot.tasks.desk import Published, Shelter, Work
from bot.tasks.effects import ensure_comment, progress_slot
from bot.tasks.standing import progress_view, stand
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

    def __init__(
        self,
        store: TaskStore,
        app: GitHubApp,
        settings: ServerSettings,
        *,
        shelter: Shelter,
        answerable: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Work for one server.

        Args:
            store: what tasks are known by.
            app: GitHub, as who we are there.
            settings: the operator's.
            shelter: what commands are shut in by.
            answerable: whether what people say later finds the run that they answer; else none may wait for them.
            monotonic: seconds that only grow.
        """
        self._answerable = answerable
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
        settings = resolve(self._settings, kept, Fix(run.request, run.model))
        if not settings.enabled:
            raise TaskRefused(f"`{PATH}` says `enabled: false`.")
        if self._answerable:
            return settings
        if settings.mode == "plan":
            raise TaskRefused(PLANS_NEED_SERVER)
        return replace(settings, mode="act")

    async def held(self, task: Task, run: Run) -> None:
        """Make the run's progress comment before it starts."""
        await self._show(task, run)

    async def announce(self, task: Task, run: Run, settings: RunSettings) -> None:
        """Make the run's progress comment."""
        await self._show(task, run)

    async def origin(self, task: Task) -> Origin:
        """Name the repository and a way to its token."""
        github = self._github(task)
        repository = await github.repository(task.repository.id)

        async def token() -> str | None:
            return await github.git_token(repository)

        return Origin(f"github-{repository.id}", await github.clone_url(repository), token)

    async def author(self, task: Task) -> Identity:
        """Commit as the account that we are."""
        us = await self._github(task).identity()
        return Identity(us.login, f"{us.id}+{us.login}@users.noreply.github.com")

    async def push(self, task: Task, workspace: Workspace, commit: str, branch: str, *, expected: str | None) -> bool:
        """Push to GitHub."""
        await workspace.push(commit, branch, expected=expected)
        return True

    async def takes_unfinished(self, task: Task, *, offered: bool) -> bool:
        """Say whether a draft may be made of it: no open pull request carries the branch, or one of ours is one."""
        if not offered:
            return False
        github = self._github(task)
        pull = await github.find_pull(task.repository, task.branch)
        return pull is None or pull.state != "open" or (pull.draft and await self._is_ours(github, task, pull))

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
        elif await self._is_ours(github, task, pull):
            pull = await github.update_pull(task.repository, pull.number, body=await self._body(task, run, work))
        return Published(pull.number, pull.url)

    async def propose(self, task: Task, run: Run, plan: PlanProposed) -> None:
        """Post the plan as a comment of its own, under those before it; what people say to it comes as a command."""
        await self._show(task, run)
        view = questions.PlanView(
            await self._model_of(task, run),
            plan.text,
            plan.files,
            plan.turns,
            plan.questions,
            plan.waits,
            run.requester,
            self._settings.command,
        )
        await self._post(task, run, f"plan.{run.seq}.{plan.number}", questions.plan(view))

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
        await self._show(task, run)
        self._shown.pop(run.id, None)
        standing = stand(await self._store.events(task.id), run.seq)
        outcome = standing.finished.outcome if standing.finished else "failed"
        if content := REACTIONS.get(outcome):
            try:
                await self._github(task).react(task.repository, run.number, run.comment_id, content)
            except NotFound:
                # The comment may have been deleted; the final state stands in ours.
                log.info("react.gone", extra={"run": run.id})

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

    async def _is_ours(self, github: GitHub, task: Task, pull: Pull) -> bool:
        us = await github.identity()
        found = markers.find(pull.body, await self._store.state_key())
        return pull.author is not None and pull.author.id == us.id and found == (task.id, "pull")

    async def _body(self, task: Task, run: Run, work: Work) -> str:
        events = await self._store.events(task.id)
        # What was used and what applied are this run's; what was asked and what shows that it works are the task's.
        standing, whole = stand(events, run.seq), stand(events, None)
        meter = standing.meter()
        if meter is None:
            raise TaskRefused("The run has no record of its start.")
        commit = whole.commit
        asked = [request or f"{task.title}\n\n{task.body}" for request in whole.requests]
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
                setup=standing.setup_rows(),
                checks=whole.check_rows(),
                commands=whole.command_rows(),
                settings=_applied(standing.started.settings) if standing.started else {},
                notices=standing.told(whole.protected),
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
