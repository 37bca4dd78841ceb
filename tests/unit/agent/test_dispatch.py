"""The calls of one reply: what reads goes side by side, all else alone and in order, and each gets one result."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.dispatch import CUT_OFF, MAX_CALLS, dispatch, refuse
from bot.domain.messages import Image, ToolCall, ToolResult
from bot.domain.plan import PlanItem
from bot.errors import SandboxError
from bot.tools.base import ToolOutput
from tests.unit.agent.made import Tools, answer, call, finish

CHANGES = ("edit", "run")


class Shop(Tools):
    """Tools of which some change things; each notes when it begins and ends, and lets its neighbours go first."""

    def __init__(self, tools: Mapping[str, Callable[[str], ToolOutput]] | None = None) -> None:
        super().__init__({"look": lambda path: ToolOutput(f"saw {path}", path), **(tools or {})})
        self.log: list[str] = []

    def reads_only(self, name: str) -> bool:
        """What is not named only reads."""
        return name not in CHANGES

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Take the longer the earlier the call stands."""
        self.log.append(f"{index}(")
        try:
            for _ in range(10 - index):
                await asyncio.sleep(0)
            return await super().call(turn, index, name, arguments)
        finally:
            self.log.append(f"){index}")


def look(path: str) -> ToolCall:
    """Read something."""
    return call("look", path)


def texts(results: tuple[ToolResult, ...]) -> list[str]:
    """Return what the model is told."""
    return [result.text for result in results]


def text_of(ending: ToolOutput | None) -> str:
    """Return what the call says that ends the loop."""
    assert ending is not None
    return ending.text


async def test_what_reads_goes_side_by_side_and_begins_in_order() -> None:
    """Neighbours that read begin in their order before one has ended; the results stand in the order of the calls."""
    tools = Shop()
    told = await dispatch(7, [look("a"), look("b"), look("c")], tools)
    assert tools.log == ["0(", "1(", "2(", ")2", ")1", ")0"]
    assert tools.called == [(7, 2, "look"), (7, 1, "look"), (7, 0, "look")]
    assert told.results == tuple(ToolResult("call-look", f"saw {path}") for path in "abc")
    assert told.ending is None
    assert told.readable
    assert told.ran == (True, True, True)


async def test_what_changes_something_goes_alone_and_in_order() -> None:
    """A change waits for all before it, and all behind it wait for the change."""
    tools = Shop({"edit": answer("edited"), "run": answer("ran")})
    await dispatch(1, [look("a"), look("b"), call("edit"), call("run"), look("a"), look("b"), call("edit")], tools)
    assert tools.log == ["0(", "1(", ")1", ")0", "2(", ")2", "3(", ")3", "4(", "5(", ")5", ")4", "6(", ")6"]


async def test_finish_goes_alone_although_it_changes_nothing() -> None:
    """What is called before `finish` has ended when it begins, and behind it nothing runs."""
    tools = Shop()
    told = await dispatch(1, [look("a"), finish("Done."), look("b"), call("edit")], tools)
    assert tools.log == ["0(", ")0", "1(", ")1"]
    assert text_of(told.ending) == "Done."
    assert [("`finish` was called before it" in text) for text in texts(told.results)] == [False, False, True, True]
    assert told.ran == (True, True, False, False)


async def test_a_look_that_fails_keeps_nothing_from_running() -> None:
    """An error of what only reads is a result; the calls behind it run."""
    tools = Shop({"bad": answer("no", is_error=True), "edit": answer("edited")})
    told = await dispatch(1, [call("bad"), call("nonsense"), call("edit"), finish("Done.")], tools)
    assert told.results[2] == ToolResult("call-edit", "edited")
    assert [result.is_error for result in told.results] == [True, True, False, False]
    assert text_of(told.ending) == "Done."


async def test_behind_a_change_that_failed_no_other_is_made() -> None:
    """Later changes and `finish` are told which call failed; what only reads runs all the same."""
    tools = Shop({"edit": answer("no such text", is_error=True), "run": answer("ran")})
    told = await dispatch(1, [look("a"), call("edit"), call("run"), look("b"), call("run", "{}"), finish()], tools)
    assert tools.called == [(1, 0, "look"), (1, 1, "edit"), (1, 3, "look")]
    assert told.ran == (True, True, False, True, False, False)
    for index in (2, 4, 5):
        assert told.results[index].is_error
        assert "call 2 of this reply, `edit`, failed" in told.results[index].text
        assert list(told.outputs[index].changed or ()) == []
    assert told.ending is None


