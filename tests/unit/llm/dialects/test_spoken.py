"""A model that speaks a dialect looks like one that calls tools, to the loop and to the provider's cache."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.agent.dispatch import CUT_OFF, dispatch
from bot.domain.codec import message_from_data, message_to_data
from bot.domain.messages import (
    Image,
    Message,
    Part,
    Prompt,
    Reply,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    Unreadable,
    Usage,
)
from bot.llm.base import OnText
from bot.llm.images import caption
from bot.llm.spoken import DIALECTS, Spoken, spoken
from bot.tools.base import FileLedger, ToolContext
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from tests.unit.llm.dialects.told import TOOLS

TASK = Message("user", (TextPart("Mend the cart."),))
THOUGHT = ThinkingPart("hm", "seal", model="scripted:one")


class Scripted:
    """Gives replies in order, their text in pieces of seven characters."""

    name = "scripted:one"

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.prompts: list[Prompt] = []
        self.closed = False

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Give the next reply."""
        self.prompts.append(prompt)
        given = self._replies.pop(0)
        if on_text is not None:
            for part in given.message.parts:
                text = part.text if isinstance(part, TextPart) else ""
                for at in range(0, len(text), 7):
                    on_text(text[at : at + 7])
        return given

    async def close(self) -> None:
        """Note it."""
        self.closed = True


def said(*parts: str | Part, stop: StopReason = "end") -> Reply:
    """A reply of the inner model."""
    made = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    return Reply(Message("assistant", made), stop, Usage(output_tokens=5), "one-2026")


async def ask(*parts: str | Part, stop: StopReason = "end", dialect: str = "xml") -> Reply:
    """Ask for one reply."""
    return await spoken(Scripted(said(*parts, stop=stop)), dialect).ask(Prompt("Be good.", TOOLS, (TASK,)))


READ = "<read>\n<path>a</path>\n</read>\n"


def test_native_is_the_model_itself() -> None:
    """There is nothing to wrap."""
    model = Scripted()
    assert spoken(model, "native") is model
    assert all(isinstance(spoken(model, name), Spoken) for name in DIALECTS)


async def test_calls_are_read_out_of_the_text() -> None:
    """Text and calls keep their order; the calls have ids and the reply stops for them; the rest is the model's."""
    reply = await ask(THOUGHT, f"I look.\n\n{READ}\nAnd:\n{READ}")
    assert reply == Reply(
        Message(
            "assistant",
            (
                THOUGHT,
                TextPart("I look."),
                ToolCall("s1_0", "read", '{"path": "a"}'),
                TextPart("And:"),
                ToolCall("s1_1", "read", '{"path": "a"}'),
            ),
        ),
        "tool",
        Usage(output_tokens=5),
        "one-2026",
    )


async def test_a_reply_without_calls_stays_one() -> None:
    """Only text ends the turn, whatever the server calls the reason."""
    assert (await ask("Done.\n", stop="tool")).stop == "end"
    assert (await ask("Done.\n")).message == Message("assistant", (TextPart("Done."),))
    assert (await ask("", stop="length")) == replace(said(stop="length"))
    assert (await ask("Half a sen", stop="length")).message.calls == ()


async def test_a_native_call_is_let_through() -> None:
    """A server that reads calls itself gives them; they get ids like the others."""
    native = ToolCall("x", "read", '{"path": "b"}')
    reply = await ask("One.", native, READ, stop="tool")
    assert reply.message.parts == (
        TextPart("One."),
        replace(native, id="s1_0"),
        ToolCall("s1_1", "read", '{"path": "a"}'),
    )
    reply = await ask(native, "<read/>")
    assert all(Unreadable.found_in(call.arguments) for call in reply.message.calls)


async def test_only_text_is_heard() -> None:
    """Who listens hears the text as it comes, and no markup."""
    heard: list[str] = []
    model = Scripted(said(f"I look at it now.\n{READ}Good"))
    await spoken(model, "xml").ask(Prompt("", TOOLS, (TASK,)), on_text=heard.append)
    assert "".join(heard) == "I look at it now.\nGood"
    assert heard[0] == "I look "
    heard.clear()
    model = Scripted(said("Last\n<b"))
    await spoken(model, "xml").ask(Prompt("", TOOLS, (TASK,)), on_text=heard.append)
    assert "".join(heard) == "Last\n<b"


async def test_it_is_closed_with_its_model() -> None:
    """The wrapper owns the model."""
    model = Scripted()
    wrapped = spoken(model, "json")
    assert wrapped.name == "scripted:one"
    await wrapped.close()
    assert model.closed


