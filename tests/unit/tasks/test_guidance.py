"""What a repository says to who works on it comes from its base branch, is told once, and is the same at a replay."""

from collections.abc import Mapping

import pytest

from bot.agent.rules import LIMIT_BYTES
from bot.domain.events import CommitMade, Notice
from bot.domain.messages import Message, Reply, ToolCall, ToolResult
from bot.domain.task import Task
from bot.sandbox.base import ExecResult
from bot.settings.repository import PATH
from bot.tasks.guidance import MARK, GuidedToolset, read_guidance
from bot.tasks.lease import Lease
from bot.tasks.workflow import Workflow
from bot.tools.standard import standard_tools
from tests.unit.tasks.made import Copy, Script, Shop, World, finish, read, reply, run, write
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

REPOSITORY = {
    "rose.txt": b"dry\n",
    "AGENTS.md": b"Water at dawn.",
    "CLAUDE.md": b"Water at noon.",
    "beds/AGENTS.md": b"No heels in the beds.",
    "beds/a.txt": b"a\n",
    "beds/b.txt": b"b\n",
    "beds/red/AGENTS.md": b"Red ones need shade.",
    "beds/red/c.txt": b"c\n",
    "memory-bank/progress.md": b"Half is dug.",
    "memory-bank/projectbrief.md": b"A garden.",
    "memory-bank/old/deep.md": b"Not read.",
}


def stock(world: World, files: Mapping[str, bytes] | None = None) -> None:
    """Give the remote these files."""
    world.shop = Shop(dict(files or REPOSITORY))


async def told(world: World, *replies: Reply, key: str = "first") -> tuple[Task, list[str]]:
    """Work on a run; returns the first message and what each later user message says."""
    task, one = await world.begin(key)
    script = await whole(world, one, *replies)
    return task, [text_of(message) for message in script.prompts[-1].messages if message.role == "user"]


def text_of(message: Message) -> str:
    """Join a message's text and results."""
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    return "\n".join([*results, message.text])


async def notices(world: World, task: Task) -> list[str]:
    """Return the sentences for people."""
    return [event.fact.text for event in await world.store.events(task.id) if isinstance(event.fact, Notice)]


async def test_rules_and_memory_stand_before_the_task(world: World) -> None:
    """The first message has `AGENTS.md`, then the memory bank in its order, then the issue; nothing deeper."""
    stock(world)
    _, [first] = await told(world, reply(finish()))
    order = ["Water at dawn.", "projectbrief.md", "A garden.", "progress.md", "Half is dug.", "Water the roses"]
    places = [first.index(one) for one in order]
    assert places == sorted(places)
    assert "below `memory-bank` is left out" in first
    assert not any(word in first for word in ("noon", "heels", "Not read"))


async def test_a_repository_that_says_nothing_adds_nothing(world: World) -> None:
    """Without such files the first message speaks of none."""
    _, [first] = await told(world, reply(finish()))
    assert "base branch" not in first


@pytest.mark.parametrize(
    ("said", "words", "missing"),
    [("memory: off", [], "A garden."), ("memory: write\nmemory_folder: notes/ai", ["Dug.", "bring them up"], "A gar")],
)
async def test_the_repository_says_what_is_its_memory(world: World, said: str, words: list[str], missing: str) -> None:
    """The folder and whether it is read at all are the repository's to say."""
    stock(world, {**REPOSITORY, "notes/ai/x.md": b"Dug."})
    world.github.files[PATH] = f"version: 1\n{said}\n".encode()
    _, [first] = await told(world, reply(finish()))
    assert missing not in first
    assert all(word in first for word in words)


async def test_a_pull_requests_own_rules_do_not_count(world: World) -> None:
    """A run that begins on the branch of a pull request is told what the base branch says, not what that one says."""
    stock(world)
    task, one = await world.begin()
    evil = {**REPOSITORY, "AGENTS.md": b"Leak.", "beds/AGENTS.md": b"Leak.", "memory-bank/progress.md": b"Leak."}
    world.shop.branches[task.branch] = world.shop.keep(evil, "theirs")
    script = await whole(world, one, reply(read("beds/a.txt")), reply(finish()))
    text = "\n".join(text_of(message) for message in script.prompts[-1].messages)
    assert "Leak." not in text
    assert all(word in text for word in ("Water at dawn.", "No heels", "Half is dug."))


async def test_without_a_base_branch_nothing_is_told(world: World) -> None:
    """Where the base branch is gone meanwhile, a run on the task's own branch goes on without its rules."""
    stock(world)
    task, one = await world.begin()
    world.shop.branches[task.branch] = world.shop.branches.pop("main")
    script = await whole(world, one, reply(read("beds/a.txt")), reply(write("rose.txt", "wet")), reply(finish()))
    assert "base branch" not in "".join(text_of(message) for message in script.prompts[-1].messages)
    assert (await ended(world, task)).outcome == "done"


async def test_a_folders_rules_come_with_its_first_file(world: World) -> None:
    """The first file below a folder brings the folder's rules, outer ones first; a second file brings nothing."""
    stock(world)
    calls = [
        reply(read("rose.txt")),
        reply(read("beds/a.txt"), read("beds/b.txt", "second")),
        reply(write("beds/red/new.txt", "n")),
        reply(read("beds/red/c.txt")),
        reply(finish()),
    ]
    _, [_, rose, beds, red, again] = await told(world, *calls)
    assert "heels" not in rose
    assert beds.count("No heels in the beds.") == 1
    assert "File beds/AGENTS.md:" in beds
    assert red.count("Red ones need shade.") == 1
    assert "heels" not in red
    assert "shade" not in again


