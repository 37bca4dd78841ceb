"""How a run begins: what applies, the working copy, and what the model is told first."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, cast

from bot.agent.context.window import Window
from bot.agent.gate import Gate
from bot.agent.modes import mode_of
from bot.agent.prompt import Assignment, Surroundings, first_message, next_message, pinned
from bot.agent.rules import Guidance
from bot.domain.events import Notice, RunStarted, WorkspaceReady
from bot.domain.messages import Message, TextPart, ToolCall, ToolResult
from bot.domain.review import OpenThread
from bot.domain.task import Mode, Task
from bot.errors import RepositoryRefused, TaskRefused
from bot.github import moved as words
from bot.github import pictures, questions, rounds
from bot.projects.checks import FoundCheck
from bot.settings.record import settings_from_data, settings_to_data
from bot.settings.resolve import RunSettings
from bot.tasks import sheets
from bot.tasks.before import LeftOpen, left_open
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Json
from bot.tasks.fitting import fitted
from bot.tasks.guidance import read_guidance
from bot.tasks.lease import Lease
from bot.tasks.protection import Held, taken_up
from bot.tasks.scene import Scene
from bot.tasks.standing import left_elsewhere, worked_on
from bot.tools.checks import find_in
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
NO_RESULT = (
    "No result: the run ended before there was one. The call may have been carried out, whole, in part or not at all; "
    "look before you make it again."
)
"""Answers a call that a run left open."""
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
    checks: Sequence[FoundCheck]
    """Those that the project's files tell of and that can be run here."""
    pull: int = 0
    """The pull request whose threads these are; 0 where there is none."""
    threads: Sequence[OpenThread] = ()
    """What people said on its lines and what is not resolved, as `fitted` gives it."""
    held: Held | None = None
    """What an earlier run left to be decided about and a person approved since, so that it is pushed as it is."""
    theirs: bool = False
    """Whether the work lies in a person's own checkout."""
    sheet: str = ""
    """The file of the remote branch that holds a plan; `base` is a commit, not pushed yet, without it."""
    gone: bool = False
    """Whether an earlier run left something to be decided about that cannot be gone on with."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What applies to a run from its beginning on, whichever machine takes it up."""

    settings: RunSettings
    started: datetime
    window: Window
    """Of the model that does the work."""
    planners: Window
    """Of the model that plans."""
    mode: Mode
    open: LeftOpen
    """What the runs before left open, as far as people now ask to go on with it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the work is about."""

    plan: str = ""
    """Markdown, in a model's words; empty where there is none."""
    asked: Sequence[str] = ()
    """What people asked before the plan."""
    request: str = ""
    """What is asked now; may be empty."""
    said: Sequence[str] = ()
    """What people said while the plan was made; the work's conversation is another one, and has to hear it too."""


