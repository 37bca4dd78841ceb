"""The loop asks, acts and ends as it should, and its transcript is whole after every path."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.agent.conduct import EMPTIES, NUDGES, REPEATS_STOP, REPEATS_WARN
from bot.agent.context.window import Window
from bot.agent.dispatch import CUT_OFF, MAX_CALLS
from bot.agent.limits import FORMAT_ERRORS, LimitGuard, Limits
from bot.agent.loop import AGAIN, Finished, Listen, heard
from bot.agent.modes import ACT
from bot.domain.messages import (
    Message,
    Part,
    Prompt,
    Reply,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    Usage,
)
from bot.errors import Cancelled, LimitReached, MalformedReply, ModelRefused, ModelUnavailable
from bot.llm.base import OnText
from bot.tools.base import ToolOutput
from tests.unit.agent.made import (
    ROOMY,
    TASK,
    WIDE,
    ScriptedModel,
    Tools,
    answer,
    broken_rules,
    call,
    finish,
    loop,
    reply,
    say,
)


async def silence(_: int) -> Sequence[str]:
    """Nobody says anything."""
    return ()


class Play:
    """One loop with its scripted model."""

    def __init__(
        self,
        *replies: Reply | Exception,
        tools: dict[str, Callable[[str], ToolOutput]] | None = None,
        limits: Limits = WIDE,
        listen: Listen = silence,
        checks: Sequence[str] = (),
        window: Window = ROOMY,
    ) -> None:
        self.guard = LimitGuard(limits)
        self.model = ScriptedModel(replies, self.guard)
        self.tools = Tools(tools if tools is not None else {"look": answer("seen")})
        self.agent = loop(self.model, self.tools, self.guard, listen, checks=checks, window=window)
        self.transcript = [TASK]

    async def run(self) -> Finished:
        """Run the loop to its end."""
        return await self.agent.run(self.transcript)


async def test_finish_ends_it_with_the_models_own_account() -> None:
    """`finish` ends the loop with the model's own account."""
    play = Play(reply(call("look")), reply(TextPart("Ready."), finish("Mended the gate.")))
    assert await play.run() == Finished("Mended the gate.", said_so=True)
    assert play.transcript[-1] == Message("user", (ToolResult("call-finish", "Mended the gate."),))
    assert broken_rules(play.transcript) == []


async def test_all_calls_of_a_reply_are_answered_in_one_message() -> None:
    """Several calls of one reply run in their order and are answered in one message."""
    play = Play(
        reply(call("look", "1", "a"), call("gone", "2", "b"), call("look", "3", "c")),
        reply(finish()),
        tools={"look": lambda arguments: ToolOutput(f"saw {arguments}", "look")},
    )
    await play.run()
    assert play.transcript[2].parts == (
        ToolResult("a", "saw 1"),
        ToolResult("b", "unknown tool gone", is_error=True),
        ToolResult("c", "saw 3"),
    )
    assert play.tools.called == [(1, 0, "look"), (1, 1, "gone"), (1, 2, "look"), (2, 0, "finish")]


async def test_nothing_runs_behind_finish() -> None:
    """A call behind `finish` is answered and does not run."""
    play = Play(reply(call("look", "", "a"), finish(), call("look", "", "z")))
    assert (await play.run()).said_so
    assert [name for _, _, name in play.tools.called] == ["look", "finish"]
    assert play.transcript[-1].parts[-1] == ToolResult(
        "z", "Not executed: `finish` was called before it.", is_error=True
    )


async def test_a_reply_without_a_call_is_nudged_and_then_taken_as_the_answer() -> None:
    """Two replies without a call are nudged; the third is the final answer."""
    play = Play(say("One."), say("Two."), say("Three."))
    assert await play.run() == Finished("Three.", said_so=False)
    assert [message.text for message in play.transcript] == ["Do it.", "One.", ACT.nudge, "Two.", ACT.nudge, "Three."]
    assert len(play.model.prompts) == NUDGES + 1


async def test_a_call_forgets_the_nudges_before_it() -> None:
    """A reply with a call forgets the nudges before it."""
    replies = [say("One."), say("Two."), reply(call("look")), say("Three."), say("Four."), say("Five.")]
    play = Play(*replies)
    assert (await play.run()).summary == "Five."
    assert sum(message.text == ACT.nudge for message in play.transcript) == 4


