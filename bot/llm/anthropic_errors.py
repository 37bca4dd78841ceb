"""What Anthropic's errors mean, from HTTP status, headers and body; pure.

Source: https://docs.anthropic.com/en/api/errors, and the SDK's own error types.
"""

import re
from collections.abc import Mapping

from bot.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from bot.llm.clean import clean
from bot.llm.retry_after import retry_after_s

_OVERFLOW = re.compile(
    r"prompt is too long|input length and `?max_tokens`? exceed context limit|exceeds? the context window",
    re.IGNORECASE,
)
"""Only Anthropic's wording: taking each `invalid_request_error` for an overflow would shorten the conversation forever.

Source: https://docs.anthropic.com/en/docs/build-with-claude/context-windows
"""
_BILLING = re.compile(r"credit balance|billing|usage limits|spend limit", re.IGNORECASE)
_SPENT = frozenset(
    {"contract_spend_limit_reached", "enforced_spend_limit_reached", "linked_organization_spend_limit_reached"}
)
"""`details.error_code` of a 429 or 402 that waiting does not cure. Source: `anthropic.types.shared`."""
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of an error that came inside a stream, which has none of its own."""
_PASSING = frozenset({408, 409, 425, 429})


def error_for(
    status: int | None, body: object, *, headers: Mapping[str, str] | None = None, now_s: float = 0.0
) -> ModelError:
    """Return the error to raise.

    Args:
        status: HTTP status; None for an error event inside a stream.
        body: decoded JSON, or the text of something that is none.
        headers: names in lower case, or a mapping that does not mind.
        now_s: Unix time, for a date in `retry-after` where the answer has no `date` of its own.
    """
    kind, message, code = _read(body)
    # An event inside a stream of an unknown type interrupts a request that had been accepted: it may pass.
    status = _STATUS.get(kind, 500) if status is None else status
    said = f"Anthropic answered {status}{f' {kind}' if kind else ''}: {message or 'nothing more'}"
    if _is_spent(status, kind, message, code):
        return ModelRejected(
            f"{said}. The account's credit balance or spend limit is used up. Add credit or raise the limit"
        )
    if status in _PASSING or not 400 <= status < 500:  # noqa: PLR2004 - the class of client errors
        return ModelUnavailable(said, retry_after_s=retry_after_s(headers or {}, message, now_s))
    if status == _STATUS["request_too_large"] or (status in (400, 422) and _OVERFLOW.search(message)):
        return ContextOverflow(said)
    remedies = {
        401: ". Set ANTHROPIC_API_KEY to a key that is valid",
        403: ". Set ANTHROPIC_API_KEY to a key that may use this model",
        404: ". Set the model to one that this account has",
    }
    return ModelRejected(said + remedies.get(status, ""))


def _is_spent(status: int, kind: str, message: str, code: str) -> bool:
    if _STATUS["billing_error"] in (status, _STATUS.get(kind)) or code in _SPENT:
        return True
    return status in (400, 403) and _BILLING.search(message) is not None


def _read(body: object) -> tuple[str, str, str]:
    """Return type, message and code of the error in the body; empty where it has none."""
    if isinstance(body, str):
        return "", clean(body.strip()[:500]), ""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return "", "", ""
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, Mapping) else None
    return str(error.get("type") or ""), clean(str(error.get("message") or "")), str(code or "")
