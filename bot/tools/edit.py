"""`edit`: one text in a file replaced by another."""

import asyncio
from collections.abc import Mapping

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.errors import ToolError
from bot.tools.arguments import Arguments, RelativePath, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.contents import Text, decode
from bot.tools.diffs import diff
from bot.tools.edits import replace
from bot.tools.syntax import broken

_FILE_BYTES = 10 << 20


class _Arguments(Arguments):
    path: RelativePath
    old: str
    new: str
    expected_count: int = Field(default=1, ge=1, description="How often `old` is there; all are replaced.")


class Edit:
    """Replaces what is there exactly once, or as often as the model said."""

    spec: ToolSpec = specify(
        "edit", "Replace `old` (copied exactly, unique in the file) by `new`; an empty `old` makes a file.", _Arguments
    )
    reads_only: bool = False

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Edit the file and show what changed."""
        asked = parse(_Arguments, arguments)
        try:
            content = await context.sandbox.open(asked.path, limit_bytes=_FILE_BYTES)
        except ToolError as error:
            if asked.old or not str(error).startswith("not_found:"):
                raise
            return await self._create(asked, context)
        if len(content.data) < content.size_bytes:
            raise ToolError(f"too_large: {content.size_bytes} bytes, at most {_FILE_BYTES} can be edited: {asked.path}")
        text = decode(content.data, asked.path)
        # Not in the event loop: a large file and an unlucky text take seconds.
        edited = await asyncio.to_thread(replace, text, asked.old, asked.new, asked.expected_count)
        written = await context.sandbox.replace(asked.path, text.encode(edited.text), expected_sha256=content.sha256)
        # An edit shows no more of the file than was known before.
        if context.ledger.seen.get(asked.path) == content.sha256:
            context.ledger.seen[asked.path] = written.sha256
        how = "" if edited.how == "exact" else f" (matched with {edited.how})"
        shown = diff(text.text, edited.text)
        wrong = await broken(context.sandbox, asked.path, text.text, edited.text)
        return ToolOutput(f"edited {asked.path}{how}\n{shown}{wrong}", asked.path, changed=(asked.path,))

    async def _create(self, asked: _Arguments, context: ToolContext) -> ToolOutput:
        made = replace(Text("", bom=False), asked.old, asked.new)
        data = Text("", bom=False).encode(made.text)
        written = await context.sandbox.replace(asked.path, data, expected_sha256=None)
        context.ledger.seen[asked.path] = written.sha256
        wrong = await broken(context.sandbox, asked.path, "", made.text)
        return ToolOutput(f"created {asked.path}{wrong}", asked.path, changed=(asked.path,))
