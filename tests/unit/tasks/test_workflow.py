"""A run from its beginning to its end: what it leaves is the same wherever a process died in between."""

from dataclasses import replace

import pytest

from bot.domain.events import BranchPushed, CheckFinished, PullOpened, RunFinished
from bot.domain.messages import Prompt, Reply, ToolCall, ToolResult, Usage
from bot.domain.task import Run, Task
from bot.errors import BotError, ContextOverflow, ModelRefused, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.base import OnText
from bot.llm.discarded import DroppedReply
from bot.sandbox.base import ExecResult
from bot.settings.server import LimitsSection
from bot.tasks.engines.base import Action, Json
from bot.tasks.engines.inline import _Steps
from bot.tasks.workflow import Workflow
from tests.unit.agent.made import broken_rules
from tests.unit.tasks.made import FILES, Copy, Script, World, finish, read, reply, words, write

SCRIPT = (reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish("Watered them.")))


class Death(BaseException):
    """The process ends here."""


class Mortal:
    """Steps that end the process at one of them."""

    def __init__(self, world: World, one: Run, *, at: int | None = None, inside: bool = False) -> None:
        self._inner = _Steps(world.store, one.id)
        self._at = at
        self._inside = inside
        self.names: list[str] = []

    async def __call__(self, name: str, action: Action) -> Json:
        """Make a step, or die."""

        async def dying() -> Json:
            value = await action()
            if self._inside and len(self.names) == self._at:
                raise Death
            return value

        self.names.append(name)
        if not self._inside and len(self.names) == self._at:
            raise Death
        return await self._inner(name, dying)


async def whole(world: World, one: Run, *replies: Reply | Exception) -> Script:
    """Work on a run in one life."""
    script = Script(*replies)
    await Workflow(world.desk(script))(one.id, Mortal(world, one))
    return script


async def ended(world: World, task: Task, seq: int = 1) -> RunFinished:
    """Return how a run ended; the store and the stream agree."""
    facts = [event.fact for event in await world.store.events(task.id) if event.run == seq]
    [fact] = [fact for fact in facts if isinstance(fact, RunFinished)]
    one = await world.store.run(task.id, seq)
    assert one is not None
    assert (one.state, one.outcome, one.reason) == ("finished", fact.outcome, fact.reason)
    return fact


async def left(world: World, task: Task) -> tuple[object, ...]:
    """Say what a run left behind for people."""
    facts = [event.fact for event in await world.store.events(task.id)]
    return (
        facts,
        list(await world.store.messages(task.id)),
        world.shop.branches,
        [(one.number, one.head_branch, one.body) for one in world.github.pulls.values()],
        {number: len(comments) for number, comments in world.github.threads.items()},
        world.github.bodies(7),
        world.github.reactions,
    )


async def test_the_main_story(world: World) -> None:
    """An issue becomes a commit, a branch and a pull request; one comment says how it stands."""
    task, one = await world.begin()
    await whole(world, one, *SCRIPT)
    fact = await ended(world, task)
    assert (fact.outcome, fact.reason, fact.summary) == ("done", "", "Watered them.")
    assert (fact.turns, fact.tokens, fact.cost_usd) == (3, 300, 0.75)
    [pull] = world.github.pulls.values()
    assert (pull.head_branch, pull.base_branch, pull.draft) == (task.branch, "main", True)
    assert "Closes #7" in pull.body
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}
    assert len(world.github.bodies(7)) == 1
    assert "**Done**" in world.github.bodies(7)[0]
    assert world.github.reactions == [(7, None, "rocket")]
    assert (await world.store.task_of(task.repository.id, pull.number)) is not None
    assert broken_rules(list(await world.store.messages(task.id))) == []
    assert world.shop.forgotten == [task.id]
    assert all(bench.closed for bench in world.benches)


async def steps_of_main_story(world: World) -> list[str]:
    """Name the steps of the main story."""
    _, one = await world.begin()
    steps = Mortal(world, one)
    await Workflow(world.desk(Script(*SCRIPT)))(one.id, steps)
    return steps.names


