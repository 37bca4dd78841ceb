"""What errors of Google's API mean, from HTTP status, headers and body; pure.

Source: https://ai.google.dev/gemini-api/docs/troubleshooting, and for the shape of the body
https://cloud.google.com/apis/design/errors
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from bot.llm.clean import clean, told
from bot.llm.keys import KeyRefused
from bot.llm.retry_after import retry_after_s

KEY = "GEMINI_API_KEY"
"""The variable that holds the key."""

_OVERFLOW = re.compile(
    r"input token count.*exceeds the maximum|request payload size exceeds the limit", re.IGNORECASE | re.DOTALL
)
"""Only Google's wording: taking each `INVALID_ARGUMENT` for an overflow would shorten the conversation forever.

Source: `packages/ai/src/utils/overflow.ts` of https://github.com/badlogic/pi-mono
"""
_KEY_WORDS = re.compile(r"api key (?:not valid|not found|expired)|valid api key", re.IGNORECASE)
_QUOTA = re.compile(r"exceeded your current quota", re.IGNORECASE)
"""Said of each quota, by the minute too: that one says when to come again."""
_SPENT = re.compile(
    r"spend(?:ing)? (?:cap|limit)|prepay credits?|prepayment credits?|credits? (?:are|is) depleted", re.IGNORECASE
)
_DAY = re.compile(r"PerDay")
"""Part of the id of a quota that is renewed at midnight."""
_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The status of an error inside a stream that has no code.

Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
"""
_PASSING = frozenset({408, 409, 425, 429, 499})
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class _Error:
    status: int
    name: str
    message: str
    reasons: frozenset[str] = frozenset()
    """Of `ErrorInfo`, as `API_KEY_INVALID`."""
    quotas: tuple[str, ...] = ()
    """Ids of the quotas that are used up."""
    delay_s: float | None = None
    """Of `RetryInfo`."""


def error_for(
    status: int | None, body: object, *, headers: Mapping[str, str] | None = None, now_s: float = 0.0
) -> ModelError:
    """Return the error to raise.

    Args:
        status: HTTP status; None for an error inside a stream.
        body: decoded JSON, with or without a list around it, or the text of something that is none.
        headers: names in lower case, or a mapping that does not mind.
        now_s: Unix time, for a date in `retry-after` where the answer has no `date` of its own.
    """
    error = _read(status, body)
    said = f"Google answered {error.status}{f' {error.name}' if error.name else ''}: {told(error.message)}"
    wait_s = retry_after_s(headers or {}, error.message, now_s) if error.delay_s is None else error.delay_s
    if _SPENT.search(error.message) or "BILLING_DISABLED" in error.reasons:
        return ModelRejected(
            f"{said}. The account's credit or spending limit is used up. Add credit or raise the limit"
        )
    if error.status == _STATUS["RESOURCE_EXHAUSTED"] and _is_lasting(error, wait_s):
        return ModelRejected(f"{said}. The account's quota is used up. Raise it, or wait for the day it is renewed")
    if error.status in _PASSING or not 400 <= error.status < 500:  # noqa: PLR2004 - the class of client errors
        return ModelUnavailable(said, retry_after_s=wait_s)
    if error.status == 413 or (error.status == 400 and _OVERFLOW.search(error.message)):  # noqa: PLR2004 - too large
        return ContextOverflow(said)
    kind = KeyRefused if _is_of_the_key(error) else ModelRejected
    return kind(said + _remedy(error))


def _is_lasting(error: _Error, wait_s: float | None) -> bool:
    """Whether no wait of ours outlasts it; a quota of the day comes with a short delay all the same."""
    if error.quotas:
        return any(_DAY.search(quota) for quota in error.quotas)
    return wait_s is None and _QUOTA.search(error.message) is not None


def _is_of_the_key(error: _Error) -> bool:
    if error.status == _STATUS["UNAUTHENTICATED"] or "API_KEY_INVALID" in error.reasons:
        return True
    return _KEY_WORDS.search(error.message) is not None


def _remedy(error: _Error) -> str:
    if _is_of_the_key(error):
        return f". Set {KEY} to a key that is valid"
    if "SERVICE_DISABLED" in error.reasons:
        return ". Enable the Gemini API for the project of that key"
    remedies = {
        403: f". Set {KEY} to a key that may use this model",
        404: ". Set the model to one that this account has (`issuewright models` lists those we know), and `base_url` "
        "to where the API is, without `/v1beta`",
    }
    return remedies.get(error.status, "")


def _read(status: int | None, body: object) -> _Error:
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        text = clean(error.strip()[:500]) if isinstance(error, str) else ""
        return _Error(500 if status is None else status, "", text)
    name = clean(str(error.get("status") or ""))
    code = error.get("code")
    if status is None:
        # An error inside a stream that nobody knows interrupts a request that had been accepted: it may pass.
        status = code if isinstance(code, int) and 400 <= code < 600 else _STATUS.get(name, 500)  # noqa: PLR2004
    details = [one for one in error.get("details") or () if isinstance(one, Mapping)]
    return _Error(
        status,
        name,
        clean(str(error.get("message") or ""))[:2000],
        frozenset(str(one["reason"]) for one in details if "reason" in one),
        tuple(_quotas(details)),
        next((float(found[1]) for one in details if (found := _DELAY.fullmatch(str(one.get("retryDelay"))))), None),
    )


def _quotas(details: list[Mapping[str, object]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            if isinstance(violation, Mapping) and "quotaId" in violation:
                yield str(violation["quotaId"])
