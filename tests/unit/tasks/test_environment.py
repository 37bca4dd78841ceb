"""The project is set up before the first edit; what fails there is told as what it is."""

import asyncio
import fcntl
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.events import CheckFinished, CheckSkipped, Fact, Notice, RunFinished, SetupFinished
from bot.domain.messages import Reply, ToolCall
from bot.domain.task import Task
from bot.sandbox.base import ExecResult
from bot.settings.server import SandboxSection, ServerSettings
from bot.tasks.environment import _KEEP, _PUT, _REMEMBER, NO_COMMANDS
from bot.tasks.workflow import Workflow
from bot.workspace.prepared import PreparedFolders
from tests.unit.tasks.github import REPOSITORY
from tests.unit.tasks.made import Copy, Script, Shop, World, finish, read, reply, write
from tests.unit.tasks.test_workflow import Death, Mortal

CHECKED = "version: 1\n{more}checks:\n- name: tests\n  run: make test\n"
# Where there are checks, the first `finish` is refused, since the model ran none of them.
SCRIPT = (reply(write("rose.txt", "wet")), reply(finish()), reply(finish()))


def ended(code: int | None, text: str = "") -> ExecResult:
    """Make a command's result."""
    return ExecResult(code, text, "", 1.5, timed_out=code is None)


@pytest.fixture
def made(world: World, tmp_path: Path) -> World:
    """A world in which projects are set up, by commands that do what they should."""
    world.environments = PreparedFolders(tmp_path / "state")
    world.shop = Shop({"rose.txt": b"dry", "requirements.txt": b"a\n"})
    world.shop.place = tmp_path / "task"
    world.shop.place.mkdir()
    for command in (
        _KEEP,
        _PUT,
        _REMEMBER,
        'python3 -m venv "$VIRTUAL_ENV"',
        "make test",
        "python3 --version; true",
    ):
        world.commands[command] = lambda _: ended(0)
    world.commands["for p in python3; do command -v $p >/dev/null && echo $p; done; true"] = lambda _: ended(
        0, "python3"
    )
    return world


INSTALL = "pip install --no-input --disable-pip-version-check -r 'requirements.txt'"


def says(world: World, more: str = "") -> None:
    """Write the repository's file."""
    world.github.files[".github/issuewright.yml"] = CHECKED.format(more=more).encode()


async def work(world: World, key: str = "first") -> tuple[Task, list[Fact], Script]:
    """Work on one task in one life."""
    task, one = await world.begin(key, number=len(world.shop.forgotten) + 7)
    script = Script(*SCRIPT)
    await Workflow(world.desk(script))(one.id, Mortal(world, one))
    return task, [event.fact for event in await world.store.events(task.id)], script


def of(kind: type[Fact], facts: list[Fact]) -> list[Fact]:
    """Choose the facts of a kind."""
    return [fact for fact in facts if isinstance(fact, kind)]


def shell(script: str, tree: Path) -> None:
    """Run one of the scripts as it is run in a sandbox."""
    for name in ("home", "shared", "own"):
        (tree.parent / name).mkdir(exist_ok=True)
    variables = {"ISSUEWRIGHT_SHARED": "shared", "ISSUEWRIGHT_OWN": "own", "HOME": "home"}
    environment = {name: str(tree.parent / folder) for name, folder in variables.items()}
    command = ["bash", "-c", script]
    subprocess.run(command, cwd=tree, check=True, env={**environment, "ISSUEWRIGHT_KEY": "k", "PATH": "/usr/bin:/bin"})


