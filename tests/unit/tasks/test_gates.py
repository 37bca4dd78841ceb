"""Gates on single actions: who waits, what is carried out once, what counts no more, and what a death changes."""

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from bot.domain.events import ActionCarriedOut, ActionDecided, ActionRequested, Notice, ToolFinished
from bot.domain.messages import Message, Reply, ToolCall, ToolResult
from bot.domain.refs import Actor, ThreadRef
from bot.domain.task import Run, Task
from bot.domain.trigger import TriggerContext
from bot.errors import SandboxError
from bot.sandbox.base import ExecResult
from bot.settings.server import SandboxSection, ServerSettings
from bot.tasks.decisions import Decided, approve, deny, drop, waiting_for
from bot.tasks.gates import nobody
from bot.tasks.workflow import Workflow
from tests.unit.agent.made import broken_rules
from tests.unit.tasks.github import REPOSITORY
from tests.unit.tasks.made import Copy, Script, Shop, World, finish, read, reply, run, write
from tests.unit.tasks.test_workflow import Death, Mortal, ended, left, whole

PUSH = "git push origin main"
MARIA, JONAS = Actor(1, "maria"), Actor(2, "jonas")
WORK = (reply(read("rose.txt")), reply(write("rose.txt", "wet")))
STORY = (*WORK, reply(run(PUSH)))
DEPLOYS = b"version: 1\nrules: [{tool: [edit, write], path: 'deploy/*', verdict: ask, why: it deploys}]\n"
DONE = (reply(finish("Pushed.")),)


@pytest.fixture(autouse=True)
def pushed(world: World) -> list[str]:
    """Count how often the command is run that people are asked about."""
    times: list[str] = []

    def push(_: Copy) -> ExecResult:
        times.append(PUSH)
        return ExecResult(0, "everything up to date", "", 0.5, timed_out=False)

    world.commands[PUSH] = push
    return times


def context(key: str, actor: Actor = MARIA, number: int = 7) -> TriggerContext:
    """Make what a comment on a thread comes with."""
    return TriggerContext(key, 11, actor, ThreadRef(REPOSITORY, number, "issue"), "t", "b", MARIA)


async def yes(
    world: World,
    short: str | None = None,
    *,
    key: str = "yes",
    actor: Actor = MARIA,
    always: str | None = None,
    comment_id: int = 10_000,
    number: int = 7,
    required: int = 1,
) -> Decided:
    """Approve."""
    return await approve(
        world.store,
        world.github,
        context(key, actor, number),
        short_hash=short,
        always=always,
        comment_id=comment_id,
        in_thread_of=None,
        required=required,
        clock=world.clock,
    )


async def no(world: World, reason: str = "", short: str | None = None, key: str = "no") -> Decided:
    """Deny."""
    return await deny(
        world.store,
        world.github,
        context(key),
        short_hash=short,
        reason=reason,
        comment_id=10_000,
        in_thread_of=None,
        clock=world.clock,
    )


async def waits(world: World, *story: Reply, key: str = "first", number: int = 7) -> tuple[Task, ActionRequested]:
    """Work until a call waits; return what waits."""
    task, one = await world.begin(key, number=number)
    await whole(world, one, *(story or STORY))
    assert (await ended(world, task)).outcome == "waiting"
    (asked,) = await waiting_for(world.store, task)
    return task, asked


async def go_on(world: World, *story: Reply, key: str = "second") -> tuple[Run, Script]:
    """Begin the next run, as a command does."""
    _, one = await world.begin(key, comment_id=900, request="")
    return one, await whole(world, one, *(story or DONE))


def told(script: Script) -> str:
    """Return what the model was told last before its first reply."""
    return script.prompts[0].messages[-1].text


async def facts(world: World, task: Task, kind: type) -> list[object]:
    """Return the facts of one kind."""
    return [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, kind)]


