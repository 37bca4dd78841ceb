"""Hidden marks in what we post, by which we find our own work again; a seal tells them from forged ones."""

import hmac
import re

_MARKER = re.compile(r"<!-- issuewright:v1:([0-9a-f]{32}):([a-z0-9][a-z0-9.-]{0,63}):([0-9a-f]{16}) -->")
_OPENING = re.compile(r"<!--(?=\s*issuewright:)", re.IGNORECASE)
_TASK = re.compile(r"[0-9a-f]{32}")
_SLOT = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")


def make(task_id: str, slot: str, key: bytes) -> str:
    """Make the mark of one thing that a task posts.

    Args:
        task_id: 32 hexadecimal digits.
        slot: which of the task's things, as `progress` or `pull`.
        key: the secret of this server; whoever has it can make marks.
    """
    if not _TASK.fullmatch(task_id) or not _SLOT.fullmatch(slot):
        raise ValueError(f"no mark can name task {task_id!r} and slot {slot!r}")
    return f"<!-- issuewright:v1:{task_id}:{slot}:{_seal(task_id, slot, key)} -->"


def find(text: str, key: bytes) -> tuple[str, str] | None:
    """Find the last mark with our seal: (task id, slot).

    The last, because ours ends a text, and somebody else's may be quoted before it. The seal does not say who posted
    the text: look only into what our own account wrote.
    """
    for match in reversed(list(_MARKER.finditer(text))):
        task_id, slot, seal = match.groups()
        if hmac.compare_digest(_seal(task_id, slot, key), seal):
            return task_id, slot
    return None


def last(text: str) -> str | None:
    """Return the last mark as it stands, whoever made it; None where there is none."""
    found = [match[0] for match in _MARKER.finditer(text)]
    return found[-1] if found else None


def strip(text: str) -> str:
    """Make all marks in quoted text plain words, forged ones too."""
    return _OPENING.sub("&lt;!--", text)


def _seal(task_id: str, slot: str, key: bytes) -> str:
    return hmac.digest(key, f"issuewright:v1:{task_id}:{slot}".encode(), "sha256").hex()[:16]
