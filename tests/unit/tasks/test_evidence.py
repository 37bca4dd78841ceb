"""What the harness makes of the work's own tests, and of what it does to the checks; no model is asked."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from bot.domain.events import CheckFinished, CheckSkipped, DefinitionsChanged, Fact, Notice, ProofRun, RunFinished
from bot.domain.messages import ToolCall
from bot.domain.task import Run
from bot.errors import SandboxError
from bot.projects.evidence.changes import Change, Finding
from bot.projects.evidence.touched import first, touched, unread
from bot.sandbox.base import ExecResult
from bot.tasks.engines.base import Action, Json
from bot.tasks.evidence import BYTES, _first, _is_apart, _proof, _read, _restored
from bot.tasks.evidence import FILES as FILES_READ
from bot.tasks.workflow import Workflow
from tests.unit.projects.evidence.made import changes
from tests.unit.tasks.made import Copy, Script, World, finish, reply, run, write
from tests.unit.tasks.test_workflow import Death, Mortal

CONFIG = b"version: 1\nchecks:\n- name: tests\n  run: make test\n"
OLD = "def test_dry():\n    assert soil() == 'moist'\n"
NEW = "def test_wet():\n    assert rose() == 'wet'\n"
FILES = {"rose.txt": b"dry\n", "soil.txt": b"moist", "tests/test_old.py": OLD.encode()}


def suite(copy: Copy) -> ExecResult:
    """Run the tests as they stand in the tree: each says what a file has to hold."""
    ends = []
    for path, data in copy.files.items():
        if path.startswith("tests/test_"):
            text = data.decode()
            ends += ["skip" in text or copy.files[f"{name}.txt"] == wanted.encode() for name, wanted in said(text)]
    copy.files["report.xml"] = b"<x/>"
    failed = ends.count(False)
    told = f"{failed} failed, {len(ends) - failed} passed" if failed else f"{len(ends)} passed"
    return ExecResult(1 if failed else 0, f"{told} in 0.01s", "", 1.0, timed_out=False)


def said(text: str) -> list[tuple[str, str]]:
    """Read what tests assert."""
    lines = [line.split() for line in text.split("\n") if "assert" in line]
    return [(line[1].removesuffix("()"), line[3].strip("'")) for line in lines]


def put(path: str, text: str, call_id: str = "w") -> ToolCall:
    """Call `write` with several lines."""
    return write(path, text.replace("\n", "\\n"), call_id)


class Dying(Mortal):
    """Steps that end the process inside the one of a name."""

    def __init__(self, world: World, one: Run, name: str) -> None:
        super().__init__(world, one)
        self._name = name
        self.died = False

    async def __call__(self, name: str, action: Action) -> Json:
        """Make a step, or die in it."""

        async def dying() -> Json:
            await action()
            self.died = True
            raise Death

        return await super().__call__(name, dying if name == self._name else action)


async def work(
    world: World,
    *calls: ToolCall,
    make: Callable[[Copy], ExecResult] = suite,
    dies_in: str = "",
    files: Mapping[str, bytes] = FILES,
    config: bytes = CONFIG,
) -> list[Fact]:
    """Let a model make these calls and finish; return the facts."""
    world.shop.branches["main"] = world.shop.keep({**files}, "made")
    world.github.files[".github/issuewright.yml"] = config
    world.commands["make test"] = make
    task, one = await world.begin()
    replies = [*(reply(call) for call in calls), *[reply(finish())] * 5]
    steps, script = Dying(world, one, dies_in), Script(*replies)
    with suppress(Death):
        await Workflow(world.desk(script))(one.id, steps)
    assert steps.died == bool(dies_in)
    if steps.died:
        await Workflow(world.desk(Script(*replies[len(script.prompts) :])))(one.id, Mortal(world, one))
    assert world.shop.commits[world.shop.branches[task.branch]] == {**files, **written(calls)}
    return [event.fact for event in await world.store.events(task.id)]


def written(calls: Sequence[ToolCall]) -> dict[str, bytes]:
    """Say what the calls leave in the tree."""
    given = [json.loads(call.arguments) for call in calls]
    return {one["path"]: one["content"].encode() for one in given}


def ends(facts: Sequence[Fact]) -> list[tuple[str, int | None, int | None]]:
    """Read phase, exit code and tests that passed of each check that ran."""
    return [(fact.phase, fact.exit_code, fact.passed) for fact in facts if isinstance(fact, CheckFinished)]


def judged(facts: Sequence[Fact]) -> tuple[DefinitionsChanged, ProofRun]:
    """Return the two facts of the judgement."""
    [changed] = [fact for fact in facts if isinstance(fact, DefinitionsChanged)]
    [proof] = [fact for fact in facts if isinstance(fact, ProofRun)]
    return changed, proof


MEND = (put("rose.txt", "wet"), put("tests/test_new.py", NEW))


async def test_a_new_test_is_red_before_and_green_after(world: World) -> None:
    """The test runs on the old code alone; nothing of that stays in the work."""
    facts = await work(world, *MEND)
    assert ends(facts) == [("before", 0, 1), ("after", 0, 2), ("proof", 1, 1)]
    changed, proof = judged(facts)
    assert [*changed.findings, *changed.restored, *changed.tests] == ["tests/test_new.py::test_wet"]
    assert proof == ProofRun("shown", "tests")
    [after] = [fact for fact in facts if isinstance(fact, CheckFinished) and fact.phase == "after"]
    [ran] = [fact for fact in facts if isinstance(fact, CheckFinished) and fact.phase == "proof"]
    assert after.tree != ran.tree
    assert (after.unit, after.collected, after.failed, after.skipped) == ("tests", 2, 0, 0)


async def test_a_test_that_also_passes_on_the_old_code_shows_nothing(world: World) -> None:
    """It is said as it is."""
    facts = await work(world, put("rose.txt", "wet"), put("tests/test_new.py", OLD.replace("dry", "damp")))
    assert judged(facts)[1] == ProofRun("green", "tests")


async def test_of_several_runners_the_one_that_runs_the_tests_counts(world: World) -> None:
    """A test that only says something else makes no runner count more; one that passes may know nothing of it."""
    config = CONFIG.replace(b"checks:", b"checks:\n- name: js tests\n  run: make js")
    world.commands["make js"] = lambda _: ExecResult(0, "  1 passing (2ms)", "", 1.0, timed_out=False)
    calls = (put("rose.txt", "wet"), put("tests/test_old.py", OLD.replace("soil() == 'moist'", "rose() == 'wet'")))
    facts = await work(world, *calls, config=config)
    assert judged(facts)[1] == ProofRun("shown", "tests")
    names = [fact.name for fact in facts if isinstance(fact, CheckFinished) and fact.phase == "proof"]
    assert names == ["js tests", "tests"]


def wordless(copy: Copy) -> ExecResult:
    """Fail, and say nothing of tests."""
    return replace(suite(copy), exit_code=1, stdout="")


def endless(copy: Copy) -> ExecResult:
    """Come to no end on the old code with the new test."""
    stuck = copy.files["rose.txt"] == b"dry\n" and "tests/test_new.py" in copy.files
    return replace(suite(copy), exit_code=None, timed_out=True) if stuck else suite(copy)


@pytest.mark.parametrize(
    ("rose", "make", "verdict"), [("damp", suite, "red"), ("wet", wordless, "unclear"), ("wet", endless, "unclear")]
)
async def test_what_cannot_be_told_is_not_claimed(
    world: World, rose: str, make: Callable[[Copy], ExecResult], verdict: str
) -> None:
    """Red on the new code as well, red without the new test already, or no end: none of them shows anything."""
    facts = await work(world, put("rose.txt", rose), put("tests/test_new.py", NEW), make=make)
    assert judged(facts)[1] == ProofRun(verdict, "tests")  # type: ignore[arg-type]


async def test_a_stop_in_the_middle_keeps_the_work(world: World) -> None:
    """What is stopped while it is judged is stopped; the checks that ran on it stay as they are."""

    async def stopping(copy: Copy) -> ExecResult:
        if copy.files["rose.txt"] == b"dry\n" and "tests/test_new.py" in copy.files:
            [stop] = desk.stops.values()
            stop.set()
            await asyncio.Event().wait()
        return suite(copy)

    world.shop.branches["main"] = world.shop.keep(FILES, "made")
    world.github.files[".github/issuewright.yml"] = CONFIG
    world.commands["make test"] = stopping
    task, one = await world.begin()
    desk = world.desk(Script(*map(reply, MEND), *[reply(finish())] * 2))
    await Workflow(desk)(one.id, Mortal(world, one))
    facts = [event.fact for event in await world.store.events(task.id)]
    assert ends(facts) == [("before", 0, 1), ("after", 0, 2)]
    assert [fact.complete for fact in facts if isinstance(fact, DefinitionsChanged)] == [True]
    assert not any(isinstance(fact, CheckSkipped) for fact in facts)
    assert [fact.outcome for fact in facts if isinstance(fact, RunFinished)] == ["stopped"]
    assert world.shop.commits[world.shop.branches[task.branch]] == FILES | written(MEND)


async def test_a_skip_is_named_and_the_old_test_is_run(world: World) -> None:
    """What the work does to a test is undone for one run of the check, which then says what it said."""
    facts = await work(world, put("soil.txt", "dust"), put("tests/test_old.py", f"@pytest.mark.skip\n{OLD}"))
    assert ends(facts) == [("before", 0, 1), ("after", 0, 1), ("base", 1, 0), ("proof", 0, 1)]
    changed, proof = judged(facts)
    assert [(one["path"], one["line"], one["kind"]) for one in changed.findings] == [("tests/test_old.py", 1, "skip")]
    assert list(changed.restored) == ["tests/test_old.py"]
    assert proof.verdict == "green"


async def test_what_a_check_comes_to_is_a_definition(world: World) -> None:
    """A script that is named by the target that the check's command names is one, though no line of either changed."""
    files = {**FILES, "Makefile": b"test: all\nall:\n\tsh ./dev/all\n", "dev/all": b"set -e\n. dev/prove.sh\n"}
    calls = (put("dev/prove.sh", "true\n"), put("rose.txt", "wet"))
    facts = await work(world, *calls, files={**files, "dev/prove.sh": b"pytest\n"})
    changed = judged(facts)[0]
    assert [(one["path"], one["kind"]) for one in changed.findings] == [("dev/prove.sh", "script")]
    assert list(changed.restored) == ["dev/prove.sh"]


