"""What Anthropic's errors mean."""

import pytest

from bot.domain.messages import Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelRefused, ModelRejected, ModelUnavailable
from bot.llm.anthropic_errors import error_for
from bot.llm.discarded import usage_of, with_usage
from bot.llm.keys import KeyRefused
from bot.llm.retry_after import retry_after_s


def body(kind: str, message: str, **details: str) -> dict[str, object]:
    """An error as the API sends it."""
    return {"type": "error", "error": {"type": kind, "message": message, "details": details}}


@pytest.mark.parametrize(
    ("status", "kind", "message", "error"),
    [
        (408, "timeout_error", "Request timeout", ModelUnavailable),
        (409, "conflict_error", "Conflict", ModelUnavailable),
        (429, "rate_limit_error", "This request would exceed your organization's rate limit", ModelUnavailable),
        (429, "rate_limit_error", "prompt is too long for your tokens per minute", ModelUnavailable),
        (429, "rate_limit_error", "too fast; see your usage limits and billing page", ModelUnavailable),
        (404, "not_found_error", "model: prompt is too long", ModelRejected),
        (500, "api_error", "Internal server error", ModelUnavailable),
        (503, "", "", ModelUnavailable),
        (529, "overloaded_error", "Overloaded", ModelUnavailable),
        (400, "invalid_request_error", "prompt is too long: 216001 tokens > 200000 maximum", ContextOverflow),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ContextOverflow,
        ),
        (413, "request_too_large", "Request exceeds the maximum size", ContextOverflow),
        (413, "", "", ContextOverflow),
        (400, "invalid_request_error", "messages.1.content.0.tool_use.id: String should match pattern", ModelRejected),
        (400, "invalid_request_error", "max_tokens: 100000 > 64000, which is the maximum allowed", ModelRejected),
        (401, "authentication_error", "invalid x-api-key", KeyRefused),
        (402, "billing_error", "Pay", ModelRejected),
        (403, "permission_error", "Your API key does not have permission", ModelRejected),
        (404, "not_found_error", "model: claude-nope", ModelRejected),
        (422, "invalid_request_error", "unprocessable", ModelRejected),
    ],
)
def test_each_error_has_its_class(status: int, kind: str, message: str, error: type[ModelError]) -> None:
    """By status and by Anthropic's own words; the API's message is repeated."""
    found = error_for(status, body(kind, message))
    assert type(found) is error
    assert message in str(found)
    assert str(status) in str(found)


@pytest.mark.parametrize(
    ("status", "kind", "message", "remedy"),
    [
        (401, "authentication_error", "invalid x-api-key", "Set ANTHROPIC_API_KEY"),
        (403, "permission_error", "no", "Set ANTHROPIC_API_KEY"),
        (404, "not_found_error", "model: x", "Set the model"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "credit balance"),
        (402, "billing_error", "x", "The account's credit balance"),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", "raise the limit"),
    ],
)
def test_a_rejection_says_what_to_do(status: int, kind: str, message: str, remedy: str) -> None:
    """Key, model or money."""
    found = error_for(status, body(kind, message))
    assert type(found) is (KeyRefused if status == 401 else ModelRejected)
    assert remedy in str(found)


def test_a_spend_limit_is_no_rate_limit() -> None:
    """Both are 429, but waiting cures only one."""
    limited = body("rate_limit_error", "x", error_code="enforced_spend_limit_reached")
    assert type(error_for(429, limited)) is ModelRejected
    assert type(error_for(429, body("rate_limit_error", "x", error_code="ramp_limit_exceeded"))) is ModelUnavailable


@pytest.mark.parametrize(
    "odd", [None, "", "<html>Bad Gateway</html>", [], {"error": "x"}, {"error": {"type": None}}, 5]
)
def test_a_body_of_another_shape_is_an_error_all_the_same(odd: object) -> None:
    """A proxy's page, nothing at all, or JSON of another API."""
    assert type(error_for(502, odd)) is ModelUnavailable
    assert type(error_for(400, odd)) is ModelRejected


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({}, "", None),
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, "", 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, "", 7.0),
        ({"retry-after": "Mon, 30 Nov 2026 00:01:00 GMT", "date": "Mon, 30 Nov 2026 00:00:30 GMT"}, "", 30.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, "", 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "inf"}, "", None),
        ({}, "Please try again in 1.3s.", 1.3),
        ({}, "try again in 28ms", 0.028),
        ({}, "Try again in 2 minutes", 120.0),
        ({}, "retry after 20 seconds", 20.0),
        ({}, "try again in 5 milliseconds", 0.005),
        ({}, "Please try again in 6m0s.", 360.0),
        ({}, "Please try again in 1h2m3.5s. Visit us", 3723.5),
        ({}, "try again in 20 mins", 1200.0),
        ({}, "try again in 2 seconds, 5 times", 2.0),
        ({}, "try again in 1 minute, 5 seconds", 65.0),
        ({}, "try again in 5 miles", None),
        ({}, "try again in a while", None),
    ],
)
def test_the_wait_that_the_provider_asks_for(headers: dict[str, str], message: str, seconds: float | None) -> None:
    """Milliseconds, seconds, a date measured from the answer's own, or words."""
    assert retry_after_s(headers, message, now_s=1000.0) == pytest.approx(seconds)
    error = error_for(429, body("rate_limit_error", message), headers=headers, now_s=1000.0)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after_s == pytest.approx(seconds)


def test_an_error_carries_what_it_cost() -> None:
    """It stays of its kind, keeps its words and its wait, and adds up."""
    one, two = Usage(1, 2, 3, 4), Usage(10, 20, 30, 40)
    for error in (ModelUnavailable("x", retry_after_s=3), MalformedReply("x"), ModelRefused("x")):
        assert usage_of(error) == Usage()
        assert with_usage(error, Usage()) is error
        carried = with_usage(with_usage(error, one), two)
        assert isinstance(carried, type(error))
        assert (str(carried), usage_of(carried)) == ("x", one + two)
    unavailable = with_usage(ModelUnavailable("x", retry_after_s=3), one)
    assert isinstance(unavailable, ModelUnavailable)
    assert unavailable.retry_after_s == 3
    rejected = ModelRejected("x")
    assert with_usage(rejected, one) is rejected