async def test_the_steps_have_fixed_names(world: World) -> None:
    """The names of the steps are those that records of earlier versions hold."""
    names = await steps_of_main_story(world)
    assert names == [
        "announce",
        "prepare",
        "environment",
        "inbox/1",
        "model/1",
        "tool/1/0",
        "inbox/2",
        "model/2",
        "tool/2/0",
        "inbox/3",
        "model/3",
        "tool/3/0",
        "inbox/4",
        "commit",
        "push",
        "pull",
        "check/shown",
        "marks",
        "report",
        "close",
    ]


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("at", range(1, 20))
async def test_a_death_at_any_step_changes_nothing(world: World, at: int, *, inside: bool) -> None:
    """Wherever a process dies, the next one ends the run as if nothing had been, and makes nothing twice."""
    task, one = await world.begin()
    script = Script(*SCRIPT)
    with pytest.raises(Death):
        await Workflow(world.desk(script))(one.id, Mortal(world, one, at=at, inside=inside))
    asked = len(script.prompts) - (1 if inside and at in {5, 8, 11} else 0)
    steps = Mortal(world, one)
    await Workflow(world.desk(Script(*SCRIPT[asked:])))(one.id, steps)
    fact = await ended(world, task)
    assert (fact.outcome, fact.turns, fact.tokens) == ("done", 3, 300)
    assert len(world.github.pulls) == 1
    assert len(world.github.bodies(7)) == 1
    assert "**Done**" in world.github.bodies(7)[0]
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}
    assert sorted(world.shop.branches) == sorted(["main", task.branch])
    kinds = [type(event.fact).__name__ for event in await world.store.events(task.id)]
    assert len(kinds) == 13
    assert kinds.count("ModelReplied") == kinds.count("ToolFinished") == 3
    assert broken_rules(list(await world.store.messages(task.id))) == []
    before = await left(world, task)
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert await left(world, task) == before


CHECKED = b"version: 1\nchecks:\n- name: tests\n  run: make test\n"


def wetness(copy: Copy) -> ExecResult:
    """Pass where the roses are wet; leave a report behind."""
    copy.files["report.xml"] = b"<x/>"
    return ExecResult(0 if copy.files["rose.txt"] == b"wet" else 1, "", "dry roses", 1.0, timed_out=False)


async def test_checks_are_run_before_and_after_and_leave_no_trace(world: World) -> None:
    """The harness runs the checks itself; what they write is no part of the work."""
    world.github.files[".github/issuewright.yml"] = CHECKED
    world.commands["make test"] = wetness
    task, one = await world.begin()
    await whole(world, one, *SCRIPT, SCRIPT[-1])
    facts = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, CheckFinished)]
    assert [(fact.phase, fact.exit_code) for fact in facts] == [("before", 1), ("after", 0)]
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}
    assert "tests" in next(iter(world.github.pulls.values())).body


async def test_a_failing_check_goes_back_to_the_model(world: World) -> None:
    """What fails after `finish` goes back to the model, which may mend it."""
    world.github.files[".github/issuewright.yml"] = CHECKED
    world.commands["make test"] = wetness
    task, one = await world.begin()
    script = await whole(
        world, one, reply(write("new.txt", "a")), *[reply(finish("Hm."))] * 2, *SCRIPT[:2], reply(finish("Now."))
    )
    refused = script.prompts[2].messages[-1].parts[0]
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert "you have not run `make test`" in refused.text
    assert "dry roses" in script.prompts[3].messages[-1].text
    assert (await ended(world, task)).summary == "Now."
    assert broken_rules(list(await world.store.messages(task.id))) == []


def quiet(_: Copy) -> ExecResult:
    """Pass without a word."""
    return ExecResult(0, "", "", 1.0, timed_out=False)