def test_the_scripts_keep_what_is_new_and_put_it_back_once(tmp_path: Path) -> None:
    """Names of any kind come back in another tree, and what a task then does with its copies stays."""
    first, second = tmp_path / "1" / "tree", tmp_path / "2" / "tree"
    for tree in (first, second):
        tree.mkdir(parents=True)
        (tree / "known").write_text("known")
    shell(_REMEMBER, first)
    strange = first / "new" / "-rf\n*"
    strange.mkdir(parents=True)
    (strange / "a").write_text("a")
    (first / "new" / "link").symlink_to("../../nowhere")
    (first / "empty").mkdir()
    (tmp_path / "1" / "own" / "cache").mkdir(parents=True)
    shell(_KEEP, first)
    # This tree has its copies already.
    assert (tmp_path / "1" / "own" / ".k").exists()
    shutil.copytree(tmp_path / "1" / "shared", tmp_path / "2" / "shared")
    old = tmp_path / "2" / "own" / "old"
    old.mkdir(parents=True)
    old.chmod(0o500)
    shell(_PUT, second)
    assert (second / "new" / "-rf\n*" / "a").read_text() == "a"
    assert (second / "new" / "link").readlink() == Path("../../nowhere")
    assert (second / "empty").is_dir()
    assert sorted(path.name for path in (tmp_path / "2" / "own").iterdir()) == [".k", "cache"]
    (second / "new" / "-rf\n*" / "a").write_text("mine")
    (tmp_path / "2" / "own" / "mine").touch()
    shell(_PUT, second)
    assert (second / "new" / "-rf\n*" / "a").read_text() == "mine"
    assert (tmp_path / "2" / "own" / "mine").exists()


async def test_it_is_set_up_once(made: World) -> None:
    """The first task installs, the second one takes what is there; both models are told."""
    ran = 0

    def install(_: Copy) -> ExecResult:
        nonlocal ran
        ran += 1
        return ended(0)

    made.commands[INSTALL] = install
    says(made)
    for key, cached in (("first", False), ("second", True)):
        _, facts, script = await work(made, key)
        seconds = 0.0 if cached else 4.5
        assert of(SetupFinished, facts) == [SetupFinished("python", INSTALL, 0, seconds, cached=cached, changed=[])]
        assert len(of(CheckFinished, facts)) == 2
        assert "set the project up before you (python)" in script.prompts[0].messages[0].text
    assert ran == 1
    [lock] = made.shop.place.parent.glob("state/environments/*/*.use")
    with lock.open() as file:
        # Both tasks have let it go.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_each_place_has_its_own_network(made: World) -> None:
    """Set-up reaches its own index and the hosts for all, tools what the operator says, and the rest nothing."""
    made.settings = ServerSettings(
        mode="act",
        sandbox=SandboxSection(network=("docs.example",), setup_network=("node", "python", "mirror.example")),
    )
    made.commands[INSTALL] = lambda _: ended(0)
    says(made)
    await work(made)
    probing, setting_up, working, *also = made.accesses
    assert all(one == working for one in also)
    assert (list(probing.network), list(setting_up.network)) == ([], ["python", "mirror.example"])
    assert list(working.network) == ["docs.example"]
    [shared], own = working.readable, made.shop.place / "own"
    assert (list(setting_up.writable), list(working.writable)) == ([shared, own], [own])
    assert "PIP_NO_INDEX" not in setting_up.environment
    assert working.environment["PIP_NO_INDEX"] == "1"
    assert working.environment["VIRTUAL_ENV"] == f"{shared}/venv"
    assert working.environment["PATH"] == f"{shared}/venv/bin"


@pytest.mark.parametrize(("code", "how"), [(1, "ended with exit code 1"), (None, "ran out of time")])
async def test_a_failure_is_told_everywhere_and_is_no_failing_test(made: World, code: int | None, how: str) -> None:
    """Model, comment and pull request hear of the failed set-up; the checks are not run; the work is delivered."""
    made.commands[INSTALL] = lambda _: ended(code, "no such package")
    says(made)
    task, facts, script = await work(made)
    [told] = of(SetupFinished, facts)
    assert isinstance(told, SetupFinished)
    assert (told.command, told.exit_code, told.output) == (INSTALL, code, "no such package")
    assert of(CheckFinished, facts) == []
    assert of(CheckSkipped, facts) == [CheckSkipped("tests", "make test", "the set-up failed")]
    first = script.prompts[0].messages[0].text
    assert f"`{INSTALL}` {how}" in first
    assert "no such package" in first
    [pull] = made.github.pulls.values()
    for text in (pull.body, made.github.bodies(7)[0]):
        assert "**Set-up failed**" in text
        assert how in text
        assert "no such package" in text
        assert "not run: the set-up failed" in text
    assert [fact.outcome for fact in facts if isinstance(fact, RunFinished)] == ["done"]
    assert task.branch in made.shop.branches


