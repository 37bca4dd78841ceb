"""A conversation that outgrows its window goes on: shorter, whole, and with what counts in it."""

import asyncio
from collections.abc import Sequence

import pytest

from bot.agent.context import summary
from bot.agent.context.conversation import Compaction, Context
from bot.agent.context.duplicates import SAME
from bot.agent.context.handover import BEGINS
from bot.agent.context.sizes import size_of
from bot.agent.context.summary import LEFT_OUT
from bot.agent.context.truncation import CUT
from bot.agent.context.window import Window
from bot.agent.loop import heard
from bot.agent.prompt import next_message
from bot.domain.messages import Message, Prompt, Reply, TextPart, ToolCall, ToolResult, Usage
from bot.errors import ContextOverflow, ModelRefused, ModelRejected, ModelUnavailable
from tests.unit.agent.context.made import (
    FACTS,
    SUMMARY,
    TASK,
    TOOLS,
    Summariser,
    context,
    long_history,
    prompt_of,
    read,
    said,
    turn,
)
from tests.unit.agent.made import broken_rules

NEARLY_FULL = long_history(24, 3_000, words=["Use tabs."])
"""About 24,300 tokens: just above 80 % of what is usable of 40,000."""


async def compacted(messages: Sequence[Message], ask: Summariser) -> Compaction:
    """Compact a transcript and check what holds of every compaction."""
    done = await context(ask).compact(prompt_of(messages))
    assert done is not None
    assert broken_rules(done.messages) == []
    assert done.messages[0] == messages[0]
    assert done.after < done.before
    assert done.messages[-2].calls == messages[-2].calls
    return done


def results(messages: Sequence[Message]) -> list[str]:
    """Return the texts of all results."""
    return [part.text for message in messages for part in message.parts if isinstance(part, ToolResult)]


def texts(message: Message) -> list[str]:
    """Return the texts of a message, one by one."""
    return [part.text for part in message.parts if isinstance(part, TextPart)]


async def test_below_four_fifths_of_the_window_nothing_happens() -> None:
    """One turn less, and the transcript stays as it is; nobody is asked."""
    ask = Summariser(SUMMARY)
    assert await context(ask).compact(prompt_of(NEARLY_FULL[:-2])) is None
    assert ask.prompts == []


async def test_duplicates_alone_are_enough_where_there_are_many() -> None:
    """What stands there twice goes first; where that brings it to half, no model is asked."""
    ask = Summariser(SUMMARY)
    messages = [TASK, *(one for index in range(9) for one in turn(read("a.py", f"c{index}"), gives=["x" * 9_000]))]
    done = await compacted(messages, ask)
    assert done.means == ("duplicates",)
    assert results(done.messages) == [SAME] * 8 + ["x" * 9_000]
    assert ask.prompts == []


async def test_the_model_writes_what_only_it_knows_and_the_harness_tells_the_rest() -> None:
    """The summary is the model's own message; people's words and the facts stand behind it; the newest turns stay."""
    ask = Summariser(SUMMARY)
    done = await compacted(NEARLY_FULL, ask)
    assert done.means == ("summary",)
    assert done.messages[1] == Message("assistant", (TextPart(SUMMARY),))
    words, facts = texts(done.messages[2])
    assert words == heard("Use tabs.")
    assert facts.startswith(f"{BEGINS}The older part of this conversation did not fit any more;")
    assert facts.splitlines()[1:4] == [
        "- Files changed so far: `gate.py`",
        "- Check: `pytest -q` ended with exit code 1",
        "- Used so far: 3 of 60 turns.",
    ]
    assert list(done.messages[3:]) == NEARLY_FULL[-(len(done.messages) - 3) :]
    assert done.after <= context(ask)._window.target
    assert str(done) == f"The conversation was made shorter: 24.3K to {done.after / 1000:.1f}K tokens (summary)."


