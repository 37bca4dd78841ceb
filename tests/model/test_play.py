"""Which turn a request gets, and how turns react to what really happened."""

from typing import Any

import pytest

from bot.testing.model.load import parse_script
from bot.testing.model.play import play
from bot.testing.model.reply import Call, Reply
from bot.testing.model.request import Message, Request, Text, ToolCall, ToolResult
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.model.conftest import Serve

SCRIPT = """
script: fix-add
values: {author: Ann}
conversations:
  - name: fix
    match: "Fix add"
    turns:
      - text: I read the file first.
        calls: [{read: {path: calc.py}}]
      - expect: {tool: read, matches: "def add"}
        capture: {line: 'return (a . b)'}
        calls:
          - tool: edit
            arguments: {path: calc.py, old: "${line}", new: "a + b", notes: ["by ${author}", "$${line}", "${HOME}"]}
      - calls: [{run: {command: pytest}}]
      - choose:
          - when: {tool: run, matches: "1 failed"}
            text: Still red.
            calls: [{read: {path: calc.py}}]
          - when: {tool: run, lacks: "failed", is_error: false}
            text: Replaced `${line}`.
  - name: review
    match: "Fix add"
    match_last: /please (rename|retry)/
    turns:
      - capture: {what: 'please (\\w+)'}
        text: I shall ${what}.
        calls: [{run: {command: git mv}}]
      - text: Renamed.
  - name: other
    turns:
      - text: I know no more than that.
"""
TOOLS = ("read", "edit", "run")
START = Message("user", (Text("Please: Fix add in calc.py"),))


class Talk:
    """A client that answers calls and keeps the transcript."""

    def __init__(self, script: Script, *messages: Message) -> None:
        self.script = script
        self.messages = list(messages)

    def ask(self) -> Reply:
        """Ask, and append what came to the transcript."""
        reply = play(self.script, Request("any", tuple(self.messages), tools=TOOLS))
        self.messages.append(Message("assistant", _sent(reply)))
        return reply

    def answer(self, text: str, *, is_error: bool = False) -> Reply:
        """Answer all calls of the last message with one text, and ask."""
        calls = [part for part in self.messages[-1].parts if isinstance(part, ToolCall)]
        results = tuple(ToolResult(call.id, call.name, text, is_error) for call in calls)
        self.messages.append(Message("user", results))
        return self.ask()

    def say(self, text: str) -> Reply:
        """Say something in plain words, and ask."""
        self.messages.append(Message("user", (Text(text),)))
        return self.ask()


def _sent(reply: Reply) -> tuple[Text | ToolCall, ...]:
    calls = [part for part in reply.parts if isinstance(part, Call)]
    texts = [part for part in reply.parts if isinstance(part, Text)]
    return (*texts, *(ToolCall(f"toolu_01{reply.key}C{n:02d}", c.tool, c.arguments) for n, c in enumerate(calls)))


def text_of(reply: Reply) -> str:
    """Return the words of a reply."""
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


def call_of(reply: Reply) -> Call:
    """Return the only call of a reply."""
    (call,) = [part for part in reply.parts if isinstance(part, Call)]
    return call


@pytest.fixture
def talk() -> Talk:
    """A conversation about add."""
    return Talk(parse_script(SCRIPT), START)


def test_turns_follow_what_the_tools_said(talk: Talk) -> None:
    """Captures fill later arguments and texts, and the alternative is chosen by the result."""
    assert call_of(talk.ask()) == Call("read", {"path": "calc.py"})
    edit = call_of(talk.answer("def add(a, b):\n    return a - b\n"))
    assert edit.arguments["old"] == "a - b"
    assert edit.arguments["notes"] == ["by Ann", "${line}", "${HOME}"]
    assert call_of(talk.answer("ok")).tool == "run"
    red = Talk(talk.script, *talk.messages)
    assert text_of(red.answer("1 failed, 2 passed")) == "Still red."
    assert text_of(talk.answer("3 passed")) == "Replaced `a - b`."


def test_an_unmet_expectation_is_named(talk: Talk) -> None:
    """The answer to a result that was not expected is a text that says what was expected and what came."""
    talk.ask()
    reply = talk.answer("calc.py: no such file", is_error=True)
    assert reply.problem == text_of(reply)
    assert 'expected a result of "read" with /def add/' in reply.problem
    assert "a result of \"read\" (error): 'calc.py: no such file'" in reply.problem
    assert 'conversation "fix", turn 2' in reply.problem
    assert reply.stopped == "end_turn"


def test_no_alternative_and_no_further_turn_are_named(talk: Talk) -> None:
    """A script that cannot go on says so instead of guessing."""
    talk.ask()
    talk.answer("def add: return a - b")
    talk.answer("ok")
    stuck = Talk(talk.script, *talk.messages)
    assert "no alternative fits what came" in stuck.answer("failed to start", is_error=True).problem
    talk.answer("3 passed")
    assert "the script has only 4 turns" in talk.say("And now?").problem


def test_a_capture_that_finds_nothing_is_named(talk: Talk) -> None:
    """A capture is an expectation too."""
    talk.ask()
    assert "nothing to capture as ${line}" in talk.answer("def add: pass").problem


def test_a_call_of_a_tool_that_is_not_offered_is_a_problem() -> None:
    """A script written for other tools is found out; `unknown` allows it for hallucinated names."""
    request = Request("any", (START,), tools=("read",))
    strict = Script([Conversation("c", [Turn(calls=[Call("fly", {})])])])
    assert 'calls the tool "fly"' in play(strict, request).problem
    free = Script([Conversation("c", [Turn(calls=[Call("fly", {}, unknown=True)])])])
    assert call_of(play(free, request)).tool == "fly"


