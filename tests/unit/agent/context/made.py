"""Histories for tests of the context: small ones by hand, random ones, and a model that only summarises."""

from collections.abc import Sequence

from hypothesis import strategies as st

from bot.agent.context.conversation import Context
from bot.agent.context.handover import Facts
from bot.agent.context.window import Window
from bot.agent.loop import heard
from bot.agent.modes import ACT
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
    ToolSpec,
    Usage,
)

TASK = Message("user", (TextPart("Mend the gate."),))
SUMMARY = "The latch is in `gate.py`. Next: test it."
TOOLS = (ToolSpec("read", "Read a file.", {"type": "object"}), ToolSpec("run", "Run a command.", {"type": "object"}))
FACTS = Facts(("gate.py",), ("`pytest -q` ended with exit code 1",), budget="Used so far: 3 of 60 turns.")


def read(path: str, call_id: str, **more: object) -> ToolCall:
    """Make a call of `read`."""
    named = "".join(f', "{name}": {value}' for name, value in more.items())
    return ToolCall(call_id, "read", f'{{"path": "{path}"{named}}}')


def turn(*calls: ToolCall, gives: Sequence[str], words: Sequence[str] = (), text: str = "") -> list[Message]:
    """Make a reply with calls, their results, and what people say behind them."""
    said = (TextPart(text),) if text else ()
    results = (ToolResult(call.id, given) for call, given in zip(calls, gives, strict=True))
    return [
        Message("assistant", (*said, *calls)),
        Message("user", (*results, *(TextPart(heard(one)) for one in words))),
    ]


def long_history(turns: int, size: int, *, words: Sequence[str] = ()) -> list[Message]:
    """Make a history of reads, each of another file; people speak at the third turn."""
    made = [TASK]
    for index in range(turns):
        path = f"f{index}.py"
        made += turn(read(path, f"c{index}"), gives=[f"{path}\n" + "x" * size], words=words if index == 2 else ())
    return made


class Summariser:
    """Answers each request with what comes next in a script; the last one again and again."""

    def __init__(self, *answers: Reply | BaseException | str) -> None:
        self._answers = list(answers)
        self.prompts: list[Prompt] = []

    async def __call__(self, prompt: Prompt) -> Reply:
        """Give the next answer, or raise it."""
        self.prompts.append(prompt)
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(given, BaseException):
            raise given
        return said(given) if isinstance(given, str) else given


def said(text: str, *, stop: StopReason = "end", usage: Usage | None = None) -> Reply:
    """Make a reply of text alone."""
    parts = (TextPart(text),) if text else ()
    return Reply(Message("assistant", parts), stop, usage or Usage())


def context(ask: Summariser, *, tokens: int = 40_000, output: int = 8_192) -> Context:
    """Make a context; with 40,000 tokens 29,808 are usable, compaction is at 23,846 and its target is 14,904."""
    return Context(Window.of(tokens, output), ask, lambda: FACTS)


def prompt_of(messages: Sequence[Message]) -> Prompt:
    """Make a prompt."""
    return Prompt("Be brief.", TOOLS, tuple(messages))


SIZES = st.sampled_from([0, 1, 30, 400, 3_000, 30_000, 200_000])
PATHS = st.sampled_from(["a.py", "b.py"])


@st.composite
def results(draw: st.DrawFn, call: ToolCall) -> ToolResult:
    """Draw the result of a call: of any size, a failure or not, now and then with a picture."""
    text = draw(st.sampled_from("xyé界\ud800")) * draw(SIZES)
    images = (Image("image/png", "aGk="),) if draw(st.integers(0, 9)) == 0 else ()
    return ToolResult(call.id, text, draw(st.booleans()), images)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Draw a reply and what comes behind it; ids may come again in other turns."""
    parts: list[Part] = []
    if draw(st.booleans()):
        parts.append(ThinkingPart("hm " * draw(st.integers(0, 99)), "sealed"))
    count = draw(st.integers(0, 3))
    if not count or draw(st.booleans()):
        parts.append(TextPart("I look. " * draw(st.integers(1, 40))))
    for index in range(count):
        call = read(draw(PATHS), f"id{index}", offset=draw(st.integers(1, 2)))
        parts.append(call if draw(st.booleans()) else ToolCall(call.id, "run", '{"command": "ls"}'))
    reply = Message("assistant", tuple(parts))
    behind: list[Part] = [draw(results(call)) for call in reply.calls]
    if draw(st.integers(0, 4)) == 0:
        behind.append(TextPart(heard(draw(st.sampled_from(["Hurry up.", "Use tabs. " * 3_000])))))
    if not behind:
        behind.append(TextPart(ACT.nudge))
    return [reply, Message("user", tuple(behind))]


HISTORIES = st.lists(turns(), max_size=14).map(lambda made: [TASK, *(message for one in made for message in one)])
ANSWERS = st.one_of(
    st.sampled_from(["", SUMMARY, "So. " * 20_000]).map(said),
    st.just(said(SUMMARY, stop="length")),
    st.just(Reply(Message("assistant", (TextPart(SUMMARY), read("a.py", "s"))), "tool")),
)