async def test_the_summary_is_asked_for_behind_the_whole_conversation() -> None:
    """The request goes on from the last one, so that the provider's cache serves it, and says how much stays."""
    ask = Summariser(SUMMARY)
    done = await compacted(NEARLY_FULL, ask)
    (prompt,) = ask.prompts
    kept = (len(done.messages) - 3) // 2
    assert list(prompt.messages[:-1]) == NEARLY_FULL[:-1]
    assert prompt.messages[-1].parts[:-1] == NEARLY_FULL[-1].parts
    question = texts(prompt.messages[-1])[-1]
    assert f"your newest {kept} replies" in question
    assert "{" not in question
    assert "left out" not in question
    assert (prompt.system, prompt.tools) == ("Be brief.", TOOLS)


async def test_what_people_asked_for_in_a_further_run_is_kept_to_the_letter() -> None:
    """A request that began a further run is an instruction too."""
    asked = [next_message("t", "Rename it.", moved=True), next_message("t", "", moved=False)]
    messages = list(NEARLY_FULL)
    for index, one in zip((4, 8), asked, strict=True):
        messages[index] = Message("user", (*messages[index].parts, *one.parts))
    done = await compacted(messages, Summariser(SUMMARY))
    assert texts(done.messages[2])[:3] == [asked[0].text, heard("Use tabs."), asked[1].text]


async def test_a_second_compaction_keeps_the_words_and_replaces_the_facts() -> None:
    """The earlier note goes into the next one; people's words are told a second time, facts only as they stand."""
    first = await compacted(NEARLY_FULL, Summariser(SUMMARY))
    again = [*first.messages, *long_history(24, 3_000)[1:]]
    ask = Summariser("A second note.")
    second = await compacted(again, ask)
    assert SUMMARY in str(ask.prompts[0].messages)
    assert SUMMARY not in str(second.messages)
    assert texts(second.messages[2])[0] == heard("Use tabs.")
    assert str(second.messages).count(BEGINS) == 1


async def test_behind_a_compaction_nothing_is_left_to_do() -> None:
    """What was brought down is not touched again."""
    ask = Summariser(SUMMARY)
    watched = context(ask)
    done = await watched.compact(prompt_of(NEARLY_FULL))
    assert done is not None
    assert await watched.compact(prompt_of(done.messages)) is None
    assert len(ask.prompts) == 1


@pytest.mark.parametrize(
    "answer",
    [
        said(""),
        said(SUMMARY, stop="length"),
        said("x" * 200_000),
        Reply(Message("assistant", (TextPart(SUMMARY), read("a.py", "s"))), "tool"),
        ModelUnavailable("overloaded"),
        ModelRefused("no"),
        ModelRejected("no such model"),
    ],
    ids=["empty", "cut off", "too long", "a call", "unavailable", "refused", "rejected"],
)
async def test_without_a_summary_turns_are_dropped(answer: Reply | Exception) -> None:
    """Where the model gives no summary, the first exchange and the newest turns stay, and the facts are told."""
    ask = Summariser(answer)
    done = await compacted(NEARLY_FULL, ask)
    assert done.means == ("truncation",)
    assert done.messages[1] == NEARLY_FULL[1]
    assert done.messages[2].parts[0] == NEARLY_FULL[2].parts[0]
    assert texts(done.messages[2])[0] == heard("Use tabs.")
    assert BEGINS in texts(done.messages[2])[1]
    assert len(ask.prompts) == 1
    assert done.after <= context(ask)._window.target


async def test_one_turn_that_is_too_long_is_cut() -> None:
    """Where the newest turn alone is too long, its results are: no other means would do."""
    messages = [TASK, *turn(read("a", "1"), read("b", "2"), gives=["x" * 90_000, "short"])]
    done = await compacted(messages, Summariser(SUMMARY))
    assert done.means == ("cut results",)
    assert results(done.messages)[0].startswith(CUT)
    assert results(done.messages)[1] == "short"
    assert done.after <= context(Summariser(SUMMARY))._window.target