async def test_tests_that_files_tell_of_are_run_before_the_end(world: World) -> None:
    """Where the repository names no checks, those found when the run began are asked for once; a crash forgets none."""
    world.shop.branches["main"] = world.shop.keep({**FILES, "Makefile": b"test:\nlint:\n"}, "made")
    world.programs, world.commands = ("git", "make"), {"make test": quiet, "make lint": quiet}
    task, one = await world.begin()
    with pytest.raises(Death):
        await Workflow(world.desk(Script(SCRIPT[1])))(one.id, Mortal(world, one, at=8))
    again = Script(reply(finish("Hm.")), reply(ToolCall("c", "checks", "{}")), SCRIPT[-1])
    await Workflow(world.desk(again))(one.id, Mortal(world, one))
    [*_, refused, ran] = [message.parts[0] for message in again.prompts[-1].messages if message.role == "user"]
    assert isinstance(refused, ToolResult)
    assert refused.text.startswith(
        "Not finished yet: since your last edit you have not run `make test`. Call `checks`,"
    )
    assert isinstance(ran, ToolResult)
    assert ran.text.split("\n") == [
        "exit code | seconds | check", "0 | 1 | make lint: `make lint`", "0 | 1 | make test: `make test`",
    ]  # fmt: skip
    assert (await ended(world, task)).outcome == "done"


@pytest.mark.parametrize("programs", [("git",), ("git", "make")], ids=["not installed", "asked for"])
async def test_tests_that_cannot_be_run_are_not_asked_for(world: World, programs: tuple[str, ...]) -> None:
    """A check whose program is not here, or of a machine that runs no commands, keeps nobody from the end."""
    world.shop.branches["main"] = world.shop.keep({**FILES, "Makefile": b"test:\n"}, "made")
    world.programs = programs
    world.shelter = replace(world.shelter, level="none", shell=len(programs) == 1)
    task, one = await world.begin()
    script = await whole(world, one, SCRIPT[1], SCRIPT[-1])
    assert (await ended(world, task)).outcome == "done"
    offered = {tool.name for tool in script.prompts[-1].tools}
    assert ("checks" in offered) == ("run" in offered) == (len(programs) == 1)


async def test_checks_that_never_pass_end_after_three_rounds(world: World) -> None:
    """After three rounds the work is delivered with its failing check in plain sight."""
    world.github.files[".github/issuewright.yml"] = CHECKED
    world.commands["make test"] = wetness
    task, one = await world.begin()
    await whole(world, one, reply(write("new.txt", "a")), *(reply(finish(f"Try {count}")) for count in range(4)))
    assert (await ended(world, task)).outcome == "done"
    assert len(world.github.pulls) == 1


async def test_nothing_changed_is_a_failure_that_says_so(world: World) -> None:
    """A model that is done without a change makes no pull request."""
    task, one = await world.begin()
    await whole(world, one, reply(finish("Looks fine.")))
    fact = await ended(world, task)
    assert fact.outcome == "failed"
    assert fact.reason.startswith("No file was changed")
    assert world.github.pulls == {}
    assert "Looks fine." in world.github.bodies(7)[0]


async def test_a_model_that_fails_keeps_what_was_done(world: World) -> None:
    """Where the model fails, the work so far is on the branch and there is no pull request."""
    task, one = await world.begin()
    await whole(world, one, *SCRIPT[:2], ModelRejected("no credit"))
    fact = await ended(world, task)
    assert (fact.outcome, fact.reason) == ("failed", "no credit. Only who runs this server can mend that.")
    assert world.github.pulls == {}
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}
    assert f"What was done so far is on the branch `{task.branch}`" in world.github.bodies(7)[0]
    assert world.github.reactions == [(7, None, "confused")]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ModelRejected("The key is wrong. Set KEY"),
            "The key is wrong. Set KEY. Only who runs this server can mend that.",
        ),
        (
            OperatorError("There is no key. Set KEY"),
            "There is no key. Set KEY. Only who runs this server can mend that.",
        ),
        (ModelUnavailable("It is busy"), "It is busy. It was asked several times; ask me again later."),
        (
            ContextOverflow("9 tokens > 8."),
            (
                "The conversation is too long for the model even after it was made shorter (ctx 1.8K/200K): 9 tokens > "
                "8. Choose a model with a larger window, or a smaller task."
            ),
        ),
        (ModelRefused("It declined"), "It declined"),
    ],
)
async def test_a_failure_is_told_to_who_can_mend_it(
    world: World, caplog: pytest.LogCaptureFixture, error: BotError, said: str
) -> None:
    """The thread gets one sentence; what only the operator can mend is in their log as well."""
    task, one = await world.begin()
    await whole(world, one, error)
    assert (await ended(world, task)).reason == said
    logged = [record for record in caplog.records if record.message == "run.operator_needed"]
    assert len(logged) == isinstance(error, ModelRejected | OperatorError)
    assert all(vars(record)["error"] == str(error) for record in logged)