def results(messages: Sequence[Message]) -> list[ToolResult]:
    """Return all results that a model was told."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolResult)]


async def test_a_call_waits_and_holds_nothing(world: World, pushed: list[str]) -> None:
    """It is not made; the request stands in the thread with all that is decided about, the work so far is a draft."""
    task, asked = await waits(world)
    assert pushed == []
    fact = await ended(world, task)
    short = asked.hash[:8]
    assert f"`run` `{PUSH}` (hash `{short}`)" in fact.reason
    progress, request = world.github.bodies(7)
    assert progress.startswith("**Waiting for approval**")
    assert "approve <hash>` carries it out" in progress
    assert request.startswith("@flora: **a call of `run` waits for approval**")
    assert f"```sh\n{PUSH}\n```" in request
    assert f"`/agent approve {short}`" in request
    assert f"in full `{asked.hash}`" in request
    assert "until 2026-12-07 12:00 UTC" in request
    assert "it pushes; the work is pushed for you when it is done (`default[" in request
    (pull,) = world.github.pulls.values()
    assert pull.draft
    messages = await world.store.messages(task.id)
    assert broken_rules(list(messages)) == []
    (result,) = results(messages[-1:])
    assert result.is_error
    assert f"waits for a person's approval (hash {short})" in result.text
    assert world.shop.forgotten == [task.id]
    assert await world.store.open_run(task.id) is None


async def test_what_is_approved_is_carried_out_once(world: World, pushed: list[str]) -> None:
    """In the next run, before the model is asked, which is told who approved it and what it gave."""
    task, asked = await waits(world)
    said = await yes(world)
    assert (said.kind, said.request) == ("approved", asked)
    assert said.text.startswith("**Approved** by `maria`.")
    assert world.github.bodies(7)[1].startswith(f"{said.text}\n\n<details>")
    _, script = await go_on(world)
    assert pushed == [PUSH]
    assert f"The call that waited (hash {asked.hash[:8]}, `run`: {PUSH}) was approved by maria." in told(script)
    assert "everything up to date" in told(script)
    assert (await ended(world, task, 2)).outcome == "done"
    assert broken_rules(list(await world.store.messages(task.id, run=2))) == []
    assert await facts(world, task, ActionDecided) == [ActionDecided(asked.hash, "approved", "maria")]
    assert await facts(world, task, ActionCarriedOut) == [ActionCarriedOut(asked.hash, "maria", PUSH, is_error=False)]
    (made,) = [fact for fact in await facts(world, task, ToolFinished) if getattr(fact, "exit_code", None) == 0]
    assert (made.turn, made.command) == (0, PUSH)  # type: ignore[attr-defined]
    _, script = await go_on(world, key="third")
    assert pushed == [PUSH]
    assert "was approved by" not in told(script)


async def test_an_approved_change_of_a_file_is_made(world: World) -> None:
    """The file is written as it was asked for; the comment shows every line of it."""
    world.github.files[".github/issuewright.yml"] = DEPLOYS
    content, path = "one\\n```two\\n<!-- three", "deploy/all.sh"
    task, asked = await waits(world, *WORK, reply(write(path, content)))
    assert "````diff\n+one\n+```two\n+<\u200b!-- three\n````" in world.github.bodies(7)[1]
    assert asked.shown == f"write {path}"
    await yes(world)
    await go_on(world)
    assert world.shop.commits[world.shop.branches[task.branch]][path] == b"one\n```two\n<!-- three"


async def test_an_approved_overwrite_needs_no_second_look(world: World) -> None:
    """The next run has read nothing yet, but the file is as it was, and a person agreed to all of it."""
    world.github.files[".github/issuewright.yml"] = DEPLOYS
    world.shop, world.careful = Shop({"rose.txt": b"dry\n", "deploy/all.sh": b"true\n"}), True
    story = (*WORK, reply(read("deploy/all.sh")), reply(write("deploy/all.sh", "false")))
    task, _ = await waits(world, *story)
    await yes(world)
    _, script = await go_on(world)
    assert "was approved by maria" in told(script)
    assert world.shop.commits[world.shop.branches[task.branch]]["deploy/all.sh"] == b"false"


async def test_a_call_that_names_more_than_people_can_be_shown_is_not_asked_about(world: World) -> None:
    """Nobody agrees to a file that the comment has no room for; the model hears what to do instead."""
    files = "".join(f"*** Delete File: {'x' * 300}{number}\n" for number in range(50))
    patch = f"*** Begin Patch\n{files} *** Delete File: AGENTS.md\n*** End Patch"
    task, one = await world.begin()
    call = ToolCall("p", "apply_patch", json.dumps({"patch": patch}))
    script = await whole(world, one, *WORK, reply(call), reply(finish("All but that.")))
    assert (await ended(world, task)).outcome == "done"
    assert "make several calls of it" in results(script.prompts[-1].messages)[-1].text
    assert await waiting_for(world.store, task) == []


async def test_under_plan_the_work_goes_on_without_another_plan(world: World, pushed: list[str]) -> None:
    """A call that waited is no reason to plan again."""
    world.settings = ServerSettings(mode="plan")
    task, one = await world.begin()
    plan = ToolCall("p", "propose_plan", json.dumps({"plan": "Water it.", "files": ["rose.txt"], "turns": 4}))
    await whole(world, one, reply(plan))
    _, one = await world.begin("plan is approved", comment_id=899, request="")
    await whole(world, one, *STORY)
    assert (await ended(world, task, 2)).outcome == "waiting"
    assert "**Waiting for approval**" in world.github.bodies(7)[-2]
    await yes(world)
    _, script = await go_on(world)
    assert "was approved by maria" in told(script)
    assert (await ended(world, task, 3)).outcome == "done"
    assert pushed == [PUSH]


async def test_a_place_that_breaks_in_the_midst_is_told_of_later(world: World, pushed: list[str]) -> None:
    """The run fails, and the next one knows that nobody knows."""

    def breaks(_: Copy) -> ExecResult:
        raise SandboxError("broken")

    task, _ = await waits(world)
    await yes(world)
    world.commands[PUSH] = breaks
    await go_on(world)
    assert (await ended(world, task, 2)).outcome == "failed"
    _, script = await go_on(world, key="third")
    assert "it may have been carried out. It is not repeated" in "".join(one.text for one in script.prompts[0].messages)
    assert pushed == []


async def test_what_is_denied_is_told_with_its_reason(world: World, pushed: list[str]) -> None:
    """The model goes on without it, once."""
    task, asked = await waits(world)
    said = await no(world, "We deploy on Fridays only.")
    assert (said.kind, said.request) == ("denied", asked)
    _, script = await go_on(world)
    assert "was denied by maria, who says why:" in told(script)
    assert "We deploy on Fridays only." in told(script)
    assert pushed == []
    assert (await ended(world, task, 2)).outcome == "done"
    _, script = await go_on(world, key="third")
    assert "was denied by" not in told(script)


async def test_after_seven_days_nobody_can_decide(world: World, pushed: list[str]) -> None:
    """Late approvals are refused, and one that was given in time is not carried out later; it is asked anew."""
    task, asked = await waits(world)
    await yes(world)
    world.clock.move(timedelta(days=7).total_seconds())
    _, script = await go_on(world, reply(run(PUSH)))
    assert "was not carried out: it was asked more than 7 days ago" in told(script)
    (anew,) = await waiting_for(world.store, task)
    assert anew.hash == asked.hash
    world.clock.move(timedelta(days=7).total_seconds())
    said = await yes(world, asked.hash[:8], key="late")
    assert said.kind == "refused"
    assert "was asked more than 7 days ago" in said.text
    assert pushed == []


async def test_other_files_make_it_void(world: World, pushed: list[str]) -> None:
    """Somebody pushed to the branch after the request: people and model hear why nothing was done."""
    task, _ = await waits(world)
    await yes(world)
    world.shop.branches[task.branch] = world.shop.keep({"rose.txt": b"dead"}, "theirs")
    one, script = await go_on(world)
    assert pushed == []
    assert "was not carried out: the files are not those that it was asked about" in told(script)
    notices = [str(fact.text) for fact in await facts(world, task, Notice)]  # type: ignore[attr-defined]
    assert any("The model asks anew if it still needs it." in notice for notice in notices)
    assert "the files are not those" in world.github.bodies(one.number)[-1]


async def test_another_policy_makes_it_void(world: World, pushed: list[str]) -> None:
    """What the repository says counts, as of the next run's beginning."""
    await waits(world)
    await yes(world)
    rule = "{tool: run, command: [make, deploy], verdict: deny, why: never}"
    world.github.files[".github/issuewright.yml"] = f"version: 1\nrules: [{rule}]\n".encode()
    _, script = await go_on(world)
    assert "was not carried out: the policy has changed since it was asked" in told(script)
    assert pushed == []


