"""Meter, compaction and prediction: a transcript of 200,000 tokens, and a recorded session where there is one.

python -m tests.benchmarks.context.measure
"""

import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Callable

from bot.agent.context.conversation import Context
from bot.agent.context.duplicates import without_duplicates
from bot.agent.context.gauge import Gauge
from bot.agent.context.handover import Facts
from bot.agent.context.sizes import size_of
from bot.agent.context.window import Window
from bot.agent.limits import LimitGuard, Limits
from bot.domain.context import thousands
from bot.domain.messages import Message, Prompt, Reply, TextPart, ToolCall, ToolResult, Usage
from bot.errors import ModelUnavailable
from tests.unit.agent.context.recorded import place, session

TURNS = 150
RESULT_BYTES = 4_000
LINE = "    total = sum(item.price * item.count for item in order.items)  # before discounts\n"
WIDE = Limits(turns=10**6, tokens=10**9, usd=1e6, minutes=1e6)


def transcript() -> list[Message]:
    """Make 150 turns of about 4 kB: 200,000 tokens; every fifth read is one that was made before."""
    made = [Message("user", (TextPart("Mend the order's total."),))]
    for number in range(TURNS):
        name = number - 4 if number % 5 == 4 else number
        path = f"src/m{name:03}.py"
        text = f"lines 1-48 of 48: {path}\n{LINE * (RESULT_BYTES // len(LINE))}"
        call = ToolCall(f"c{number}", "read", f'{{"path": "{path}"}}')
        made += [Message("assistant", (TextPart("I look."), call)), Message("user", (ToolResult(call.id, text),))]
    return made


def timed(act: Callable[[], object], times: int = 50) -> str:
    """Return the median and the 95th percentile of some runs, in milliseconds."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        took.append(1000 * (time.perf_counter() - begun))
    return f"p50 {statistics.median(took):.2f} ms, p95 {statistics.quantiles(took, n=20)[18]:.2f} ms"


def compaction(prompt: Prompt, answer: Reply | None) -> tuple[str, str]:
    """Compact with a model that answers at once, or none."""

    async def ask(_: Prompt) -> Reply:
        if answer is None:
            raise ModelUnavailable("none")
        return answer

    # Of this size usable is so much that the transcript stands just above the mark.
    window = Window(200_000, int(Gauge().tokens(prompt) / 0.81))

    def once() -> object:
        return asyncio.run(Context(window, ask, Facts).compact(prompt))

    return timed(once, 20), str(once())


def predicted() -> str:
    """Hold the meter against what the provider counted."""
    gauge = Gauge()
    misses: list[float] = []
    under = []
    for request in session():
        prompt = Prompt("", (), request.messages)
        counted = request.usage.total_tokens - request.usage.output_tokens
        # The first one has a system prompt and tools that were not recorded.
        if request is not session()[0]:
            said = gauge.tokens(prompt)
            misses.append(abs(said - counted) / counted)
            under.append(counted - said)
        gauge.replied(prompt, Reply(request.reply, "tool", request.usage))
    misses.sort()
    return (
        f"{len(misses)} prompts; off by p50 {100 * misses[len(misses) // 2]:.3f} %, "
        f"p95 {100 * misses[int(len(misses) * 0.95)]:.3f} %, most {100 * misses[-1]:.2f} %; "
        f"most too low {max(under)} tokens"
    )


def main() -> None:
    """Measure and print."""
    messages = transcript()
    prompt = Prompt("Be brief.", (), tuple(messages))
    fresh, anchored = Gauge(), Gauge()
    anchored.replied(Prompt("Be brief.", (), tuple(messages[:-2])), Reply(messages[-2], "tool", Usage(200_000)))
    summary = Reply(Message("assistant", (TextPart("What I know. " * 300),)), "end")
    guard = LimitGuard(WIDE)
    pairs = [
        (call, ToolResult(call.id, f"{number} {LINE * 48}"))
        for number, message in enumerate(messages)
        for call in message.calls
    ]

    def count() -> None:
        for call, result in pairs:
            guard.repeated(call, result, changed=True)

    lines = [
        f"transcript: {len(messages)} messages, {size_of(messages):,} bytes, {thousands(fresh.tokens(prompt))} tokens",
        f"meter: {timed(lambda: anchored.tokens(prompt))}",
        f"duplicates: {timed(lambda: without_duplicates(messages))}",
        "summary: {}; {}".format(*compaction(prompt, summary)),
        "truncation: {}; {}".format(*compaction(prompt, None)),
        f"loop detector, {len(pairs)} calls: {timed(count, 3)}",
    ]
    if place().exists():
        lines.append(f"recorded session: {predicted()}")
    lines.append(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