async def test_a_request_that_cannot_fit_is_not_made() -> None:
    """Outputs are left out of what is summarised until it fits the window; the middle ones go first."""
    ask = Summariser(SUMMARY)
    done = await compacted(long_history(40, 3_000), ask)
    assert done.means == ("summary",)
    (prompt,) = ask.prompts
    left_out = [text == LEFT_OUT for text in results(prompt.messages)]
    assert left_out.count(True) == 20
    assert all(left_out[10:30])
    assert "Parts of the outputs above are left out" in texts(prompt.messages[-1])[-1]
    assert broken_rules(prompt.messages) == []


class Ends(Exception):  # noqa: N818 - no error
    """Ends a run in a test."""


class Provider:
    """Refuses what is longer than its window, as it counts itself; else answers with a summary or a call."""

    def __init__(self, window: int, *, calls: int = 10**6) -> None:
        self.window = window
        self.calls = calls
        self.prompts: list[Prompt] = []
        self.refused: list[int] = []

    async def __call__(self, prompt: Prompt) -> Reply:
        """Answer."""
        tokens = size_of(prompt.messages) // 3
        if tokens > self.window:
            self.refused.append(tokens)
            raise ContextOverflow("prompt is too long.")
        self.prompts.append(prompt)
        usage = Usage(tokens, output_tokens=20)
        if "Write a note for yourself now" in prompt.messages[-1].text:
            return said(SUMMARY, usage=usage)
        if len(self.prompts) > self.calls:
            raise Ends
        call = read(f"f{len(self.prompts)}.py", f"c{len(self.prompts)}")
        return Reply(Message("assistant", (call,)), "tool", usage)


def told_by(heard_of: list[Compaction], provider: Provider, window: Window) -> Context:
    """Make a context that tells of its compactions."""

    async def told(done: Compaction) -> None:
        heard_of.append(done)

    return Context(window, provider, lambda: FACTS, told)


async def play(provider: Provider, window: Window, *, size: int = 3_000) -> tuple[list[Message], list[Compaction]]:
    """Play turns until the provider ends it, as the loop does."""
    transcript, heard_of = [TASK], list[Compaction]()
    watched = told_by(heard_of, provider, window)
    try:
        while True:
            reply = await watched.ask("Be brief.", TOOLS, transcript)
            transcript.append(reply.message)
            (call,) = reply.message.calls
            transcript.append(Message("user", (ToolResult(call.id, f"{call.id} " + "x" * size),)))
    except Ends:
        return transcript, heard_of


async def test_between_compactions_a_prompt_only_grows_at_its_end() -> None:
    """Over eighty turns every request begins with the one before it, but for those right behind a compaction."""
    provider = Provider(40_000, calls=80)
    transcript, done = await play(provider, Window.of(40_000, 8_192))
    assert len(done) >= 3
    breaks = 0
    for before, after in zip(provider.prompts, provider.prompts[1:], strict=False):
        grown = after.messages[: len(before.messages)]
        is_question = "Write a note" in after.messages[-1].text
        same = grown[:-1] == before.messages[:-1] if is_question else grown == before.messages
        assert (before.system, before.tools) == (after.system, after.tools)
        breaks += not same
    assert breaks == len(done)
    assert provider.refused == []
    assert broken_rules(transcript) == []


async def test_a_replay_makes_the_same_of_the_same_replies() -> None:
    """Nothing but the transcript and the replies decides: two lives give the same requests."""
    lives = [Provider(40_000, calls=50) for _ in range(2)]
    ends = [await play(provider, Window.of(40_000, 8_192)) for provider in lives]
    assert lives[0].prompts == lives[1].prompts
    assert ends[0] == ends[1]


async def test_a_window_that_is_smaller_than_it_was_thought_is_found_out_once() -> None:
    """The first overflow makes it shorter and is asked again; from then on it is made shorter in time."""
    provider = Provider(20_000, calls=60)
    transcript, done = await play(provider, Window.of(128_000, 8_192))
    # The turn, and what was then asked to be summarised.
    assert len(provider.refused) <= 3
    assert len(done) >= 3
    assert all(one.after <= 10_000 for one in done)
    assert broken_rules(transcript) == []


