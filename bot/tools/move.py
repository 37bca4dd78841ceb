"""`move`: one file renamed."""

from collections.abc import Mapping

from bot.domain.messages import ToolSpec
from bot.tools.arguments import Arguments, RelativePath, parse, specify
from bot.tools.base import ToolContext, ToolOutput


class _Arguments(Arguments):
    path: RelativePath
    target: RelativePath


class Move:
    """Renames a file or a link, never a folder, and never over something."""

    spec: ToolSpec = specify("move", "Rename one file; `target` must not exist, its folders are made.", _Arguments)
    reads_only: bool = False

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Move the file; what the model knew of it, it knows of it still."""
        asked = parse(_Arguments, arguments)
        await context.sandbox.move(asked.path, asked.target)
        ledger = context.ledger
        seen = ledger.seen.pop(asked.path, None)
        if seen is not None:
            ledger.seen[asked.target] = seen
        if ledger.there is not None and asked.path in ledger.there:
            ledger.there = ledger.there - {asked.path} | {asked.target}
        text = f"moved {asked.path} to {asked.target}"
        return ToolOutput(text, f"{asked.path} → {asked.target}", changed=(asked.path, asked.target))