async def test_what_failed_replies_cost_is_in_the_account(world: World) -> None:
    """A reply that broke off is paid for, though nobody reads it; the error keeps its kind through the record."""
    task, one = await world.begin()
    lost = DroppedReply("The stream broke off", usage=Usage(100, 200, 300, 400))
    await whole(world, one, *SCRIPT[:1], lost)
    fact = await ended(world, task)
    assert fact.reason == "The stream broke off. It was asked several times; ask me again later."
    assert (fact.tokens, fact.cost_usd) == (100 + 1000, 0.5)


async def test_a_limit_is_a_budget_that_is_reached(world: World) -> None:
    """A limit ends the run as `budget`; what was done is in a draft, and people hear how to go on."""
    world.settings = world.settings.model_copy(update={"limits": LimitsSection(turns=2)})
    task, one = await world.begin()
    await whole(world, one, *SCRIPT)
    fact = await ended(world, task)
    assert (fact.outcome, fact.reason) == ("budget", "A limit was reached: turns: 2 of 2.")
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}
    [pull] = world.github.pulls.values()
    assert (pull.head_branch, pull.draft) == (task.branch, True)
    assert f"**Unfinished.** {fact.reason}" in pull.body
    [told] = world.github.bodies(7)
    assert f"What was done so far is in [#{pull.number}]" in told
    assert "`/agent fix` goes on with a budget of its own" in told


async def test_a_further_run_goes_on_from_the_draft(world: World) -> None:
    """The next run begins on what the limit cut short; where it hits one too, all is on the same branch."""
    world.settings = world.settings.model_copy(update={"limits": LimitsSection(turns=1)})
    task, one = await world.begin()
    await whole(world, one, reply(write("rose.txt", "wet")))
    _, two = await world.begin("more")
    await whole(world, two, reply(write("tulip.txt", "wet")))
    assert (await ended(world, task, 2)).outcome == "budget"
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet", "tulip.txt": b"wet"}
    assert len(world.github.pulls) == 1
    assert sorted(world.shop.branches) == sorted(["main", task.branch])


async def test_a_limit_leaves_what_is_ready_for_review_alone(world: World) -> None:
    """On a pull request that people may merge the unfinished work stays beside it, and they hear where."""
    task, one = await world.begin()
    await whole(world, one, *SCRIPT)
    [ready] = world.github.pulls.values()
    world.github.pulls[ready.number] = replace(ready, draft=False)
    before = world.shop.branches[task.branch]
    world.settings = world.settings.model_copy(update={"limits": LimitsSection(turns=1)})
    _, two = await world.begin("more")
    await whole(world, two, reply(write("tulip.txt", "wet")))
    assert world.shop.branches[task.branch] == before
    aside = f"agent/7-{task.id[:8]}-run2"
    assert "tulip.txt" in world.shop.commits[world.shop.branches[aside]]
    assert list(world.github.pulls) == [ready.number]
    said = f"is on the branch `{aside}`. A further run begins on `{task.branch}`, without it."
    assert said in world.github.bodies(7)[1]


async def test_a_broken_file_of_the_repository_is_told_and_nothing_begins(world: World) -> None:
    """A broken `.github/issuewright.yml` ends the run before the model is asked."""
    world.github.files[".github/issuewright.yml"] = b"version: 1\nlimit: 3\n"
    task, one = await world.begin()
    script = await whole(world, one)
    fact = await ended(world, task)
    assert fact.outcome == "failed"
    assert "issuewright.yml:2:1" in fact.reason
    assert script.prompts == []
    assert len(world.github.bodies(7)) == 1