@pytest.mark.parametrize("stop", ["length", "refusal", "error", "pause"])
@pytest.mark.parametrize("text", [READ, f"{READ}<read>\n<pa", "<read>\n<path>a</path>\n</read", f"{READ}and so o"])
async def test_a_cut_reply_has_no_call_that_runs(stop: StopReason, text: str) -> None:
    """All its calls are unreadable, and its reason stays, so that the loop refuses them as well."""
    reply = await ask(text, stop=stop)
    assert reply.stop == stop
    assert reply.message.calls
    for call in reply.message.calls:
        unreadable = Unreadable.found_in(call.arguments)
        assert unreadable is not None
        assert unreadable.fault.startswith("cut_off: your reply was cut off")
    assert len(reply.message.calls) == text.count("<read>")


def toolset() -> StandardToolset:
    """The real tools, without a place to run: whoever got as far as that would fail."""
    # Nothing of a call that cannot be read may ask for it.
    return StandardToolset(standard_tools(), ToolContext(sandbox=None, ledger=FileLedger()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<read>\n<path>a</path>\n<path>b</path>\n</read>", "bad_arguments: `path` is given twice."),
        ("<read>\n<file>a</file>\n</read>", "bad_arguments: unknown parameter `file`; allowed: path, offset?"),
        ('<read path="a">', "bad_call: attributes are not allowed"),
        ("<read>\n<path>a", "cut_off: your reply ended before `</path>`."),
        ("<read_file>\n<path>a</path>\n</read_file>", "unknown_tool: `read_file`; the tools are "),
        ("<write>\n<path>a</path>\n<content>\nx\n</content>\n</write>\ny\n</content>\n</write>", "ambiguous: "),
    ],
)
async def test_the_model_is_told_exactly_what_is_wrong(text: str, words: str) -> None:
    """What cannot be read is answered by the toolset with the dialect's own words, and nothing runs."""
    tools = toolset()
    model = Scripted(said(text))
    reply = await spoken(model, "xml").ask(Prompt("", tools.specs, (TASK,)))
    assert reply.stop == "tool"
    done = await dispatch(1, reply.message.calls, tools)
    assert not done.readable
    assert any(words in result.text for result in done.results)
    assert all(result.is_error for result in done.results)
    assert message_from_data(message_to_data(reply.message)) == reply.message


async def test_one_unreadable_call_spoils_no_other() -> None:
    """Where it is certain where a call ends, the others run."""
    reply = await ask(f"<read>\n<file>a</file>\n</read>\n{READ}")
    first, second = reply.message.calls
    assert Unreadable.found_in(first.arguments) == Unreadable(
        "bad_arguments: unknown parameter `file`; allowed: path, offset?, numbers?.",
        "<read>\n<file>a</file>\n</read>\n",
    )
    assert second.arguments == '{"path": "a"}'


async def test_where_a_call_ends_nobody_knows_nothing_runs() -> None:
    """A void reply keeps its calls with their arguments, as errors."""
    reply = await ask(f"{READ}<run>\nls\n</run>\n")
    first, second = (Unreadable.found_in(call.arguments) for call in reply.message.calls)
    assert first is not None
    assert second is not None
    assert first.written == '{"path": "a"}'
    assert first.fault == second.fault
    assert second.written == "<run>\nls\n"


async def test_names_are_names_for_any_provider() -> None:
    """A tool's name that a model invents may go to another provider later."""
    reply = await ask('```json\n{"tool": "a b/ü", "arguments": {}}\n```\n', dialect="json")
    assert reply.message.calls[0].name == "a_b__"
    reply = await ask('```json\n{"tool": 5}\n```\n', dialect="json")
    assert reply.message.calls[0].name == "unreadable"


async def test_a_fault_without_a_call_is_a_call_all_the_same() -> None:
    """Else nobody would answer it."""
    reply = await ask("x" * (3 << 20))
    assert [call.name for call in reply.message.calls] == ["unreadable"]
    text, call = reply.message.parts
    assert isinstance(text, TextPart)
    assert isinstance(call, ToolCall)
    model = Scripted(said("ok"))
    history = (TASK, Message("assistant", (call,)), Message("user", (ToolResult(call.id, "too_large", is_error=True),)))
    await spoken(model, "xml").ask(Prompt("", TOOLS, history))
    assert model.prompts[0].messages[1].parts == (TextPart("(nothing)"),)