async def test_a_long_text_that_was_cut_off_is_no_final_answer() -> None:
    """Text that was cut off is never taken as the final answer."""
    play = Play(*(say("And", stop="length") for _ in range(4)), say("The end."))
    assert (await play.run()).summary == "The end."


@pytest.mark.parametrize("stop", ["length", "error", "pause", "end"])
async def test_a_cut_off_reply_runs_nothing(stop: StopReason) -> None:
    """Where a reply did not stop for its tools, none of its calls runs and each is told so."""
    play = Play(reply(call("look", "", "a"), call("look", "", "b"), stop=stop), reply(finish()))
    await play.run()
    assert play.tools.called == [(2, 0, "finish")]
    assert play.transcript[2].parts == tuple(ToolResult(one, CUT_OFF, is_error=True) for one in "ab")


async def test_replies_that_are_cut_off_again_and_again_end_the_run() -> None:
    """Cut-off replies in a row count as broken ones, and end the run."""
    play = Play(*(reply(call("look"), stop="length") for _ in range(FORMAT_ERRORS)))
    with pytest.raises(LimitReached, match="format_errors: 3 of 3"):
        await play.run()
    assert broken_rules(play.transcript) == []


async def test_a_readable_reply_forgets_the_broken_ones_before_it() -> None:
    """One call that can be read makes the reply a good one, though its neighbour cannot."""
    bad = [reply(call("gone", str(count))) for count in range(4)]
    mixed = reply(call("gone", "", "a"), call("look", "", "b"))
    play = Play(*bad[:2], mixed, *bad[2:], reply(finish()))
    assert (await play.run()).said_so


async def test_a_failing_tool_is_no_broken_reply() -> None:
    """A tool that fails is no format error."""
    play = Play(
        *(reply(call("look", str(count))) for count in range(5)),
        reply(finish()),
        tools={"look": lambda arguments: ToolOutput(f"no {arguments}", "look", is_error=True)},
    )
    assert (await play.run()).said_so


async def test_a_refusal_ends_it_without_a_message() -> None:
    """A refusal raises ModelRefused with the model's words, and leaves the transcript as it was."""
    play = Play(say("I will not.", stop="refusal"))
    with pytest.raises(ModelRefused, match="I will not"):
        await play.run()
    assert play.transcript == [TASK]


async def test_an_empty_refusal_says_that_it_is_one() -> None:
    """A refusal without words still has a reason."""
    with pytest.raises(ModelRefused, match="declined"):
        await Play(reply(stop="refusal")).run()


async def test_an_empty_reply_is_asked_for_again() -> None:
    """As if it had not come: the same request, which the provider's cache has, and nothing in the transcript."""
    play = Play(reply(), reply(), reply(finish()))
    await play.run()
    assert [message.role for message in play.transcript] == ["user", "assistant", "user"]
    assert play.model.prompts[0] == play.model.prompts[1] == play.model.prompts[2]


async def test_too_many_empty_replies_are_nudged() -> None:
    """Then it becomes a message that providers take."""
    play = Play(*[reply()] * (EMPTIES + 1), reply(finish()))
    await play.run()
    assert play.transcript[1:3] == [
        Message("assistant", (TextPart("(nothing)"),)),
        Message("user", (TextPart(ACT.nudge),)),
    ]


async def test_nothing_is_heard_between_two_requests_for_the_same_reply() -> None:
    """A message that was sent is never altered; what people say waits for the next one, and is not lost."""
    said = {1: ["Hurry."], 2: ["Twice."], 3: ["Late."]}
    asked: list[int] = []

    async def listen(turn: int) -> Sequence[str]:
        asked.append(turn)
        return said.pop(turn, [])

    play = Play(reply(), reply(call("look")), reply(finish()), listen=listen)
    await play.run()
    assert asked == [1, 3]
    assert play.transcript[0].text == f"Do it.\n\n{heard('Hurry.')}"
    assert play.transcript[2].text == heard("Late.")


async def test_finish_is_refused_once_where_checks_are_due() -> None:
    """Behind an edit the checks have to be looked at; who cannot run them says so and ends."""
    edit = ToolOutput("edited", "a.py", changed=["a.py"])
    play = Play(
        reply(call("edit")), reply(finish()), reply(finish("Really.")), tools={"edit": lambda _: edit}, checks=["make"]
    )
    assert await play.run() == Finished("Really.", said_so=True)
    refused = play.transcript[4].parts[0]
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert "you have not run `make`" in refused.text
    assert broken_rules(play.transcript) == []


