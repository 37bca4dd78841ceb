"""What people ask for beside work: plans that are approved and changed, questions, another try, money, a model."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from bot.domain.events import PlanProposed, RunStarted
from bot.domain.refs import Actor
from bot.domain.task import Run, Task
from bot.errors import ModelRejected, RunEnding
from bot.settings.server import LimitsSection, ModelsSection, ServerSettings
from bot.tasks.orders import Handled
from bot.tasks.plans import open_plan
from bot.tasks.workflow import Workflow
from tests.unit.store.made import request
from tests.unit.tasks.github import pull
from tests.unit.tasks.made import Script, World, finish, read, reply, write
from tests.unit.tasks.test_intake import FLORA, Door
from tests.unit.tasks.test_planning import WATER, WORKED, facts_of, propose, text_of
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

PLANS = ServerSettings(mode="plan")
LINES = count(90_000)
LATER = "2031-01-01T00:00:00Z"


@pytest.fixture
def door(world: World) -> Door:
    """Where plans wait."""
    world.settings = PLANS
    return Door(world, PLANS)


async def taken(world: World, handled: Handled) -> Run:
    """Take the run that a command queued."""
    assert handled.accepted is not None, handled.note
    assert handled.accepted.kind in {"new", "again"}, handled.note
    await world.store.admit("us", slots=9, per_installation=9)
    run = await world.store.run(handled.accepted.task.id, handled.accepted.run.seq)
    assert run is not None
    return run


async def planned(door: Door, *plans: str) -> Task:
    """Let a plan wait, and each further one take the place of the one before."""
    handled = await door.comment("/agent fix")
    for number, plan in enumerate(plans):
        if number:
            handled = await door.comment(f"/agent plan Not so, but {plan}")
        await whole(door.world, await taken(door.world, handled), reply(propose(plan)))
    assert handled.accepted is not None
    return handled.accepted.task


async def hashes(door: Door, task: Task) -> list[str]:
    """Return the hashes of the task's plans, in their order."""
    plans = await facts_of(door.world, task, PlanProposed)
    return [plan.hash for plan in plans if isinstance(plan, PlanProposed)]


async def refused(door: Door, text: str) -> str:
    """Give a command that begins nothing, and return the line that answers it."""
    handled = await door.comment(text)
    assert handled.accepted is None, handled.note
    return door.world.github.bodies(7)[-1]


@pytest.mark.parametrize("how", ["", " {short}", " {whole}", " {capital}"])
async def test_an_approved_plan_is_carried_out(door: Door, how: str) -> None:
    """By its hash, short or whole, or without one: the one that stands there."""
    task = await planned(door, WATER)
    [whole_hash] = await hashes(door, task)
    assert f"**plan `{whole_hash[:8]}` waits for you.**" in door.world.github.bodies(7)[-1]
    assert f"`/agent approve {whole_hash[:8]}` lets the work begin" in door.world.github.bodies(7)[-1]
    words = how.format(short=whole_hash[:8], whole=whole_hash, capital=whole_hash[:12].upper())
    run = await taken(door.world, await door.comment(f"/agent approve{words}"))
    script = await whole(door.world, run, *WORKED)
    assert WATER in text_of(script.prompts[0].messages)
    assert (await ended(door.world, task, 2)).outcome == "done"


async def test_what_is_said_beside_a_yes_reaches_the_work(door: Door) -> None:
    """It decides nothing, and is not lost."""
    await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent approve\n\nBut keep the pot."))
    script = await whole(door.world, run, *WORKED)
    told = text_of(script.prompts[0].messages)
    assert WATER in told
    assert "But keep the pot." in told


