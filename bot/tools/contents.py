"""What the bytes of a text file are, and what a change of it must keep."""

import re
from dataclasses import dataclass

from bot.errors import ToolError

_BOM = "\ufeff"
_LONE_LF = re.compile(r"(?<!\r)\n")


@dataclass(frozen=True, slots=True)
class Text:
    """A text file, taken apart."""

    text: str
    """Without byte order mark; line ends as they are."""
    bom: bool

    @property
    def newline(self) -> str:
        r"""`\r\n` where every line ends so, else `\n`."""
        return "\r\n" if "\r\n" in self.text and not _LONE_LF.search(self.text) else "\n"

    @property
    def mixed(self) -> bool:
        """Whether lines end in both ways."""
        return "\r\n" in self.text and bool(_LONE_LF.search(self.text))

    def encode(self, text: str) -> bytes:
        """Make the bytes of a new text, with the byte order mark that the file had."""
        try:
            return ((_BOM if self.bom else "") + text).encode()
        except UnicodeEncodeError:
            raise ToolError("bad_arguments: the text has characters that no file can hold") from None


def decode(data: bytes, path: str) -> Text:
    """Decode a file that may be rewritten.

    Raises:
        ToolError: the file is binary or in another encoding; rewriting it would destroy it.
    """
    if b"\0" in data:
        raise ToolError(f"binary_file: this file has NUL bytes and cannot be edited as text: {path}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"not_utf8: byte {error.start} is not UTF-8; this tool would destroy the file, use a command: {path}"
        ) from None
    return Text(text.removeprefix(_BOM), text.startswith(_BOM))


def with_newlines(text: str, newline: str) -> str:
    """Give all lines the same end."""
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", newline) if newline != "\n" else plain
