"""How long a provider asks us to wait: headers in milliseconds, seconds or as a date, or words; pure."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_AGAIN = re.compile(r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)? ?[a-z]+[ ,]{0,2})+)")
"""As "try again in 1.3s", "in 20ms", "in 6m0s", "after 6 seconds"."""
_PIECE = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+)")
_UNIT = re.compile(r"(?P<ms>ms|milliseconds?)|(?P<s>s|secs?|seconds?)|(?P<m>m|mins?|minutes?)|(?P<h>h|hours?)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after_s(headers: Mapping[str, str], message: str, now_s: float) -> float | None:
    """Return how many seconds the provider asks us to wait, 0 or more; None where it does not say.

    Looks at `retry-after-ms`, at `retry-after` in seconds or as a date, then at words as "try again in 1.3s".

    Args:
        headers: names in lower case, or a mapping that does not mind.
        message: of the error.
        now_s: Unix time, for a date where the answer has no `date` of its own.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None:
        return seconds
    if (until := _date(value)) is not None:
        sent = _date(headers.get("date"))
        return max(0.0, until - (now_s if sent is None else sent))
    found = _AGAIN.search(message.lower())
    return _told(found[1]) if found else None


def _told(words: str) -> float | None:
    total: float | None = None
    for number, word in _PIECE.findall(words):
        unit = _UNIT.fullmatch(word)
        if unit is None:
            break
        total = (total or 0.0) + float(number) * _SECONDS[str(unit.lastgroup)]
    return total


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(value: str | None) -> float | None:
    try:
        return parsedate_to_datetime(value or "").timestamp()
    except (ValueError, OverflowError):
        return None