@pytest.mark.parametrize("change", ["edited", "deleted", "forged"])
async def test_a_request_that_is_not_as_it_was_posted_is_void(world: World, change: str, pushed: list[str]) -> None:
    """Whoever edits the comment may show people another call than the one that would be made."""
    task, asked = await waits(world)
    thread = world.github.threads[7]
    comment = thread[-1]
    if change == "edited":
        await world.github.edit_comment(REPOSITORY, comment.id, comment.body.replace(PUSH, "git status"))
    else:
        thread.remove(comment)
    if change == "forged":
        world.github.say(7, comment.body, 666)
    said = await yes(world)
    assert said.kind == "refused"
    assert "is void: its comment is not as it was posted" in said.text
    assert (await yes(world, asked.hash[:8], key="again")).kind == "refused"
    _, script = await go_on(world, reply(run(PUSH)))
    assert "the comment that asked for approval is not as it was posted" in told(script)
    assert pushed == []
    assert len(await waiting_for(world.store, task)) == 1


async def test_a_hash_has_to_be_one_of_this_task(world: World) -> None:
    """That of another task's request is refused, and so is one that is none."""
    _, asked = await waits(world)
    _, theirs = await waits(world, key="other", number=8)
    assert asked.hash != theirs.hash
    for short in (theirs.hash[:8], "ffffffff"):
        said = await yes(world, short)
        assert said.kind == "refused"
        assert "it may belong to another one" in said.text
    assert (await yes(world, theirs.hash[:8], number=8)).kind == "approved"