async def test_a_command_with_an_exit_code_has_not_failed() -> None:
    """A test that fails is a result like any other: the edit behind it is made."""
    red = ToolOutput("exit code: 1", "pytest", changed=None, command="pytest", exit_code=1)
    tools = Shop({"run": lambda _: red, "edit": answer("edited")})
    assert (await dispatch(1, [call("run"), call("edit")], tools)).ran == (True, True)


async def test_the_same_look_is_done_once() -> None:
    """The second gets the result of the first with a note, under its own id, and without its pictures."""
    image = Image("image/png", "QUJD")
    tools = Shop({"look": lambda path: ToolOutput(f"saw {path}", path, images=[image])})
    told = await dispatch(1, [look("a"), call("look", "a", "again"), look("b"), call("look", "a", "third")], tools)
    assert sorted(tools.called) == [(1, 0, "look"), (1, 2, "look")]
    assert told.results[0] == ToolResult("call-look", "saw a", images=(image,))
    assert [result.call_id for result in told.results] == ["call-look", "again", "call-look", "third"]
    for index in (1, 3):
        note, _, text = told.results[index].text.partition("\n")
        assert "call 1 of this reply" in note
        assert text == "saw a"
        assert told.results[index].images == ()
    assert told.ran == (True, False, True, False)


async def test_the_same_change_is_made_once() -> None:
    """It counts as changed once, and an error is one for both."""
    edited = ToolOutput("edited", "a.py", changed=("a.py",))
    told = await dispatch(1, [call("edit"), look("a"), call("edit")], Shop({"edit": lambda _: edited}))
    assert [list(output.changed or ()) for output in told.outputs] == [["a.py"], [], []]
    assert told.results[2].text.endswith("\nedited")
    tools = Shop({"edit": answer("no such text", is_error=True)})
    told = await dispatch(1, [call("edit"), call("edit")], tools)
    assert [result.is_error for result in told.results] == [True, True]
    assert told.results[1].text.endswith("\nno such text")
    assert len(tools.called) == 1


async def test_the_same_call_behind_a_change_is_another_one() -> None:
    """A file that was edited meanwhile is read again, and a test is run again."""
    tools = Shop({"edit": answer("edited"), "run": answer("ran")})
    calls = [look("a"), call("run"), look("a"), call("edit"), call("run"), look("a")]
    assert all((await dispatch(1, calls, tools)).ran)


async def test_a_change_that_was_not_made_leaves_the_same_look_the_same() -> None:
    """Only what ran can have changed what is looked at."""
    tools = Shop({"edit": answer("no", is_error=True)})
    told = await dispatch(1, [call("edit"), look("a"), call("edit", "other"), look("a")], tools)
    assert told.ran == (True, True, False, False)


async def test_other_arguments_or_another_name_make_another_call() -> None:
    """Only the same name with the same arguments is the same call."""
    tools = Shop({"peek": answer("peeked")})
    assert all((await dispatch(1, [look("a"), look("b"), call("peek", "a")], tools)).ran)


async def test_the_last_plan_counts_though_it_was_made_before() -> None:
    """A plan that is said again stands behind what was said between."""
    tools = Shop({"plan": lambda text: ToolOutput(text, text, plan=[PlanItem(text, done=False)])})
    told = await dispatch(1, [call("plan", "a"), call("plan", "b"), call("plan", "a")], tools)
    assert [output.plan for output in told.outputs] == [[PlanItem(text, done=False)] for text in "aba"]
    assert told.ran == (True, True, False)


async def test_what_is_raised_waits_for_its_neighbours() -> None:
    """The first call that raised is the one that is heard, once all have ended, and nothing behind them begins."""

    def broken(name: str) -> ToolOutput:
        raise SandboxError(f"broken {name}")

    tools = Shop({"bad": broken})
    with pytest.raises(SandboxError, match="broken 1"):
        await dispatch(1, [look("0"), call("bad", "1"), call("bad", "2"), look("3"), call("edit")], tools)
    assert tools.log == ["0(", "1(", "2(", "3(", ")3", ")2", ")1", ")0"]


