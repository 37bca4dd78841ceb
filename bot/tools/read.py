"""`read`: lines of a text file, or a picture."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.errors import ToolError
from bot.tools.arguments import Arguments, RelativePath, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.pictures import MOST_BYTES, kind_of, picture

_FILE_BYTES = 10 << 20
_MOST_LINES = 2000
_MOST_BYTES = 50_000
_LINE_CHARS = 2000


class _Arguments(Arguments):
    path: RelativePath
    offset: int = Field(default=1, ge=1, description="The first line, from 1.")
    limit: int = Field(default=_MOST_LINES, ge=1, description="Lines, at most 2,000 and 50 kB.")
    numbers: bool = Field(default=False, description="Puts a number before each line.")


class Read:
    """Shows lines; what was shown to the end of the file may be overwritten later."""

    spec: ToolSpec = specify("read", "Read a text file from line `offset`, or see a picture.", _Arguments)
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Show at most 2,000 lines and 50 kB."""
        asked = parse(_Arguments, arguments)
        content = await context.sandbox.open(asked.path, limit_bytes=_FILE_BYTES)
        kind = kind_of(content.data)
        if kind is not None and content.size_bytes <= MOST_BYTES:
            image, told = picture(content.data, kind, asked.path)
            return ToolOutput(told, asked.path, images=(image,))
        if b"\0" in content.data:
            raise ToolError(f"binary_file: this file has NUL bytes ({content.size_bytes} bytes in all): {asked.path}")
        text = content.data.decode("utf-8", "replace").removeprefix("\ufeff")
        lines = text.removesuffix("\n").split("\n") if text else []
        notes = _notes(content.data, content.size_bytes)
        if not lines:
            shown, last, cut = "(empty)", 0, False
        elif asked.offset > len(lines):
            raise ToolError(f"bad_arguments: offset {asked.offset} is beyond the last line, {len(lines)}: {asked.path}")
        else:
            picked, cut = _pick(lines[asked.offset - 1 :], asked)
            shown, last = "\n".join(picked), asked.offset + len(picked) - 1
            notes.insert(0, f"lines {asked.offset}–{last} of {len(lines)}")  # noqa: RUF001 - a range
        more = f"\n[use offset={last + 1} to go on]" if last < len(lines) else ""
        if last == len(lines) and not cut and not _unsafe(content.data, content.size_bytes):
            context.ledger.seen[asked.path] = content.sha256
        return ToolOutput(f"{'; '.join(notes)}\n{shown}{more}".lstrip("\n"), asked.path)


def _pick(lines: Sequence[str], asked: _Arguments) -> tuple[Sequence[str], bool]:
    """Take lines until one of the limits is reached; the first is always there. Says whether a line was cut."""
    picked: list[str] = []
    room, cut = _MOST_BYTES, False
    for index, raw in enumerate(lines[: min(asked.limit, _MOST_LINES)]):
        line = raw.removesuffix("\r")
        too_long = len(line) > _LINE_CHARS
        if too_long:
            line = f"{line[:_LINE_CHARS]} [… {len(line) - _LINE_CHARS} more characters in this line …]"
        if asked.numbers:
            line = f"{asked.offset + index} | {line}"
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0 and picked:
            break
        cut = cut or too_long
        picked.append(line)
    return picked, cut


def _unsafe(data: bytes, size: int) -> bool:
    """Whether overwriting would lose something that was not shown."""
    if len(data) < size:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _notes(data: bytes, size: int) -> list[str]:
    notes = []
    if b"\r\n" in data:
        notes.append("lines end in CRLF")
    if len(data) < size:
        notes.append(f"truncated: the first {len(data)} of {size} bytes, use a command for the rest")
    elif _unsafe(data, size):
        notes.append("not UTF-8: shown with �, cannot be edited as text")
    return notes