async def test_a_missing_program_is_a_remark(made: World) -> None:
    """What is not installed here is named; the rest is set up, and the checks are run."""
    made.shop.branches["main"] = made.shop.keep({"rose.txt": b"dry", "Cargo.toml": b"", "requirements.txt": b"a\n"})
    probe = "for p in cargo python3 rustc; do command -v $p >/dev/null && echo $p; done; true"
    made.commands[probe] = lambda _: ended(0, "python3")
    made.commands[INSTALL] = lambda _: ended(0)
    says(made)
    _, facts, _ = await work(made)
    [told] = of(SetupFinished, facts)
    assert isinstance(told, SetupFinished)
    assert told.names == "python"
    lacks = "The project needs `{}`, which is not installed here."
    assert told.remark == f"{lacks.format('cargo')} {lacks.format('rustc')}"
    assert len(of(CheckFinished, facts)) == 2


async def test_without_commands_nothing_is_set_up_or_checked(made: World) -> None:
    """Where no command may be run, people are told once, and a check that was not run is no failure."""
    made.shelter = replace(made.shelter, level="none", shell=False)
    says(made)
    _, facts, _ = await work(made)
    assert of(SetupFinished, facts) == of(CheckFinished, facts) == []
    assert [fact.text for fact in facts if isinstance(fact, Notice)] == [
        f"{NO_COMMANDS} Nothing was set up and no check was run."
    ]
    assert of(CheckSkipped, facts) == [CheckSkipped("tests", "make test", "commands are not run here")]


@pytest.mark.parametrize("more", ["setup: false\n", "setup: []\n", "setup: {run: []}\n"])
async def test_a_repository_may_want_none(made: World, more: str) -> None:
    """`setup: false` sets nothing up, and the checks are run."""
    says(made, more)
    _, facts, _ = await work(made)
    assert of(SetupFinished, facts) == []
    assert len(of(CheckFinished, facts)) == 2


async def test_own_commands_take_the_place_of_what_was_found(made: World) -> None:
    """A repository's own commands are run behind what makes the place to install into."""
    made.commands["make deps"] = lambda _: ended(0)
    says(made, "setup: [make deps]\n")
    _, facts, _ = await work(made)
    [told] = of(SetupFinished, facts)
    assert isinstance(told, SetupFinished)
    assert (told.names, told.command, told.exit_code) == ("python", "make deps", 0)


async def test_a_lost_environment_is_made_again(made: World) -> None:
    """A worker that takes a run up where its machine has no environment sets it up anew, as the record says."""
    made.commands[INSTALL] = lambda _: ended(0)
    says(made)
    task, one = await made.begin()

    with pytest.raises(Death):
        # The last step of the loop: what the model did is recorded, the checks behind it are not.
        await Workflow(made.desk(Script(*SCRIPT)))(one.id, Mortal(made, one, at=10))
    state = made.shop.place.parent / "state" / "environments"
    [lost] = state.glob("*/*/sealed")
    await asyncio.to_thread(lost.unlink)
    await Workflow(made.desk(Script()))(one.id, Mortal(made, one))
    assert await asyncio.to_thread(lambda: [path.parent.name for path in state.glob("*/*/sealed")]) == [
        lost.parent.name
    ]
    facts = [event.fact for event in await made.store.events(task.id)]
    assert len(of(SetupFinished, facts)) == 1
    assert made.shop.commits[made.shop.branches[task.branch]]["rose.txt"] == b"wet"


