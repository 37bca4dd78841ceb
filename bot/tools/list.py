"""`list`: the files that git does not ignore."""

from collections.abc import Mapping

from bot.domain.messages import ToolSpec
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput

_MOST = 500
_MARKS = {"directory": "/", "symlink": "@"}


class _Arguments(Arguments):
    pattern: str = "**"


class List:
    """Shows paths, one a line."""

    spec: ToolSpec = specify(
        "list", "List files by glob (`src/**/*.py`; without `/` at any depth), ignored ones left out.", _Arguments
    )
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Show at most 500 paths."""
        asked = parse(_Arguments, arguments)
        entries, total = await context.sandbox.list(asked.pattern, limit=_MOST)
        lines = [entry.path + _MARKS.get(entry.kind, "") for entry in entries]
        if total > len(lines):
            lines.append(f"[{len(lines)} of {total}; narrow the pattern]")
        return ToolOutput("\n".join(lines) or "no files fit", asked.pattern)
