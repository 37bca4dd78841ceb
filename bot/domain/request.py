"""A call of the model that a person has to agree to, bound to its exact bytes."""

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

SHORT = 8
"""Hexadecimal digits by which people name a request."""
VALID = timedelta(days=7)
"""From when it is asked; whatever is older is asked anew."""

_PATCHED = re.compile(r"^[^\S\n]*\*\*\* (?:(?:Add|Delete|Update) File|(Move to)):(.*)$", re.MULTILINE)
"""As the tool reads them, blanks in front included; in the lines of a file that looks so it sees too much."""


def canonical(values: object) -> str:
    """Write JSON in the one form that is hashed."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def paths_of(arguments: Mapping[str, object], *, moved: bool = True) -> Iterator[str]:
    """Give the paths that a tool's arguments name, those of a patch included, and where files are moved to as well."""
    for key in ("path", "target") if moved else ("path",):
        if path := _text(arguments.get(key)):
            yield posixpath.normpath(path)
    for to, path in _PATCHED.findall(_text(arguments.get("patch"))):
        if moved or not to:
            yield posixpath.normpath(path.strip())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What a person decides about: one call, on one state of the files, under one policy."""

    task_id: str
    tool: str
    arguments: str
    """As `canonical` writes them."""
    cwd: str
    """From the top of the work tree."""
    tree: str
    """The git tree of all files at that moment: a commit of the same files has another id once it is pushed."""
    policy: str
    """Digest of the rules by which it is asked about."""
    asked_at: datetime

    @property
    def hash(self) -> str:
        """SHA-256 of all but the time, as 64 hexadecimal digits."""
        bound = (self.task_id, self.tool, self.arguments, self.cwd, self.tree, self.policy)
        return hashlib.sha256(canonical(bound).encode()).hexdigest()

    @property
    def short(self) -> str:
        """The hash as people write it."""
        return self.hash[:SHORT]

    def is_old(self, now: datetime) -> bool:
        """Whether nobody may decide about it any more."""
        return now - self.asked_at >= VALID

    def why_void(self, *, tree: str, policy: str, now: datetime) -> str:
        """Say why what was decided does not count any more, as the end of a sentence; empty where it does."""
        if tree != self.tree:
            return "the files are not those that it was asked about"
        if policy != self.policy:
            return "the policy has changed since it was asked"
        return f"it was asked more than {VALID.days} days ago" if self.is_old(now) else ""

    def to_data(self) -> dict[str, str]:
        """Return plain JSON values."""
        return {
            "task_id": self.task_id,
            "tool": self.tool,
            "arguments": self.arguments,
            "cwd": self.cwd,
            "tree": self.tree,
            "policy": self.policy,
            "asked_at": self.asked_at.isoformat(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, str]) -> "ActionRequest":
        """Turn stored values back."""
        return cls(**{**data, "asked_at": datetime.fromisoformat(data["asked_at"])})  # type: ignore[arg-type]