async def test_a_cancelled_dispatch_leaves_nothing_running() -> None:
    """Whoever cancels it cancels all neighbours."""
    tools = Shop()
    work = asyncio.ensure_future(dispatch(1, [look("a"), look("b")], tools))
    for _ in range(3):
        await asyncio.sleep(0)
    assert tools.log == ["0(", "1("]
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert set(tools.log) == {"0(", "1(", ")0", ")1"}
    assert tools.called == []


async def test_pictures_come_with_their_result() -> None:
    """What a tool shows is in the result of its own call."""
    image = Image("image/png", "QUJD")
    tools = Tools({"look": lambda _: ToolOutput("a dot", "look", images=[image]), "a": answer("A")})
    told = await dispatch(1, [call("look"), call("a")], tools)
    assert told.results == (ToolResult("call-look", "a dot", images=(image,)), ToolResult("call-a", "A"))


async def test_what_each_tool_gave_is_there_for_the_guards() -> None:
    """The outputs stand beside the results, those of calls that did not run too."""
    edit = ToolOutput("edited", "a.py", changed=("a.py",))
    told = await dispatch(1, [call("edit"), finish(), call("edit")], Shop({"edit": lambda _: edit}))
    assert told.outputs[0] == edit
    assert [output.finished for output in told.outputs] == [False, True, False]
    assert told.outputs[2].is_error


async def test_at_most_eight_calls_run() -> None:
    """Of more than eight calls the first eight run, and the rest are told to come again, a repeated one too."""
    tools = Tools({"a": answer("A")})
    calls = [call("a", str(count), str(count)) for count in range(MAX_CALLS + 3)]
    told = await dispatch(1, [*calls, call("a", "0", "same")], tools)
    assert len(tools.called) == MAX_CALLS == 8
    assert [result.call_id for result in told.results] == [*(str(count) for count in range(MAX_CALLS + 3)), "same"]
    assert all(result.is_error and "at most 8" in result.text for result in told.results[MAX_CALLS:])
    assert not any(result.is_error for result in told.results[:MAX_CALLS])


async def test_a_finish_beyond_the_eighth_call_does_not_end_it() -> None:
    """A `finish` that was not run ends nothing."""
    calls = [call("a", str(count)) for count in range(MAX_CALLS)]
    assert (await dispatch(1, [*calls, finish()], Tools({"a": answer("A")}))).ending is None


async def test_a_finish_that_cannot_be_read_ends_nothing() -> None:
    """Only a `finish` that worked ends the run."""

    class Strict(Tools):
        async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
            return ToolOutput("bad_arguments", name, is_error=True, malformed=True)

    told = await dispatch(1, [finish(), call("a")], Strict())
    assert told.ending is None
    assert not told.readable
    assert texts(told.results) == ["bad_arguments"] * 2


async def test_what_did_not_run_says_nothing_of_how_it_is_written() -> None:
    """A reply is readable where a call that ran was."""
    tools = Shop({"edit": answer("bad_arguments", is_error=True, malformed=True)})
    assert not (await dispatch(1, [call("edit"), call("run")], tools)).readable
    assert (await dispatch(1, [call("edit"), look("a")], tools)).readable


async def test_an_empty_summary_still_ends_it() -> None:
    """A `finish` without words ends the run all the same."""
    assert text_of((await dispatch(1, [finish("")], Tools())).ending) == ""


def test_a_refused_reply_has_one_result_for_each_call() -> None:
    """Each call of a cut-off reply is told that nothing ran."""
    told = refuse([call("a", "", "1"), call("b", "", "2")])
    assert told == (ToolResult("1", CUT_OFF, is_error=True), ToolResult("2", CUT_OFF, is_error=True))