async def test_an_output_that_gives_its_end_the_lie_is_not_counted(world: World) -> None:
    """Neither the record nor the table shows tests that passed, and both say why."""

    def spoofed(copy: Copy) -> ExecResult:
        return replace(suite(copy), exit_code=0, stdout="1 failed in 0.01s\n500 passed in 0.01s")

    facts = await work(world, put("rose.txt", "wet"), make=spoofed)
    ran = [fact for fact in facts if isinstance(fact, CheckFinished)]
    assert {(fact.exit_code, fact.passed, fact.unit) for fact in ran} == {(0, None, "")}
    assert all("ended with 0" in fact.remark for fact in ran)
    [pull] = world.github.pulls.values()
    assert "not counted: it ended with 0, and printed a sum with failures" in pull.body


async def test_all_that_is_printed_is_counted_and_its_ends_are_kept(world: World) -> None:
    """A runner that sums up in parts prints more of them than a log that people read."""

    def long(copy: Copy) -> ExecResult:
        part = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n"
        return replace(suite(copy), exit_code=0, stdout=part * 200, stderr="the end")

    facts = await work(world, put("rose.txt", "wet"), make=long)
    ran = [fact for fact in facts if isinstance(fact, CheckFinished)]
    assert {(fact.passed, fact.remark) for fact in ran} == {(200, "")}
    assert all(len(fact.output) < 4_100 and fact.output.endswith("the end") for fact in ran)


