"""Errors as Google's API spells them; pure.

Source: https://ai.google.dev/gemini-api/docs/troubleshooting, https://cloud.google.com/apis/design/errors
"""

from collections.abc import Mapping

from bot.testing.model.body import Event, Rejected
from bot.testing.model.google_check import WRONG_KEY
from bot.testing.model.reply import Fault

ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "models/x is not found for API version v1beta, or is not supported for generateContent."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report in the troubleshooting guide."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}
"""Status and usual message for each HTTP status."""
OVERLOADED = 503
_DETAIL = "type.googleapis.com/google.rpc"


def fault_error(fault: Fault, status: int) -> Event:
    """Return the body of a fault, with what is usual for the status where the fault says nothing."""
    name, message = ERRORS.get(status, ERRORS[500])
    details: list[Event] = []
    if fault.retry_after_s is not None:
        details = [{"@type": f"{_DETAIL}.RetryInfo", "retryDelay": f"{fault.retry_after_s:g}s"}]
    return _error(status, fault.error or name, fault.message or message, details)


def stream_error(fault: Fault) -> Event:
    """Return the last chunk of a stream that fails; its code is that of the fault's own status name, if it has one."""
    codes = {ERRORS[status][0]: status for status in sorted(ERRORS, reverse=True)}
    return fault_error(fault, codes.get(fault.error, OVERLOADED))


def rejection(rejected: Rejected) -> Event:
    """Return the body of a request that is refused."""
    details: list[Event] = []
    if str(rejected) == WRONG_KEY:
        info = {"@type": f"{_DETAIL}.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
        details = [{**info, "metadata": {"service": "generativelanguage.googleapis.com"}}]
    return _error(rejected.status, ERRORS[rejected.status][0], str(rejected), details)


def _error(code: int, name: str, message: str, details: list[Event]) -> Event:
    error: Event = {"code": code, "message": message, "status": name}
    return {"error": {**error, "details": details} if details else error}
