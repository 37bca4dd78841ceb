"""How a run begins: what applies, the working copy, and what the model is told first."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, cast

from bot.agent.context.window import Window
from bot.agent.prompt import Assignment, Surroundings, first_message, next_message
from bot.agent.rules import Guidance
from bot.domain.events import RunStarted, WorkspaceReady
from bot.domain.messages import Message, TextPart, ToolCall, ToolResult
from bot.domain.task import Task
from bot.errors import RepositoryRefused, TaskRefused
from bot.settings.record import settings_from_data, settings_to_data
from bot.settings.resolve import RunSettings
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Json
from bot.tasks.guidance import read_guidance
from bot.tasks.lease import Lease
from bot.tasks.scene import Scene
from bot.workspace.base import Origin

PROGRAMS = (
    "git",
    "python3",
    "pip",
    "node",
    "npm",
    "go",
    "cargo",
    "java",
    "mvn",
    "gradle",
    "make",
    "gcc",
    "rg",
    "jq",
    "curl",
)
"""Programs that the model is told about where they are there."""
WINDOW_BEFORE = (200_000, 120_000)
"""Of runs that began before windows were recorded: the default model's then."""
INBOX = "inbox"
"""The effect slot that holds the last inbox item which an earlier run heard."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The working copy and its surroundings, as recorded."""

    base: str
    """The commit that the work stands on."""
    expected: str | None
    """Where the remote branch stood; None where there was none."""
    system: str
    programs: Sequence[str]
    heard: int
    """The last inbox item that an earlier run heard."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What applies to a run from its beginning on, whichever machine takes it up."""

    settings: RunSettings
    started: datetime
    window: Window
    """Of the model that does the work."""


async def begin(scene: Scene) -> Begun:
    """Resolve what applies, say that the work begins, and record when it did."""
    desk, task, run, recorder = scene.desk, scene.task, scene.run, scene.recorder

    async def action() -> Json:
        if why := desk.shelter.refuses(task):
            raise TaskRefused(why)
        settings = await desk.publisher.settings(task, run)
        await recorder.note("started", RunStarted(settings.model, "act", settings.shown()))
        await desk.publisher.announce(task, run, settings)
        window = desk.window(settings.model)
        return {
            "settings": settings_to_data(settings),
            "started": desk.clock().isoformat(),
            "shell": desk.shelter.shell,
            "window": [window.tokens, window.usable],
        }

    value = cast("dict[str, object]", await scene.steps.do("announce", action, patient=True))
    settings = settings_from_data(cast("dict[str, object]", value["settings"]))
    # As it was when the run began: what a run does must not change with the machine that takes it up.
    scene.lease.shell = value["shell"] is True
    scene.lease.memory = settings.memory
    window = Window(*cast("list[int]", value.get("window", WINDOW_BEFORE)))
    return Begun(settings, datetime.fromisoformat(str(value["started"])), window)


async def prepare(scene: Scene) -> Prepared:
    """Make the working copy: from the task's branch where the remote has it, else from the base branch."""
    desk, task, lease, recorder = scene.desk, scene.task, scene.lease, scene.recorder

    async def action() -> Json:
        origin = await lease.origin()
        expected = await desk.workspaces.remote_head(task.id, origin, task.branch)
        lease.branch = task.branch if expected else task.base_branch
        live = await lease.live()
        await recorder.note("workspace", WorkspaceReady(task.branch, live.opened.base, live.opened.files))
        system, programs = await _surroundings(lease, shell=lease.shell)
        # Not from a branch of the task's: what it says may have been put there to steer us.
        source = await _base_commit(scene, origin) if expected else live.opened.base
        guidance = await read_guidance(live.workspace, source, lease.memory) if source else Guidance()
        kept = await desk.store.effect(task.id, INBOX)
        return {
            "guidance": asdict(guidance),
            "base": live.opened.base,
            "expected": expected,
            "system": system,
            "programs": programs,
            "heard": int(kept.remote_id) if kept else 0,
        }

    value = cast("dict[str, object]", await scene.steps.do("prepare", action, stoppable=True, patient=True))
    expected = cast("str | None", value["expected"])
    lease.branch = task.branch if expected else task.base_branch
    lease.commit = lease.commit or str(value["base"])
    # A run that began with an earlier version kept none.
    lease.guidance = Guidance(**cast("dict[str, Any]", value.get("guidance", {})))
    return Prepared(
        str(value["base"]),
        expected,
        str(value["system"]),
        cast("list[str]", value["programs"]),
        cast("int", value["heard"]),
    )