def played() -> list[Message]:
    """A transcript with everything in it."""
    write = {"path": "a", "content": "```\n</content>\nREAD `x`\n"}
    bad = ToolCall("s3_0", "read", Unreadable("bad_call: no", "<read x>\n").arguments)
    return [
        TASK,
        Message("assistant", (THOUGHT, TextPart("Now."), ToolCall("s1_0", "write", json.dumps(write)))),
        Message("user", (ToolResult("s1_0", "created a"), TextPart("A person says: go on."))),
        Message("assistant", (bad, ToolCall("s3_1", "run", '{"command": "ls"}'))),
        Message(
            "user", (ToolResult("s3_0", "bad_call: no", is_error=True), ToolResult("s3_1", CUT_OFF, is_error=True))
        ),
        Message("assistant", (TextPart("Hm."),)),
        Message("user", (ToolResult("gone", "of a call that was compacted away"),)),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_requests_grow_at_their_end_only(dialect: str) -> None:
    """Each request has no tools, alternates, and begins with the whole request before it."""
    transcript = played()
    model = Scripted(*[said("ok")] * 4)
    for end in (1, 3, 5, 7):
        await spoken(model, dialect).ask(Prompt("Be good.", TOOLS, tuple(transcript[:end])))
    for prompt in model.prompts:
        assert prompt.tools == ()
        roles = (["user", "assistant"] * 4)[: len(prompt.messages)]
        assert [message.role for message in prompt.messages] == roles
        assert not any(isinstance(part, ToolCall | ToolResult) for message in prompt.messages for part in message.parts)
        assert prompt.system == model.prompts[0].system
        assert prompt.messages == model.prompts[-1].messages[: len(prompt.messages)]
    assert model.prompts[0].system.startswith("Be good.\n\n# How to call tools\n")
    last = model.prompts[-1].messages
    assert last[1].parts[0] == THOUGHT
    assert "created a" in last[2].text
    assert last[2].text.endswith("A person says: go on.")
    assert "<read x>" in last[3].text
    assert '<result of="unknown"' in last[6].text


async def test_without_tools_nothing_is_taught() -> None:
    """A request for a summary is only that; what looks like a call in its answer is text."""
    model = Scripted(said(READ))
    reply = await spoken(model, "xml").ask(Prompt("Sum up.", (), tuple(played())))
    assert model.prompts[0].system == "Sum up."
    assert reply.message.parts == (TextPart(READ.strip()),)


async def test_ids_are_new_in_their_conversation() -> None:
    """A compaction may leave fewer messages than an earlier id counted."""
    old = Message("assistant", (ToolCall("s40_1", "list", "{}"), ToolCall("toolu_01", "list", "{}")))
    results = Message("user", (ToolResult("s40_1", "x"), ToolResult("toolu_01", "y")))
    reply = await spoken(Scripted(said(READ)), "xml").ask(Prompt("", TOOLS, (TASK, old, results)))
    assert [call.id for call in reply.message.calls] == ["s41_0"]


async def test_a_conversation_that_begins_without_text() -> None:
    """Its token is made of nothing, and it works all the same."""
    history: Sequence[Message] = (Message("user", (ToolResult("1", "x"),)),)
    reply = await spoken(Scripted(said(READ)), "xml").ask(Prompt("", TOOLS, history))
    assert reply.message.calls


@pytest.mark.parametrize("arguments", ["", "{}", "!", "!x", "![]", '!["a"]', "!5", "!" + "[" * 100_000])
def test_what_a_model_wrote_is_no_mark_of_ours(arguments: str) -> None:
    """Arguments that only begin like ours are a model's."""
    assert Unreadable.found_in(arguments) is None


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_picture_stands_behind_its_result(name: str) -> None:
    """Behind words that name the tool and in front of the next result; what a person says comes last."""
    dot, other = Image("image/png", "QUJD"), Image("image/gif", "REVG")
    calls = Message("assistant", (ToolCall("s1_0", "read", "{}"), ToolCall("s1_1", "list", "{}")))
    results = ToolResult("s1_0", "one", images=(dot, other)), ToolResult("s1_1", "two")
    model = Scripted(said("Done."))
    told = (TASK, calls, Message("user", (*results, TextPart("Nice?"))))
    await spoken(model, name).ask(Prompt("Be good.", TOOLS, told))
    first, *shown, last = model.prompts[0].messages[2].parts
    assert shown == [dot, other]
    assert isinstance(first, TextPart)
    assert isinstance(last, TextPart)
    assert "\none\n" in first.text
    assert first.text.endswith(caption("`read`"))
    assert "\ntwo\n" in last.text
    assert last.text.endswith("\n\nNice?")


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_later_call_changes_no_earlier_result(name: str) -> None:
    """A server may give one id to calls of two tools: each result keeps the name of its own."""
    model = Scripted(said("Done."), said("Done."))
    turns = [
        part
        for tool in ("read", "list")
        for part in (Message("assistant", (ToolCall("0", tool, "{}"),)), Message("user", (ToolResult("0", tool),)))
    ]
    for told in (turns[:2], turns):
        await spoken(model, name).ask(Prompt("Be good.", TOOLS, (TASK, *told)))
    first, second = (prompt.messages for prompt in model.prompts)
    assert second[:3] == first
    assert 'of="list"' in second[4].text