async def test_a_second_decision_changes_nothing(world: World, pushed: list[str]) -> None:
    """Who is later is told who was first; the same comment handled twice gives the same answer."""
    _, asked = await waits(world)
    first = await yes(world)
    assert await yes(world) == first
    for said in (await yes(world, asked.hash[:8], key="more", actor=JONAS), await no(world, "No.", asked.hash[:8])):
        assert said.kind == "refused"
        assert "was approved before, by `maria`" in said.text
    await go_on(world)
    assert pushed == [PUSH]
    assert (await yes(world, key="none left")).text.startswith("Nothing waited for a decision here")


async def test_two_people_have_to_approve_where_the_repository_says_so(world: World, pushed: list[str]) -> None:
    """One person's two comments count once."""
    world.github.files[".github/issuewright.yml"] = b"version: 1\nrequire_approvals: 2\n"
    world.github.permissions |= {MARIA.id: "write", JONAS.id: "write"}
    task, asked = await waits(world)
    assert "the approval of 2 people" in world.github.bodies(7)[1]
    for key in ("yes", "yes", "yes again"):
        assert (await yes(world, key=key)).kind == "more_needed"
    assert len(await waiting_for(world.store, task)) == 1
    said = await yes(world, asked.hash[:8], key="jonas", actor=JONAS)
    assert said.kind == "approved"
    _, script = await go_on(world)
    assert "was approved by maria, jonas." in told(script)
    assert pushed == [PUSH]