async def test_a_repository_may_switch_us_off(world: World) -> None:
    """`enabled: false` ends the run before anything is done."""
    world.github.files[".github/issuewright.yml"] = b"version: 1\nenabled: false\n"
    task, one = await world.begin()
    await whole(world, one)
    assert "enabled: false" in (await ended(world, task)).reason


async def test_a_stop_keeps_what_was_done(world: World) -> None:
    """A stop that is in the inbox ends the run before the next turn."""
    task, one = await world.begin()

    class Stopped(Script):
        async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
            await world.store.post(task.id, "stop", author="flora", text="asked", event_key="s")
            return await super().ask(prompt, on_text=on_text)

    await Workflow(world.desk(Stopped(reply(write("new.txt", "a")))))(one.id, Mortal(world, one))
    fact = await ended(world, task)
    assert (fact.outcome, fact.reason) == ("stopped", "Stopped on request.")
    assert world.shop.commits[world.shop.branches[task.branch]]["new.txt"] == b"a"


async def test_what_came_too_late_is_a_further_run(world: World) -> None:
    """A message after the last turn is not lost: it is the request of a further run, once."""
    task, one = await world.begin()
    steps = Mortal(world, one)

    async def slow(name: str, action: Action) -> Json:
        if name == "commit":
            await world.store.post(task.id, "steer", author="flora", text="Also the lilies.", event_key="s")
        return await steps(name, action)

    await Workflow(world.desk(Script(*SCRIPT)))(one.id, slow)
    again = await world.store.open_run(task.id)
    assert again is not None
    assert (again.seq, again.state, again.request, again.requester) == (2, "queued", "Also the lilies.", "flora")
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert len(await world.store.runs(task.id)) == 2
    await world.store.admit("us", slots=1, per_installation=1)
    script = await whole(world, again, reply(write("lily.txt", "b")), reply(finish("More.")))
    assert "Also the lilies." in script.prompts[0].messages[-1].text
    assert len(await world.store.runs(task.id)) == 2


async def test_a_label_that_came_too_late_is_a_further_run(world: World) -> None:
    """A label that is added again when the run's work is over has no words, and starts a further run all the same."""
    task, one = await world.begin()
    steps = Mortal(world, one)

    async def slow(name: str, action: Action) -> Json:
        if name == "report":
            await world.store.accept(replace(world.request("second"), request=""), world.clock())
        return await steps(name, action)

    await Workflow(world.desk(Script(*SCRIPT)))(one.id, slow)
    again = await world.store.open_run(task.id)
    assert again is not None
    assert (again.seq, again.state, again.request) == (2, "queued", "")


@pytest.mark.parametrize("listened", [True, False], ids=["heard at a turn", "heard at the end"])
async def test_only_what_is_said_after_a_stop_outlives_it(world: World, *, listened: bool) -> None:
    """Words before a stop end with the run; words after it are the request of a further one."""
    task, one = await world.begin()
    steps = Mortal(world, one)
    moment = "inbox/2" if listened else "report"

    async def slow(name: str, action: Action) -> Json:
        if name == moment:
            for key, kind, words in (("a", "steer", "Before."), ("b", "stop", "asked"), ("c", "steer", "After.")):
                await world.store.post(task.id, kind, author="flora", text=words, event_key=key)  # type: ignore[arg-type]
        return await steps(name, action)

    await Workflow(world.desk(Script(*SCRIPT)))(one.id, slow)
    assert (await ended(world, task)).outcome == ("stopped" if listened else "done")
    again = await world.store.open_run(task.id)
    assert again is not None
    assert again.request == "After."


