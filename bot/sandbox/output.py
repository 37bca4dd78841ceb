"""What a command printed, made fit for a model: no escapes, both ends, a note of what was left out."""

import re

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles and links
    r"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"  # strings for the terminal itself
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # colours and movements
    r"|\x1b[ -/]*[0-~]?"  # the rest
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(data: bytes) -> str:
    """Decode, and leave what a person would see on a terminal."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_written, text.split("\n")))
    return _CONTROLS.sub("", text)


def _last_written(line: str) -> str:
    """Keep what is left of a line that was written over, as by a progress bar."""
    return next((part for part in reversed(line.split("\r")) if part), "")


def clip(text: str, limit: int) -> str:
    """Keep the first quarter and the last three quarters of so many characters: errors stand at the end."""
    if len(text) <= limit:
        return text
    return join(text[: limit // 4], text[len(text) - (limit - limit // 4) :], len(text) - limit, "characters")


def join(head: str, tail: str, count: int, unit: str) -> str:
    """Put both ends together with a note of what is missing between them."""
    return f"{head}\n[… {count:,} {unit} left out …]\n{tail}"


def both_ends(head: bytes, tail: bytes, total: int, limit: int) -> str:
    """Make a text of what was kept of a stream.

    Args:
        head: its first bytes.
        tail: its last bytes; with `head` the whole stream where they are as many.
        total: bytes of the whole stream.
        limit: characters of the text, the note not counted.
    """
    if total <= len(head) + len(tail):
        return clip(clean(head + tail), limit)
    first = clean(head)[: limit // 4]
    last = clean(tail)[-(limit - limit // 4) :]
    return join(first, last, total - len(first.encode()) - len(last.encode()), "bytes")
