"""Globs over paths, in time that no pattern can blow up."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from bot.sandbox.helper.frames import Refusal

_LONGEST = 1000
_MOST = 64
_WILD = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def expand(pattern: str) -> list[str]:
    """Write a glob out as globs from the root without braces.

    A pattern without `/` fits a name at any depth; one without wildcards fits the file or all below the folder.
    """
    if len(pattern) > _LONGEST or "\0" in pattern:
        raise Refusal(f"bad_pattern: a glob has at most {_LONGEST} characters and no NUL")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > _MOST:
            raise Refusal(f"bad_pattern: the braces stand for more than {_MOST} globs")
        text = waiting.pop(0)
        found = _BRACES.search(text)
        if found is None:
            done += _rooted(text)
        else:
            waiting += [text[: found.start()] + part + text[found.end() :] for part in found[1].split(",")]
    return list(dict.fromkeys(done))


def _rooted(pattern: str) -> list[str]:
    while pattern.startswith("./"):
        pattern = pattern[2:]
    if pattern in {"", ".", "**", "./"}:
        return ["**"]
    if not _WILD.search(pattern):
        plain = pattern.rstrip("/")
        places = [plain, f"{plain}/**"]
        return places if "/" in pattern else [*places, f"**/{plain}"]
    if pattern.endswith("/"):
        pattern += "**"
    return [pattern] if "/" in pattern else [f"**/{pattern}"]


class Glob:
    """One glob without braces; `**` spans folders."""

    def __init__(self, pattern: str) -> None:
        self._parts: list[re.Pattern[str] | None] = []
        for part in pattern.split("/"):
            if part != "**":
                # Since Python 3.9 the expression made here does not backtrack over its stars.
                self._parts.append(re.compile(fnmatch.translate(part)))
            elif not self._parts or self._parts[-1] is not None:
                self._parts.append(None)

    def fits(self, path: str) -> bool:
        """Whether the whole path fits; going back only to the last `**` is enough."""
        names = path.split("/")
        at = part = 0
        retry: tuple[int, int] | None = None
        while at < len(names):
            expression = self._parts[part] if part < len(self._parts) else _NEVER
            if expression is None:
                if part + 1 == len(self._parts):
                    return True
                retry = (part, at)
                part += 1
            elif expression.match(names[at]):
                at, part = at + 1, part + 1
            elif retry is None:
                return False
            else:
                retry = (retry[0], retry[1] + 1)
                part, at = retry[0] + 1, retry[1]
        return part == len(self._parts)


_NEVER = re.compile(r"(?!)")


def fits(path: str, globs: Sequence[Glob]) -> bool:
    """Whether one of the globs fits."""
    return any(glob.fits(path) for glob in globs)
