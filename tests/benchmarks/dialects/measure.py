"""Time of the text dialects: P5, and whether it grows with the length only.

python -m tests.benchmarks.dialects.measure

P5 is one reply of 200 KB in pieces of 20 characters. Its body is source code of many lines; the worst case beside it
is one line of 1 MiB, at once and character by character. The minimum of five runs.
"""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bot.domain.messages import ToolCall, ToolSpec
from bot.llm.dialects.base import Called, Dialect, Fault
from bot.llm.spoken import DIALECTS

TOKEN = "k3f9"
SOURCE = Path(__file__).parents[3] / "bot/llm/dialects/xml_grammar.py"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
TOOLS = [ToolSpec("write", "Write.", {**SCHEMA, "required": ["path", "content"]})]
RUNS = 5


def reply(dialect: Dialect, content: str) -> str:
    """One call that writes a file, between two sentences."""
    call = ToolCall("1", "write", json.dumps({"path": "a.py", "content": content}))
    return f"I write it.\n\n{dialect.render_call(call)}\n\nDone."


def read(dialect: Dialect, pieces: list[str], calls: int) -> None:
    """Read a reply and hold what is found against what is in it."""
    parser = dialect.parser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    found += parser.finish("end")
    if sum(isinstance(event, Called) for event in found) != calls or any(isinstance(event, Fault) for event in found):
        raise AssertionError("the reply was not read as it was written")


def quickest(action: Callable[[], None]) -> float:
    """Milliseconds of the quickest run."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - begun))
    return min(times)


def peak_kib(action: Callable[[], None]) -> int:
    """Most memory that one run holds at a time."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak // 1024


def cut(text: str, step: int) -> list[str]:
    """Cut a text into pieces."""
    return [text[at : at + step] for at in range(0, len(text), step)]


def main() -> None:
    """Measure and print."""
    source = SOURCE.read_text(encoding="utf-8")
    code = (source * (1 + (1 << 20) // len(source)))[: 1 << 20]
    for name, speaks in DIALECTS.items():
        dialect = speaks(TOOLS, TOKEN)
        for size in (100_000, 200_000, 400_000, 800_000):
            pieces = cut(reply(dialect, code[:size]), 20)
            took = quickest(partial(read, dialect, pieces, 1))
            mark = "  <- P5" if size == 200_000 else ""
            sys.stdout.write(f"{name:6} {size:>9,} of code, pieces of 20: {took:8.1f} ms{mark}\n")
        prose = reply(dialect, "x").partition("\n")[0] + " word" * 40_000
        line = reply(dialect, "x" * ((1 << 20) - 1000))
        for what, text, step, calls in (
            ("text, pieces of 20", prose, 20, 0),
            ("1 MiB line, at once", line, len(line), 1),
            ("1 MiB line, pieces of 1", line, 1, 1),
        ):
            pieces = cut(text, step)
            took = quickest(partial(read, dialect, pieces, calls))
            peak = peak_kib(partial(read, dialect, pieces, calls))
            sys.stdout.write(f"{name:6} {what}: {took:8.1f} ms, {peak:,} KiB at most\n")


if __name__ == "__main__":
    main()
