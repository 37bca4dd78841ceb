"""`write`: a whole file, new or over one that the model has seen."""

from collections.abc import Mapping

from bot.domain.messages import ToolSpec
from bot.errors import ToolError
from bot.tools.arguments import Arguments, RelativePath, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.contents import Text, decode, with_newlines
from bot.tools.placeholders import left_out
from bot.tools.syntax import broken

_FILE_BYTES = 10 << 20


class _Arguments(Arguments):
    path: RelativePath
    content: str


class Write:
    """Creates or overwrites; what nobody read to its end, or what changed since, is left alone."""

    spec: ToolSpec = specify(
        "write", "Create a file, or overwrite one that you read to its end. To change a file, use edit.", _Arguments
    )
    reads_only: bool = False

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Write the file; line ends and the byte order mark of an old one are kept."""
        asked = parse(_Arguments, arguments)
        seen = context.ledger.seen.get(asked.path)
        try:
            old = await self._old(asked.path, seen, context)
        except ToolError:
            # It changed or went away: only reading it, or finding it gone, makes writing possible again.
            context.ledger.seen.pop(asked.path, None)
            raise
        line = left_out(asked.content, old.text)
        if line is not None:
            raise ToolError(f"placeholder: write the whole file; this line only stands for some of it: {line}")
        content = with_newlines(asked.content, "\r\n") if old.newline == "\r\n" else asked.content
        written = await context.sandbox.replace(asked.path, old.encode(content), expected_sha256=seen)
        context.ledger.seen[asked.path] = written.sha256
        verb = "created" if seen is None else "overwrote"
        count = content.count("\n") + (not content.endswith("\n") and bool(content))
        wrong = await broken(context.sandbox, asked.path, old.text, content)
        return ToolOutput(f"{verb} {asked.path} ({count} lines){wrong}", asked.path, changed=(asked.path,))

    async def _old(self, path: str, seen: str | None, context: ToolContext) -> Text:
        if seen is None:
            return Text("", bom=False)
        content = await context.sandbox.open(path, limit_bytes=_FILE_BYTES)
        if content.sha256 != seen:
            raise ToolError(f"stale_file: the file changed since it was last read; read it again: {path}")
        return decode(content.data, path)
