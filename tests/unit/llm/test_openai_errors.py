"""What the errors of OpenAI's APIs, and of the servers that speak like them, mean."""

from typing import Any

import pytest

from bot.errors import ContextOverflow, ModelError, ModelRefused, ModelRejected, ModelUnavailable
from bot.llm.keys import KeyRefused
from bot.llm.openai_errors import Provider, error_for


def body(message: str, code: object = None, kind: str | None = None) -> dict[str, object]:
    """An error as OpenAI sends it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


OVERFLOWS = [
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (400, "Please reduce the length of the messages or completion."),
    (400, "the request exceeds the available context size (4096 tokens), try increasing it"),
    (400, "The number of tokens to keep from the initial prompt is greater than the context length."),
    (400, "invalid params, context window exceeds limit (2013)"),
    (400, "Your request exceeded model token limit: 262144 (requested: 270000)"),
    (400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."),
    (400, "prompt token count of 400000 exceeds the limit of 128000"),
    (400, "The prompt (total length 9000) is longer than the maximum model length of 8192."),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    (422, "prompt too long; exceeded max context length by 12 tokens"),
    (413, "Request too large"),
]


@pytest.mark.parametrize(("status", "message"), OVERFLOWS)
def test_an_overflow_is_known_by_its_words(status: int, message: str) -> None:
    """Each provider has its own; the same words at another status are something else."""
    assert type(error_for(status, body(message))) is ContextOverflow
    assert type(error_for(429, body(message))) is not ContextOverflow
    assert type(error_for(500, body(message))) is ModelUnavailable


@pytest.mark.parametrize("empty", [None, "", {}])
def test_a_bad_request_without_a_word_is_an_overflow(empty: object) -> None:
    """As Cerebras and Mistral say it; another status without a body is none."""
    assert type(error_for(400, empty)) is ContextOverflow
    assert type(error_for(422, body("max_tokens is too large: 100000"))) is ModelRejected
    assert type(error_for(401, empty)) is KeyRefused


@pytest.mark.parametrize(
    ("status", "told", "error", "words"),
    [
        (400, body("Invalid 'temperature'", "decimal_below_min_value"), ModelRejected, "temperature"),
        (400, body("max_tokens is too large: 90000. This model supports at most 16384"), ModelRejected, "too large"),
        (400, body("'gpt-nope' does not exist.", "model_not_found"), ModelRejected, "Set the model"),
        (
            404,
            body("model 'llama9' not found, try pulling it first", None, "api_error"),
            ModelRejected,
            "Set the model",
        ),
        (404, body("The API deployment does not exist.", "DeploymentNotFound"), ModelRejected, "Set the model"),
        (404, {"error": {"code": "404", "message": "Resource not found"}}, ModelRejected, "Set `base_url`"),
        (404, {"detail": "Not Found"}, ModelRejected, "Set `base_url`"),
        (401, body("Incorrect API key provided: sk-x", "invalid_api_key"), KeyRefused, "Set OPENAI_API_KEY"),
        (
            401,
            {"error": {"code": "401", "message": "Access denied"}},
            KeyRefused,
            "Access denied. Set OPENAI_API_KEY",
        ),
        (401, {"statusCode": 401, "message": "Unauthorized"}, KeyRefused, "Unauthorized"),
        (403, body("Country not supported", "unsupported_country_region_territory"), ModelRejected, "from here"),
        (429, body("You exceeded your current quota", "insufficient_quota"), ModelRejected, "Add credit"),
        (429, body("You exceeded your current quota. Please retry in 36s."), ModelUnavailable, "quota"),
        (429, body("You exceeded your current quota, check your plan and billing"), ModelRejected, "Add credit"),
        (402, body("Insufficient Balance"), ModelRejected, "Add credit"),
        (402, body("This request requires more credits, or fewer max_tokens."), ModelRejected, "Add credit"),
        (403, body("Your team has used all available credits"), ModelRejected, "Add credit"),
        (400, body("Billing hard limit has been reached", "billing_hard_limit_reached"), ModelRejected, "Add credit"),
        (
            429,
            body("Request too large for gpt-x on tokens per min (TPM): Limit 3, Requested 9"),
            ModelRejected,
            "Raise",
        ),
        (429, body("Rate limit reached for gpt-x on tokens per min (TPM)"), ModelUnavailable, "Rate limit"),
        (400, body("The response was filtered", "content_filter"), ModelRefused, "filtered"),
        (400, body("triggering Azure OpenAI's content management policy"), ModelRefused, "policy"),
        (400, body("Invalid prompt: your prompt was flagged", "invalid_prompt"), ModelRefused, "flagged"),
        (500, body("The server had an error"), ModelUnavailable, "500"),
        (503, {"error": "overloaded"}, ModelUnavailable, "overloaded"),
        (409, {"object": "error", "message": "m", "type": "X", "code": 40903}, ModelUnavailable, "409 X: m"),
        (502, "<html>Bad Gateway</html>", ModelUnavailable, "Bad Gateway"),
        (
            400,
            [{"error": {"code": 400, "message": "Bad list", "status": "INVALID_ARGUMENT"}}],
            ModelRejected,
            "Bad list",
        ),
        (
            400,
            {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "prompt is too long"}}},
            ContextOverflow,
            "Provider returned error: prompt is too long",
        ),
    ],
)
def test_each_error_has_its_class(status: int, told: object, error: type[ModelError], words: str) -> None:
    """By status, code and words; with or without the `error` around it, which the SDK takes off."""
    inner = told["error"] if isinstance(told, dict) and isinstance(told.get("error"), dict) else told
    for shape in (told, inner):
        found = error_for(status, shape)
        assert type(found) is error
        assert words in str(found)


@pytest.mark.parametrize(
    ("told", "error", "status"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "try again in 11.054s"}, ModelUnavailable, 429),
        ({"type": "error", "code": "server_is_overloaded", "message": "Slow"}, ModelUnavailable, 503),
        ({"type": "error", "error": {"type": "server_error", "code": None, "message": "x"}}, ModelUnavailable, 500),
        ({"type": "error", "code": None, "message": "An error"}, ModelUnavailable, 500),
        ({"code": "context_length_exceeded", "message": "Your input exceeds the context window"}, ContextOverflow, 400),
        ({"code": "insufficient_quota", "message": "You exceeded your current quota"}, ModelRejected, 500),
        ({"code": "invalid_prompt", "message": "Invalid prompt"}, ModelRefused, 400),
        ({"code": "tomorrow", "message": "?"}, ModelUnavailable, 500),
        ({"error": {"code": 502, "message": "Provider disconnected"}}, ModelUnavailable, 502),
        ({"error": {"code": 429, "message": "rate-limited upstream"}}, ModelUnavailable, 429),
        ({"error": {"code": "invalid_api_key", "message": "no"}}, KeyRefused, 401),
        ({"error": {"message": "prompt is too long", "type": "BadRequestError", "code": 400}}, ContextOverflow, 400),
        ("odd", ModelUnavailable, 500),
        ({}, ModelUnavailable, 500),
    ],
)
def test_an_error_inside_a_stream_is_what_it_is_outside(told: Any, error: type[ModelError], status: int) -> None:
    """It has no status of its own; what nobody knows may pass."""
    found = error_for(None, told)
    assert type(found) is error
    assert f"answered {status}" in str(found)


def test_the_wait_that_the_provider_asks_for() -> None:
    """In a header, as a date, or in words."""
    limited = body("Rate limit reached for gpt-x. Please try again in 20ms.", "rate_limit_exceeded")
    for headers, told, seconds in (
        ({}, limited, 0.02),
        ({"retry-after": "7"}, limited, 7),
        ({"retry-after-ms": "250"}, limited, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, limited, 10),
        ({}, body("Please try again in 6m0s."), 360),
        ({}, body("Please retry after 6 seconds."), 6),
        ({}, body("later"), None),
    ):
        error = error_for(429, told, headers=headers, now_s=1000.0)
        assert isinstance(error, ModelUnavailable)
        assert error.retry_after_s == (None if seconds is None else pytest.approx(seconds))


def test_the_provider_is_named() -> None:
    """So that a person knows which key and which address are meant."""
    provider = Provider("OpenRouter", "OPENROUTER_API_KEY", "models.openrouter.base_url")
    assert str(error_for(401, body("no"), provider=provider)) == (
        "OpenRouter answered 401: no. Set OPENROUTER_API_KEY to a key that is valid"
    )
    assert "Set `models.openrouter.base_url`" in str(error_for(404, "Not Found", provider=provider))


@pytest.mark.parametrize("odd", [[], 5, {"error": None}, {"error": []}, {"code": {}, "message": []}, [5]])
def test_a_body_of_another_shape_is_an_error_all_the_same(odd: object) -> None:
    """JSON of another API; lone surrogates and NUL are cleaned."""
    assert type(error_for(502, odd)) is ModelUnavailable
    assert isinstance(error_for(403, odd), ModelRejected)
    assert "\ufffd" in str(error_for(403, body("\ud800\0")))
