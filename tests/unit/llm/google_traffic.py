"""Recorded traffic with Google's API: what asks generateContent or its stream, and a list of the rest."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.llm.cassettes import files, interactions

Json = dict[str, Any]
MODEL = "google:gemini"
CALLED = re.compile(r":(generateContent|streamGenerateContent)\b")


@dataclass(frozen=True, slots=True)
class Talk:
    """One request and its answer."""

    name: str
    path: Path
    status: int
    request: Json
    """Empty where only the answer was kept."""
    chunks: tuple[Json, ...]
    """The answer: one chunk where it came in one piece."""
    is_stream: bool

    @property
    def parts(self) -> list[Json]:
        """All parts of the first candidate, as they came."""
        content = [c.get("content") or {} for chunk in self.chunks for c in chunk.get("candidates", ())]
        return [part for one in content for part in one.get("parts", ())]


@cache
def talks() -> tuple[Talk, ...]:
    """Read all cassettes."""
    found = tuple(talk for path in files("google") for talk in _cassette(path))
    assert len(found) > 100, "the folder of recordings has lost its content"
    return found


def others() -> Counter[str]:
    """Count what the cassettes have beside these, by host and last word of the path."""
    rest: Counter[str] = Counter()
    for path in files("google"):
        for interaction in interactions(path):
            url = interaction["request"]["uri"].partition("?")[0]
            if not CALLED.search(url):
                host, _, way = url.partition("://")[2].partition("/")
                rest[f"{host} {re.split('[/:]', way)[-1]}"] += 1
    return rest


@cache
def lines() -> tuple[Talk, ...]:
    """Read the lines of gemini-cli that are answers of generateContent or its stream; `countTokens` is none."""
    folder = files("google")[0].parents[1] / "gemini-cli-responses"
    return tuple(talk for path in sorted(folder.iterdir()) for talk in _lines(path))


def _cassette(path: Path) -> Iterator[Talk]:
    for number, interaction in enumerate(interactions(path)):
        request, response = interaction["request"], interaction["response"]
        if found := CALLED.search(request["uri"]):
            sent = request.get("parsed_body") or json.loads(request["body"])
            name = f"{path.stem[-60:]}#{number}"
            chunks = (response["parsed_body"],) if "parsed_body" in response else tuple(_streamed(response))
            is_stream = found[1] == "streamGenerateContent"
            yield Talk(name, path, response["status"]["code"], sent, chunks, is_stream)


def _streamed(response: Json) -> list[Json]:
    """Decode events, or the list that the stream is without `alt=sse`."""
    raw = response["body"]["string"]
    raw = raw if isinstance(raw, bytes) else raw.encode()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    if text.startswith("["):
        told: list[Json] = json.loads(text)
        return told
    return [json.loads(line.removeprefix("data:")) for line in text.splitlines() if line.startswith("data:")]


def _lines(path: Path) -> Iterator[Talk]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        if line.strip() and (told := json.loads(line))["method"] != "countTokens":
            answer = told["response"]
            chunks = tuple(answer) if isinstance(answer, list) else (answer,)
            yield Talk(f"{path.stem}#{number}", path, 200, {}, chunks, isinstance(answer, list))
