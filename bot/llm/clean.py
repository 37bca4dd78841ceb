"""Text without what no API takes: lone surrogates and NUL."""

from collections.abc import Mapping
from typing import Any


def clean(text: str) -> str:
    """Put U+FFFD in the place of each lone surrogate and each NUL; the length stays the same."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        # Most text is, and a long one need not be encoded to know it.
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def clean_json(value: Any, *, depth: int = 64) -> Any:  # Any: JSON in, JSON out
    """Return the value with all its texts and keys clean.

    Raises:
        ValueError: nested deeper than `depth`.
    """
    if depth < 0:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(inner, depth=depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(inner, depth=depth - 1) for inner in value]
    return value


def told(message: str) -> str:
    """Return an API's words as the part of a sentence that goes on behind them."""
    return message.rstrip(". ") or "nothing more"