async def begin(scene: Scene) -> Begun:
    """Resolve what applies, say that the work begins, and record when it did."""
    desk, task, run, recorder = scene.desk, scene.task, scene.run, scene.recorder

    async def action() -> Json:
        if why := desk.shelter.refuses(task):
            raise TaskRefused(why)
        before = await left_open(desk.store, task, run)
        commanded = run.commanded or await _is_joined(scene)
        # A label says that there is something to do; what is open is decided by a command.
        if not commanded and not task.repository.is_local:
            before = LeftOpen(works=before.works)
        settings = await desk.publisher.settings(task, replace(run, model=run.model or before.model))
        # What others' checks begin goes on with the work that they checked.
        goes_on = bool(before.plan) or before.answers or before.works or run.is_repair
        mode = mode_of(settings.mode, commanded=commanded, goes_on=goes_on)
        if run.intent != "fix":
            mode = "plan" if run.intent in {"plan", "ask"} else "act"
        await recorder.note("started", RunStarted(settings.model, mode, settings.shown()))
        if before.answers and run.intent == "fix" and not run.request:
            await recorder.note("unanswered", Notice(questions.unanswered()))
        await desk.publisher.announce(task, run, settings)
        window, planners = desk.window(settings.model), desk.window(settings.planner)
        return {
            "gate": Gate.of(desk.policies, settings.policy, desk.minimum, settings.command).to_data(),
            "mode": mode,
            "open": before.to_data(),
            "planners": [planners.tokens, planners.usable],
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
    scene.lease.parallel = settings.parallel_commands
    gate = cast("dict[str, object] | None", value.get("gate"))
    scene.lease.gate = None if gate is None else Gate.from_data(gate)
    window, planners = (Window(*cast("list[int]", value[key])) for key in ("window", "planners"))
    before = LeftOpen.from_data(cast("dict[str, Any]", value["open"]))
    started = datetime.fromisoformat(str(value["started"]))
    return Begun(settings, started, window, planners, cast("Mode", value["mode"]), before)


async def _is_joined(scene: Scene) -> bool:
    """Whether a command came while the run was queued, and joined it."""
    items = await scene.desk.store.inbox(scene.task.id, after=await heard_before(scene))
    return any(item.kind == "steer" and item.commanded for item in items)


async def heard_before(scene: Scene) -> int:
    """Return the last inbox item that an earlier run heard."""
    kept = await scene.desk.store.effect(scene.task.id, INBOX)
    return int(kept.remote_id) if kept else 0


async def prepare(scene: Scene) -> Prepared:
    """Make the working copy: from the task's branch where the remote has it, else from the base branch."""
    desk, task, lease, recorder = scene.desk, scene.task, scene.lease, scene.recorder

    async def action() -> Json:
        origin = await lease.origin()
        expected = await desk.workspaces.remote_head(task.id, origin, task.branch)
        lease.branch = task.branch if expected else task.base_branch
        held, gone = await taken_up(scene, expected)
        sheet = "" if held else await sheets.cleared(scene, expected)
        live = await lease.live()
        if before := await _merged(scene):
            await recorder.note("merged", Notice(words.merged(before, task.base_branch)))
        await recorder.note("workspace", WorkspaceReady(task.branch, live.opened.base, live.opened.files))
        system, programs = await _surroundings(lease, shell=lease.shell)
        found = await find_in(live.sandbox) if lease.shell else ()
        # Not from a branch of the task's: what it says may have been put there to steer us.
        source = await _base_commit(scene, origin) if expected else live.opened.base
        guidance = await read_guidance(live.workspace, source, lease.memory) if source else Guidance()
        threads = await _threads(scene)
        await _note_pictures(scene, threads)
        return {
            "guidance": asdict(guidance),
            "base": live.opened.base,
            "held": None if held is None else held.to_data(),
            "gone": gone,
            "sheet": sheet,
            "expected": expected,
            "system": system,
            "programs": programs,
            "checks": [asdict(check) for check in found if check.program in programs],
            "heard": await heard_before(scene),
            "theirs": not live.opened.movable,
            **threads,
        }

    value = cast("dict[str, object]", await scene.steps.do("prepare", action, stoppable=True, patient=True))
    expected = cast("str | None", value["expected"])
    lease.branch = task.branch if expected else task.base_branch
    lease.base = str(value["base"])
    kept = cast("dict[str, Any] | None", value.get("held"))
    held = None if kept is None else Held.from_data(kept)
    lease.commit = held.commit if held else lease.commit or lease.base
    # A run that began with an earlier version kept none.
    lease.guidance = Guidance(**cast("dict[str, Any]", value.get("guidance", {})))
    return Prepared(
        str(value["base"]),
        expected,
        str(value["system"]),
        cast("list[str]", value["programs"]),
        cast("int", value["heard"]),
        [FoundCheck(**row) for row in cast("list[dict[str, Any]]", value.get("checks", []))],
        cast("int", value.get("number", 0)),
        [OpenThread.from_data(row) for row in cast("list[dict[str, Any]]", value.get("threads", []))],
        held if held is not None and held.decision else None,
        value.get("theirs", False) is True,
        str(value.get("sheet", "")),
        value.get("gone", False) is True,
    )


async def _merged(scene: Scene) -> str:
    """Return the branch of the runs before, where this run has another one since that was merged; else nothing."""
    store, task, run = scene.desk.store, scene.task, scene.run
    before, last = worked_on(await store.events(task.id), before=run.seq)
    if before == task.branch:
        return ""
    # One that began anew got a branch of its own, though it may have ended before it worked there.
    anew = any(one.fresh for one in await store.runs(task.id) if last < one.seq <= run.seq)
    return "" if anew else before


async def _threads(scene: Scene) -> dict[str, Json]:
    """Look what people said on lines: only work answers there, and who plans hears what is said on the plan."""
    hears = scene.run.intent in {"fix", "plan"} or (scene.run.intent == "ask" and scene.run.is_on_line)
    if not hears or scene.run.is_repair:
        return {}
    found = await scene.desk.publisher.threads(scene.task, scene.run)
    threads = fitted(await sheets.threads_for(scene, found.open))
    if found.remark:
        await scene.recorder.note("threads", Notice(found.remark))
    left = sum(not thread.told for thread in threads)
    if left and scene.run.intent == "plan":
        # Nothing else tells of it: who plans answers no threads.
        await scene.recorder.note("threads/left", Notice(rounds.left_over(left)))
    return {"number": found.number, "threads": [thread.to_data() for thread in threads]}


async def _note_pictures(scene: Scene, found: dict[str, Json]) -> None:
    """Tell people of pictures in what they wrote: the model is told the words."""
    task, run = scene.task, scene.run
    threads = [OpenThread.from_data(row) for row in cast("list[dict[str, Any]]", found.get("threads", []))]
    texts = [run.request, *(one.text for thread in threads for one in thread.said)]
    if run.seq == 1 or run.fresh:
        texts += [task.title, task.body]
    if told := pictures.not_looked_at(pictures.count(texts)):
        await scene.recorder.note("pictures", Notice(told))


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


async def transcript_of(scene: Scene, begun: Begun, prepared: Prepared, setup: str, wanted: Wanted) -> list[Message]:
    """Build what the model is told: the first message, or the earlier runs and what is asked now.

    Args:
        scene: the run.
        begun: what applies to it.
        prepared: its working copy.
        setup: how the project was set up, in words for the model.
        wanted: what the work is about.
    """
    desk, task, run = scene.desk, scene.task, scene.run
    earlier: Sequence[Message] = ()
    for seq in range(run.seq - 1, 0, -1):
        if run.fresh:
            break
        # A run keeps the whole transcript up to its end, so the last one that has any holds all.
        earlier = await desk.store.messages(task.id, run=seq)
        one = await desk.store.run(task.id, seq)
        if earlier or (one is not None and one.fresh):
            break
    if not earlier:
        return [first_of(scene, begun.settings, prepared, setup, wanted)]
    transcript = _closed(earlier)
    moved = prepared.expected is not None and not await _ours(desk, task, prepared)
    plan = pinned(task.id, wanted.plan, wanted.asked)
    elsewhere = left_elsewhere(await desk.store.events(task.id), task, before=run.seq)
    if prepared.gone:
        elsewhere = "nowhere but in this transcript, since it waited for people and cannot be pushed any more"
    asked = next_message(
        task.id,
        wanted.request,
        moved=moved,
        setup=setup,
        answers=begun.open.answers,
        plan=plan,
        elsewhere=elsewhere,
        merged=bool(await _merged(scene)),
    )
    if transcript[-1].role == "user":
        transcript.append(Message("assistant", (TextPart("The run is over."),)))
    return [*transcript, asked]


def first_of(
    scene: Scene, settings: RunSettings, prepared: Prepared, setup: str, wanted: Wanted, *, plans: bool = False
) -> Message:
    """Build the first message.

    Args:
        scene: the run.
        settings: what applies to it.
        prepared: its working copy.
        setup: how the project was set up, in words for the model.
        wanted: what the work is about.
        plans: whether it only reads.
    """
    task, run, guidance, memory = scene.task, scene.run, scene.lease.guidance, settings.memory
    kind = {"issue": "issue", "pull": "pull request"}[task.kind] if task.number else "task"
    assignment = Assignment(
        task.id,
        kind,
        task.title,
        task.body,
        wanted.request,
        [] if plans else [check.run for check in settings.checks],
        guidance.rules,
        guidance.memory,
        memory.folder,
        wanted.plan,
        wanted.asked,
        memory.mode == "write" and not plans,
    )
    date = run.created_at.date().isoformat()
    network = settings.network if scene.lease.shell else None
    where = Surroundings(".", prepared.system, prepared.programs, task.branch, date, setup, network)
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
    missing = tuple(ToolResult(call.id, NO_RESULT, is_error=True) for call in calls if call.id not in given)
    return Message(message.role, (*missing, *message.parts))


async def _ours(desk: Desk, task: Task, prepared: Prepared) -> bool:
    pushed = [event.fact for event in await desk.store.events(task.id)]
    return any(getattr(fact, "sha", None) == prepared.base for fact in pushed)