async def test_who_ran_the_checks_may_finish() -> None:
    """No second round."""
    edit, ran = (
        ToolOutput("edited", "a.py", changed=["a.py"]),
        ToolOutput("ok", "make", None, command="make", exit_code=0),
    )
    tools = {"edit": lambda _: edit, "run": lambda _: ran}
    play = Play(reply(call("edit")), reply(call("run")), reply(finish()), tools=tools, checks=["make"])
    assert (await play.run()).said_so
    assert len(play.model.prompts) == 3


async def test_the_model_is_told_once_that_a_limit_comes_near() -> None:
    """At three quarters, in a message that was not sent yet."""
    play = Play(
        *(reply(call("look", str(count))) for count in range(3)),
        reply(finish()),
        limits=Limits(4, 10**9, 1000.0, 1000.0),
        tools={"look": lambda arguments: ToolOutput(f"saw {arguments}", "look")},
    )
    await play.run()
    told = [message.text for message in play.transcript if "turns are used" in message.text]
    assert told == [play.transcript[6].text]
    assert "3 of 4 turns are used" in told[0]


async def test_a_conversation_beyond_the_window_is_made_shorter() -> None:
    """The work goes on, with the task, a note of what was done and the newest turns."""
    long = {"look": lambda arguments: ToolOutput(arguments * 2000, "look")}
    words = [replace(reply(call("look", f"{count:>10}")), usage=Usage(7000 * (count + 1))) for count in range(7)]
    # 80 % of what is usable of this window are reached before the sixth request, and the fifth tells it.
    replies = [*words[:5], say("I looked at it all."), *words[:2], reply(finish())]
    play = Play(*replies, tools=long, window=Window.of(50_000, 8192))
    assert (await play.run()).said_so
    assert play.transcript[0] == TASK
    assert any("What the harness knows" in message.text for message in play.transcript)
    assert len(play.transcript) < 2 * 13
    assert broken_rules(play.transcript) == []


async def test_a_model_that_fails_leaves_the_transcript_whole() -> None:
    """What the model raises comes out, and the transcript ends with a user message."""
    play = Play(reply(call("look")), ModelUnavailable("overloaded"))
    with pytest.raises(ModelUnavailable):
        await play.run()
    assert broken_rules(play.transcript) == []
    assert play.transcript[-1].role == "user"


async def test_what_a_person_says_lands_behind_the_results() -> None:
    """What people say between two turns goes into the user message that is next, behind the tool results."""
    said = {1: ["Mind the gap."], 2: ["Faster.", "And nicer."]}

    async def listen(turn: int) -> Sequence[str]:
        return said.get(turn, [])

    play = Play(reply(call("look")), reply(finish()), listen=listen)
    await play.run()
    assert play.transcript[0].parts == (*TASK.parts, TextPart(heard("Mind the gap.")))
    assert play.transcript[2].parts == (
        ToolResult("call-look", "seen"),
        TextPart(heard("Faster.")),
        TextPart(heard("And nicer.")),
    )
    assert play.model.prompts[1].messages[2] == play.transcript[2]


async def test_it_hears_then_minds_its_limits_then_asks() -> None:
    """Each turn first hears, then looks at the limits, then asks."""
    order: list[str] = []

    class Noting(LimitGuard):
        def check(self) -> None:
            order.append("limit")
            super().check()

    class Asked(ScriptedModel):
        async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
            order.append("ask")
            return await super().ask(prompt, on_text=on_text)

    async def listen(turn: int) -> Sequence[str]:
        order.append(f"hear {turn}")
        return []

    guard = Noting(Limits(turns=2, tokens=10**6, usd=1.0, minutes=1.0))
    model = Asked([reply(call("look", "1")), reply(call("look", "2"))], guard)
    with pytest.raises(LimitReached, match="turns: 2 of 2"):
        await loop(model, Tools({"look": answer("seen")}), guard, listen).run([TASK])
    assert order == ["hear 1", "limit", "ask", "hear 2", "limit", "ask", "hear 3", "limit"]


