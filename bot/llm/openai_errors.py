"""What errors of OpenAI's two APIs, and of the servers that speak like them, mean; pure.

Source: https://platform.openai.com/docs/guides/error-codes, https://openrouter.ai/docs/api-reference/errors,
https://learn.microsoft.com/en-us/azure/ai-services/openai/concepts/content-filter
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.errors import ContextOverflow, ModelError, ModelRefused, ModelRejected, ModelUnavailable
from bot.llm.clean import clean, told
from bot.llm.keys import KeyRefused
from bot.llm.retry_after import retry_after_s

_OVERFLOW = re.compile(
    r"context[_ ]length[_ ]exceeded|exceed_context_size|exceeds? the (?:model'?s )?context window"
    r"|maximum context length|maximum prompt length|maximum model length|reduce the length of the (?:messages|input)"
    r"|prompt is too long|prompt too long|input is too long for requested model|exceeds the available context size"
    r"|(?:greater|longer) than the (?:context|maximum model) length|context window exceeds limit"
    r"|exceeded model token limit|input token count.*exceeds the maximum|prompt token count.*exceeds the limit"
    r"|too large for model with \d+ maximum context|input length.*exceeds.*context",
    re.IGNORECASE,
)
"""In the words of OpenAI, xAI, Groq, OpenRouter, llama.cpp, vLLM, LM Studio, MiniMax, Kimi, Mistral, Ollama, Gemini.

Source: `packages/ai/src/utils/overflow.ts` of https://github.com/badlogic/pi-mono
"""
_SPENT = re.compile(
    r"exceeded your current quota|insufficient (?:credit|balance|fund|quota)|credit balance|billing"
    r"|requires more credits|used all available credits|(?:spending|usage) limit|not enough credits",
    re.IGNORECASE,
)
_SPENT_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "usage_not_included",
        "access_terminated",
    }
)
_TOO_LARGE = re.compile(r"request too large .*(?:per min|tpm)", re.IGNORECASE)
"""A rate limit that one request alone exceeds: no wait cures it."""
_REFUSED_CODES = frozenset(
    {"content_filter", "content_policy_violation", "invalid_prompt", "responsibleaipolicyviolation"}
)
_REFUSED = re.compile(r"content management policy|flagged as potentially violating|input was flagged", re.IGNORECASE)
_MODEL = re.compile(r"\bmodel\b|\bdeployment\b", re.IGNORECASE)
_MODEL_CODES = frozenset({"model_not_found", "deploymentnotfound", "unknown_model", "invalid_model"})
_STATUS = {
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "badrequesterror": 400,
    "content_filter": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "tokens": 429,
    "requests": 429,
    "slow_down": 429,
    "server_error": 500,
    "server_is_overloaded": 503,
    "overloaded_error": 503,
}
"""The status of an error inside a stream, by its code or type, in lower case."""
_PASSING = frozenset({408, 409, 425, 429, 499})


@dataclass(frozen=True, slots=True)
class Provider:
    """Whose words these are, and what a person sets to reach it."""

    name: str = "OpenAI"
    key: str = "OPENAI_API_KEY"
    """The variable or setting that holds the key."""
    address: str = "base_url"
    """The setting that holds the address."""


OPENAI = Provider()


@dataclass(frozen=True, slots=True)
class _Error:
    status: int
    kind: str
    code: str
    message: str
    is_empty: bool
    """Whether the answer had no body at all."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.kind.lower(), self.code.lower()})


def error_for(
    status: int | None,
    body: object,
    *,
    provider: Provider = OPENAI,
    headers: Mapping[str, str] | None = None,
    now_s: float = 0.0,
) -> ModelError:
    """Return the error to raise.

    Args:
        status: HTTP status; None for an error inside a stream.
        body: decoded JSON, with or without the `error` around it, or the text of something that is none.
        provider: whom the words of the error name.
        headers: names in lower case, or a mapping that does not mind.
        now_s: Unix time, for a date in `retry-after` where the answer has no `date` of its own.
    """
    error = _read(status, body)
    named = error.code if error.code and not error.code.isdigit() else error.kind
    said = f"{provider.name} answered {error.status}{f' {named}' if named else ''}: {told(error.message)}"
    wait_s = retry_after_s(headers or {}, error.message, now_s)
    if _is_spent(error, wait_s):
        return ModelRejected(f"{said}. The account's credit or quota is used up. Add credit or raise the limit")
    if error.status == 429 and _TOO_LARGE.search(error.message):  # noqa: PLR2004 - too many requests
        return ModelRejected(f"{said}. Raise the account's limit of tokens per minute, or choose another model")
    if error.status in _PASSING or not 400 <= error.status < 500:  # noqa: PLR2004 - the class of client errors
        return ModelUnavailable(said, retry_after_s=wait_s)
    if error.names & _REFUSED_CODES or _REFUSED.search(error.message):
        return ModelRefused(said)
    if _is_overflow(error):
        return ContextOverflow(said)
    kind = KeyRefused if error.status == 401 else ModelRejected  # noqa: PLR2004 - unauthorized
    return kind(said + _remedy(error, provider))


def _is_spent(error: _Error, wait_s: float | None) -> bool:
    if error.status == 402 or error.names & _SPENT_CODES:  # noqa: PLR2004 - payment required
        return True
    # Gemini says the same words of a quota by the minute, and then when to come again.
    return error.status in (400, 403, 429) and wait_s is None and _SPENT.search(error.message) is not None


def _is_overflow(error: _Error) -> bool:
    """Only by the providers' own words: taking each bad request for one would shorten the conversation forever.

    A 400 without any body is how Cerebras and Mistral say it.
    """
    if error.status == 413:  # noqa: PLR2004 - too large
        return True
    words = f"{error.code} {error.kind} {error.message}"
    return error.status in (400, 422) and (error.is_empty or _OVERFLOW.search(words) is not None)


def _remedy(error: _Error, provider: Provider) -> str:
    if error.names & _MODEL_CODES:
        return ". Set the model to one that this account has: `issuewright models` lists those we know"
    if error.status == 404:  # noqa: PLR2004 - not found
        if _MODEL.search(error.message):
            return ". Set the model to one that is there"
        return f". Set `{provider.address}` to where the API is, `/v1` included, and the model to one that is there"
    remedies = {
        401: f". Set {provider.key} to a key that is valid",
        403: f". Set {provider.key} to a key that may use this model from here",
    }
    return remedies.get(error.status, "")


def _read(status: int | None, body: object) -> _Error:
    """Read an error in the shapes of OpenAI, Azure, vLLM, Ollama, llama.cpp, OpenRouter and Gemini."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error")
        body = inner if isinstance(inner, Mapping | str) else body
    if not isinstance(body, Mapping):
        text = clean(body.strip()[:500]) if isinstance(body, str) else ""
        return _Error(500 if status is None else status, "", "", text, not body)
    code = str(body.get("code") or "")
    kind = "" if body.get("type") in ("error", None) else str(body["type"])
    message = clean(_message(body))[:2000]
    return _Error(_status(code, kind) if status is None else status, clean(kind), clean(code), message, not body)


def _message(body: Mapping[str, object]) -> str:
    """Return the words, with those of the provider behind a router where it passes them on."""
    message = str(body.get("message") or body.get("detail") or "")
    metadata = body.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{message}: {raw}" if raw else message


def _status(code: str, kind: str) -> int:
    """Return the status that such an error has outside a stream; one that nobody knows may pass."""
    if code.isdigit() and 400 <= int(code) < 600:  # noqa: PLR2004 - errors
        return int(code)
    return _STATUS.get(code.lower()) or _STATUS.get(kind.lower(), 500)