async def test_a_further_run_goes_on_with_the_same_transcript_branch_and_pull(world: World) -> None:
    """A further request takes the history along and brings branch and pull request up to date."""
    task, one = await world.begin()
    await whole(world, one, *SCRIPT)
    _, again = await world.begin("second", request="Now the lilies.")
    script = await whole(world, again, reply(write("lily.txt", "wet")), reply(finish("Both.")))
    history = script.prompts[0].messages
    assert history[: len(SCRIPT)] == tuple(await world.store.messages(task.id, run=1))[: len(SCRIPT)]
    assert "Now the lilies." in history[-1].text
    assert broken_rules(history) == []
    assert len(world.github.pulls) == 1
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet", "lily.txt": b"wet"}
    facts = [event.fact for event in await world.store.events(task.id) if event.run == 2]
    assert any(isinstance(fact, PullOpened) and fact.updated for fact in facts)
    assert len(world.github.bodies(7)) == 2


async def test_a_branch_that_moved_meanwhile_is_not_overwritten(world: World) -> None:
    """Where somebody pushed in between, the work goes to a branch beside theirs."""
    task, one = await world.begin()
    steps = Mortal(world, one)
    theirs = world.shop.keep({"rose.txt": b"theirs"}, "theirs")

    async def rival(name: str, action: Action) -> Json:
        if name == "push":
            world.shop.branches[task.branch] = theirs
        return await steps(name, action)

    await Workflow(world.desk(Script(*SCRIPT)))(one.id, rival)
    aside = f"agent/7-{task.id[:8]}-run1"
    assert world.shop.branches[task.branch] == theirs
    assert world.shop.commits[world.shop.branches[aside]] == {"rose.txt": b"wet"}
    facts = [event.fact for event in await world.store.events(task.id)]
    assert BranchPushed(aside, world.shop.branches[aside]) in facts
    assert next(iter(world.github.pulls.values())).head_branch == aside


async def test_a_fault_of_ours_ends_the_run_with_a_place_to_look(world: World) -> None:
    """An error that nobody raised on purpose ends the run, and its text is for the log alone."""
    task, one = await world.begin()
    await whole(world, one, ZeroDivisionError("secret"))
    fact = await ended(world, task)
    assert fact.outcome == "failed"
    assert one.id in fact.reason
    assert "secret" not in fact.reason


@pytest.mark.parametrize("last", [reply(finish("Done.")), reply(words("Done."))], ids=["finish", "words"])
async def test_a_label_added_again_during_a_run_says_nothing(world: World, last: Reply) -> None:
    """A further request without words on an open run changes nothing: the model is not asked once more."""
    task, one = await world.begin()
    await world.store.accept(replace(world.request("second"), request=""), world.clock())
    script = await whole(world, one, reply(write("new.txt", "a")), last, last, last)
    said = [message for prompt in script.prompts for message in prompt.messages]
    assert all(message.parts and not message.text.rstrip().endswith("says:") for message in said)
    assert len(script.prompts) == (2 if last.message.calls else 4)
    assert (await ended(world, task)).outcome == "done"
    assert broken_rules(list(await world.store.messages(task.id))) == []


@pytest.mark.parametrize("at", [3, 6, 9])
async def test_another_machine_without_a_sandbox_ends_the_run_in_words(world: World, at: int) -> None:
    """A run that ran commands is not taken up where none can be: what was done is published, and the reason is told."""
    task, one = await world.begin()
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*SCRIPT)))(one.id, Mortal(world, one, at=at))
    world.shelter = replace(world.shelter, level="none", shell=False)
    await Workflow(world.desk(Script(*SCRIPT)))(one.id, Mortal(world, one))
    fact = await ended(world, task)
    assert fact.outcome == "failed"
    assert "nothing shuts them in here any more" in fact.reason


async def test_a_run_without_commands_stays_so(world: World) -> None:
    """A run that began without commands goes on without them where a sandbox has come meanwhile."""
    task, one = await world.begin()
    world.shelter = replace(world.shelter, level="none", shell=False)
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*SCRIPT)))(one.id, Mortal(world, one, at=6))
    world.shelter = replace(world.shelter, level="bubblewrap", shell=True)
    script = Script(*SCRIPT)
    await Workflow(world.desk(script))(one.id, Mortal(world, one))
    assert (await ended(world, task)).outcome == "done"
    assert "run" not in {tool.name for tool in script.prompts[-1].tools}
