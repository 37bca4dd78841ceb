"""What of a change people decide about before it is pushed: it waits on the server, and is pushed exactly as it is."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from bot.agent.gate import Asked
from bot.domain.changes import FileChange, Finding, judge
from bot.domain.events import CommitMade, Notice, PlanProposed
from bot.domain.protected import is_protected
from bot.domain.request import ActionRequest, canonical
from bot.domain.review import OpenThread
from bot.domain.task import Intent, Task
from bot.errors import Cancelled, PushRejected, RepositoryRefused, Waits, WorkspaceError
from bot.github import protected as words
from bot.store.base import Decision, Effect, TaskStore
from bot.tasks.decisions import drop
from bot.tasks.engines.base import Json
from bot.tasks.gates import CWD, heed_stop, show
from bot.tasks.scene import Scene
from bot.tasks.standing import stand
from bot.workspace.base import Opened, Workspace

PUSH = "push"
"""Stands for the tool in what people are asked."""
HELD = "held"
"""The slot of the effect that says which commit waits; empty where none does."""
AGREED = "agreed"
"""The slot of the effect that says which contents of protected files people approved."""
GOES_ON: frozenset[Intent] = frozenset({"fix", "plan", "ask"})
"""Runs that go on from work that waits; the others are about the branch as people see it."""
ANEW = "the run begins anew"
_WORKFLOWS = ".github/workflows"
_MOST_WORKFLOWS = 100
_DIFF_CHARS = 16 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """A commit that is not pushed, and from which the next run goes on."""

    commit: str
    base: str
    """The commit that it stands on."""
    expected: str | None
    """Where the remote branch stood; None where there was none."""
    branch: str
    summary: str
    """The model's own account."""
    hash: str
    """Of what people are asked about it; empty where they are not."""
    paths: Sequence[str]
    """What they decide about."""
    fact: Mapping[str, Any]
    """What the stream has of the commit once it is pushed."""
    run: int = 0
    """The one that made it."""
    threads: Sequence[OpenThread] = ()
    """What that run was told of, without words: its answers there are due once the commit is pushed."""
    decision: int = 0
    """The one that lets it be pushed; 0 where none does."""
    by: str = ""
    """Who approved that."""

    def to_data(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "paths": list(self.paths), "fact": dict(self.fact)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Held":
        """Turn stored values back."""
        return cls(**{**data, "threads": [OpenThread.from_data(one) for one in data.get("threads", ())]})


async def findings_of(
    scene: Scene, opened: Opened, base: str, commit: str, plan: str, *, since: str = ""
) -> list[Finding]:
    """Look through a change.

    Args:
        scene: the run.
        opened: its working copy; in a person's own checkout nothing is pushed, so nothing is found there.
        base: what the change stands on.
        commit: the change.
        plan: the text of the plan that is carried out; empty where there is none.
        since: what all that the task did stands on; empty for what its branch began on, or merged last.
    """
    if not opened.movable:
        return []
    workspace = opened.workspace
    changes, there = await workspace.changes(base, commit)
    workflows, agreed, seals = await _workflows(workspace, base), await _agreed(scene, plan), await _seals(scene)
    first = since or stand(await scene.desk.store.events(scene.task.id), None).base or base
    whole = ((), 0) if first == base else await _whole(workspace, first, commit)
    return judge(changes, there, workflows, agreed, seals, whole=whole, links=await workspace.links(base))


async def _whole(workspace: Workspace, first: str, commit: str) -> tuple[Sequence[FileChange], int]:
    """List all that the task changed, and count the files of before; nothing where that cannot be told any more."""
    try:
        return await workspace.changes(first, commit)
    except WorkspaceError:
        # That commit is in no branch any more, and not on this machine.
        return (), 0


async def _workflows(workspace: Workspace, base: str) -> list[str]:
    """Read the workflows as of the base: the change itself says nothing of what it helps."""
    names = sorted(name for name in await workspace.files_at(base, _WORKFLOWS) if name.endswith((".yml", ".yaml")))
    found = [await workspace.read_at(base, f"{_WORKFLOWS}/{name}") for name in names[:_MOST_WORKFLOWS]]
    return [text.decode(errors="replace") for text in found if text is not None]


async def _agreed(scene: Scene, plan: str) -> Collection[str]:
    """List the files that a plan names, where it waited and a person let it be carried out."""
    events = await scene.desk.store.events(scene.task.id) if plan else ()
    waited = [event.fact for event in events if isinstance(event.fact, PlanProposed) and event.fact.waits]
    # Only the last one can have been approved: those before it are superseded, whatever they say.
    return set(waited[-1].files) if waited and waited[-1].text == plan else set()


async def agree(scene: Scene, before: str | None, after: str | None, paths: Collection[str]) -> Json:
    """Note what a call that people approved left behind: files that stay so are not asked about again.

    Args:
        scene: the run.
        before: the files before the call, as a commit; None where that is not known.
        after: those behind it.
        paths: the files that the call names, and whose new content people saw; what else it did they did not see.
    """
    if before is None or after is None or before == after:
        return None
    changes, _ = await (await scene.lease.opened()).workspace.changes(before, after)
    named = {one.path: one.seal for one in changes if one.path in paths and is_protected(one.path)}
    seals = {**await _seals(scene), **named}
    await scene.desk.store.keep_effect(scene.task.id, Effect(AGREED, "seals", json.dumps(seals)))
    return None


async def _seals(scene: Scene) -> dict[str, str]:
    effect = await scene.desk.store.effect(scene.task.id, AGREED)
    return {} if effect is None else dict(json.loads(effect.remote_id))


async def hold(
    scene: Scene, held: Held, findings: Sequence[Finding], *, complete: bool, heard: int | None = None
) -> bool:
    """Keep a commit here until a person has decided about it; False where one who is there agrees at once.

    Args:
        scene: the run.
        held: the commit.
        findings: what people decide about.
        complete: whether the work is done; of what is not they are not asked, and it only stays here.
        heard: the last inbox item that the run heard; None where it heard a stop.

    Raises:
        Cancelled: somebody said stop meanwhile, so that nobody is asked; it stays here.
        Waits: they decide later.
        PushRejected: nobody agrees here.
    """
    desk, task, gate = scene.desk, scene.task, scene.lease.gate
    digest, needed, word = (gate.digest, gate.approvals, gate.word) if gate else ("", 1, "/agent")

    async def action() -> Json:
        workspace = (await scene.lease.opened()).workspace
        tree = await workspace.tree_of(held.commit)
        arguments = canonical({"paths": list(held.paths), "tree": tree})
        request = ActionRequest(task.id, PUSH, arguments, CWD, tree, digest, desk.clock())
        if desk.permits is not None:
            why_not = await desk.permits(PUSH, arguments, f"it {words.why(findings)}")
            return {"agreed": not why_not}
        await keep(scene, replace(held, hash=request.hash))
        if not complete:
            await scene.recorder.note("stays", Notice(words.stays(findings)))
            return {}
        try:
            await heed_stop(scene, heard)
        except Cancelled:
            await scene.recorder.note("stays", Notice(words.stays(findings)))
            raise
        asked = Asked(request, f"it {words.why(findings)}", "")
        paths = words.shown_of(findings)
        diff = await workspace.diff(held.base, held.commit, limit_chars=_DIFF_CHARS, paths=paths) if paths else ""
        body = words.request(request, findings, diff, requester=scene.run.requester, word=word, approvals=needed)
        await show(scene, asked, body, needed)
        seen = max((item.id for item in await desk.store.inbox(task.id)), default=0)
        return {"waits": words.waits(request, findings, word), "seen": seen}

    value = cast("dict[str, object]", await scene.steps.do("protected", action, patient=True))
    if "waits" in value:
        raise Waits(str(value["waits"]), cast("int", value["seen"]))
    if value.get("agreed") is False:
        raise PushRejected(words.nobody_agreed(findings))
    return "agreed" not in value


async def keep(scene: Scene, held: Held | None) -> None:
    """Note which commit the next run goes on from; None for where the branch stands."""
    kept = json.dumps(held.to_data()) if held else ""
    await scene.desk.store.keep_effect(scene.task.id, Effect(HELD, "commit", kept))


async def kept(store: TaskStore, task: Task) -> Held | None:
    """Return the commit that waits; None where none does."""
    effect = await store.effect(task.id, HELD)
    return Held.from_data(json.loads(effect.remote_id)) if effect and effect.remote_id else None


async def taken_up(scene: Scene, expected: str | None) -> tuple[Held | None, bool]:
    """Open the working copy where work that waits left off, on top of what others pushed meanwhile.

    Args:
        scene: the run.
        expected: where the remote branch stands.

    Returns:
        The commit, which the work tree holds now, with `decision` where it may be pushed; None where there is none. And
        whether there was one that cannot be gone on with.
    """
    lease, held = scene.lease, await kept(scene.desk.store, scene.task)
    if scene.run.fresh:
        await drop(scene.desk.store, scene.task, scene.run.requester, scene.desk.clock(), ANEW)
    if held is None or scene.run.intent not in GOES_ON:
        return None, False
    found = await _taken(scene, held, expected)
    if isinstance(found, str):
        await scene.recorder.note("gone", Notice(words.is_gone(found)))
        # What was approved cannot be done any more.
        await drop(scene.desk.store, scene.task, scene.run.requester, scene.desk.clock(), found)
        await keep(scene, None)
        await lease.close()
        lease.commit = None
        return None, True
    return await released(scene, found), False


async def _taken(scene: Scene, held: Held, expected: str | None) -> Held | str:
    """Put work that waits into the work tree; where that does not go, return why."""
    if scene.run.fresh:
        return ANEW
    scene.lease.commit = held.base
    try:
        stands = (held.branch, held.expected) == (scene.task.branch, expected)
        found = held if stands else await _moved(scene, held, expected)
        if found is None:
            return "its branch stands elsewhere by now, and the two do not go together"
        await (await scene.lease.opened()).workspace.restore(found.commit)
    except WorkspaceError:
        return "it is not on this machine"
    return found


async def _moved(scene: Scene, held: Held, expected: str | None) -> Held | None:
    """Put work that waits on top of what others pushed meanwhile: another tree, which people have to be asked about."""
    if expected is None or held.branch != scene.task.branch:
        return None
    lease, workspace = scene.lease, (await scene.lease.opened()).workspace
    try:
        await scene.desk.workspaces.fetch(scene.task.id, await lease.origin(), held.branch)
    except RepositoryRefused:
        return None
    put = await workspace.put_on(held.commit, expected, since=held.expected or held.base)
    if put is None:
        return None
    await lease.close()
    lease.commit = expected
    # Where it is in there already, as an earlier life pushed it, others may have gone on from that.
    commit = expected if put.there else put.commit
    found = replace(held, commit=commit, base=expected, expected=expected, hash="")
    if not put.there:
        await scene.recorder.note("moved", Notice(words.is_moved()))
    await keep(scene, found)
    return found


async def released(scene: Scene, held: Held) -> Held:
    """Look whether a person approved that this very commit is pushed, and say which decision that is."""
    store, now = scene.desk.store, scene.desk.clock()
    open_ = [one for one in await store.decisions(scene.task.id) if one.verdict == "approved" and one.used_at is None]
    for decision in open_:
        if not is_push(decision):
            continue
        why = await _why_void(scene, held, decision)
        if not why:
            return replace(held, decision=decision.id, by=decision.actor)
        await store.use(decision.id, now, void=why)
        await scene.recorder.note(f"void/{decision.id}", Notice(words.is_void(why)))
    return held


async def _why_void(scene: Scene, held: Held, decision: Decision) -> str:
    request = Asked.from_data(json.loads(decision.question)).request
    if request.hash != decision.hash or request.task_id != scene.task.id:
        return "what is kept of it does not give its hash"
    if held.hash != decision.hash:
        return "the work went on since"
    tree = await (await scene.lease.opened()).workspace.tree_of(held.commit)
    digest = scene.lease.gate.digest if scene.lease.gate else ""
    return request.why_void(tree=tree, policy=digest, now=scene.desk.clock())


def is_push(decision: Decision) -> bool:
    """Whether people were asked about a push, and not about a call of the model."""
    return Asked.from_data(json.loads(decision.question)).request.tool == PUSH


async def tell(scene: Scene, held: Held, heard: int) -> None:
    """Note what is pushed and who let it through, before it is.

    Args:
        scene: the run.
        held: the commit.
        heard: the last inbox item that an earlier run heard.

    Raises:
        Cancelled: somebody said stop meanwhile.
    """

    async def action() -> Json:
        await heed_stop(scene, heard)
        await scene.recorder.note("commit", CommitMade(**held.fact))
        return await scene.recorder.note("agreed", Notice(words.agreed(held.by, held.paths)))

    await scene.steps.do("protected/released", action)


async def let_go(scene: Scene, held: Held) -> None:
    """Take the decision for used once the commit is pushed: pushing it again changes nothing."""

    async def action() -> Json:
        await scene.desk.store.use(held.decision, scene.desk.clock())
        await keep(scene, None)
        return None

    await scene.steps.do("protected/used", action)