async def test_what_a_branch_makes_is_for_its_own_task(made: World) -> None:
    """Installers run code of the tree: what another branch than the base one makes, no other task is given."""
    made.commands[INSTALL] = lambda _: ended(0)
    says(made)
    state = made.shop.place.parent / "state" / "environments"
    task, one = await made.begin()
    made.shop.branches[task.branch] = made.shop.branches["main"]
    await Workflow(made.desk(Script(*SCRIPT)))(one.id, Mortal(made, one))
    [own] = [path.parent.name for path in state.glob("*/*/sealed")]
    _, facts, _ = await work(made, "second")
    assert [fact.cached for fact in facts if isinstance(fact, SetupFinished)] == [False]
    both = {path.parent.name for path in state.glob("*/*/sealed")}
    assert len(both) == 2
    assert own in both
    assert all(re.fullmatch(r"[0-9a-f]{32}", key) for key in both)


WANTS = (reply(read("requirements.txt")), reply(write("requirements.txt", "b")), reply(finish()), reply(finish()))
"""The model asks for something else; the first `finish` is refused, as in `SCRIPT`."""


def changes(path: str, text: str) -> tuple[Reply, ...]:
    """Change a file in answer to the harness, and finish again."""
    return reply(write(path, text)), reply(finish())


@pytest.fixture
def real(made: World) -> World:
    """A world whose installer installs what is asked for, but for `bad`, and whose test passes in that alone."""

    def install(copy: Copy) -> ExecResult:
        asked = copy.files["requirements.txt"]
        (Path(made.accesses[-1].writable[0]) / "installed").write_bytes(asked)
        return ended(1, "no such package") if asked == b"bad" else ended(0)

    def check(copy: Copy) -> ExecResult:
        asked = copy.files.get("requirements.txt", b"")
        places = [Path(path) / "installed" for path in made.accesses[-1].readable]
        there = b"".join(path.read_bytes() for path in places)
        return ended(0 if there == asked else 1, f"{asked!r} is asked for, {there!r} is there")

    made.commands |= {INSTALL: install, "make test": check}
    says(made)
    return made


async def wanting(
    world: World, *replies: Reply, key: str = "first", **more: object
) -> tuple[Task, list[Fact], Script, list[str]]:
    """Work on a task in one life; return its steps too."""
    task, one = await world.begin(key, number=len(world.shop.forgotten) + 7, branch=f"agent/{key}", **more)
    script, mortal = Script(*replies), Mortal(world, one)
    await Workflow(world.desk(script))(one.id, mortal)
    assert len(script.prompts) == len(replies)
    return task, [event.fact for event in await world.store.events(task.id)], script, mortal.names


def exits(facts: list[Fact]) -> list[int | None]:
    """List the exit codes of all checks."""
    return [fact.exit_code for fact in facts if isinstance(fact, CheckFinished)]


async def test_what_the_work_asks_for_is_set_up_before_its_checks(real: World) -> None:
    """The checks after the work are green at once, in the same confinement, and reviewers read what they ran in."""
    task, facts, _, steps = await wanting(real, *WANTS)
    assert exits(facts) == [0, 0]
    first, again = [fact for fact in facts if isinstance(fact, SetupFinished)]
    assert again == replace(first, changed=["requirements.txt"])
    assert steps.index("environment/after/1") == steps.index("check/after/1/0") - 1
    one, two = [access for access in real.accesses if len(access.writable) > 1]
    assert (two.parallel, len(two.writable)) == (one.parallel, 2)
    assert (one.writable[1], one.readable) == (two.writable[1], two.readable)
    [pull] = real.github.pulls.values()
    for text in (pull.body, real.github.bodies(7)[0]):
        assert "**Set-up again** of python, since the work changed `requirements.txt`" in text
    assert real.shop.commits[real.shop.branches[task.branch]]["requirements.txt"] == b"b"