@given(st.lists(st.tuples(st.sampled_from(["look", "edit", "run", "finish", "gone"]), st.sampled_from("ab"))))
async def test_any_reply_gets_a_result_for_each_call(drawn: list[tuple[str, str]]) -> None:
    """Whatever is called: results and calls in order, changes beside nothing, and none behind one that failed."""
    tools = Shop({"edit": lambda text: ToolOutput(text, text, is_error=text == "b"), "run": answer("ran")})
    calls = [call(name, text, str(index)) for index, (name, text) in enumerate(drawn)]
    told = await dispatch(1, calls, tools)
    assert [result.call_id for result in told.results] == [one.id for one in calls]
    begun = [int(entry[:-1]) for entry in tools.log if entry.endswith("(")]
    assert begun == [index for index, ran in enumerate(told.ran) if ran]
    alone = [index for index in begun if calls[index].name in {*CHANGES, "finish"}]
    for index in alone:
        at = tools.log.index(f"{index}(")
        open_before = sum(1 if entry.endswith("(") else -1 for entry in tools.log[:at])
        assert (open_before, tools.log[at + 1]) == (0, f"){index}")
    assert not [index for index in alone[:-1] if told.results[index].is_error]


class Company(Shop):
    """A shop whose commands may go side by side; notes which did."""

    def __init__(self, tools: Mapping[str, Callable[[str], ToolOutput]] | None = None) -> None:
        super().__init__({"run": lambda command: ToolOutput(f"ran {command}", command), **(tools or {})})
        self.groups: list[list[int]] = []

    async def together(self, turn: int, calls: Mapping[int, ToolCall]) -> Sequence[ToolOutput]:
        """Run them."""
        self.groups.append(list(calls))
        return await asyncio.gather(*(self.call(turn, index, one.name, one.arguments) for index, one in calls.items()))


async def test_neighbouring_commands_go_side_by_side_where_that_is_wished() -> None:
    """They wait for what stands before them, what stands behind them waits for all; one alone is a call as any."""
    tools = Company({"edit": answer("edited")})
    calls = [look("a"), call("run", "1"), call("run", "2"), call("edit"), call("run", "3"), look("b")]
    told = await dispatch(1, calls, tools, tools.together)
    assert tools.groups == [[1, 2]]
    assert tools.log == ["0(", ")0", "1(", "2(", ")2", ")1", "3(", ")3", "4(", ")4", "5(", ")5"]
    assert texts(told.results) == ["saw a", "ran 1", "ran 2", "edited", "ran 3", "saw b"]
    tools = Company({"edit": answer("edited")})
    assert await dispatch(1, calls, tools) == told
    assert tools.log[2:6] == ["1(", ")1", "2(", ")2"]


async def test_the_same_command_twice_in_a_group_is_run_once() -> None:
    """Behind the group nobody knows which was the last, so it is run again."""
    tools = Company()
    calls = [call("run", "1"), call("run", "2"), call("run", "1"), look("a"), call("run", "2"), call("run", "1")]
    told = await dispatch(1, calls, tools, tools.together)
    assert tools.groups == [[0, 1], [4, 5]]
    assert told.ran == (True, True, False, True, True, True)
    assert texts(told.results)[2].endswith("\nran 1")


async def test_a_command_that_failed_stops_what_comes_behind_its_group_alone() -> None:
    """Its neighbours have begun; later changes are told of the first that failed."""
    failing = {"2": ToolOutput("no", "2", is_error=True), "3": ToolOutput("no", "3", is_error=True)}
    tools = Company({"run": lambda command: failing.get(command, ToolOutput("ran", command))})
    calls = [*(call("run", str(n)) for n in range(1, 5)), look("a"), call("run", "5"), call("edit"), finish()]
    told = await dispatch(1, calls, tools, tools.together)
    assert told.ran == (True, True, True, True, True, False, False, False)
    assert [result.is_error for result in told.results[:4]] == [False, True, True, False]
    assert all("call 2 of this reply, `run`, failed" in result.text for result in told.results[5:])


async def test_a_group_has_at_most_eight() -> None:
    """The ninth command is told to come again."""
    tools = Company()
    told = await dispatch(1, [call("run", str(n)) for n in range(MAX_CALLS + 1)], tools, tools.together)
    assert tools.groups == [list(range(MAX_CALLS))]
    assert told.results[-1].is_error
