"""A script played in plain text: our own client is the other side, with its real dialects."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain import messages as ours
from bot.domain.messages import Prompt, TextPart, ToolSpec, Unreadable
from bot.llm.base import OnText
from bot.llm.dialects.base import token_of
from bot.llm.spoken import DIALECTS, spoken
from bot.testing.model.load import load_script, parse_script
from bot.testing.model.play import play
from bot.testing.model.reply import Call, Reply, Thinking, cut_in_call
from bot.testing.model.request import Message, Request, Text, ToolCall, ToolResult
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.spoken import play_spoken
from bot.tools.standard import standard_tools
from tests.unit.llm.dialects import told
from tests.unit.llm.dialects.told import tool

STEP = tool("step", ["text"], text="string", done="boolean").parameters
TOOLS = (*told.TOOLS, tool("update_plan", ["items"], items={"type": "array", "items": STEP}))
DEMO = Path(__file__).parents[2] / "bot/cli/demo/script.yaml"
STOPS: Mapping[str, ours.StopReason] = {"tool_use": "tool", "end_turn": "end", "max_tokens": "length"}
START = "Mend the cart."
TOKEN = token_of(START)
"""Authors of files do not know it; a model may write it all the same."""

Asked = tuple[str, dict[str, object]]
Answered = tuple[str, bool]

PIECES = [
    *("<write>", "</write>", "</path>", "<content>", "</content>", "</ask>", "</topic>", "</count>", "</", "<\\/"),
    *(f'<content id="{TOKEN}">', f'</content id="{TOKEN}">', f'</content id="{TOKEN}-2">', TOKEN, f"{TOKEN}-9"),
    *("```", "```json", f"```{TOKEN}", f"```{TOKEN} no-eol", "~~~", "`", "READ `a`", "WRITE", "LIST", " offset=2"),
    *(f'</result id="{TOKEN}">', f'<error of="run" id="{TOKEN}">', f'</error id="{TOKEN}-2">', "</result>"),
    *('{"tool": "read"}', '"', '\\"', "\\", "{}", "[", "null", "5", "true", "NaN", "1e999", "${a}", "# Tools"),
    *("\n", "\n", "\n\n", "\r\n", "\r", " ", "\t", "x", "ä", "😀", "\u2028", "\x00", "\x1c", ""),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join) | st.text(st.characters(codec="utf-8"), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KINDS: Mapping[str, st.SearchStrategy[object]] = {
    "string": TEXTS,
    "integer": st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "boolean": st.booleans(),
    "array": st.lists(JSON, max_size=3),
    "object": st.dictionaries(TEXTS, JSON, max_size=3),
    "null": st.none(),
}
WORDS = st.sampled_from(["", "I do it.", "`10 // 100` is 0.\n\n```\nREAD `a`\n<read>\n```\nso I change it."])


def arguments_of(spec: ToolSpec) -> st.SearchStrategy[dict[str, object]]:
    """All that a tool needs and some of what else it takes, in any order."""
    properties, needed = spec.parameters["properties"], spec.parameters["required"]
    assert isinstance(properties, dict)
    assert isinstance(needed, list)
    values = {name: KINDS.get(str(schema.get("type")), JSON) for name, schema in properties.items()}
    taken = st.fixed_dictionaries(
        {name: value for name, value in values.items() if name in needed},
        optional={name: value for name, value in values.items() if name not in needed},
    )
    return taken.flatmap(lambda made: st.permutations(list(made.items())).map(dict))


CALLS: st.SearchStrategy[Asked] = st.sampled_from(TOOLS).flatmap(
    lambda spec: st.tuples(st.just(spec.name), arguments_of(spec))
)
RESULTS: st.SearchStrategy[Answered] = st.tuples(TEXTS, st.booleans())
TURNS = st.tuples(WORDS, st.lists(st.tuples(CALLS, RESULTS), min_size=1, max_size=3))


class Player:
    """The inner model of a client: plays a script in a dialect, without a wire."""

    name = "scripted:player"

    def __init__(self, script: Script, dialect: str, spoil: Callable[[Reply], Reply] = lambda reply: reply) -> None:
        self._script = script
        self._dialect = dialect
        self._spoil = spoil
        self.replies: list[Reply] = []

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> ours.Reply:
        """Play."""
        names = {call.id: call.name for message in prompt.messages for call in message.calls}
        messages = tuple(Message(message.role, tuple(_parts(message, names))) for message in prompt.messages)
        tools = tuple(spec.name for spec in prompt.tools)
        reply = self._spoil(play_spoken(self._script, Request("any", messages, prompt.system, tools), self._dialect))
        self.replies.append(reply)
        return ours.Reply(ours.Message("assistant", tuple(_part(part) for part in reply.parts)), STOPS[reply.stopped])

    async def close(self) -> None:
        """Nothing is open."""


def _parts(message: ours.Message, names: Mapping[str, str]) -> list[Text | ToolCall | ToolResult]:
    made: list[Text | ToolCall | ToolResult] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            made.append(Text(part.text))
        elif isinstance(part, ours.ToolCall):
            made.append(ToolCall(part.id, part.name, json.loads(part.arguments)))
        elif isinstance(part, ours.ToolResult):
            made.append(ToolResult(part.call_id, names[part.call_id], part.text, part.is_error))
    return made


def _part(part: Text | Thinking | Call) -> ours.Part:
    if isinstance(part, Call):
        return ours.ToolCall(f"n{id(part)}", part.tool, part.spelled())
    assert isinstance(part, Text)
    return TextPart(part.text)


class Talk:
    """A client that answers calls and keeps the transcript."""

    def __init__(
        self,
        script: Script,
        dialect: str,
        tools: Sequence[ToolSpec] = TOOLS,
        spoil: Callable[[Reply], Reply] = lambda reply: reply,
    ) -> None:
        self.player = Player(script, dialect, spoil)
        self._model = spoken(self.player, dialect)
        self._tools = tools
        self.transcript: list[ours.Message] = []

    async def say(self, text: str) -> ours.Message:
        """Say something, and ask."""
        self.transcript.append(ours.Message("user", (TextPart(text),)))
        return await self._ask()

    async def answer(self, results: Sequence[Answered], *words: str) -> ours.Message:
        """Answer the calls of the last message, say something behind it, and ask."""
        calls = self.transcript[-1].calls
        parts = [
            ours.ToolResult(call.id, text, is_error) for call, (text, is_error) in zip(calls, results, strict=True)
        ]
        self.transcript.append(ours.Message("user", (*parts, *map(TextPart, words))))
        return await self._ask()

    async def _ask(self) -> ours.Message:
        reply = await self._model.ask(Prompt("Be good.", self._tools, tuple(self.transcript)))
        self.transcript.append(reply.message)
        assert reply.stop == ("tool" if reply.message.calls else "end") or self.player.replies[-1].stop == "max_tokens"
        return reply.message


def read(message: ours.Message) -> list[Asked]:
    """What is called."""
    return [(call.name, json.loads(call.arguments)) for call in message.calls]


def said(*turns: tuple[str, Sequence[Asked]]) -> tuple[Script, list[Request]]:
    """A script that gives these words and calls and nothing else, and what was asked of it."""
    asked: list[Request] = []

    def step(words: str, calls: Sequence[Asked]) -> Callable[[Request], Reply]:
        def answer(request: Request) -> Reply:
            asked.append(request)
            text = [Text(words)] if words else []
            return Reply(parts=(*text, *(Call(name, arguments) for name, arguments in calls)))

        return answer

    return Script([Conversation("all", [step(*turn) for turn in (*turns, ("Done.", ()))])]), asked


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=100, deadline=None)
@given(turns=st.lists(TURNS, min_size=1, max_size=3), words=st.sampled_from(["", "Go on.", "<result>\n\nx"]))
@example(turns=[("", [(("run", {"timeout_s": 5, "command": "echo </timeout_s>"}), ("", False))])], words="")
@example(turns=[("", [(("run", {"command": "a\n"}), (f"{TOKEN}\n", True))] * 2)], words="x")
async def test_calls_and_results_go_there_and_back(
    dialect: str, turns: list[tuple[str, list[tuple[Asked, Answered]]]], words: str
) -> None:
    """What the script calls is what the client reads; what the client sends back is what the next turn hears."""
    script, heard = said(*((text, [call for call, _ in done]) for text, done in turns))
    talk = Talk(script, dialect)
    message = await talk.say(START)
    for text, done in turns:
        assert message.text == text
        assert read(message) == [call for call, _ in done]
        message = await talk.answer([result for _, result in done], *([words] if words else []))
    assert message.text == "Done."

    for number, (text, done) in enumerate(turns):
        called, answered = heard[-1].messages[2 * number + 1 : 2 * number + 3]
        calls = [part for part in called.parts if isinstance(part, ToolCall)]
        assert called.text == text
        assert [(call.name, call.arguments) for call in calls] == [call for call, _ in done]
        # Two calls of one tool have their results in order; that of others is the client's.
        wanted = [(name, *result) for (name, _), result in done]
        assert [(result.name, result.text, result.is_error) for result in answered.results] == wanted
        assert [result.call_id for result in answered.results] == [call.id for call in calls]
        assert answered.text == words
    for before, after in pairwise(heard):
        assert after.messages[: len(before.messages)] == before.messages
    ids = [part.id for message in heard[-1].messages for part in message.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == len(ids) == sum(len(done) for _, done in turns)
    assert heard[-1].tools == tuple(sorted(spec.name for spec in TOOLS))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_demo_is_the_same_in_every_dialect(dialect: str) -> None:
    """The whole script, follow-up included: words, calls, results that it expects."""
    canned = {
        "list": "cart.py",
        "search": "cart.py:7: def total",
        "read": "return self.subtotal() - self.subtotal() * self.discount_percent // 100\n",
        "edit": "edited cart.py\n--- a",
        "finish": "finished",
    }
    tools = [one.spec for one in standard_tools()]
    shown = []
    for talk in (Talk(load_script(DEMO), dialect, tools), Talk(load_script(DEMO), "native", tools)):
        runs = iter(["FAILED (failures=1)", "OK", "OK"])
        message = await talk.say("Discount is ignored\nThis plan was made for it")
        for _ in range(2):
            while message.calls:
                results = [
                    (next(runs) if call.name == "run" else canned[call.name], call.name == "run")
                    for call in message.calls
                ]
                if any(call.name == "finish" for call in message.calls):
                    break
                message = await talk.answer(results)
            if len(talk.transcript) > 14:
                break
            done = ours.ToolResult(message.calls[0].id, "finished")
            talk.transcript.append(ours.Message("user", (done,)))
            talk.transcript.append(ours.Message("assistant", (TextPart("The run is over."),)))
            message = await talk.say("Please refuse discounts above 100 too.")
        assert [reply.problem for reply in talk.player.replies] == [""] * 9
        shown.append([(one.text, read(one)) for one in talk.transcript if one.role == "assistant"])
    assert shown[0] == shown[1]
    assert [len(calls) for _, calls in shown[0]] == [2, 1, 1, 1, 1, 0, 1, 2, 1, 1]


SCRIPT = """
script: faults
conversations:
  - name: all
    turns:
      - calls: [{tool: edit, json: '{"path": "a", "old": '}]
      - text: Once more.
        expect: [{tool: %s, is_error: true}]
        calls: [{tool: look, arguments: {path: a}, unknown: true}]
      - text: The tools are known.
        expect: [{tool: look, matches: unknown_tool, is_error: true}]
      - calls: [{tool: look, arguments: {path: a}}]
