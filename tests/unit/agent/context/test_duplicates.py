"""Only what stands in a transcript twice goes."""

from bot.agent.context.duplicates import SAME, without_duplicates
from bot.domain.messages import Image, Message, ToolCall, ToolResult
from tests.unit.agent.context.made import TASK, read, turn

TEXT = "lines 1-2 of 2\n" + "def gate(): ...\n" * 20


def results(messages: list[Message]) -> list[str]:
    """Return the texts of all results."""
    return [part.text for message in messages for part in message.parts if isinstance(part, ToolResult)]


def test_the_older_of_two_same_results_goes() -> None:
    """The same range of the same file with the same text stays where it was read last, however it was asked for."""
    messages = [
        TASK,
        *turn(read("gate.py", "a"), gives=[TEXT]),
        *turn(read("./gate.py", "b", offset=1), gives=[TEXT]),
    ]
    shorter = without_duplicates(messages)
    assert results(shorter) == [SAME, TEXT]
    assert [message.calls for message in shorter] == [message.calls for message in messages]
    assert results(messages) == [TEXT, TEXT]


def test_another_text_range_path_or_tool_is_no_duplicate() -> None:
    """What was read before an edit, another range, and the same text in another file stay."""
    other = TEXT.replace("1-2", "3-4")
    messages = [
        TASK,
        *turn(read("gate.py", "a"), gives=[TEXT]),
        *turn(read("gate.py", "b"), gives=[TEXT + "edited"]),
        *turn(read("gate.py", "c", offset=3), gives=[other]),
        *turn(read("fence.py", "d"), gives=[TEXT]),
        *turn(ToolCall("e", "run", '{"command": "cat gate.py"}'), gives=[TEXT]),
    ]
    assert without_duplicates(messages) == messages


def test_a_command_with_the_same_output_is_a_duplicate() -> None:
    """Any call: its arguments are compared as values, and as they stand where they cannot be read."""
    spelled = ('{"command":"ls","timeout_s":1}', '{"timeout_s": 1, "command": "ls"}', '{"command": ')
    messages = [
        TASK,
        *(one for text in (*spelled, spelled[2]) for one in turn(ToolCall("a", "run", text), gives=[TEXT])),
    ]
    assert results(without_duplicates(messages)) == [SAME, TEXT, SAME, TEXT]


def test_failures_and_pictures_are_part_of_a_result() -> None:
    """A failure with the same text, or the same text beside another picture, is another result."""
    shown = [ToolResult("a", TEXT), ToolResult("a", TEXT, is_error=True)]
    shown += [ToolResult("a", TEXT, images=(Image("image/png", data),)) for data in ("aGk=", "aGo=")]
    messages = [TASK]
    for result in shown:
        messages += [Message("assistant", (read("gate.png", "a"),)), Message("user", (result,))]
    assert without_duplicates(messages) == messages


def test_a_short_result_stays() -> None:
    """A note that is no shorter than what it stands for saves nothing."""
    messages = [TASK, *(one for name in "ab" for one in turn(read("gate.py", name), gives=["(empty)"]))]
    assert without_duplicates(messages) == messages


def test_ids_that_come_again_do_not_mix_up_calls() -> None:
    """A result belongs to the reply right before it, also where a model numbers its calls anew at each turn."""
    messages = [
        TASK,
        *turn(read("gate.py", "1"), gives=[TEXT]),
        *turn(read("fence.py", "1"), gives=[TEXT]),
        *turn(read("gate.py", "1"), gives=[TEXT]),
    ]
    assert results(without_duplicates(messages)) == [SAME, TEXT, TEXT]


def test_two_same_calls_of_one_reply_leave_one_result() -> None:
    """In one message the last one stays too, and the results stay in the order of the calls."""
    messages = [TASK, *turn(read("gate.py", "a"), read("gate.py", "b"), gives=[TEXT, TEXT])]
    shorter = without_duplicates(messages)
    assert shorter[-1].parts == (ToolResult("a", SAME), ToolResult("b", TEXT))
