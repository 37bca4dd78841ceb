"""`search`: lines that fit a regular expression."""

from collections.abc import Mapping

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput

_MOST = 200
_MOST_BYTES = 50_000


class _Arguments(Arguments):
    pattern: str
    glob: str = Field(default="**", description="Files to look in, as in `list`.")


class Search:
    """Shows lines with their numbers below the path of their file."""

    spec: ToolSpec = specify("search", "Find a Perl regular expression in files that are not ignored.", _Arguments)
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Show at most 200 lines and 50 kB."""
        asked = parse(_Arguments, arguments)
        glob = None if asked.glob in {"", "**"} else asked.glob
        hits, total = await context.sandbox.search(asked.pattern, glob=glob, limit=_MOST)
        lines: list[str] = []
        room, shown, path = _MOST_BYTES, 0, None
        for hit in hits:
            fresh = [] if hit.path == path else [hit.path]
            path = hit.path
            # A byte order mark is no text to copy: `read` does not show it, and edits look for lines without it.
            text = hit.text.removeprefix("\ufeff") if hit.line == 1 else hit.text
            rows = [*fresh, f"{hit.line}: {text}"]
            room -= sum(len(row.encode("utf-8", "replace")) + 1 for row in rows)
            if room < 0:
                break
            lines += rows
            shown += 1
        if total > shown:
            lines.append(f"[{shown} of {total} lines; narrow the pattern or the glob]")
        return ToolOutput("\n".join(lines) or "nothing found", asked.pattern)