async def test_a_plan_that_is_changed_supersedes_the_first(door: Door) -> None:
    """Who plans sees the first one and what is wanted; its comment says that it is superseded, and by which."""
    task = await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent plan Ask the gardener first."))
    script = await whole(door.world, run, reply(propose("Ask, then water.")))
    [prompt] = script.prompts
    told = text_of(prompt.messages)
    assert told.index(WATER) < told.index("A person wants it changed:") < told.index("Ask the gardener first.")
    assert {tool.name for tool in prompt.tools} == {"ci_logs", "ci_status", "list", "propose_plan", "read", "search"}
    first, second = await hashes(door, task)
    _, old, _, new = door.world.github.bodies(7)
    assert old.startswith(f"**Superseded.** Plan `{first[:8]}` is no longer to be decided about; plan `{second[:8]}`")
    assert f"`/agent approve {second[:8]}`" in new
    assert (await ended(door.world, task, 2)).outcome == "waiting"
    run = await taken(door.world, await door.comment("/agent approve"))
    script = await whole(door.world, run, *WORKED)
    told = text_of(script.prompts[0].messages)
    assert "Ask, then water." in told
    assert WATER not in told
    assert "Ask the gardener first." in told


async def test_a_superseded_plan_cannot_be_approved(door: Door) -> None:
    """Nothing begins, and the line names the plan that stands."""
    task = await planned(door, WATER, "Dig.")
    first, second = await hashes(door, task)
    said = await refused(door, f"/agent approve {first[:8]}")
    assert said.startswith(f"Plan `{first[:8]}` is superseded by plan `{second[:8]}`.")
    assert "Nothing was approved." in said


async def test_a_bare_yes_means_the_plan_that_stood_there(door: Door) -> None:
    """A comment that was written before the newest plan was there cannot mean it, however late it is delivered."""
    task = await planned(door, WATER, "Dig.")
    plan = await open_plan(door.world.store, task)
    assert plan is not None
    assert plan.comment_id is not None
    early = {"id": plan.comment_id - 1, "body": "/agent approve"}
    handled = await door.play_comment(early)
    assert handled.accepted is None
    assert "The plan that stood here when you wrote that is superseded" in door.world.github.bodies(7)[-1]
    late = {"id": plan.comment_id + 1, "body": "/agent approve"}
    assert (await door.play_comment(late)).accepted is not None


@pytest.mark.parametrize(
    "text", ["/agent approve", "/agent approve 1a2b3c4d", "/agent deny", "/agent approve always x"]
)
async def test_where_nothing_waits_nothing_is_approved(door: Door, text: str) -> None:
    """Neither without a task nor behind one that is done; the hash of another task is unknown here."""
    assert (await refused(door, text)).startswith("There is no task on this thread.")
    await whole(door.world, await taken(door.world, await door.comment("/agent fix")), reply(propose()))
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    said = await refused(door, text)
    assert said.startswith(("Nothing waited for a decision here", "Nothing in this task has the hash `1a2b3c4d`"))


async def test_who_may_not_write_decides_nothing(door: Door) -> None:
    """Whoever they are, the plan goes on waiting."""
    task = await planned(door, WATER)
    for text in ("/agent approve", "/agent plan Dig.", "/agent deny", "/agent budget 3", "/agent model openai:x"):
        handled = await door.comment(text, person={"id": 2, "login": "moss", "type": "User"})
        assert handled.accepted is None
        assert "needs write access" in door.world.github.bodies(7)[-1]
    assert await open_plan(door.world.store, task) is not None


@pytest.mark.parametrize("text", ["/agent deny", "/agent deny {short} Dig instead.", "/agent deny Dig instead."])
async def test_a_plan_is_not_denied(door: Door, text: str) -> None:
    """People hear how they say what is wrong with it."""
    task = await planned(door, WATER)
    [short] = [one[:8] for one in await hashes(door, task)]
    said = await refused(door, text.format(short=short))
    assert said.startswith(f"What waits here is plan `{short}`: `/agent plan <text>` says what to change")


async def test_talk_decides_nothing(door: Door) -> None:
    """No words of any kind but a command do."""
    task = await planned(door, WATER)
    for text in ("approve", "LGTM, go ahead", "> /agent approve", "yes", "👍"):
        assert (await door.comment(text)).state == "ignored"
    assert await open_plan(door.world.store, task) is not None