def test_a_follow_up_starts_where_its_message_stands(talk: Talk) -> None:
    """A later plain-text message that fits `match_last` starts that conversation at its first turn, with its words."""
    talk.ask()
    talk.answer("def add: return a - b")
    reply = Talk(talk.script, *talk.messages[:-1]).say("Nice, please rename it")
    assert (reply.conversation, reply.turn, text_of(reply)) == ("review", 0, "I shall rename.")
    second = Talk(talk.script, *talk.messages[:-1])
    second.say("Nice, please rename it")
    assert text_of(second.answer("moved")) == "Renamed."


def test_the_newest_follow_up_wins(talk: Talk) -> None:
    """Of two messages that fit, the later one starts the conversation, with ids of its own."""
    first = talk.say("please rename it")
    second = talk.say("please retry")
    assert [text_of(reply) for reply in (first, second)] == ["I shall rename.", "I shall retry."]
    assert first.key != second.key


def test_a_follow_up_belongs_to_its_first_message() -> None:
    """With both `match` and `match_last` both messages must fit."""
    talk = Talk(parse_script(SCRIPT), Message("user", (Text("Weather?"),)))
    talk.ask()
    assert talk.say("please rename it").conversation == "other"


def test_words_beside_results_start_nothing(talk: Talk) -> None:
    """A steering sentence inside a message of tool results is no follow-up."""
    talk.ask()
    call = next(part for part in talk.messages[-1].parts if isinstance(part, ToolCall))
    result = ToolResult(call.id, "read", "def add: return a - b")
    talk.messages.append(Message("user", (result, Text("please rename it"))))
    assert talk.ask().conversation == "fix"


def test_other_words_continue_the_conversation(talk: Talk) -> None:
    """A nudge that fits nothing is answered by the next turn of the conversation that is going on."""
    talk.ask()
    reply = Talk(talk.script, *talk.messages[:1], Message("assistant", (Text("Hm."),))).say("Use a tool: def add x")
    assert (reply.conversation, reply.turn) == ("fix", 1)


def test_the_default_answers_what_fits_nothing(talk: Talk) -> None:
    """A conversation without `match` takes the rest; without one the problem is named."""
    assert Talk(talk.script).say("Weather?").conversation == "other"
    only = Script([talk.script.conversations[0]])
    assert "no conversation" in Talk(only).say("Weather?").problem


def test_ids_keep_the_turn_when_the_middle_is_dropped(talk: Talk) -> None:
    """A transcript without its middle goes on at the turn that its call ids carry."""
    talk.ask()
    talk.answer("def add: return a - b")
    talk.answer("ok")
    talk.messages = [talk.messages[0], talk.messages[-1]]
    reply = talk.answer("1 failed")
    assert (reply.turn, text_of(reply)) == (3, "Still red.")


def test_repeat_stands_for_several_turns() -> None:
    """`repeat` is the same turn so many times; then the next."""
    talk = Talk(Script([Conversation("c", [Turn(calls=[Call("run", {})], repeat=3), Turn(text="End.")])]), START)
    replies = [talk.ask(), talk.answer("a"), talk.answer("b"), talk.answer("c")]
    assert [text_of(reply) for reply in replies] == ["", "", "", "End."]
    assert len({reply.key for reply in replies}) == 4


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Condition(), True),
        (Condition(tool="run"), True),
        (Condition(tool="read"), False),
        (Condition(matches="^2 passed$"), True),
        (Condition(matches="3 passed"), False),
        (Condition(lacks="passed"), False),
        (Condition(is_error=True), False),
        (Condition(said="carefully"), True),
        (Condition(said="quickly"), False),
        (Condition(tool="run", matches="passed", lacks="failed", is_error=False, said="care"), True),
    ],
)
def test_conditions(condition: Condition, holds: bool) -> None:  # noqa: FBT001 - parametrised
    """A condition holds if one result fits all that it says of results, and the words fit."""
    talk = Talk(
        Script([Conversation("c", [Turn(calls=[Call("run", {})]), Turn(text="Yes.", expect=[condition])])]), START
    )
    talk.ask()
    call = next(part for part in talk.messages[-1].parts if isinstance(part, ToolCall))
    talk.messages.append(Message("user", (ToolResult(call.id, "run", "log\n2 passed"), Text("carefully"))))
    assert (talk.ask().problem == "") is holds


async def test_a_retry_gets_the_same_answer_also_from_a_new_server(serve: Serve) -> None:
    """The same request gets the same ids and blocks, twice from one server and once from another."""
    _, client = await serve(SCRIPT)
    _, fresh = await serve(SCRIPT)
    tools: Any = [{"name": name, "input_schema": {"type": "object"}} for name in TOOLS]
    ask: Any = {"model": "any", "max_tokens": 500, "tools": tools}
    messages: Any = [{"role": "user", "content": "Fix add"}]
    answers = [await c.messages.create(**ask, messages=messages) for c in (client, client, fresh)]
    assert len({answer.model_dump_json() for answer in answers}) == 1
    call = answers[0].content[1].id
    messages += [{"role": "assistant", "content": answers[0].content}]
    messages += [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "def add: return a * b"}]}
    ]
    answers = [await c.messages.create(**ask, messages=messages) for c in (fresh, client)]
    assert len({answer.model_dump_json() for answer in answers}) == 1
    assert answers[0].content[0].input["old"] == "a * b"


async def test_problems_are_recorded(serve: Serve) -> None:
    """An unmet expectation reaches the client as an answer and the test in `problems`, once for all retries."""
    model, client = await serve(SCRIPT)
    for _ in range(2):
        message = await client.messages.create(
            model="any", max_tokens=500, messages=[{"role": "user", "content": "Fix add"}]
        )
    assert message.content[0].text == model.problems[0]  # type: ignore[union-attr]
    assert len(model.problems) == 1