async def test_an_overflow_is_summarised_from_ever_less() -> None:
    """Where the provider refuses the question too, more outputs are left out, up to all of them."""
    provider = Provider(4_000)
    transcript = long_history(24, 3_000, words=["Use tabs."])
    watched = told_by([], provider, Window.of(128_000, 8_192))
    reply = await watched.ask("Be brief.", TOOLS, transcript)
    assert reply.message.calls
    # The turn, and three questions; the fourth is answered, and the turn fits then.
    assert len(provider.refused) == 4
    assert provider.refused == sorted(provider.refused, reverse=True)
    assert all(text == LEFT_OUT for text in results(provider.prompts[0].messages))
    assert broken_rules(transcript) == []


async def test_a_second_overflow_is_the_end_and_the_work_is_kept() -> None:
    """After one retry it fails with what to do about it; the transcript is whole, and nothing is asked again."""
    provider = Provider(10)
    transcript = list(NEARLY_FULL[:-2])
    watched = told_by([], provider, Window.of(40_000, 8_192))
    with pytest.raises(
        ContextOverflow, match=r"even after it was made shorter \(ctx .*/40K\): prompt is too long\. Ch"
    ):
        await watched.ask("Be brief.", TOOLS, transcript)
    # The turn, four questions and the retry.
    assert len(provider.refused) == 6
    assert broken_rules(transcript) == []
    assert transcript[0] == TASK


async def test_what_cannot_be_made_shorter_fails_at_once() -> None:
    """A task that alone is too long is not asked twice."""
    provider = Provider(10)
    with pytest.raises(ContextOverflow, match="larger window"):
        await told_by([], provider, Window.of(40_000, 8_192)).ask("s", (), [Message("user", (TextPart("x" * 99),))])
    assert len(provider.refused) == 1


async def test_a_task_that_nearly_fills_the_window_does_not_compact_at_every_turn() -> None:
    """Where little can be brought down, the next compaction waits until there is something to bring down."""
    provider = Provider(40_000, calls=30)
    done: list[Compaction] = []
    watched = told_by(done, provider, Window.of(40_000, 8_192))
    transcript = [Message("user", (TextPart("x" * 72_000),)), *turn(read("a", "1"), gives=["y" * 3_000])]
    for _ in range(12):
        reply = await watched.ask("Be brief.", TOOLS, transcript)
        (call,) = reply.message.calls
        transcript += [reply.message, Message("user", (ToolResult(call.id, "z" * 600),))]
    assert 1 <= len(done) <= 4


async def test_an_interrupt_while_summarising_leaves_the_transcript() -> None:
    """A stop, or a limit, ends the run in between; nothing was changed by then."""
    transcript = list(NEARLY_FULL)
    with pytest.raises(asyncio.CancelledError):
        await context(Summariser(asyncio.CancelledError())).ask("s", TOOLS, transcript)
    assert transcript == NEARLY_FULL


def test_the_question_gives_a_reason_for_each_rule_that_is_not_sent() -> None:
    """Each rule of the prompt has a comment right behind it."""
    text = summary.request(prompt_of([TASK]), 2, 0.5).messages[-1].text
    rules = [line for line in text.splitlines() if line.startswith("- ")]
    source = (summary.__file__.rpartition("/context/")[0]) + "/prompts/handover.md.j2"
    with open(source, encoding="utf-8") as file:  # noqa: PTH123 - read as the wheel has it
        lines = [line for line in file.read().splitlines() if line.strip()]
    assert len(rules) == 7
    for rule in rules:
        (place,) = [index for index, line in enumerate(lines) if line == rule]
        assert lines[place + 1].startswith("{#")
    assert "#" not in text


def test_a_call_to_itself_is_no_result() -> None:
    """A call's arguments are never read as a result, whatever stands in them."""
    odd = [
        TASK,
        *turn(ToolCall("a", "run", '{"command": "A person on the thread says: stop"}'), gives=["A person said"]),
    ]
    head, gone, kept = summary.parts_of([*odd, *turn(read("b", "2"), gives=["x"])], 0)
    assert (head, len(gone), len(kept)) == ((TASK,), 1, 1)
    assert summary.accepted(said("Hm."), gone) == "Hm."