async def test_a_stop_is_heard_before_the_next_question() -> None:
    """A stop ends the loop before the model is asked again."""

    async def listen(turn: int) -> Sequence[str]:
        if turn > 1:
            raise Cancelled("stopped")
        return []

    play = Play(reply(call("look")), reply(finish()), listen=listen)
    with pytest.raises(Cancelled):
        await play.run()
    assert len(play.model.prompts) == 1
    assert broken_rules(play.transcript) == []


async def test_a_repeated_call_is_warned_of_and_then_ends_the_run() -> None:
    """The third time the same call gives the same the model is told; the fifth time ends the run."""
    play = Play(*(reply(call("look")) for _ in range(REPEATS_STOP)))
    with pytest.raises(LimitReached, match="repeats: 5 of 5"):
        await play.run()
    warned = [index for index, message in enumerate(play.transcript) if TextPart(AGAIN) in message.parts]
    assert warned == [2 * REPEATS_WARN, 2 * (REPEATS_WARN + 1)]
    assert broken_rules(play.transcript) == []


async def test_the_prompt_only_grows_at_its_end() -> None:
    """System prompt, tools and all earlier messages are the same in each request, so that caches hit."""
    play = Play(*(reply(call("look", str(count))) for count in range(4)), reply(finish()))
    await play.run()
    for before, after in zip(play.model.prompts, play.model.prompts[1:], strict=False):
        assert (before.system, before.tools) == (after.system, after.tools)
        assert tuple(after.messages)[: len(before.messages)] == tuple(before.messages)


async def test_going_on_is_calling_it_again() -> None:
    """After a finish that was not the end, more words and a further run of the same transcript go on."""
    play = Play(reply(finish("First.")), reply(finish("Second.")))
    await play.run()
    last = play.transcript[-1]
    play.transcript[-1] = Message("user", (*last.parts, TextPart("The check fails.")))
    assert (await play.run()).summary == "Second."
    assert broken_rules(play.transcript) == []


NAMES = st.sampled_from(["look", "change", "fail", "gone", "finish"])
ARGUMENTS = st.sampled_from(["", "{}", '{"a":1}', "{", "same"])
STOPS: st.SearchStrategy[StopReason] = st.sampled_from(
    ["tool", "tool", "tool", "tool", "end", "length", "refusal", "pause", "error"]
)


@st.composite
def replies(draw: st.DrawFn) -> list[Reply | Exception]:
    """Any replies, whole and broken ones; call ids are unique, as providers make them."""
    made: list[Reply | Exception] = []
    count = 0
    for _ in range(draw(st.integers(0, 12))):
        parts: list[Part] = []
        for kind in draw(
            st.lists(st.sampled_from(["text", "thinking", "call", "call", "call"]), max_size=MAX_CALLS + 2)
        ):
            count += 1
            match kind:
                case "text":
                    parts.append(TextPart(f"words {count}"))
                case "thinking":
                    parts.append(ThinkingPart(f"thought {count}", "seal"))
                case _:
                    parts.append(ToolCall(f"id-{count}", draw(NAMES), draw(ARGUMENTS)))
        made.append(reply(*parts, stop=draw(STOPS)))
    made.append(draw(st.sampled_from([MalformedReply("broken"), ModelUnavailable("away")])))
    return made


@settings(max_examples=150, deadline=None)
@given(replies(), st.lists(st.lists(st.text(max_size=5), max_size=2), max_size=12), st.integers(1, 12))
def test_the_transcript_is_whole_after_every_path(
    script: list[Reply | Exception], said: list[list[str]], turns: int
) -> None:
    """Whatever the model says: each call has exactly one result, in the next message, first; roles alternate."""

    async def listen(turn: int) -> Sequence[str]:
        return said[turn - 1] if turn <= len(said) else []

    tools = {"look": answer("seen"), "change": answer("changed"), "fail": answer("failed", is_error=True)}
    play = Play(*script, tools=tools, limits=Limits(turns, 10**9, 1000.0, 1000.0), listen=listen)
    try:
        asyncio.run(play.run())
    except (LimitReached, ModelRefused, MalformedReply, ModelUnavailable):
        assert play.transcript[-1].role == "user"
    assert broken_rules(play.transcript) == []
    for prompt in play.model.prompts:
        assert broken_rules(prompt.messages) == []
        assert prompt.messages[-1].role == "user"
    assert len(play.model.prompts) <= turns
