"""The calls of one reply run in order, and each gets one result."""

from bot.agent.dispatch import CUT_OFF, MAX_CALLS, dispatch, refuse
from bot.domain.messages import Image, ToolResult
from bot.tools.base import ToolOutput
from tests.unit.agent.made import Tools, answer, call, finish


async def test_calls_run_in_order_with_their_turn_and_index() -> None:
    """Calls run one after another, each with its turn and index."""
    tools = Tools({"a": answer("A"), "b": answer("B", is_error=True)})
    given = await dispatch(7, [call("b"), call("a"), call("b")], tools)
    assert tools.called == [(7, 0, "b"), (7, 1, "a"), (7, 2, "b")]
    assert [result.text for result in given.results] == ["B", "A", "B"]
    assert [result.is_error for result in given.results] == [True, False, True]
    assert given.summary is None
    assert given.readable


async def test_a_failure_does_not_keep_the_next_from_running() -> None:
    """An error is a result; the calls behind it run."""
    tools = Tools({"bad": answer("no", is_error=True), "good": answer("yes")})
    given = await dispatch(1, [call("bad"), call("good")], tools)
    assert given.results[1] == ToolResult("call-good", "yes")


async def test_pictures_come_with_their_result() -> None:
    """What a tool shows is in the result of its own call."""
    image = Image("image/png", "QUJD")
    tools = Tools({"look": lambda _: ToolOutput("a dot", "look", images=[image]), "a": answer("A")})
    given = await dispatch(1, [call("look"), call("a")], tools)
    assert given.results == (ToolResult("call-look", "a dot", images=(image,)), ToolResult("call-a", "A"))


async def test_what_each_tool_gave_is_there_for_the_guards() -> None:
    """The outputs stand beside the results, those of calls that did not run too."""
    edit = ToolOutput("edited", "a.py", changed=("a.py",))
    given = await dispatch(1, [call("edit"), finish(), call("edit")], Tools({"edit": lambda _: edit}))
    assert given.outputs[0] == edit
    assert [output.finished for output in given.outputs] == [False, True, False]
    assert given.outputs[2].is_error


async def test_at_most_eight_calls_run() -> None:
    """Of more than eight calls the first eight run, and the rest are told to come again."""
    tools = Tools({"a": answer("A")})
    given = await dispatch(1, [call("a", "", str(count)) for count in range(MAX_CALLS + 3)], tools)
    assert len(tools.called) == MAX_CALLS == 8
    assert [result.call_id for result in given.results] == [str(count) for count in range(MAX_CALLS + 3)]
    assert all(result.is_error and "at most 8" in result.text for result in given.results[MAX_CALLS:])


async def test_a_finish_beyond_the_eighth_call_does_not_end_it() -> None:
    """A `finish` that was not run ends nothing."""
    given = await dispatch(1, [*(call("a") for _ in range(MAX_CALLS)), finish()], Tools({"a": answer("A")}))
    assert given.summary is None


async def test_a_finish_that_cannot_be_read_ends_nothing() -> None:
    """Only a `finish` that worked ends the run."""

    class Strict(Tools):
        async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
            return ToolOutput("bad_arguments", name, is_error=True, malformed=True)

    given = await dispatch(1, [finish(), call("a")], Strict())
    assert given.summary is None
    assert not given.readable
    assert [result.text for result in given.results] == ["bad_arguments"] * 2


async def test_an_empty_summary_still_ends_it() -> None:
    """A `finish` without words ends the run all the same."""
    assert (await dispatch(1, [finish("")], Tools())).summary == ""


def test_a_refused_reply_has_one_result_for_each_call() -> None:
    """Each call of a cut-off reply is told that nothing ran."""
    given = refuse([call("a", "", "1"), call("b", "", "2")])
    assert given == (ToolResult("1", CUT_OFF, is_error=True), ToolResult("2", CUT_OFF, is_error=True))