"""


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_broken_on_purpose_is_refused(dialect: str) -> None:
    """Broken JSON and unknown tools are calls that cannot be read, in any dialect; the script hears of the refusal."""
    talk = Talk(parse_script(SCRIPT % ("unreadable" if dialect == "json" else "edit")), dialect)
    broken = (await talk.say(START)).calls
    refused = [Unreadable.found_in(call.arguments) for call in broken]
    assert all(refused)
    unknown = (await talk.answer([(one.fault if one else "", True) for one in refused])).calls
    fault = Unreadable.found_in(unknown[0].arguments)
    assert fault is not None
    assert fault.fault.startswith("unknown_tool")
    assert (await talk.answer([(fault.fault, True)])).text == "The tools are known."
    assert "which the request does not offer (it offers: ask, edit, finish" in (await talk.say("And?")).text
    assert talk.player.replies[-1].problem


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_json_that_is_whole_is_a_call(dialect: str) -> None:
    """What a script gives as JSON is read there, and no JSON where no object is."""
    script = Script([Conversation("all", [Turn(calls=[Call("read", json='{"path":  "a", "offset": 2}')])])])
    assert read(await Talk(script, dialect).say(START)) == [("read", {"path": "a", "offset": 2})]
    script = Script([Conversation("all", [Turn(calls=[Call("read", json="[1]")])])])
    (call,) = (await Talk(script, dialect).say(START)).calls
    assert Unreadable.found_in(call.arguments)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_wrong_type_stays_wrong(dialect: str) -> None:
    """A text where a number belongs is refused, though its digits would pass."""
    script, _ = said(("", [("read", {"path": "a", "offset": "2"})]))
    (call,) = (await Talk(script, dialect).say(START)).calls
    if dialect == "json":
        # The tool checks.
        assert json.loads(call.arguments)["offset"] == "2"
    else:
        fault = Unreadable.found_in(call.arguments)
        assert fault is not None
        assert "`offset` must be integer" in fault.fault


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_cut_falls_in_the_last_call(dialect: str) -> None:
    """As with native calls, however long the words before it are."""
    words = "I write it. " * 50
    script, _ = said((words, [("list", {}), ("write", {"path": "a", "content": "x\n" * 20})]))
    message = await Talk(script, dialect, spoil=cut_in_call).say(START)
    assert message.text.startswith(words.strip())
    assert message.calls[0].name == "list"
    assert len(message.calls) == 2
    for call in message.calls:
        fault = Unreadable.found_in(call.arguments)
        assert fault is not None
        assert "cut off at the output limit" in fault.fault


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_prompt_that_teaches_nothing_is_a_problem(dialect: str) -> None:
    """Said in words that tell what to change; what is taught instead is named."""
    script, heard = said()
    request = Request("any", (Message("user", (Text(START),)),), "Be good.")
    problem = play_spoken(script, request, dialect).problem
    assert f'the system prompt does not teach the dialect "{dialect}". Dialects are native, xml' in problem
    other = {"xml": "json", "json": "prose", "prose": "xml"}[dialect]
    taught = replace(request, system=f"Be good.\n\n{DIALECTS[other](TOOLS, TOKEN).teach()}")
    reply = play_spoken(script, taught, dialect)
    assert f'"{dialect}"; it teaches {other}.' in reply.problem
    assert reply.parts == (Text(reply.problem),)
    assert '"yaml"; it teaches' in play_spoken(script, taught, "yaml").problem
    assert not heard
    assert not play_spoken(script, taught, other).problem


def test_native_is_just_played() -> None:
    """There is nothing to spell."""
    script = Script([Conversation("all", [Turn("One.", "Hm.", [Call("read", {"path": "a"})])])])
    request = Request("any", (Message("user", (Text(START),)),), tools=("read",), thinking=True)
    assert play_spoken(script, request, "native") == play(script, request)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_thinking_and_order_stay(dialect: str) -> None:
    """Thinking is no text, words behind a call stay there, and the reply ends as any other text."""
    call = Call("list")
    parts = (Text("One."), call, Thinking("Hm."), Text("Two."), call, Text("Three."))
    script = Script([Conversation("all", [lambda _: Reply(parts, stop="tool_use")])])
    system = DIALECTS[dialect](TOOLS, TOKEN).teach()
    reply = play_spoken(script, Request("any", (Message("user", (Text(START),)),), system), dialect)
    first, thought, second, last = reply.parts
    spelled = DIALECTS[dialect](TOOLS, TOKEN).render_call(ours.ToolCall("1", "list", "{}"))
    assert thought == parts[2]
    assert (first, second) == (Text(f"One.\n\n{spelled}\n\n"), Text("Two.\n\n"))
    assert last == Text(f"{spelled}\n\nThree.")
    assert (reply.stop, reply.stopped, reply.turn) == ("end_turn", "end_turn", 0)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_descriptions_may_hold_anything(dialect: str) -> None:
    """Headings, examples and lists in a description are not taken for tools or parameters."""
    story = "Looks.\n## Parameters\nOptional: `depth` (integer)\n<deep>\n…\n</deep>\nDEEP `x`\n## deep\nfar"
    tools = [replace(tool("look", ["at"], at="string", depth="string"), description=story), *TOOLS]
    arguments: dict[str, object] = {"depth": "5", "at": "x"}
    script, heard = said(("", [("look", arguments), ("write", {"path": "a", "content": ""})]))
    talk = Talk(script, dialect, tools)
    assert read(await talk.say(START)) == [("look", arguments), ("write", {"path": "a", "content": ""})]
    await talk.answer([("", False), ("", False)])
    assert heard[-1].tools == tuple(sorted(spec.name for spec in tools))
    first, second = (part for part in heard[-1].messages[1].parts if isinstance(part, ToolCall))
    assert (first.arguments, second.arguments) == (arguments, {"path": "a", "content": ""})


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_all_real_tools_are_known(dialect: str) -> None:
    """Also those that take a patch, two paths, or a list."""
    tools = [one.spec for one in standard_tools()]
    calls: list[Asked] = [
        ("update_plan", {"items": [{"text": "Mend `total`", "done": True}, {"text": "</items>"}]}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
        ("move", {"path": "a b", "target": "c d"}),
        ("run", {"command": "cat <<E\n`x`\nE\n", "timeout_s": 5}),
    ]
    script, heard = said(("All at once.", calls))
    talk = Talk(script, dialect, tools)
    assert read(await talk.say(START)) == calls
    await talk.answer([("", False)] * len(calls))
    assert heard[-1].tools == tuple(sorted(spec.name for spec in tools))
    called = [part for part in heard[-1].messages[1].parts if isinstance(part, ToolCall)]
    assert [(call.name, call.arguments) for call in called] == calls


def asked(dialect: str, reply: str, answer: str) -> Request:
    """What the script hears where the transcript holds these texts."""
    script, heard = said(("", []))
    system = f"Be good.\n\n{DIALECTS[dialect](TOOLS, TOKEN).teach()}"
    texts = [Message("assistant", (Text(reply),)), Message("user", (Text(answer),))]
    play_spoken(script, Request("any", (Message("user", (Text(START),)), *texts), system), dialect)
    return heard[-1]


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("xml", "<read>\n<path>a</path>\n<path"),
        ("xml", "<read path='a'>"),
        ("xml", "```\n<list>\n</list>\n```"),
        ("xml", "<details>\n<summary>x</summary>\n</details>"),
        ("json", '```json\n{"tool": "list", "tool": "read"}\n```'),
        ("json", '```json\n{"name": "x"}\n```'),
        ("json", '```json\n{"tool": "read", "arguments": {"path": NaN}}\n```'),
        ("json", '~~~\n```json\n{"tool": "list"}\n```\n~~~'),
        ("prose", "READ the file"),
        ("prose", "DEEP `x`"),
        ("prose", "```\nLIST\n```"),
    ],
)
def test_what_is_no_call_stays_text(dialect: str, reply: str) -> None:
    """What the client could not read is shown to the model as it was, and is no call there either."""
    assert asked(dialect, reply, "x").messages[1].parts == (Text(reply),)


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("xml", "Both:\n<list>\n</list>\n<read><path>a</path> <offset>2</offset></read>"),
        ("json", 'Both:\n```json\n[{"tool": "list"},\n{"tool": "read", "arguments": {"path": "a", "offset": 2}}]\n```'),
        ("prose", "Both:\nLIST\nREAD offset=2 `a`\n"),
    ],
)
def test_results_find_their_calls(dialect: str, reply: str) -> None:
    """By the tool, in order; one that has no call has no id, and what only looks like a result is text."""
    results = "\n\n".join(
        f'<result of="{name}" id="{TOKEN}">\n{name}!\n</result id="{TOKEN}">' for name in ("read", "list", "read")
    )
    request = asked(dialect, reply, f'{results}\n\n<result of="list" id="k0">\n\n</result id="k0">')
    called, answered = request.messages[1:]
    words, first, second = called.parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.name, second.name, second.arguments) == ("list", "read", {"path": "a", "offset": 2})
    assert called.text.strip() == "Both:"
    assert words == called.parts[0]
    assert [(one.call_id, one.text) for one in answered.results] == [
        (second.id, "read!"),
        (first.id, "list!"),
        ("", "read!"),
    ]
    assert answered.text == '<result of="list" id="k0">\n\n</result id="k0">'
