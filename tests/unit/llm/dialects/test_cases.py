"""Replies and what is read in them, in `tests/cases/dialects`; `UPDATE_CASES=1` writes the lower halves anew.

The part of a name behind `_stop_` is the reason why the reply ended; in `*.escaped.md` the reply has Python's escapes.
"""

import os
from pathlib import Path

import pytest

from bot.domain.messages import StopReason
from bot.llm.spoken import DIALECTS
from tests.unit.llm.dialects.told import TOKEN, TOOLS, parsed, shown

FOLDER = Path(__file__).parents[3] / "cases/dialects"
CASES = sorted(FOLDER.glob("*/*.md"))
STOPS: dict[str, StopReason] = {"length": "length", "refusal": "refusal", "error": "error"}


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_case(path: Path) -> None:
    """As the file says."""
    reply, _, expected = path.read_bytes().decode().rpartition("\n---\n")
    source = reply.encode("ascii").decode("unicode_escape") if path.name.endswith(".escaped.md") else reply
    stop = STOPS.get(path.stem.partition("_stop_")[2], "end")
    found = shown(parsed(DIALECTS[path.parent.name](TOOLS, TOKEN), [source], stop)) + "\n"
    if os.environ.get("UPDATE_CASES") == "1":
        path.write_bytes(f"{reply}\n---\n{found}".encode())
        expected = found
    assert found == expected


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_has_cases(name: str) -> None:
    """An empty folder would pass."""
    assert sum(path.parent.name == name for path in CASES) >= 20
