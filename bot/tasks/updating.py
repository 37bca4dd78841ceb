"""The base branch is merged into a branch: by git where that goes, with the model where the two conflict.

Nothing is pushed before all of it is done: a run that ends early leaves the branch as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

from bot.agent.conduct import Finishing
from bot.agent.conflicts import conflicts_told, has_markers, is_a_sides_name, left_told, names_a_side
from bot.agent.context.conversation import Context, Told
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard
from bot.agent.loop import Agent
from bot.agent.modes import ACT
from bot.agent.transcript import say
from bot.domain.events import BranchPushed, CommitMade, RunFinished, RunQueued
from bot.domain.merging import Conflict, Stands
from bot.domain.messages import Message
from bot.domain.task import BESIDE
from bot.errors import BranchMoved, PushRejected, TaskRefused
from bot.github import protected, updating
from bot.github.people import co_author
from bot.tasks import protection
from bot.tasks.checks import Checker, evidence_of, feedback
from bot.tasks.desk import Work
from bot.tasks.engines.base import Json
from bot.tasks.environment import ProjectSetup, why_no_checks
from bot.tasks.evidence import Proof
from bot.tasks.opening import Begun, Prepared, Wanted, transcript_of
from bot.tasks.publishing import keep_secrets, publish_work
from bot.tasks.recorded import RecordedModel, RecordedToolset, deaf
from bot.tasks.scene import Scene

ROUNDS = 3
"""Times that the model may say that it is done."""
ASKS = "ask_person"
"""Is not offered: a run that waits has ended, and the next one begins without the merge."""
WANTED = "Bring the base branch into this branch. Nothing else is asked."
_WORKFLOWS = ".github/workflows/"


@dataclass(frozen=True, slots=True)
class Joined:
    """The two branches joined, as recorded."""

    head: str
    """Where the branch stood."""
    base: str
    """Where the base branch stood."""
    commit: str
    """Holds the result of git, with markers where there are conflicts; never pushed where there are."""
    conflicts: Sequence[Conflict]


async def update_branch(  # noqa: PLR0913 - as for all that a model takes part in
    scene: Scene,
    begun: Begun,
    prepared: Prepared,
    *,
    model: RecordedModel,
    guard: LimitGuard,
    told: Told,
    transcript: list[Message],
) -> str:
    """Merge the base branch's head into the task's branch, check that, push it, and return what was done.

    What people say meanwhile is for the work, and reaches the next run.

    Args:
        scene: the run.
        begun: what applies to it.
        prepared: what it began on.
        model: asked where the two conflict, and not otherwise.
        guard: ends the run at its limits.
        told: takes note where the conversation is compacted.
        transcript: is filled with what was said.

    Raises:
        TaskRefused: there is no branch, or its conflicts are not resolved.
        PushRejected: the remote did not take it.
        BotError: what else may end a run.
    """
    if prepared.expected is None:
        raise TaskRefused(updating.no_branch(scene.task.branch))
    await _let_through(scene, prepared.expected)
    joined = await _join(scene, prepared.expected)
    if joined is None:
        return updating.up_to_date(scene.task.base_branch)
    scene.lease.commit = joined.commit
    setup = ProjectSetup(scene, begun.settings, replace(prepared, base=joined.commit))
    environment = await setup.first()
    skipped = why_no_checks(scene, environment)
    checker = Checker(scene, evidence_of(begun.settings, prepared.checks))
    summary = ""
    if joined.conflicts:
        task, journal = scene.task, Journal(lambda: guard.budget)
        tools = RecordedToolset(scene, [tool for tool in ACT.of(scene.lease.tools) if tool.spec.name != ASKS])
        context = Context(begun.window, model.ask, lambda: journal.facts, told)
        agent = Agent(context, tools, guard, deaf, finishing=Finishing(()), journal=journal)
        transcript[:] = await transcript_of(scene, begun, prepared, environment.told(task.id), Wanted(request=WANTED))
        say(transcript, [conflicts_told(task.id, task.base_branch, joined.conflicts)])
        summary = await _resolved(scene, joined, agent, transcript, setup, checker)
    else:
        await checker.all("after", skipped=skipped)
    await Proof(scene, replace(prepared, base=joined.head), checker, against=joined.base).whole()
    sha = await _seal(scene, joined)
    await _push(scene, joined, sha)
    work = Work(sha, joined.head, joined.head, scene.task.branch, await _whole(scene, summary), complete=True)
    await publish_work(scene, work, "pull", "check/shown")
    return updating.merged(scene.task.base_branch, joined.base, await _settled(scene, joined, sha))


async def _let_through(scene: Scene, head: str) -> None:
    """Refuse where a commit waits that stands on the branch as it is: it could not be pushed any more."""

    async def action() -> Json:
        held = await protection.kept(scene.desk.store, scene.task)
        if held is not None and (held.branch, held.expected) == (scene.task.branch, head):
            raise TaskRefused(updating.waits())
        return None

    await scene.steps.do("update/waits", action)


async def _join(scene: Scene, head: str) -> Joined | None:
    """Put the joined files into the work tree; None where the branch has all of the base branch already."""
    task, lease = scene.task, scene.lease

    async def action() -> Json:
        base = await scene.desk.workspaces.fetch(task.id, await lease.origin(), task.base_branch)
        workspace = (await lease.opened()).workspace
        made = await workspace.merge(head, base)
        if made.there:
            return None
        author = await scene.desk.publisher.author(task)
        commit = await workspace.joined(made.tree, [head, base], author, scene.run.created_at, _message(scene))
        await workspace.restore(commit)
        return {"base": base, "commit": commit, "conflicts": [asdict(one) for one in made.conflicts]}

    value = cast("dict[str, object] | None", await scene.steps.do("update", action, stoppable=True, patient=True))
    if value is None:
        return None
    conflicts = [Conflict(**one) for one in cast("list[dict[str, str]]", value["conflicts"])]  # type: ignore[arg-type]
    return Joined(head, str(value["base"]), str(value["commit"]), conflicts)


def _message(scene: Scene) -> str:
    task, run = scene.task, scene.run
    by = co_author(run.requester, run.requester_id)
    return updating.merge_message(task.base_branch, task.branch, number=task.number, task_id=task.id, by=by)


async def _resolved(
    scene: Scene, joined: Joined, agent: Agent, transcript: list[Message], setup: ProjectSetup, checker: Checker
) -> str:
    """Let the model resolve the conflicts until none is left and the checks pass, and return its account.

    Raises:
        TaskRefused: markers are left.
    """
    for attempt in range(1, ROUNDS + 1):
        finished = await agent.run(transcript)
        left = await _left(scene, joined, attempt)
        if left:
            if attempt == ROUNDS or not finished.said_so:
                raise TaskRefused(updating.unresolved(left))
            say(transcript, [left_told(scene.task.id, left)])
            continue
        environment = await setup.again(attempt, wanted=bool(checker.evidence.checks))
        await checker.all("after", attempt, skipped=why_no_checks(scene, environment))
        failed = checker.broken()
        if not failed or attempt == ROUNDS or not finished.said_so:
            return finished.summary
        say(transcript, [feedback(failed, anew=bool(environment.changed))])
    raise AssertionError("the last round returns or raises")


async def _left(scene: Scene, joined: Joined, attempt: int) -> list[str]:
    """Name the files that still hold markers of ours, also where the model moved them, or a name that git made up."""

    async def action() -> Json:
        workspace = (await scene.lease.opened()).workspace
        commit, sides, left = scene.lease.commit or joined.commit, (joined.head, joined.base), []
        for path in (one.path for one in joined.conflicts):
            data = await workspace.read_at(commit, path)
            were = [await workspace.read_at(side, path) or b"" for side in sides]
            if data is not None and (has_markers(data, were, sides) or is_a_sides_name(path, sides)):
                left.append(path)
        for path in await workspace.changed_paths(joined.commit, commit):
            data = await workspace.read_at(commit, path)
            if path not in left and data is not None and (names_a_side(data, sides) or is_a_sides_name(path, sides)):
                left.append(path)
        return list(left)

    return cast("list[str]", await scene.steps.do(f"update/left/{attempt}", action))


async def _seal(scene: Scene, joined: Joined) -> str:
    """Make the one commit of both parents, and look through what the model did beside git."""
    task, run, lease = scene.task, scene.run, scene.lease
    message = _message(scene)

    async def action() -> Json:
        opened = await lease.opened()
        workspace, author = opened.workspace, await scene.desk.publisher.author(task)
        sha = joined.commit
        if joined.conflicts:
            folder = lease.memory.folder
            kept = lease.memory.mode == "write" or any(one.path.startswith(f"{folder}/") for one in joined.conflicts)
            made = await workspace.commit(
                message, author, run.created_at, parent=joined.commit, without=None if kept else folder
            )
            made = made or joined.commit
            paths = await workspace.changed_paths(joined.commit, made)
            await keep_secrets(scene, workspace, joined.commit, made, paths)
            found = await protection.findings_of(scene, opened, joined.commit, made, "", since=joined.base)
            if found := protected.waiting(found):
                raise TaskRefused(updating.protected(sorted({path for one in found for path in one.paths})))
            tree = await workspace.tree_of(made)
            sha = await workspace.joined(tree, [joined.head, joined.base], author, run.created_at, message)
        stat = await workspace.diff_stat(joined.base, sha)
        checked = lease.commit or joined.commit
        changed = await workspace.changed_paths(checked, sha)
        subject = message.split("\n", 1)[0]
        same = None if changed else checked
        counts = (stat.files, stat.insertions, stat.deletions)
        await scene.recorder.note("commit", CommitMade(sha, subject, *counts, same_tree_as=same, merges=joined.base))
        return sha

    return str(await scene.steps.do("commit", action))


async def _push(scene: Scene, joined: Joined, sha: str) -> None:
    """Push it to the branch, which has to stand where it stood; what was pushed already is left alone."""
    task = scene.task

    async def action() -> Json:
        workspace = (await scene.lease.opened()).workspace
        # GitHub takes workflows that stand on a branch already, as those of either side do.
        new = {*await workspace.changed_paths(joined.head, sha)} & {*await workspace.changed_paths(joined.base, sha)}
        workflows = any(path.startswith(_WORKFLOWS) for path in new)
        publisher = scene.desk.publisher
        try:
            pushed = await publisher.push(task, workspace, sha, task.branch, expected=joined.head, workflows=workflows)
        except BranchMoved as moved:
            raise PushRejected(updating.moved(task.branch)) from moved
        if pushed:
            begins = bool(await workspace.files_at(sha, _WORKFLOWS.rstrip("/")))
            await scene.recorder.note("push", BranchPushed(task.branch, sha, workflows=begins))
        return None

    await scene.steps.do("push", action, patient=True)


async def _settled(scene: Scene, joined: Joined, sha: str) -> Mapping[str, Stands]:
    """Tell whose version stands of what conflicted: a side that was taken whole is no work of the model's."""

    async def action() -> Json:
        workspace = (await scene.lease.opened()).workspace
        sides: dict[Stands, str] = {"ours": joined.head, "theirs": joined.base, "git": joined.commit}
        differs = {side: {*await workspace.changed_paths(commit, sha)} for side, commit in sides.items()}
        paths = [one.path for one in joined.conflicts]
        return {path: next((side for side in sides if path not in differs[side]), "anew") for path in paths}

    if not joined.conflicts:
        return {}
    return cast("dict[str, Stands]", await scene.steps.do("update/settled", action))


async def _whole(scene: Scene, summary: str) -> str:
    """Tell of the task's work as its last run did, and of what the merge took."""
    beside, last = set[int](), ""
    for event in await scene.desk.store.events(scene.task.id):
        if isinstance(event.fact, RunQueued) and event.fact.intent in BESIDE:
            beside.add(event.run)
        if isinstance(event.fact, RunFinished) and event.run not in beside and event.fact.summary:
            last = event.fact.summary
    return "\n\n".join(filter(None, [last, summary]))
