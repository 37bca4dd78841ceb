"""The edits of a recorded session, each with the file before it as far as the record shows it, and after it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROW = re.compile(r"([-+ ])( *\d+) (.*)", re.DOTALL)
_ELIDED = re.compile(r" +\.\.\.")
_MORE = re.compile(r"\n\n\.\.\. \(\d+ more lines not shown\. Use offset=\d+ to continue reading\)\Z")

Row = tuple[str, int, str]
"""The mark, the number of the line, the line."""


@dataclass(frozen=True)
class RecordedEdit:
    """One edit that succeeded when it was recorded."""

    path: str
    old: str
    new: str
    before: str
    after: str
    """As the recorded difference makes it of `before`; no tool of ours was asked."""
    whole: bool
    """Whether `before` is the whole file, and not only what the difference shows."""


def recorded_edits(file: Path) -> tuple[Sequence[RecordedEdit], int]:
    """Return what can be rebuilt, and how many edits succeeded in all."""
    known: dict[str, str] = {}
    edits: list[RecordedEdit] = []
    count = 0
    for name, arguments, text, details in _results(file):
        path = arguments.get("path", "")
        if name == "read" and "offset" not in arguments and not _MORE.search(text):
            known[path] = text
        elif name == "write":
            known[path] = arguments["content"]
        elif name == "edit":
            count += 1
            old, new = arguments["oldText"], arguments["newText"]
            rows = list(_rows(details["diff"]))
            before = known.pop(path, None)
            after = None if before is None else _changed(before, rows)
            if before is not None and after is not None:
                known[path] = after
                edits.append(RecordedEdit(path, old, new, before, after, whole=True))
            elif (shown := _shown(rows, "-")) is not None and old in shown:
                edits.append(RecordedEdit(path, old, new, shown, _shown(rows, "+") or "", whole=False))
    return edits, count


def _results(file: Path) -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any]]]:
    """Give each call that succeeded: its tool, its arguments, the text and the details of its result."""
    calls: dict[str, dict[str, Any]] = {}
    for line in file.read_text("utf-8").splitlines():
        message = json.loads(line).get("message", {})
        if message.get("role") == "assistant":
            calls.update({part["id"]: part for part in message["content"] if part["type"] == "toolCall"})
        elif message.get("role") == "toolResult" and not message["isError"] and message["toolCallId"] in calls:
            call = calls[message["toolCallId"]]
            text = "".join(part["text"] for part in message["content"])
            yield call["name"], call["arguments"], text, message.get("details") or {}


def _rows(diff: str) -> Iterator[Row | None]:
    """Take a difference apart; None stands for lines that are left out."""
    for line in diff.split("\n"):
        match = _ROW.fullmatch(line)
        yield (match[1], int(match[2]), match[3]) if match and not _ELIDED.fullmatch(line) else None


def _changed(before: str, rows: Sequence[Row | None]) -> str | None:
    """Make a difference real by its numbers; None where it does not fit, as after a command that changed the file."""
    lines = before.split("\n")
    made = list(lines)
    for row in reversed([row for row in rows if row is not None and row[0] == "-"]):
        if not 0 < row[1] <= len(lines) or lines[row[1] - 1] != row[2]:
            return None
        del made[row[1] - 1]
    for _, number, text in [row for row in rows if row is not None and row[0] == "+"]:
        if number - 1 > len(made):
            return None
        made.insert(number - 1, text)
    # The numbers of what stayed are not to be relied on, its order is.
    stayed = iter(made)
    return "\n".join(made) if all(row[2] in stayed for row in rows if row is not None and row[0] != "-") else None


def _shown(rows: Sequence[Row | None], mark: str) -> str | None:
    """Join the lines before (`-`) or after (`+`) a difference; None where lines in between are left out."""
    inner = list(rows)
    while inner and inner[0] is None:
        inner.pop(0)
    while inner and inner[-1] is None:
        inner.pop()
    if None in inner:
        return None
    return "\n".join(row[2] for row in inner if row is not None and row[0] in {" ", mark})
