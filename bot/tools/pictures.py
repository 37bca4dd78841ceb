"""Pictures in files: which kind and size they are, and whether they are whole; a provider refuses a broken one.

Source: https://www.w3.org/TR/png-3/, https://www.w3.org/Graphics/GIF/spec-gif89a.txt,
https://www.w3.org/Graphics/JPEG/itu-t81.pdf, https://developers.google.com/speed/webp/docs/riff_container
"""

import base64
import struct
import zlib

from bot.domain.messages import Image, ImageType
from bot.errors import ToolError

MOST_BYTES = 3 << 20
"""In Base64 it stays below the 5 MB that a provider takes of one picture."""
_MOST_PIXELS = 8000
"""Of either side. Source: https://docs.anthropic.com/en/docs/build-with-claude/vision"""
_MAGIC: dict[bytes, ImageType] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"\xff\xd8\xff": "image/jpeg",
}
_SOF = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of a JPEG that the size follows."""
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers of a JPEG without a length."""


def kind_of(data: bytes) -> ImageType | None:
    """Say what picture begins so; None where it is none that models see."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def picture(data: bytes, kind: ImageType, path: str) -> tuple[Image, str]:
    """Make what is sent to a model, and a line that describes it.

    Raises:
        ToolError: it is not whole, or larger than models take it.
    """
    try:
        width, height = _SIZES[kind](data)
    except (ValueError, struct.error, IndexError):
        raise ToolError(f"broken_image: this is no whole {kind}: {path}") from None
    if not 0 < max(width, height) <= _MOST_PIXELS or not min(width, height):
        raise ToolError(f"too_large: {width} × {height} pixels, at most {_MOST_PIXELS} a side can be seen: {path}")  # noqa: RUF001
    text = f"{kind}, {width} × {height} pixels, {len(data)} bytes"  # noqa: RUF001 - the sign of multiplication
    return Image(kind, base64.b64encode(data).decode("ascii")), text


def _png(data: bytes) -> tuple[int, int]:
    at = 8
    kinds: list[bytes] = []
    while not kinds or kinds[-1] != b"IEND":
        (length,) = struct.unpack_from(">I", data, at)
        body = data[at + 4 : at + 8 + length]
        if zlib.crc32(body) != struct.unpack_from(">I", data, at + 8 + length)[0]:
            raise ValueError("checksum")
        kinds.append(body[:4])
        at += 12 + length
    if kinds[0] != b"IHDR" or b"IDAT" not in kinds:
        raise ValueError("chunks")
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    if data.rstrip(b"\0")[-1:] != b";":
        raise ValueError("trailer")
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in data[-64:]:
        raise ValueError("end")
    at = 2
    while True:
        if data[at] != 0xFF:  # noqa: PLR2004 - begins every marker
            raise ValueError("marker")
        marker = data[at + 1]
        if marker in _SOF:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 1 if marker == 0xFF else 2 if marker in _ALONE else 2 + struct.unpack_from(">H", data, at + 2)[0]  # noqa: PLR2004


def _webp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack_from("<I", data, 4)
    if len(data) < length + 8:
        raise ValueError("length")
    match data[12:16]:
        case b"VP8X":
            return (
                int.from_bytes(data[24:27], "little") + 1,
                int.from_bytes(data[27:30], "little") + 1,
            )
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            raise ValueError("kind")


_SIZES = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}
