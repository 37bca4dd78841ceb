"""What Google's errors mean."""

from typing import Any

import pytest

from bot.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from bot.llm.google_errors import error_for
from bot.llm.keys import KeyRefused


def body(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    """An error as the API sends it."""
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def info(reason: str) -> dict[str, Any]:
    """The reason of an error."""
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}


def quota(*ids: str) -> dict[str, Any]:
    """The quotas that are used up."""
    violations = [{"quotaMetric": "m", "quotaId": one, "quotaValue": "5"} for one in ids]
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}


def delay(value: object) -> dict[str, Any]:
    """When to come again."""
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": value}


SPENT = "You exceeded your current quota, please check your plan and billing details."
MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"


@pytest.mark.parametrize(
    ("code", "status", "message", "error"),
    [
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", KeyRefused),
        (400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts.", ModelRejected),
        (400, "INVALID_ARGUMENT", "max_output_tokens must be positive: 0 exceeds the maximum", ModelRejected),
        (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", ModelRejected),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            ContextOverflow,
        ),
        (400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.", ContextOverflow),
        (413, "", "", ContextOverflow),
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", KeyRefused),
        (403, "PERMISSION_DENIED", "Your API key was reported as leaked.", ModelRejected),
        (404, "NOT_FOUND", "models/gemini-nope is not found for API version v1beta", ModelRejected),
        (404, "NOT_FOUND", "input token count exceeds the maximum", ModelRejected),
        (409, "ABORTED", "Conflict", ModelUnavailable),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", ModelUnavailable),
        (429, "RESOURCE_EXHAUSTED", "input token count exceeds the maximum per minute", ModelUnavailable),
        (499, "CANCELLED", "The operation was cancelled.", ModelUnavailable),
        (500, "INTERNAL", "An internal error has occurred.", ModelUnavailable),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", ModelUnavailable),
        (504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.", ModelUnavailable),
    ],
)
def test_each_error_has_its_class(code: int, status: str, message: str, error: type[ModelError]) -> None:
    """By status and by Google's own words, which are repeated; inside a stream as outside, in a list as alone."""
    told = body(code, status, message)
    for found in (error_for(code, told), error_for(None, told), error_for(code, [told])):
        assert type(found) is error
        assert message.rstrip(".") in str(found)
        assert str(code) in str(found)


@pytest.mark.parametrize(
    ("code", "status", "message", "reason", "remedy"),
    [
        (400, "INVALID_ARGUMENT", "API key not valid.", "API_KEY_INVALID", "Set GEMINI_API_KEY to a key that is valid"),
        (400, "INVALID_ARGUMENT", "API key expired. Renew it.", "", "Set GEMINI_API_KEY to a key that is valid"),
        (400, "INVALID_ARGUMENT", "x", "API_KEY_INVALID", "Set GEMINI_API_KEY to a key that is valid"),
        (401, "UNAUTHENTICATED", "x", "", "Set GEMINI_API_KEY to a key that is valid"),
        (403, "PERMISSION_DENIED", "x", "API_KEY_SERVICE_BLOCKED", "Set GEMINI_API_KEY to a key that may use"),
        (403, "PERMISSION_DENIED", "x", "SERVICE_DISABLED", "Enable the Gemini API"),
        (403, "PERMISSION_DENIED", "x", "BILLING_DISABLED", "Add credit"),
        (404, "NOT_FOUND", "models/x is not found", "", "Set the model to one"),
        (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", "", "Add credit"),
        (429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap.", "", "raise the limit"),
    ],
)
def test_a_rejection_says_what_to_do(code: int, status: str, message: str, reason: str, remedy: str) -> None:
    """Key, model, project or money; a request that is wrong has no remedy but its own words."""
    found = error_for(code, body(code, status, message, info(reason)))
    assert type(found) is (KeyRefused if "a key that is valid" in remedy else ModelRejected)
    assert remedy in str(found)
    assert str(error_for(400, body(400, "INVALID_ARGUMENT", "bad"))) == "Google answered 400 INVALID_ARGUMENT: bad"


@pytest.mark.parametrize(
    ("details", "error", "seconds"),
    [
        ([quota(MINUTE), delay("34.074824224s")], ModelUnavailable, 34.074824224),
        ([quota(MINUTE)], ModelUnavailable, None),
        ([delay("7s")], ModelUnavailable, 7),
        ([quota(DAY), delay("34s")], ModelRejected, None),
        ([quota(MINUTE, DAY), delay("34s")], ModelRejected, None),
        ([], ModelRejected, None),
        ([delay("soon"), {"violations": "x"}, {"violations": [1]}], ModelRejected, None),
        ([delay(5), "x"], ModelRejected, None),
    ],
)
def test_a_quota_by_the_minute_passes_and_one_of_the_day_does_not(
    details: list[Any], error: type[ModelError], seconds: float | None
) -> None:
    """The words are the same; the quota's id or the delay tells, and a quota of the day has a delay that is none."""
    found = error_for(429, body(429, "RESOURCE_EXHAUSTED", SPENT, *details))
    assert type(found) is error
    if isinstance(found, ModelUnavailable):
        assert found.retry_after_s == pytest.approx(seconds)


def test_the_wait_may_be_in_words_or_headers() -> None:
    """Google repeats the delay in its message; a gateway has the header."""
    told = error_for(429, body(429, "RESOURCE_EXHAUSTED", SPENT + " Please retry in 2.5s."))
    assert isinstance(told, ModelUnavailable)
    assert told.retry_after_s == 2.5
    sent = error_for(503, None, headers={"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, now_s=1000.0)
    assert isinstance(sent, ModelUnavailable)
    assert sent.retry_after_s == 10.0


@pytest.mark.parametrize(
    "odd", [None, "", "<html>Bad Gateway</html>", [], {}, {"error": "x"}, {"error": {"status": None}}, 5, [5]]
)
def test_a_body_of_another_shape_is_an_error_all_the_same(odd: object) -> None:
    """A proxy's page, nothing at all, or JSON of another API."""
    assert type(error_for(502, odd)) is ModelUnavailable
    assert type(error_for(400, odd)) is ModelRejected
    assert type(error_for(None, odd)) is ModelUnavailable


def test_the_name_tells_where_a_stream_has_no_code() -> None:
    """Inside a stream there is no status but the body's."""
    assert type(error_for(None, {"error": {"status": "NOT_FOUND", "message": "x"}})) is ModelRejected
    assert type(error_for(None, {"error": {"status": "TOMORROW", "message": "x"}})) is ModelUnavailable