async def test_a_bare_approval_means_what_stood_there(world: World) -> None:
    """Not what was asked only after the comment was made."""
    task, _ = await waits(world)
    [kept] = await world.store.decisions(task.id)
    said = await yes(world, comment_id=(kept.comment_id or 0) - 1)
    assert said.kind == "refused"
    assert said.text.startswith("Nothing waited for a decision here when that was written.")
    assert (await yes(world, key="later")).kind == "approved"


async def test_of_two_calls_a_person_says_which(world: World, pushed: list[str]) -> None:
    """Calls side by side are judged each: what is allowed runs, and each that is asked about waits for itself."""
    world.settings = ServerSettings(mode="act", sandbox=SandboxSection(parallel_commands=True))
    ran: list[str] = []

    def ls(_: Copy) -> ExecResult:
        ran.append("ls")
        return ExecResult(0, "rose.txt", "", 0.1, timed_out=False)

    world.commands["ls"] = ls
    task, one = await world.begin()
    both = reply(run(PUSH, "a"), run("ls", "b"), run("npm publish", "c"), write("late.txt", "x", "d"), finish())
    await whole(world, one, *WORK, both)
    assert (await ended(world, task)).outcome == "waiting"
    assert (ran, pushed) == (["ls"], [])
    first, second = await waiting_for(world.store, task)
    said = await yes(world)
    assert said.kind == "refused"
    assert first.hash[:8] in said.text
    assert second.hash[:8] in said.text
    given = results((await world.store.messages(task.id))[-1:])
    assert [one.is_error for one in given] == [True, False, True, True, True]
    assert "call 1 of this reply, `run`, failed" in given[3].text
    assert (await yes(world, second.hash[:8])).kind == "approved"
    _, script = await go_on(world)
    assert "`run`: npm publish) was approved by maria." in told(script)
    assert [one.hash for one in await waiting_for(world.store, task)] == [first.hash]


async def test_a_wish_of_the_model_is_asked_about(world: World, pushed: list[str]) -> None:
    """`requires_approval` puts any command to people, and is fulfilled by their yes."""
    world.commands["ls"] = world.commands[PUSH]
    wish = ToolCall("w", "run", json.dumps({"command": "ls", "requires_approval": True}))
    await waits(world, *WORK, reply(wish))
    assert "Asked because the model asks for a person's agreement." in world.github.bodies(7)[1]
    await yes(world, always="ls")
    _, script = await go_on(world, reply(wish), *DONE)
    assert "was approved by maria" in told(script)
    assert len(pushed) == 2


async def test_what_is_denied_by_the_policy_is_not_asked_about(world: World, pushed: list[str]) -> None:
    """An error with its reason, and the model goes on; a repository can only tighten."""
    rules = (
        "{tool: run, command: [git, push], verdict: deny, why: we push}",
        "{tool: read, path: 's/*', verdict: ask, why: s}",
    )
    world.github.files[".github/issuewright.yml"] = f"version: 1\nrules: [{', '.join(rules)}]\n".encode()
    task, one = await world.begin()
    script = await whole(world, one, *STORY, reply(read("s/x"), finish()), *DONE)
    assert (await ended(world, task)).outcome == "waiting"
    (result,) = results(script.prompts[3].messages[-1:])
    assert result.text == "Denied by the policy here: we push (repository[0]). It was not carried out."
    assert pushed == []
    (asked,) = await waiting_for(world.store, task)
    assert asked.shown == "read s/x"
    given = results((await world.store.messages(task.id))[-1:])
    assert given[1].text == "Not executed: a call before it waits for a person's approval."