@pytest.mark.parametrize(
    ("private", "network", "reached"),
    [(True, (), []), (True, ("python", "docs.example"), ["python"]), (False, (), ["python"])],
)
async def test_what_nobody_looked_at_reaches_no_upload_from_private_code(
    real: World, network: tuple[str, ...], reached: list[str], *, private: bool
) -> None:
    """What a private repository's change installs reaches no more than the model's own commands."""
    real.settings = ServerSettings(mode="act", sandbox=SandboxSection(network=network))
    await wanting(real, *WANTS, repository=replace(REPOSITORY, private=private))
    one, two = [access for access in real.accesses if len(access.writable) > 1]
    assert (list(one.network), list(two.network)) == (["python"], reached)


async def test_what_the_work_makes_is_for_its_own_task(real: World) -> None:
    """Another task that asks for the very same makes its own; what the base branch made may be used."""
    state = real.shop.place.parent / "state" / "environments"
    for key, count in (("first", 2), ("second", 3)):
        await wanting(real, *WANTS, key=key)
        assert len(list(state.glob("*/*/sealed"))) == count
    real.shop.branches["main"] = real.shop.keep({"rose.txt": b"dry", "requirements.txt": b"c"})
    back = (reply(read("requirements.txt")), *changes("requirements.txt", "a\\n"), reply(finish()))
    _, facts, _, _ = await wanting(real, *back, key="third")
    assert exits(facts) == [0, 0]
    assert [fact.cached for fact in facts if isinstance(fact, SetupFinished)] == [False, True]
    assert len(list(state.glob("*/*/sealed"))) == 4


async def test_the_model_hears_why_its_changes_cannot_be_set_up(real: World) -> None:
    """In place of checks; once it mended that, they run."""
    bad = (reply(read("requirements.txt")), *changes("requirements.txt", "bad"), reply(finish()))
    _, facts, script, _ = await wanting(real, *bad, *changes("requirements.txt", "b"))
    heard = script.prompts[4].messages[-1].text
    assert "Since you changed `requirements.txt`, the harness set the project up again" in heard
    assert f"`{INSTALL}` ended with exit code 1" in heard
    assert "no such package" in heard
    assert [fact.exit_code for fact in facts if isinstance(fact, SetupFinished)] == [0, 1, 0]
    assert of(CheckSkipped, facts) == [CheckSkipped("tests", "make test", "the set-up failed", "after")]
    assert exits(facts) == [0, 0]
    first, failed, _ = [at for at, access in enumerate(real.accesses) if len(access.writable) > 1]
    # Meanwhile commands have what they had.
    assert list(real.accesses[failed + 1].readable) == [real.accesses[first].writable[0]]


async def test_a_further_round_stays_in_the_environment_that_is_right(real: World) -> None:
    """A check that fails is told with where it ran; what the work asks for is not set up once more."""
    real.commands["make test"] = lambda copy: ended(0 if copy.files["rose.txt"] == b"wet" else 1)
    _, facts, script, _ = await wanting(real, *WANTS, reply(read("rose.txt")), *changes("rose.txt", "wet"))
    assert exits(facts) == [1, 1, 0]
    assert "in an environment set up from your changed files" in script.prompts[4].messages[-1].text
    assert len(of(SetupFinished, facts)) == 2


async def test_what_cannot_be_set_up_to_the_end_is_told_to_people(real: World) -> None:
    """The work is delivered, and nobody takes it for checked."""
    bad = (reply(read("requirements.txt")), *changes("requirements.txt", "bad"), reply(finish()))
    _, facts, _, _ = await wanting(real, *bad, reply(finish()), reply(finish()))
    assert exits(facts) == [0]
    [done] = [fact for fact in facts if isinstance(fact, RunFinished)]
    assert done.outcome == "done"
    assert done.reason.startswith("Not all is well: what the changed files ask for could not be set up")
    [pull] = real.github.pulls.values()
    assert "**Set-up again failed**, since the work changed `requirements.txt`" in pull.body
    assert "| tests | `make test` | 0 | not run: the set-up failed |" in pull.body


