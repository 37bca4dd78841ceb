"""Recorded traffic with Anthropic's API, read where it lies."""

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
FOLDER = "data/traffic/anthropic"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recording:
    """One request to `/v1/messages` or its token counter, and the answer."""

    name: str
    status: int
    request: Json
    body: Json | None
    """The answer where it came in one piece."""
    stream: str | None
    """The answer where it came as events."""

    def events(self) -> list[Json]:
        """Decode the stream."""
        lines = (self.stream or "").splitlines()
        return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


@cache
def recordings() -> tuple[Recording, ...]:
    """Read all of them; skips the test where they are absent, fails it if they are required."""
    folder = (ROOT / os.environ.get("SHARED_DIR", "../shared")).resolve() / FOLDER
    if not folder.is_dir():
        why = f"no recordings: SHARED_DIR has no {FOLDER}"
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(why)
        pytest.skip(why)
    found = tuple(recording for path in sorted(folder.glob("*/*.yaml")) for recording in _read(path))
    assert len(found) > 200, "the folder of recordings has lost its content"
    return found


def _read(path: Path) -> Iterator[Recording]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for number, interaction in enumerate(yaml.load(path.read_bytes(), Loader=loader)["interactions"]):
        request, response = interaction["request"], interaction["response"]
        if "anthropic" not in request["uri"] or "/v1/messages" not in request["uri"]:
            continue
        sent = request.get("parsed_body") or json.loads(request["body"])
        body, stream = response.get("parsed_body"), None
        if body is None:
            raw = response["body"]["string"]
            raw = raw if isinstance(raw, bytes) else raw.encode()
            stream = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
        yield Recording(f"{path.stem[-60:]}#{number}", response["status"]["code"], sent, body, stream)