async def test_a_question_is_answered_and_the_plan_goes_on_waiting(door: Door) -> None:
    """With tools that only read, in one comment; the work knows what was asked and answered."""
    task = await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent ask Why is it dry?"))
    assert run.intent == "ask"
    script = await whole(door.world, run, reply(read("rose.txt")), reply(finish("It did not rain. @octo/all")))
    told = text_of(script.prompts[0].messages)
    assert WATER in told
    assert "Why is it dry?" in told
    offered = {tool.name for tool in script.prompts[0].tools}
    assert offered == {"ci_logs", "ci_status", "finish", "list", "read", "search"}
    *_, answer = bodies = door.world.github.bodies(7)
    assert len(bodies) == 3
    assert answer.startswith("> Why is it dry?")
    assert "> It did not rain." in answer
    assert "@octo/all" not in answer
    assert "Nothing was changed by this." in answer
    assert world_branches(door) == ["main"]
    plan = await open_plan(door.world.store, task)
    assert plan is not None
    run = await taken(door.world, await door.comment("/agent approve"))
    script = await whole(door.world, run, *WORKED)
    told = text_of(script.prompts[0].messages)
    assert "Why is it dry?" in told
    assert "It did not rain." in told
    [made] = door.world.github.pulls.values()
    assert "Why is it dry?" not in made.body


def world_branches(door: Door) -> list[str]:
    """Return the remote's branches."""
    return sorted(door.world.shop.branches)


async def test_a_question_on_a_thread_without_a_task(door: Door) -> None:
    """It begins one, in which nothing waits; the first work knows nothing of a plan."""
    run = await taken(door.world, await door.comment("/agent ask What is this?"))
    await whole(door.world, run, reply(finish("A garden.")))
    [answer] = door.world.github.bodies(7)
    assert "> A garden." in answer
    assert (await refused(door, "/agent approve")).startswith("Nothing waited for a decision here")
    assert (await refused(door, "/agent stop")).startswith("Nothing is running on this thread.")


async def test_what_fails_to_answer_says_so(door: Door) -> None:
    """In a progress comment, as any other run; the plan goes on waiting."""
    task = await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent ask Why?"))
    await whole(door.world, run, reply(finish("  ")))
    assert (await ended(door.world, task, 2)).outcome == "failed"
    assert "The model gave no answer." in door.world.github.bodies(7)[-1]
    assert await open_plan(door.world.store, task) is not None


async def test_what_waits_can_be_dropped_behind_a_question(door: Door) -> None:
    """The plan is dropped, and not the answer."""
    task = await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent ask Why?"))
    await whole(door.world, run, reply(finish("So.")))
    assert (await door.comment("/agent stop")).note.startswith("dropped")
    assert await open_plan(door.world.store, task) is None
    assert (await refused(door, "/agent approve")).startswith("Nothing waited for a decision here")


@pytest.mark.parametrize("text", ["/agent plan", "/agent ask Why?", "/agent retry", "/agent budget 3"])
async def test_at_work_only_words_are_heard(door: Door, text: str) -> None:
    """What would begin a run of another kind is refused with what can be done instead."""
    handled = await door.comment("/agent fix")
    await taken(door.world, handled)
    said = await refused(door, text)
    assert said.startswith(f"The task is at work, and `{text.split()[1]}` can be asked for when it is not")


async def test_what_comes_as_a_run_ends_is_not_refused(door: Door) -> None:
    """People see a plan a moment before its run is closed: what they ask for then is done behind it."""
    run = await taken(door.world, await door.comment("/agent fix"))
    fact = PlanProposed(1, WATER, ["rose.txt"], 4, (), "Work begins when somebody says so.", "ab" * 32)
    await door.world.store.record(run.task_id, 1, "plan/1", fact, door.world.clock())
    with pytest.raises(RunEnding) as raised:
        await door.comment("/agent ask Why?")
    assert raised.value.retryable
    with pytest.raises(RunEnding):
        # Whether the plan's comment stood there is not known before it does.
        await door.comment("/agent approve")
    handled = await door.comment("/agent approve abababab")
    assert handled.accepted is not None
    assert handled.accepted.kind == "joined"