async def test_who_takes_a_change_back_is_checked_in_the_first_environment(real: World) -> None:
    """Of the set-up that failed nothing is left, neither for the checks nor in the pull request."""
    bad = (reply(read("requirements.txt")), *changes("requirements.txt", "bad"), reply(finish()))
    _, facts, _, _ = await wanting(real, *bad, reply(write("rose.txt", "wet")), *changes("requirements.txt", "a\\n"))
    assert exits(facts) == [0, 0]
    last = of(SetupFinished, facts)[-1]
    assert last == SetupFinished("python", INSTALL, 0, 0.0, cached=True, changed=[])
    [pull] = real.github.pulls.values()
    assert "Set-up again" not in pull.body


async def test_a_broken_project_is_checked_once_it_is_mended(real: World) -> None:
    """The base branch could not be set up; the work mends that, and its check is green."""
    real.shop.branches["main"] = real.shop.keep({"rose.txt": b"dry", "requirements.txt": b"bad"})
    # No `finish` is refused: the harness did not expect to run anything.
    _, facts, _, _ = await wanting(real, *WANTS[:3])
    assert exits(facts) == [0]
    [pull] = real.github.pulls.values()
    assert "| tests | `make test` | not run: the set-up failed | 0 |" in pull.body


async def test_what_own_commands_read_counts_too(made: World) -> None:
    """A script that the repository's commands name is run again where the work changed it, and nothing else is."""
    main = {"rose.txt": b"dry", "deps.sh": b"one", "deps.txt": b"one"}
    made.shop.branches["main"] = made.shop.keep(main)
    made.commands["sh ./deps.sh"] = lambda _: ended(0)
    says(made, "setup: [sh ./deps.sh]\n")
    for path, times in (("deps.txt", 1), ("deps.sh", 2)):
        replies = (reply(read(path)), reply(write(path, "two")), reply(finish()), reply(finish()))
        _, facts, _, _ = await wanting(made, *replies, key=path)
        assert len(of(SetupFinished, facts)) == times


async def test_without_anything_to_set_up_the_checks_run_in_nothing(real: World) -> None:
    """Where the work takes all requirements away, nothing of the earlier set-up hides that."""
    away = ToolCall("d", "delete", '{"path": "requirements.txt"}')
    gone = (reply(write("rose.txt", "wet")), reply(away), reply(finish()), reply(finish()))
    _, facts, _, _ = await wanting(real, *gone)
    assert exits(facts) == [0, 0]
    assert of(SetupFinished, facts)[-1] == SetupFinished("", "", 0, 0.0, cached=False, changed=["requirements.txt"])
    # Before the set-up and each round of checks, and where the first set-up goes.
    assert real.shop.log.count("bare") == 4


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
async def test_a_death_at_any_step_changes_nothing(real: World, *, inside: bool) -> None:
    """Each life comes to the same checks in the same environment, whatever the one before it left."""
    bad = (reply(read("requirements.txt")), *changes("requirements.txt", "bad"), reply(finish()))
    replies = (*bad, *changes("requirements.txt", "b"))
    *_, steps = await wanting(real, *replies)
    for at in range(1, len(steps) + 1):
        task, one = await real.begin(f"death {at}", number=at + 7, branch=f"agent/{at}")
        with pytest.raises(Death):
            await Workflow(real.desk(Script(*replies)))(one.id, Mortal(real, one, at=at, inside=inside))
        asked = sum(name.startswith("model/") for name in steps[: at if inside else at - 1])
        repeated = inside and steps[at - 1].startswith("model/")
        await Workflow(real.desk(Script(*replies[asked - repeated :])))(one.id, Mortal(real, one))
        facts = [event.fact for event in await real.store.events(task.id)]
        assert exits(facts) == [0, 0], steps[at - 1]
        assert [fact.exit_code for fact in facts if isinstance(fact, SetupFinished)] == [0, 1, 0], steps[at - 1]
