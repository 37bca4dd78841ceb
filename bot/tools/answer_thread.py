"""`answer_thread`: what the model answers where a reviewer said something on a line."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import StringConstraints

from bot.domain.messages import ToolSpec
from bot.domain.review import ThreadAnswer
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput

NAME = "answer_thread"


class _Arguments(Arguments):
    thread: Annotated[str, StringConstraints(pattern=r"^T[0-9]{1,4}$")]
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]
    done: bool = False


class AnswerThread:
    """Keeps one answer for each thread, the last one; the harness posts all of them once the work is pushed."""

    spec: ToolSpec = specify(
        NAME,
        "Answer a review thread, as `T1`: what you did or why not. `done` where you did what was asked; the harness "
        "names the commit and posts it at the end.",
        _Arguments,
    )
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Take the answer over."""
        asked = parse(_Arguments, arguments)
        answer = ThreadAnswer(asked.thread, asked.text, asked.done)
        return ToolOutput(f"kept for {answer.thread}", f"{answer.thread}: {answer.text}"[:200], answer=answer)
