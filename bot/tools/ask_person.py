"""`ask_person`: a question that only people can answer."""

from collections.abc import Mapping

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.tools.arguments import Arguments, Words, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.toolset import fit

_CHARS = 4_000


class _Arguments(Arguments):
    question: Words = Field(max_length=_CHARS)


class AskPerson:
    """Ends the run until somebody answers; where a person sits at the terminal, they answer at once."""

    spec: ToolSpec = specify(
        "ask_person",
        "Ask the people, and stop until they answer. Only for what you can neither find out nor decide yourself.",
        _Arguments,
    )
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Hand the question over."""
        question = fit(parse(_Arguments, arguments).question, _CHARS)
        return ToolOutput("The question was put to the people.", question, finished=True, question=question)
