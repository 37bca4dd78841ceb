"""Errors as OpenAI's APIs spell them; pure.

Source: https://platform.openai.com/docs/guides/error-codes
"""

from collections.abc import Mapping

from bot.testing.model.body import Event, Rejected
from bot.testing.model.reply import Fault

ERRORS: Mapping[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "Error"),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    402: ("insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    403: (
        "invalid_request_error",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
    404: ("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."),
    413: ("invalid_request_error", None, "Request too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached on requests per min (RPM)."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", "server_is_overloaded", "The server is currently overloaded."),
}
"""Type, code and usual message for each status."""
OVERFLOW = "context_length_exceeded"
OVERFLOW_WORDS = (
    "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
    "Please reduce the length of the messages."
)


def fault_error(fault: Fault, status: int) -> Event:
    """Return the body of a fault, with what is usual for the status where the fault says nothing."""
    kind, code, message = ERRORS.get(status, ERRORS[500])
    return _error(kind, fault.error or code, fault.message or message)


def rejection(rejected: Rejected) -> Event:
    """Return the body of a request that is refused."""
    kind, code, _ = ERRORS[rejected.status]
    is_overflow = "maximum context length" in str(rejected)
    return _error(kind, OVERFLOW if is_overflow else code, str(rejected))


def _error(kind: str, code: str | None, message: str) -> Event:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