async def test_a_pattern_is_allowed_for_the_rest_of_the_task(world: World, pushed: list[str]) -> None:
    """What fits it is asked about no more, and the pull request says who allowed it; other tasks ask on."""
    task, _ = await waits(world)
    said = await yes(world, always="git push origin")
    assert "commands that begin `git push origin`" in said.text
    force = "git push origin --force && npm publish"
    _, script = await go_on(world, reply(run(PUSH)), reply(run(force)))
    assert pushed == [PUSH, PUSH]
    assert "was approved by maria" in told(script)
    (asked,) = await waiting_for(world.store, task)
    assert asked.shown == force
    await no(world, short=asked.hash[:8])
    await go_on(world, key="third")
    (pull,) = world.github.pulls.values()
    assert "Approved always in this task by `maria`" in pull.body
    await waits(world, key="other", number=8)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("g*", "its first word has to name a program"),
        ("/.*/ push", "it may not hold a regular expression"),
        ("npm test", "it does not cover all of the call that waits"),
        ("x" * 200, "it has to have 1 to 160 characters"),
    ],
)
async def test_a_pattern_says_what_it_means(world: World, pattern: str, why: str) -> None:
    """One that allows everything, or not even what waits, is refused with the decision."""
    task, _ = await waits(world)
    said = await yes(world, always=pattern)
    assert said.kind == "refused"
    assert why in said.text
    assert len(await waiting_for(world.store, task)) == 1


async def test_a_denial_is_not_lifted_by_a_pattern(world: World, pushed: list[str]) -> None:
    """`always` turns an ask into a yes, and nothing else."""
    await waits(world)
    await yes(world, always="git push")
    world.github.files[".github/issuewright.yml"] = (
        b"version: 1\nrules: [{tool: run, command: [git, push], verdict: deny, why: we push}]\n"
    )
    _, script = await go_on(world, reply(run(PUSH)), *DONE)
    assert results(script.prompts[1].messages[-1:])[0].text.startswith("Denied by the policy here: we push")
    assert pushed == []


async def test_who_is_there_is_asked_at_once(world: World, pushed: list[str]) -> None:
    """At the terminal a yes makes the call, and anything else is told to the model, which goes on."""
    answers = ["The person did not allow this call.", ""]

    async def permits(name: str, arguments: str, why: str) -> str:
        assert (name, json.loads(arguments)["command"]) == ("run", PUSH)
        assert why.startswith("it pushes")
        return answers.pop(0)

    world.permits = permits
    task, one = await world.begin()
    script = await whole(world, one, *STORY, reply(run(PUSH, "again")), *DONE)
    assert (await ended(world, task)).outcome == "done"
    assert results(script.prompts[3].messages[-1:])[0].text == "The person did not allow this call."
    assert pushed == [PUSH]
    assert await waiting_for(world.store, task) == []


async def test_where_nobody_can_answer_the_call_is_refused(world: World, pushed: list[str]) -> None:
    """In a job of GitHub Actions: the model hears it and goes on."""
    world.permits = nobody
    task, one = await world.begin()
    script = await whole(world, one, *STORY, *DONE)
    assert (await ended(world, task)).outcome == "done"
    assert "nobody can be asked at this point" in results(script.prompts[3].messages[-1:])[0].text
    assert pushed == []


async def test_who_plans_asks_nobody(world: World) -> None:
    """The repository's rules hold there too, and what they ask about is not done."""
    world.settings = ServerSettings(mode="plan")
    rule = "{tool: read, path: 's/*', verdict: ask, why: it is private}"
    world.github.files[".github/issuewright.yml"] = f"version: 1\nrules: [{rule}]\n".encode()
    world.shop = Shop({"rose.txt": b"dry\n", "s/x": b"secret\n"})
    task, one = await world.begin()
    plan = ToolCall("p", "propose_plan", json.dumps({"plan": "Water it.", "files": ["rose.txt"], "turns": 4}))
    script = await whole(world, one, reply(read("s/x")), reply(plan))
    text = results(script.prompts[1].messages[-1:])[0].text
    assert "A person would have to approve this call (it is private)" in text
    assert await waiting_for(world.store, task) == []


