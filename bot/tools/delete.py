"""`delete`: one file removed."""

from collections.abc import Mapping

from bot.domain.messages import ToolSpec
from bot.tools.arguments import Arguments, RelativePath, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.deletions import allow


class _Arguments(Arguments):
    path: RelativePath


class Delete:
    """Removes a file or a link, never a folder."""

    spec: ToolSpec = specify("delete", "Delete one file.", _Arguments)
    reads_only: bool = False

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Delete the file."""
        asked = parse(_Arguments, arguments)
        await allow(context, [asked.path])
        await context.sandbox.delete(asked.path)
        context.ledger.seen.pop(asked.path, None)
        return ToolOutput(f"deleted {asked.path}", asked.path, changed=(asked.path,))
