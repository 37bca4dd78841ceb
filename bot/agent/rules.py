"""What a repository says to those who work on it: which of its files count, how much of them, and in which order.

Pure: it is given what is there and what is in it. All of it is data. It is told between lines that it cannot close
(`bot.agent.prompt.fence`), and nothing that is decided anywhere depends on it.

Source: https://agents.md
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

RULES = "AGENTS.md"
ELSE = ("CLAUDE.md", ".clinerules", ".cursorrules", ".github/copilot-instructions.md")
"""What counts where the top folder has no `AGENTS.md`: the first of these that is there."""
ELSE_FOLDERS = (".clinerules", ".github")
"""Folders in which such files may lie; `.clinerules` is a file in one repository and a folder in the next."""
BANK = (
    "projectbrief.md",
    "productContext.md",
    "activeContext.md",
    "systemPatterns.md",
    "techContext.md",
    "progress.md",
)
"""The files of a memory bank, in the order in which they build on each other; others follow by name.

Source: https://docs.cline.bot/prompting/cline-memory-bank
"""
LIMIT_BYTES = 32 << 10
"""Of rules in one run, nested ones included; and as much of a memory bank."""
FILE_BYTES = 1 << 20
"""A larger file is not read at all."""
MOST_FILES = 40
"""Files of a memory bank, or of a folder of rules, that are read."""
_NAME_CHARS = 200
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Guidance:
    """What a repository says, as of one commit."""

    commit: str = ""
    """Of its base branch; empty where nothing may be read, not even later."""
    rules: str = ""
    """Files with their paths, ready for a fence; empty where there are none."""
    used: int = 0
    """Bytes of rules that are told by that."""
    memory: str = ""
    """The memory bank, in the same way."""


def rule_files(there: Collection[str]) -> list[str]:
    """Choose the rules that hold from the start: `AGENTS.md`, else the first that stands for it.

    Args:
        there: paths of files, of the top folder and of `ELSE_FOLDERS`.
    """
    if RULES in there:
        return [RULES]
    for path in ELSE:
        if path in there:
            return [path]
        below = sorted(one for one in there if one.startswith(f"{path}/") and one.endswith((".md", ".txt")))
        if below:
            return below[:MOST_FILES]
    return []


def bank_files(there: Collection[str]) -> list[str]:
    """Put the Markdown files of a memory bank's folder into their order."""
    known = [name for name in BANK if name in there]
    return [*known, *sorted(name for name in there if name.endswith(".md") and name not in BANK)][:MOST_FILES]


def nested(path: str) -> list[str]:
    """List the rules that may hold for a file beside those of the top folder, from the outermost folder inwards."""
    names = path.split("/")
    if names[0] in {"", ".", ".."}:
        return []
    return [f"{'/'.join(names[:count])}/{RULES}" for count in range(1, len(names))]


def joined(files: Mapping[str, bytes | None], *, limit_bytes: int = LIMIT_BYTES) -> tuple[str, int]:
    """Put files behind each other, each with its path; what is cut is said.

    Args:
        files: contents by path, in order; None for one that is too large to be read.
        limit_bytes: of all contents together.

    Returns:
        The text, empty where no file says anything, and how many bytes of it are theirs.
    """
    parts: list[str] = []
    used = 0
    over: list[str] = []
    for path, data in files.items():
        text, hidden = visible(data) if data is not None else ("", 0)
        content = text.encode()
        if data is not None and not content:
            continue
        room = limit_bytes - used
        if data is None or room <= 0:
            over.append(path)
            continue
        shown = content[:room].decode(errors="ignore")
        used += len(content[:room])
        notes = [f"[cut: {len(content) - room} more bytes of {shown_name(path)}]"] if len(content) > room else []
        notes += [f"[{hidden} invisible characters were taken out]"] if hidden else []
        parts.append("\n".join([f"File {shown_name(path)}:", shown, *notes]))
    if over:
        parts.append(f"[not shown, since it would be too long: {_names(over)}]")
    return "\n\n".join(parts), used


def visible(data: bytes) -> tuple[str, int]:
    """Decode a file, and take out what a person who reviews it does not see; says how much that was.

    Source: https://www.unicode.org/reports/tr36/ (text that hides what it says)
    """
    text = data.decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n").strip()
    kept = "".join(char for char in text if char in "\n\t" or not _is_hidden(char))
    return kept, len(text) - len(kept)


def shown_name(path: str) -> str:
    """Write a path in one line of visible characters."""
    plain = "".join(char if char.isprintable() else "\ufffd" for char in path)
    return plain if len(plain) <= _NAME_CHARS else f"{plain[:_NAME_CHARS]}…"


def _is_hidden(char: str) -> bool:
    if char.isascii():
        return not char.isprintable()
    # Variation selectors are marks to Unicode, and carry whatever one likes behind a letter.
    return unicodedata.category(char) in {"Cc", "Cf"} or "\U000e0100" <= char <= "\U000e01ef"


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(shown_name(path) for path in paths[:_NAMED]) + more
