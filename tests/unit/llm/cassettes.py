"""Recorded traffic with the APIs of models, read where it lies."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request and its answer."""

    path: Path
    number: int
    """Place in its file."""
    method: str
    url: str
    status: int
    request: Json
    """Empty where it is no JSON."""
    body: Json | None
    """The answer where it came in one piece."""
    stream: str | None
    """The answer where it came as events."""

    @property
    def name(self) -> str:
        """Name it in a message."""
        return f"{self.path.stem[-60:]}#{self.number}"

    def events(self) -> list[Json]:
        """Decode the stream."""
        return decoded(self.stream or "")


def decoded(stream: str) -> list[Json]:
    """Decode the events of a stream, but for the `[DONE]` that ends some."""
    lines = [line.removeprefix("data:").strip() for line in stream.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def files(name: str) -> list[Path]:
    """List the files of one folder; skips the test where it is absent, fails it if it is required."""
    folder = (ROOT / os.environ.get("SHARED_DIR", "../shared")).resolve() / "data" / "traffic" / name
    if not folder.is_dir():
        why = f"no recordings: SHARED_DIR has no data/traffic/{name}"
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return sorted(folder.glob("*/*.yaml"))


def interactions(path: Path) -> list[Json]:
    """Read one file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[Json] = yaml.load(path.read_bytes(), Loader=loader)["interactions"]
    return found


@cache
def exchanges(*folders: str) -> tuple[Exchange, ...]:
    """Read everything in these folders."""
    return tuple(exchange for folder in folders for path in files(folder) for exchange in _read(path))


def _read(path: Path) -> Iterator[Exchange]:
    for number, interaction in enumerate(interactions(path)):
        request, response = interaction["request"], interaction["response"]
        answer, told = _content(response)
        sent, _ = _content(request)
        stream = told if answer is None and told and "data:" in told else None
        yield Exchange(
            path, number, request["method"], request["uri"], response["status"]["code"], sent or {}, answer, stream
        )


def _content(message: Json) -> tuple[Json | None, str | None]:
    """Return the body as JSON, or as text where it is none."""
    if "parsed_body" in message:
        return message["parsed_body"], None
    raw = message.get("body")
    raw = raw.get("string") if isinstance(raw, dict) else raw
    if isinstance(raw, bytes):
        raw = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode(errors="replace")
    try:
        value = json.loads(raw or "")
    except ValueError:
        return None, raw
    return (value, None) if isinstance(value, dict) else (None, raw)
