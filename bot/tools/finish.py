"""`finish`: the model says that it is done."""

from collections.abc import Mapping

from bot.domain.messages import ToolSpec
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput


class _Arguments(Arguments):
    summary: str


class Finish:
    """Ends the run; whether it may end is the agent's to decide."""

    spec: ToolSpec = specify("finish", "End the work; `summary` tells the reviewer what you did and why.", _Arguments)
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Hand the summary over."""
        asked = parse(_Arguments, arguments)
        return ToolOutput(asked.summary, "finished", finished=True)