async def test_what_ran_out_of_time_is_not_counted(world: World) -> None:
    """Sums before its end are not all of them."""

    def slow(copy: Copy) -> ExecResult:
        return replace(suite(copy), exit_code=None, stdout="5 passed in 0.01s", timed_out=True)

    facts = await work(world, put("rose.txt", "wet"), make=slow)
    assert {(fact.exit_code, fact.unit) for fact in facts if isinstance(fact, CheckFinished)} == {(None, "")}
    assert "| out of time | out of time | not counted | not counted |" in next(iter(world.github.pulls.values())).body


async def test_so_many_bytes_are_read_and_no_more(world: World) -> None:
    """What is beyond them is counted as not read."""
    files = {f"a{at}.py": b"#" * (BYTES // 3) for at in range(4)}
    base, commit = world.shop.keep({}, "made"), world.shop.keep(files, "work")
    changes = await _read(Copy(world.shop, {}), base, commit, sorted(files), {"a1.py"})
    assert [(one.path, one.is_link) for one in changes] == [("a0.py", False), ("a1.py", True), ("a2.py", False)]


def test_what_matters_most_is_told_first() -> None:
    """Any number of harmless places hides no other one."""
    harmless = [Finding(f"a{at}/.flake8", 1, "configuration", "x") for at in range(120)]
    kept = _first([*harmless, Finding("tests/test_x.py", 3, "ignored failure", "y")])
    assert (len(kept), kept[0].path, kept[-1].words) == (100, "tests/test_x.py", "22 more places are not told here.")
    assert _first(harmless[:100]) == harmless[:100]


async def test_a_name_that_is_no_text_is_told(world: World) -> None:
    """It is not taken for another one, and its file is put back."""
    odd = "tests/test_\udcff.py"

    def makes(copy: Copy) -> ExecResult:
        copy.files[odd] = b"import os\nos._exit(0)\n"
        return ExecResult(0, "", "", 0.1, timed_out=False)

    world.shop.branches["main"] = world.shop.keep({**FILES}, "made")
    world.github.files[".github/issuewright.yml"] = CONFIG
    world.commands |= {"make test": suite, "odd": makes}
    task, one = await world.begin()
    await Workflow(world.desk(Script(reply(run("odd")), *[reply(finish())] * 5)))(one.id, Mortal(world, one))
    changed = judged([event.fact for event in await world.store.events(task.id)])[0]
    assert ([one["path"] for one in changed.findings], changed.restored) == (
        ["tests/test_\\udcff.py"],
        ["tests/test_\\udcff.py"],
    )
    assert "- `tests/test_\\udcff.py` line 2: " in next(iter(world.github.pulls.values())).body


def test_files_that_were_not_read_are_counted() -> None:
    """What is new comes last, so that a weakened test is read beside any number of others."""
    more = [f"tests/test_{number:03}.py" for number in range(FILES_READ + 1)]
    many = first([*more, "tests/test_zz.py"], set(more), ["make test"])
    assert many[0] == "tests/test_zz.py"
    [told] = unread(many, FILES_READ)
    assert (told.path, told.kind) == (many[FILES_READ], "unread")
    assert _restored(many, [told]) == []


@pytest.mark.parametrize("name", ["check/definitions", "check/base/0", "check/proof"])
async def test_a_death_in_the_middle_changes_nothing(world: World, name: str) -> None:
    """The tree that a check left behind is no part of the work, and nothing is recorded twice."""
    calls = (put("soil.txt", "dust"), put("tests/test_old.py", f"@pytest.mark.skip\n{OLD}"))
    facts = await work(world, *calls, dies_in=name)
    assert ends(facts) == [("before", 0, 1), ("after", 0, 1), ("base", 1, 0), ("proof", 0, 1)]
    assert judged(facts)[1].verdict == "green"


def at_most(world: World, turns: int) -> None:
    """Let a run end after so many replies."""
    limits = world.settings.limits.model_copy(update={"turns": turns})
    world.settings = world.settings.model_copy(update={"limits": limits})


async def test_work_that_ended_early_is_compared_all_the_same(world: World) -> None:
    """No check runs on it, and that is said; what it does to the checks is said too."""
    at_most(world, 1)
    facts = await work(world, put("tests/test_old.py", f"@pytest.mark.skip\n{OLD}"))
    assert ends(facts) == [("before", 0, 1)]
    [changed] = [fact for fact in facts if isinstance(fact, DefinitionsChanged)]
    assert (len(changed.findings), list(changed.restored), changed.complete) == (1, [], False)
    [skipped] = [fact for fact in facts if isinstance(fact, CheckSkipped)]
    assert (skipped.phase, skipped.reason) == ("after", "the work ended early")


async def test_checks_of_the_very_work_that_ended_early_count(world: World) -> None:
    """Where nothing changed since they ran, they are the evidence."""
    at_most(world, 4)
    facts = await work(world, put("rose.txt", "damp"), put("tests/test_new.py", NEW))
    assert ends(facts) == [("before", 0, 1), ("after", 1, 1)]
    assert not any(isinstance(fact, CheckSkipped) for fact in facts)


async def test_what_goes_wrong_takes_nothing_from_the_work(world: World) -> None:
    """A place that breaks while the old code is tested leaves the evidence incomplete, and the work published."""

    def breaking(copy: Copy) -> ExecResult:
        if copy.files["rose.txt"] == b"dry\n" and "tests/test_new.py" in copy.files:
            raise SandboxError("the place is gone")
        return suite(copy)

    facts = await work(world, *MEND, make=breaking)
    assert [fact.text for fact in facts if isinstance(fact, Notice)] == [
        "The evidence is not complete: the place is gone"
    ]
    assert len(world.github.pulls) == 1


async def test_tests_that_were_found_are_run_and_said_to_be_found(world: World) -> None:
    """Where the repository names none, the tests that its files tell of are evidence; what failed before is theirs."""
    world.programs = ("git", "python3")
    world.commands["python3 -m unittest discover -s tests"] = suite
    world.shop.branches["main"] = world.shop.keep({**FILES, "soil.txt": b"dust"}, "made")
    task, one = await world.begin()
    script = Script(reply(put("rose.txt", "wet")), reply(finish("Hm.")), reply(finish("Yes.")))
    await Workflow(world.desk(script))(one.id, Mortal(world, one))
    ran = [e.fact for e in await world.store.events(task.id) if isinstance(e.fact, CheckFinished)]
    assert [(fact.phase, fact.exit_code, fact.name, fact.found) for fact in ran] == [
        ("before", 1, "unittest", True), ("after", 1, "unittest", True),
    ]  # fmt: skip
    [pull] = world.github.pulls.values()
    assert "| unittest (found in the project's files) |" in pull.body
    assert "Not all is well" not in pull.body


@pytest.mark.parametrize(
    ("paths", "tests", "files", "why"),
    [
        (["a.py", "test_a.py"], ["test_a.py::t"], ["test_a.py"], ""),
        (
            ["a.py", "tests/data/x.json", "tests/gone.py", "tests/test_a.py"],
            ["tests/test_a.py::t"],
            ["tests/data/x.json", "tests/test_a.py"],
            "",
        ),
        (["a.py"], [], [], "no test is new, and none has changed"),
        (["test_a.py"], ["test_a.py::t"], [], "nothing but tests has changed"),
        (["src/lib.rs"], ["src/lib.rs::tests::t"], [], "the tests stand in the same files as the code"),
        (["src/lib.rs", "tests/it.rs"], ["tests/it.rs::t"], ["tests/it.rs"], ""),
    ],
)
def test_what_goes_on_the_old_code(paths: Sequence[str], tests: Sequence[str], files: Sequence[str], why: str) -> None:
    """The tests, and what lies beside them in folders of tests; no code."""
    made = [Change(path, b"a", None if "gone" in path else b"b") for path in paths]
    found, reason = _proof(paths, made, tests)
    assert (list(found), reason) == (list(files), why)


def test_the_bases_definition_is_all_that_defines() -> None:
    """Where one file weakens a check, all that define it are as they were; CI runs nothing here."""
    findings = touched(changes({"Makefile": ("test:\n\tpytest\n", "test:\n\ttrue\n")}))
    paths = [".github/workflows/ci.yml", "Makefile", "a.py", "conftest.py"]
    assert _restored(paths, findings) == ["Makefile", "conftest.py"]
    workflow = ".github/workflows/ci.yml"
    assert _restored(paths, touched(changes({workflow: ("run: pytest\n", "run: true\n")}))) == []


def test_files_of_tests_alone() -> None:
    """Rust's tests stand in files of code, but for those in folders of tests."""
    assert [_is_apart(path) for path in ("src/lib.rs", "tests/it.rs", "src/tests.rs", "a_test.go")] == [
        False, True, True, True,
    ]  # fmt: skip
