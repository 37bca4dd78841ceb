"""What errors of Anthropic's API mean, its own and those of who else serves it, from status, headers and body; pure.

Source: https://docs.anthropic.com/en/api/errors, and the SDK's own error types; for Amazon
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html and
https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html, for Google
https://cloud.google.com/apis/design/errors
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from bot.llm.clean import clean, told
from bot.llm.keys import KeyRefused
from bot.llm.retry_after import retry_after_s

_OVERFLOW = re.compile(
    r"prompt is too long|input length and `?max_tokens`? exceed context limit|exceeds? the context window"
    r"|input is too long for requested model",
    re.IGNORECASE,
)
"""Only Anthropic's wording, and Amazon's: taking each `invalid_request_error` for an overflow would shorten the
conversation forever.

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
    "validationexception": 400,
    "modelerrorexception": 424,
    "modelstreamerrorexception": 424,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
    "modeltimeoutexception": 504,
}
"""The status of an error that came inside a stream, which has none of its own; Amazon's are in small letters here."""
_PASSING = frozenset({408, 409, 424, 425, 429})
_STALE = frozenset({"expiredtokenexception", "unrecognizedclientexception", "invalidsignatureexception"})
"""What Amazon says with 403 of credentials that it does not know, or not any more."""
_EXPIRED = re.compile(r"token (?:has|is) expired|security token included in the request is", re.IGNORECASE)
_PROFILE = re.compile(r"inference profile", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Host:
    """Who serves the models, and what a person does where it refuses."""

    name: str = "Anthropic"
    key: str = "Set ANTHROPIC_API_KEY to a key that is valid"
    permission: str = "Set ANTHROPIC_API_KEY to a key that may use this model"
    absent: str = "Set the model to one that this account has: `issuewright models` lists those we know"


ANTHROPIC = Host()


def error_for(
    status: int | None,
    body: object,
    *,
    host: Host = ANTHROPIC,
    headers: Mapping[str, str] | None = None,
    now_s: float = 0.0,
) -> ModelError:
    """Return the error to raise.

    Args:
        status: HTTP status; None for an error event inside a stream.
        body: decoded JSON, with or without a list around it, or the text of something that is none.
        host: whom the words of the error name.
        headers: names in lower case, or a mapping that does not mind.
        now_s: Unix time, for a date in `retry-after` where the answer has no `date` of its own.
    """
    kind, message, code = _read(body)
    kind = kind or (headers or {}).get("x-amzn-errortype", "").partition(":")[0]
    # An event inside a stream of an unknown type interrupts a request that had been accepted: it may pass.
    status = _STATUS.get(kind.lower(), 500) if status is None else status
    said = f"{host.name} answered {status}{f' {kind}' if kind else ''}: {told(message)}"
    if _is_spent(status, kind, message, code):
        return ModelRejected(
            f"{said}. The account's credit balance or spend limit is used up. Add credit or raise the limit"
        )
    if status in _PASSING or not 400 <= status < 500:  # noqa: PLR2004 - the class of client errors
        return ModelUnavailable(said, retry_after_s=retry_after_s(headers or {}, message, now_s))
    if status == _STATUS["request_too_large"] or (status in (400, 422) and _OVERFLOW.search(message)):
        return ContextOverflow(said)
    if status == _STATUS["authentication_error"] or _is_stale(status, kind, message):
        return KeyRefused(f"{said}. {host.key}")
    remedies = {403: f". {host.permission}", 404: f". {host.absent}"}
    if status == _STATUS["validationexception"] and _PROFILE.search(message):
        remedies[status] = ". Set the model to the id or ARN of an inference profile that has it"
    return ModelRejected(said + remedies.get(status, ""))


def _is_stale(status: int, kind: str, message: str) -> bool:
    return status == _STATUS["permission_error"] and (kind.lower() in _STALE or _EXPIRED.search(message) is not None)


def _is_spent(status: int, kind: str, message: str, code: str) -> bool:
    if _STATUS["billing_error"] in (status, _STATUS.get(kind)) or code in _SPENT:
        return True
    return status in (400, 403) and _BILLING.search(message) is not None


def _read(body: object) -> tuple[str, str, str]:
    """Return type, message and code of the error in the body; empty where it has none."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str):
        return "", clean(body.strip()[:500]), ""
    if not isinstance(body, Mapping):
        return "", "", ""
    error = body.get("error")
    if not isinstance(error, Mapping):
        # Amazon has no error around it, and at times a capital letter.
        return "", clean(str(body.get("message") or body.get("Message") or "")), ""
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, Mapping) else None
    kind = clean(str(error.get("type") or error.get("status") or ""))
    return kind, clean(str(error.get("message") or "")), str(code or "")