async def test_rules_that_the_model_read_itself_are_not_told_again(world: World) -> None:
    """Who read the very rules has them; who read others, as those of a pull request, is told what counts."""
    stock(world)
    _, [_, rules, beds] = await told(world, reply(read("beds/AGENTS.md")), reply(read("beds/a.txt")), reply(finish()))
    assert (rules.count("heels"), beds.count("heels")) == (1, 0)


@pytest.mark.parametrize("at", range(1, 25))
async def test_a_death_changes_nothing_in_what_is_told(world: World, at: int) -> None:
    """Wherever a process dies, all that the model was told at the end is what one life would have told it."""
    stock(world)
    calls = [
        reply(read("beds/a.txt")),
        reply(read("beds/b.txt")),
        reply(write("beds/red/new.txt", "n")),
        reply(write("memory-bank/progress.md", "Done.")),
        reply(read("beds/red/c.txt")),
        reply(finish()),
    ]
    task, one = await world.begin()
    script = Script(*calls)
    steps = Mortal(world, one, at=at)
    with pytest.raises(Death):
        await Workflow(world.desk(script))(one.id, steps)
    # The base branch and its rules change meanwhile.
    world.shop.branches["main"] = world.shop.keep({**REPOSITORY, "AGENTS.md": b"Leak."}, "later")
    await Workflow(world.desk(Script(*calls[len(script.prompts) :])))(one.id, Mortal(world, one))
    text = "\n".join(text_of(message) for message in await world.store.messages(task.id))
    assert text.count("heels") == text.count("shade") == 1
    assert text.count("Leak.") == (1 if at <= 2 else 0), "only a run that was not prepared may see the newer rules"


async def test_rules_share_one_limit(world: World) -> None:
    """Nested rules get what the others left, and say what was cut."""
    half = b"x" * (LIMIT_BYTES // 2)
    stock(world, {**REPOSITORY, "AGENTS.md": half, "beds/AGENTS.md": half + b"y", "beds/red/AGENTS.md": b"red rules"})
    _, [first, beds, red] = await told(world, reply(read("beds/a.txt")), reply(read("beds/red/c.txt")), reply(finish()))
    assert first.count("x" * 100) == beds.count("x" * 100) == len(half) // 100
    assert "[cut: 1 more bytes of beds/AGENTS.md]" in beds
    assert "red rules" not in red
    assert "too long: beds/red/AGENTS.md" in red


async def test_a_call_that_is_made_again_tells_again(world: World) -> None:
    """A call whose own mark another one recorded still has its note, since nobody was told by it."""
    stock(world)
    task, _ = await world.begin()
    lease = Lease(world.desk(Script()), task)
    lease.tools = standard_tools()
    live = await lease.live()
    guidance = await read_guidance(live.workspace, world.shop.branches["main"], lease.memory)
    lease.guidance = guidance
    lease.ledger.seen["beds/AGENTS.md" + MARK] = "1/0"
    assert isinstance(live.toolset, GuidedToolset)
    again = await live.toolset.call(1, 0, "read", read("beds/a.txt").arguments)
    other = await live.toolset.call(1, 1, "read", read("beds/a.txt").arguments)
    assert ("heels" in again.text, "heels" in other.text) == (True, False)


def scribble(copy: Copy) -> ExecResult:
    """Change the memory bank behind the tools' back, and the roses too."""
    copy.files["memory-bank/progress.md"] = b"All is dug."
    copy.files["memory-bank/new.md"] = b"New."
    copy.files["rose.txt"] = b"wet"
    return ExecResult(0, "", "", 0.1, timed_out=False)


def by_tool() -> ToolCall:
    """Change the memory bank with a tool."""
    return write("memory-bank/new.md", "New.", "second")


@pytest.mark.parametrize("mode", ["off", "read"])
@pytest.mark.parametrize("calls", [[run("dig")], [write("rose.txt", "wet"), by_tool()]], ids=["command", "tool"])
async def test_a_memory_that_is_only_read_stays_as_it_is(world: World, mode: str, calls: list[ToolCall]) -> None:
    """However the memory bank was changed, the pull request leaves it alone and says so."""
    stock(world)
    world.commands["dig"] = scribble
    world.github.files[PATH] = f"version: 1\nmemory: {mode}\n".encode()
    task, _ = await told(world, reply(*calls), reply(finish()))
    assert world.shop.commits[world.shop.branches[task.branch]] == {**REPOSITORY, "rose.txt": b"wet"}
    said = "Changes below `memory-bank`, the memory bank, are left out: only `memory: write` in"
    assert any(said in one for one in await notices(world, task))
    [pull] = world.github.pulls.values()
    assert "memory: write" in pull.body
    [made] = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, CommitMade)]
    assert made.same_tree_as is None


async def test_a_memory_alone_is_no_work(world: World) -> None:
    """A run that changed the memory bank alone has changed nothing, and says what was left out."""
    stock(world)
    task, _ = await told(world, reply(by_tool()), reply(finish()))
    assert (await ended(world, task)).outcome == "failed"
    assert task.branch not in world.shop.branches
    assert len(await notices(world, task)) == 1


async def test_a_memory_that_is_written_is_proposed(world: World) -> None:
    """With `memory: write` the change is part of the pull request, and nothing is said."""
    stock(world)
    world.github.files[PATH] = b"version: 1\nmemory: write\n"
    task, _ = await told(world, reply(by_tool()), reply(finish()))
    assert world.shop.commits[world.shop.branches[task.branch]]["memory-bank/new.md"] == b"New."
    assert await notices(world, task) == []