async def test_under_strict_commands_that_do_more_than_read_wait(world: World) -> None:
    """The operator's policy, or the repository's wish for it."""
    world.github.files[".github/issuewright.yml"] = b"version: 1\npolicy: strict\n"
    await waits(world, *WORK, reply(run("make")))
    assert "no rule allows it (`strict.otherwise` of the policy)" in world.github.bodies(7)[1]


async def test_a_task_that_is_dropped_waits_for_nothing(world: World, pushed: list[str]) -> None:
    """An approval that comes after a stop is refused."""
    task, asked = await waits(world)
    await drop(world.store, task, "maria", world.clock())
    assert (await yes(world)).kind == "refused"
    assert "does not count any more" in (await yes(world, asked.hash[:8], key="more")).text
    await go_on(world)
    assert pushed == []


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("at", range(1, 15))
async def test_a_death_at_any_step_of_asking_changes_nothing(world: World, at: int, *, inside: bool) -> None:
    """One comment, one request, the same end, wherever the worker dies."""
    task, one = await world.begin()
    script = Script(*STORY)
    steps = Mortal(world, one, at=at, inside=inside)
    try:
        await Workflow(world.desk(script))(one.id, steps)
    except Death:
        lost = inside and steps.names[-1].startswith("model/")
        await Workflow(world.desk(Script(*STORY[len(script.prompts) - lost :])))(one.id, Mortal(world, one))
    assert (await ended(world, task)).outcome == "waiting"
    assert len(await facts(world, task, ActionRequested)) == 1
    assert len(await waiting_for(world.store, task)) == 1
    assert [body.split(" ", 1)[0] for body in world.github.bodies(7)] == ["**Waiting", "@flora:"]
    before = await left(world, task)
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert await left(world, task) == before


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("at", range(1, 14))
async def test_a_death_at_any_step_of_carrying_out_repeats_nothing(
    world: World, at: int, pushed: list[str], *, inside: bool
) -> None:
    """At most once: where the worker died in the midst, people and model are told that nobody knows."""
    task, _ = await waits(world)
    await yes(world)
    _, one = await world.begin("second", comment_id=900, request="")
    script = Script(*DONE)
    steps = Mortal(world, one, at=at, inside=inside)
    prompts = script.prompts
    died = ""
    try:
        await Workflow(world.desk(script))(one.id, steps)
    except Death:
        died = steps.names[-1]
        further = Script(*DONE[len(script.prompts) - (inside and died.startswith("model/")) :])
        await Workflow(world.desk(further))(one.id, Mortal(world, one))
        prompts = [*further.prompts, *script.prompts]
    assert pushed == [PUSH]
    lost = died == "approved/1" and inside
    said = prompts[0].messages[-1].text
    assert ("it may have been carried out. It is not repeated" in said) is lost
    assert ("was approved by maria. The harness carried it out, once" in said) is not lost
    assert len(await facts(world, task, ActionCarriedOut)) == (0 if lost else 1)
    assert (await ended(world, task, 2)).outcome == "done"
    assert await waiting_for(world.store, task) == []


async def test_a_decision_in_the_midst_of_other_work_is_carried_out_behind_it(world: World, pushed: list[str]) -> None:
    """The run that is open looked for decisions before; the next one begins by itself."""
    task, _ = await waits(world)

    async def decide(_: Copy) -> ExecResult:
        assert (await yes(world)).kind == "approved"
        return ExecResult(0, "", "", 0.1, timed_out=False)

    world.commands["make"] = decide
    await go_on(world, reply(run("make")), reply(finish("Made.")))
    assert pushed == []
    await world.store.admit("us", slots=9, per_installation=9)
    third = await world.store.run(task.id, 3)
    assert third is not None
    assert (third.state, third.commanded) == ("running", True)
    await whole(world, third, *DONE)
    assert pushed == [PUSH]
    await world.store.admit("us", slots=9, per_installation=9)
    assert await world.store.run(task.id, 4) is None