async def test_another_try_asks_for_the_same(door: Door) -> None:
    """With the same words and model, on the same branch."""
    door.world.settings = ServerSettings()
    run = await taken(door.world, await door.comment("/agent fix --model openai:x Only the red ones."))
    await whole(door.world, run, reply(finish("Cannot.")))
    again = await taken(door.world, await door.comment("/agent retry"))
    assert (again.request, again.model, again.fresh) == ("Only the red ones.", "openai:x", False)
    assert (await refused(door, "/agent retry")).startswith("The task is at work")


async def test_another_try_from_the_beginning(world: World) -> None:
    """On another branch, from the base, with another pull request; what was said and done is not known any more."""
    door = Door(world, ServerSettings())
    run = await taken(world, await door.comment("/agent fix Water."))
    await whole(world, run, *WORKED)
    [first] = world.github.pulls.values()
    again = await taken(world, await door.comment("/agent retry --fresh"))
    script = await whole(world, again, reply(read("rose.txt")), reply(write("rose.txt", "soaked")), reply(finish()))
    [first_message] = script.prompts[0].messages
    assert "Water." in first_message.text
    task = await world.store.task(run.task_id)
    assert task is not None
    assert task.branch == f"{first.head_branch}-2"
    assert world.shop.commits[world.shop.branches[first.head_branch]] == {"rose.txt": b"wet"}
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"soaked"}
    assert sorted(one.head_branch for one in world.github.pulls.values()) == [first.head_branch, task.branch]
    further = await taken(world, await door.comment("/agent fix More."))
    script = await whole(world, further, reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    calls = [call.arguments for message in script.prompts[0].messages for call in message.calls]
    assert any("soaked" in arguments for arguments in calls)
    assert not any("Watered them." in arguments for arguments in calls)


async def test_a_budget_goes_on_with_what_a_limit_cut_short(world: World) -> None:
    """Once, with as many dollars as were given, but no more than the operator allows; the pull request says so."""
    world.settings = ServerSettings(limits=LimitsSection(turns=2, budget_usd=5))
    door = Door(world, world.settings)
    run = await taken(world, await door.comment("/agent fix"))
    task = (await world.store.tasks())[0]
    await whole(world, run, reply(read("rose.txt")), reply(write("rose.txt", "wet")))
    assert (await ended(world, task)).outcome == "budget"
    assert "`/agent budget <usd>`" in world.github.bodies(7)[-1]
    for asked, given in (("3.50", 3.5), ("50", 5.0)):
        run = await taken(world, await door.comment(f"/agent budget {asked}"))
        await whole(world, run, reply(read("rose.txt")), reply(write("rose.txt", asked)))
        *_, started = await facts_of(world, task, RunStarted)
        assert isinstance(started, RunStarted)
        assert started.settings["limits.usd"] == given
    assert "`budget 50` in the command was not applied: the operator allows 5." in world.github.bodies(7)[-1]


async def test_money_approves_nothing(world: World) -> None:
    """Planning that a limit cut short goes on as planning, with what it was asked for and the model of then."""
    world.settings = ServerSettings(limits=LimitsSection(turns=1))
    door = Door(world, world.settings)
    run = await taken(world, await door.comment("/agent plan Only the red ones."))
    await whole(world, run, reply(read("rose.txt")))
    task = (await world.store.tasks())[0]
    assert (await ended(world, task)).outcome == "budget"
    run = await taken(world, await door.comment("/agent budget 3"))
    script = await whole(world, run, reply(propose()))
    assert "propose_plan" in {tool.name for tool in script.prompts[0].tools}
    assert text_of(script.prompts[0].messages).count("Only the red ones.") == 1
    assert (await ended(world, task, 2)).outcome == "waiting"


@pytest.mark.parametrize("command", ["/agent fix", "/agent retry"])
async def test_what_planning_was_asked_for_is_not_lost(world: World, command: str) -> None:
    """Where it ended before there was a plan, who goes on knows the words, once."""
    world.settings = ServerSettings(mode="plan", limits=LimitsSection(turns=1))
    door = Door(world, world.settings)
    run = await taken(world, await door.comment("/agent fix Only the red ones."))
    await whole(world, run, reply(read("rose.txt")))
    run = await taken(world, await door.comment(command))
    script = await whole(world, run, reply(propose()))
    assert text_of(script.prompts[0].messages).count("Only the red ones.") == 1


async def test_no_budget_is_given_to_what_needs_none(world: World) -> None:
    """A run that came to its own end did not stop for money."""
    door = Door(world, world.settings)
    await whole(world, await taken(world, await door.comment("/agent fix")), *WORKED)
    assert (await refused(door, "/agent budget 3")).startswith("No run of this task waits for a budget")


async def test_a_model_for_what_comes(world: World) -> None:
    """Further runs use it where they name none; one that the operator does not allow changes nothing."""
    settings = ServerSettings(models=ModelsSection(allowed=("openai:*",)))
    door = Door(world, settings)
    assert (await refused(door, "/agent model openai:x")).startswith("There is no task on this thread.")
    await whole(world, await taken(world, await door.comment("/agent fix")), *WORKED)
    assert (await refused(door, "/agent model google:y")).startswith("Who runs this server does not allow `google:y`")
    assert (await refused(door, "/agent model openai:x")).startswith("Further runs of this task use `openai:x`.")
    run = await taken(world, await door.comment("/agent fix"))
    assert run.model == "openai:x"
    await whole(world, run, *WORKED)
    named = await taken(world, await door.comment("/agent fix --model openai:z"))
    assert named.model == "openai:z"


async def test_another_try_uses_the_model_that_was_chosen_since(world: World) -> None:
    """And else that of the run that it repeats."""
    door = Door(world, ServerSettings(models=ModelsSection(allowed=("openai:*",))))
    await whole(world, await taken(world, await door.comment("/agent fix")), reply(finish("Cannot.")))
    await door.comment("/agent model openai:a")
    first = await taken(world, await door.comment("/agent retry"))
    assert first.model == "openai:a"
    await whole(world, first, reply(finish("Cannot.")))
    await door.comment("/agent model openai:b")
    second = await taken(world, await door.comment("/agent retry"))
    assert second.model == "openai:b"
    await whole(world, second, reply(finish("Cannot.")))
    named = await taken(world, await door.comment("/agent fix --model openai:c"))
    await whole(world, named, reply(finish("Cannot.")))
    assert (await taken(world, await door.comment("/agent retry"))).model == "openai:c"


async def test_our_name_is_another_word_for_a_command(door: Door) -> None:
    """As people call anybody else; somebody else's name is none of our business."""
    for text in ("@somebody fix", "thanks @wright fix", "@wrights fix"):
        assert (await door.comment(text)).state == "ignored"
    handled = await door.comment("@wright fix Only the red ones.")
    assert handled.accepted is not None
    assert handled.accepted.run.request == "Only the red ones."


async def test_a_known_request_is_one_request(world: World) -> None:
    """A delivery that comes twice begins one run, of whichever kind."""
    one = replace(request("first"), intent="plan", joins=False)
    assert [(await world.store.accept(one, world.clock())).kind for _ in range(2)] == ["new", "known"]
    other = replace(request("second"), intent="ask", joins=False)
    assert (await world.store.accept(other, world.clock())).kind == "busy"


async def test_another_try_of_a_plan_that_waits_is_another_plan(door: Door) -> None:
    """Nobody approved the first one, so it is not carried out."""
    await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent retry"))
    assert run.intent == "plan"
    script = await whole(door.world, run, reply(propose("Dig.")))
    assert "A person wants another one." in text_of(script.prompts[0].messages)
    assert door.world.github.pulls == {}


async def test_a_question_beside_a_plan_makes_others_wait_no_longer_than_it_lasts(door: Door) -> None:
    """The plan is of another run: what cannot be done now is refused with words, and not tried for minutes."""
    await planned(door, WATER)
    await taken(door.world, await door.comment("/agent ask Why?"))
    for text in ("/agent plan Dig.", "/agent retry", "/agent ask So?", "/agent budget 3"):
        said = await refused(door, text)
        assert said.startswith(("The task is at work, and", "No run of this task waits for a budget"))


async def test_a_yes_during_a_question_lets_the_work_begin_behind_it(door: Door) -> None:
    """However it was said: the run of the question does not swallow it."""
    task = await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent ask Why?"))
    [short] = [one[:8] for one in await hashes(door, task)]
    joined = await door.comment(f"/agent approve {short}")
    assert joined.accepted is not None
    assert joined.accepted.kind == "joined"
    await whole(door.world, run, reply(finish("So.")))
    await door.world.store.admit("us", slots=9, per_installation=9)
    further = await door.world.store.run(task.id, 3)
    assert further is not None
    assert (further.commanded, further.requester, further.requester_id) == (True, "flora", 1)
    await whole(door.world, further, *WORKED)
    assert (await ended(door.world, task, 3)).outcome == "done"


def on_line(text: str, number: int = 7) -> dict[str, object]:
    """Write a comment on a line."""
    return {
        "action": "created",
        "sender": FLORA,
        "pull_request": {"number": number, "title": "T", "body": "", "user": FLORA},
        "comment": {"id": next(LINES), "body": text, "user": FLORA, "path": "rose.txt", "created_at": LATER},
    }


def reviewed(text: str) -> dict[str, object]:
    """Write a review that only comments."""
    review = {"id": next(LINES), "state": "commented", "body": text, "user": FLORA, "submitted_at": LATER}
    return {
        "action": "submitted",
        "sender": FLORA,
        "pull_request": {"number": 7, "title": "T", "user": FLORA},
        "review": review,
    }


@pytest.mark.parametrize(
    ("event", "made"), [("pull_request_review_comment", on_line), ("pull_request_review", reviewed)]
)
async def test_elsewhere_a_yes_needs_the_hash(door: Door, event: str, made: Callable[[str], dict[str, object]]) -> None:
    """On a line, and in a review of anything but the plan, nobody knows what stood there: our clock is not GitHub's."""
    world = door.world
    world.github.pulls[7] = pull(7, "flora-branch")
    handled = await door.comment("/agent plan", pr=True)
    await whole(world, await taken(world, handled), reply(propose()))
    assert handled.accepted is not None
    [short] = [one[:8] for one in await hashes(door, handled.accepted.task)]
    assert (await door.play(event, **made("/agent approve"))).accepted is None
    assert world.github.bodies(7)[-1].startswith(f"Say what is decided: `/agent approve {short}`.")
    assert (await door.play(event, **made(f"/agent approve {short}"))).accepted is not None


async def test_the_files_of_a_superseded_plan_are_not_agreed_to(door: Door) -> None:
    """Also where the next plan has the same words: what the approved one does not name waits."""
    workflow = ".github/workflows/ci.yml"
    task = await planned(door, WATER)
    run = await taken(door.world, await door.comment("/agent plan The workflow too."))
    await whole(door.world, run, reply(propose(WATER, files=["rose.txt", workflow])))
    run = await taken(door.world, await door.comment("/agent plan Not the workflow."))
    await whole(door.world, run, reply(propose(WATER)))
    run = await taken(door.world, await door.comment("/agent approve"))
    await whole(door.world, run, reply(write(workflow, "on: push")), reply(finish()))
    fact = await ended(door.world, task, run.seq)
    assert fact.outcome == "waiting"
    assert sorted(door.world.shop.branches) == ["main"]


async def test_what_a_fresh_try_left_behind_stops_nothing(world: World) -> None:
    """Closing the pull request of the first try says nothing of the second."""
    door = Door(world, ServerSettings())
    await whole(world, await taken(world, await door.comment("/agent fix Water.")), *WORKED)
    [old] = world.github.pulls
    await taken(world, await door.comment("/agent retry --fresh"))
    closed = await door.play(
        "pull_request",
        action="closed",
        sender=FLORA,
        pull_request={"number": old, "title": "T", "user": FLORA, "closed_at": "x"},
    )
    assert closed.state == "ignored"
    assert door.stopped == []


async def test_a_stop_that_is_delivered_twice_stops_once(world: World) -> None:
    """What was begun behind it goes on."""
    door = Door(world, ServerSettings())
    run = await taken(world, await door.comment("/agent fix"))
    stop = {"id": 900_000, "body": "/agent stop"}
    await door.play_comment(stop)
    assert door.stopped == [run.id]
    await world.store.finish(run.task_id, 1, "stopped", "", world.clock())
    await taken(world, await door.comment("/agent fix"))
    await door.play_comment(stop)
    assert door.stopped == [run.id]


ASKING = ["announce", "prepare", "model/1", "tool/1/0", "answer", "report", "close"]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("at", range(1, len(ASKING) + 1))
async def test_a_death_at_any_step_of_answering_changes_nothing(door: Door, at: int, *, inside: bool) -> None:
    """There is one answer in the end, and the plan goes on waiting."""
    world, task = door.world, await planned(door, WATER)
    run = await taken(world, await door.comment("/agent ask Why?"))
    script = Script(reply(finish("It did not rain.")))
    with pytest.raises(Death):
        await Workflow(world.desk(script))(run.id, Mortal(world, run, at=at, inside=inside))
    steps = Mortal(world, run)
    await Workflow(world.desk(Script(reply(finish("It did not rain.")))))(run.id, steps)
    assert steps.names == ASKING
    assert (await ended(world, task, 2)).outcome == "done"
    assert [body.startswith("> Why?") for body in world.github.bodies(7)] == [False, False, True]
    assert await open_plan(world.store, task) is not None


@pytest.mark.parametrize(
    ("ours", "person", "is_open", "heard"),
    [
        (True, FLORA, True, True),
        (False, FLORA, True, False),
        (True, {"id": 2, "login": "moss", "type": "User"}, True, False),
        (True, {"id": 3, "login": "robot[bot]", "type": "Bot"}, True, False),
        (True, FLORA, False, False),
    ],
)
async def test_a_reply_to_us_reaches_the_run(
    world: World, person: dict[str, object], *, ours: bool, is_open: bool, heard: bool
) -> None:
    """While one is open, and only of those who may write; in nobody else's thread."""
    door = Door(world, ServerSettings())
    await whole(world, await taken(world, await door.comment("/agent fix")), *WORKED)
    [number] = world.github.pulls
    reviews = world.github.reviews
    author = reviews.us if ours else Actor(1, "flora")
    thread = reviews.begin(number, reviews.review(number, author, "COMMENTED"), "rose.txt", 1, "Look here.")
    if is_open:
        await taken(world, await door.comment("/agent fix More."))
    said = {
        "id": 9_000,
        "body": "Take the red one.",
        "user": person,
        "in_reply_to_id": thread.comments[0].id,
        "path": "x",
    }
    handled = await door.play(
        "pull_request_review_comment",
        action="created",
        sender=person,
        pull_request={"number": number, "title": "T", "body": "", "user": FLORA},
        comment=said,
    )
    [task] = await world.store.tasks()
    told = 'In reply to what you said on x: "Look here."\nTake the red one.'
    assert [item.text for item in await world.store.inbox(task.id)] == ([told] if heard else [])
    assert (handled.state == "done") is heard


FERN = {"id": 4, "login": "fern", "type": "User"}


@pytest.fixture
def several(world: World) -> Door:
    """Where a plan takes two people."""
    world.settings = ServerSettings(mode="plan", require_approvals=2)
    door = Door(world, world.settings)
    world.github.permissions[4] = "write"
    return door


async def test_two_people_have_to_approve_a_plan(several: Door) -> None:
    """Two different ones; the same person twice, and one who may not write, are no second."""
    task = await planned(several, WATER)
    [short] = [one[:8] for one in await hashes(several, task)]
    for text in ("/agent approve", f"/agent approve {short}"):
        said = await refused(several, text)
        assert said.startswith(f"`flora` approves plan `{short}`. It takes 2 people here:")
    assert (await several.comment("/agent approve", person={"id": 2, "login": "moss", "type": "User"})).accepted is None
    run = await taken(several.world, await several.comment(f"/agent approve {short}", person=FERN))
    await whole(several.world, run, *WORKED)
    assert (await ended(several.world, task, 2)).outcome == "done"


async def test_two_who_approve_at_once_are_two(several: Door) -> None:
    """Neither vote is lost, however their deliveries meet; the work begins once."""
    await planned(several, WATER)
    handled = await asyncio.gather(several.comment("/agent approve"), several.comment("/agent approve", person=FERN))
    assert sorted(one.accepted is not None for one in handled) == [False, True]


async def test_who_may_write_no_more_counts_no_more(several: Door) -> None:
    """GitHub is asked again about those who approved before."""
    task = await planned(several, WATER)
    await refused(several, "/agent approve")
    several.world.github.permissions[1] = "read"
    assert (await several.comment("/agent approve", person=FERN)).accepted is None
    several.world.github.permissions[1] = "admin"
    assert (await several.comment("/agent approve")).accepted is not None
    assert await several.world.store.open_run(task.id) is not None


async def test_what_was_stopped_brings_no_plan_back(several: Door) -> None:
    """A plan that was to be another one is not carried out at one person's word behind a stop, or where that failed."""
    world = several.world
    task = await planned(several, WATER)
    for text, last in (("/agent plan Dig.", "stopped"), ("/agent plan Dig deeper.", "failed")):
        run = await taken(world, await several.comment(text))
        if last == "stopped":
            await several.comment("/agent stop")
        await whole(world, run, ModelRejected("no such model"))
        assert (await ended(world, task, run.seq)).outcome == last
        script = await whole(world, await taken(world, await several.comment("/agent fix")), reply(propose("Dig.")))
        assert "propose_plan" in {tool.name for tool in script.prompts[0].tools}
        assert WATER not in text_of(script.prompts[0].messages)


async def test_a_stop_takes_back_what_several_approved(several: Door) -> None:
    """Though the work had not begun: one of them alone does not bring it back."""
    world = several.world
    await planned(several, WATER)
    await refused(several, "/agent approve")
    run = await taken(world, await several.comment("/agent approve", person=FERN))
    await several.comment("/agent stop")
    await whole(world, run)
    script = await whole(world, await taken(world, await several.comment("/agent fix")), reply(propose("Dig.")))
    assert "propose_plan" in {tool.name for tool in script.prompts[0].tools}
    assert WATER not in text_of(script.prompts[0].messages)


async def test_votes_are_for_one_plan(several: Door) -> None:
    """A stop takes them back, though the next plan may say the same words."""
    await planned(several, WATER)
    await refused(several, "/agent approve")
    await several.comment("/agent stop")
    await whole(several.world, await taken(several.world, await several.comment("/agent plan")), reply(propose(WATER)))
    assert (await several.comment("/agent approve", person=FERN)).accepted is None
    assert (await several.comment("/agent approve")).accepted is not None


async def test_where_several_decide_one_cannot_begin_at_once(several: Door) -> None:
    """Neither by `fix` nor by an answer; another plan needs its own approvals."""
    task = await planned(several, WATER)
    await refused(several, "/agent approve")
    assert "takes the approval of 2 people here" in await refused(several, "/agent fix")
    run = await taken(several.world, await several.comment("/agent plan Dig."))
    await whole(several.world, run, reply(propose("Dig.", questions=["Where?"])))
    assert "takes the approval of 2 people here" in await refused(several, "/agent answer There.")
    assert (await several.comment("/agent approve", person=FERN)).accepted is None
    assert await open_plan(several.world.store, task) is not None
