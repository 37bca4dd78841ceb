"""Reasoning in a chat completion, which OpenAI does not have and other servers spell in three ways; pure.

Source: https://api-docs.deepseek.com/guides/thinking_mode, https://openrouter.ai/docs/use-cases/reasoning-tokens
"""

import json
from collections.abc import Mapping
from typing import Any

from bot.domain.messages import ThinkingPart
from bot.llm.clean import clean, clean_json

WORDS = ("reasoning_content", "reasoning")
"""Fields with plain words: DeepSeek, vLLM, llama.cpp, Kimi; OpenRouter, Ollama."""
DETAILS = "reasoning_details"
"""The field with OpenRouter's blocks, which may be sealed."""
_GROWING = frozenset({"text", "summary", "data"})

Json = Mapping[str, Any]  # Any: the provider's JSON


class Thinking:
    """Collects the reasoning of one reply."""

    def __init__(self) -> None:
        self._field = ""
        self._words: list[str] = []
        self._details: list[dict[str, Any]] = []

    def take(self, delta: Json) -> None:
        """Take what a delta has of it; a server that fills two fields says the same in both.

        Raises:
            TypeError: a field has a type nobody knows.
        """
        for field in WORDS:
            words = delta.get(field) or ""
            if not isinstance(words, str):
                raise TypeError(f"{field} is {type(words).__name__}")
            if words and self._field in ("", field):
                self._field = field
                self._words.append(words)
        for detail in delta.get(DETAILS) or ():
            self._merge(detail)

    def take_words(self, words: str) -> None:
        """Take words that came among the content, as Mistral sends them; nothing takes them back."""
        self._words.append(words)

    def finish(self, model: str) -> list[ThinkingPart]:
        """Return the reasoning, if there is any, with the fields in which it goes back to the same model."""
        words = "".join(self._words)
        fields: dict[str, object] = {DETAILS: self._details} if self._details else {}
        if not fields and self._field:
            fields = {self._field: words}
        if not (fields or words):
            return []
        # What would have to be cleaned cannot go back as it came.
        is_kept = fields and clean_json(fields) == fields
        data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")) if is_kept else ""
        return [ThinkingPart(clean(words), data=data, model=model)]

    def _merge(self, detail: Json) -> None:
        """Add a block, or a further piece of the last one; blocks have to go back whole and in order."""
        last = self._details[-1] if self._details else None
        if last is None or any(last.get(key) != detail.get(key) for key in ("type", "index")):
            self._details.append(dict(detail))
            return
        for key, value in detail.items():
            if key in _GROWING and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value


def fields_of(part: ThinkingPart) -> dict[str, Any]:  # Any: the provider's JSON
    """Return the fields that a message of the same model has for this part."""
    try:
        fields = json.loads(part.data)
    except ValueError:
        return {}
    known = (*WORDS, DETAILS)
    return {key: fields[key] for key in known if key in fields} if isinstance(fields, dict) else {}