async def _base_commit(scene: Scene, origin: Origin) -> str | None:
    """Find where the base branch stands; None where there is none any more, which need not end a run on its branch."""
    try:
        return await scene.desk.workspaces.fetch(scene.task.id, origin, scene.task.base_branch)
    except RepositoryRefused:
        return None


async def _surroundings(lease: Lease, *, shell: bool) -> tuple[str, list[str]]:
    live = await lease.live()
    if not shell:
        return "Linux", []
    names = " ".join(PROGRAMS)
    probe = (
        '. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-Linux}"; '
        f"for p in {names}; do command -v $p >/dev/null && echo $p; done; true"
    )
    found = (await live.sandbox.run(probe, timeout_s=20)).stdout.split("\n")
    return found[0] or "Linux", [line for line in found[1:] if line in PROGRAMS]


async def transcript_of(scene: Scene, settings: RunSettings, prepared: Prepared, setup: str = "") -> list[Message]:
    """Build what the model is told: the first message, or the earlier runs and what is asked now.

    Args:
        scene: the run.
        settings: what applies to it.
        prepared: its working copy.
        setup: how the project was set up, in words for the model.
    """
    desk, task, run = scene.desk, scene.task, scene.run
    earlier: Sequence[Message] = ()
    for seq in range(run.seq - 1, 0, -1):
        # A run keeps the whole transcript up to its end, so the last one that has any holds all.
        earlier = await desk.store.messages(task.id, run=seq)
        if earlier:
            break
    if not earlier:
        return [_first(scene, settings, prepared, setup)]
    transcript = _closed(earlier)
    asked = next_message(task.id, run.request, moved=not await _ours(desk, task, prepared), setup=setup)
    if transcript[-1].role == "user":
        transcript.append(Message("assistant", (TextPart("The run is over."),)))
    return [*transcript, asked]


def _first(scene: Scene, settings: RunSettings, prepared: Prepared, setup: str) -> Message:
    task, run, guidance, memory = scene.task, scene.run, scene.lease.guidance, settings.memory
    kind = {"issue": "issue", "pull": "pull request"}[task.kind] if task.number else "task"
    assignment = Assignment(
        task.id,
        kind,
        task.title,
        task.body,
        run.request,
        [check.run for check in settings.checks],
        guidance.rules,
        guidance.memory,
        memory.folder,
        memory.mode == "write",
    )
    date = run.created_at.date().isoformat()
    where = Surroundings(".", prepared.system, prepared.programs, task.branch, date, setup)
    return first_message(assignment, where)


def _closed(messages: Sequence[Message]) -> list[Message]:
    """Answer calls that an earlier run left open, and join neighbours of one role: providers ask for both."""
    closed: list[Message] = []
    for message in messages:
        if closed and closed[-1].role == "assistant" and closed[-1].calls:
            message = _answered(closed[-1].calls, message)  # noqa: PLW2901 - the pair is mended before it is kept
        if closed and closed[-1].role == message.role:
            closed[-1] = Message(message.role, (*closed[-1].parts, *message.parts))
        else:
            closed.append(message)
    if closed[-1].calls:
        closed.append(_answered(closed[-1].calls, Message("user", (TextPart("The run ended here."),))))
    return closed


def _answered(calls: Sequence[ToolCall], message: Message) -> Message:
    given = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
    missing = tuple(
        ToolResult(call.id, "Not executed: the run ended.", is_error=True) for call in calls if call.id not in given
    )
    return Message(message.role, (*missing, *message.parts))


async def _ours(desk: Desk, task: Task, prepared: Prepared) -> bool:
    pushed = [event.fact for event in await desk.store.events(task.id)]
    return any(getattr(fact, "sha", None) == prepared.base for fact in pushed)
