"""What is in the workspace, as git's ignore rules leave it; git runs on an empty repository of our own."""

# Importing pathlib would take longer than all the rest of the start.
# ruff: noqa: PTH103, PTH105, PTH118, PTH123

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Sequence

from bot.sandbox.helper.children import Kept, Running
from bot.sandbox.helper.files import PASSING, check, folder
from bot.sandbox.helper.frames import Broken, Head, Refusal
from bot.sandbox.helper.globs import Glob, expand, fits
from bot.sandbox.helper.kernel import open_beneath

CAP_S = 10.0
"""Seconds for one search or listing."""
LINE_CHARS = 500
"""A longer line is cut."""
_LINE_BYTES = 4 * LINE_CHARS + 4
_MOST_BYTES = 64 << 20
_HARDENED = [
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.excludesFile=/dev/null",
    "-c", "core.attributesFile=/dev/null", "-c", "core.quotePath=false", "-c", "grep.threads=2",
]  # fmt: skip


def _git(top: str, home: str, arguments: Sequence[str], sink: Callable[[bytes], None], line: int) -> tuple[int, bytes]:
    """Run git over the workspace; its exit code and what it complained of."""
    program = shutil.which("git")
    if program is None:
        raise Broken("git is not installed where the workspace is; install it")
    empty = os.path.join(home, ".issuewright.git")
    for name in ("objects", "refs"):
        os.makedirs(os.path.join(empty, name), exist_ok=True)
    head = os.path.join(empty, "HEAD")
    # Beside its place first: another listing may be reading it.
    with open(f"{head}.{os.getpid()}", "w", encoding="ascii") as file:
        file.write("ref: refs/heads/none\n")
    os.replace(file.name, head)
    settings = {"GIT_DIR": empty, "GIT_WORK_TREE": top, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    complaints = Kept(2000, 2000)
    total = 0

    def count(data: bytes) -> None:
        nonlocal total
        total += len(data)
        sink(data)

    os.chdir(top)
    running = Running([program, *_HARDENED, *arguments], {**os.environ, **settings}, [count, complaints.add])
    why = running.wait(CAP_S, line, stop=lambda: "flood" if total > _MOST_BYTES else None, own_uid=False)
    if why in {"timeout", "flood"}:
        raise Refusal(f"too_much: this takes longer than {CAP_S:g} s or gives too much; narrow it")
    return running.code, b"".join(complaints.parts)


def entries(top: str, home: str, pattern: str, limit: int, line: int) -> tuple[Head, bytes]:
    """List the files that fit a glob: the first `limit` of them in order, and how many there are."""
    globs = [Glob(text) for text in expand(pattern)]
    data = bytearray()
    code, complaint = _git(top, home, ["ls-files", "-co", "--exclude-standard", "-x", PASSING, "-z"], data.extend, line)
    if code:
        raise Broken(f"git cannot list the workspace: {os.fsdecode(complaint).strip()}")
    names = sorted(name for name in bytes(data).split(b"\0") if name)
    found = [path for name in names if fits((path := os.fsdecode(name)).rstrip("/"), globs)]
    with folder(top) as root:
        rows = [_facts(root, path) for path in found[:limit]]
    return {"rows": [row for row in rows if row], "total": len(found)}, b""


def _facts(root: int, path: str) -> list[object]:
    """Name, kind and size; nothing where it went away meanwhile."""
    try:
        fd = open_beneath(root, path, os.O_PATH | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
    return [path.rstrip("/"), kinds.get(stat.S_IFMT(found.st_mode), "other"), found.st_size]


class _Hits:
    """Reads `path NUL line NUL text`, keeps the first, counts all; a line of any length costs no memory."""

    def __init__(self, limit: int) -> None:
        self.rows: list[list[object]] = []
        self.total = 0
        self._limit = limit
        self._rest = b""

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        rest = self._rest + data
        at = 0
        while True:
            # A path may have a line break in it.
            number = rest.find(b"\0", at) + 1
            text = rest.find(b"\0", number) + 1 if number else 0
            end = rest.find(b"\n", text) if text else -1
            if end < 0:
                break
            self._hit(rest[at : number - 1], rest[number : text - 1], rest[text : min(end, text + _LINE_BYTES)])
            at = end + 1
        # What a line has beyond the cap is not needed.
        self._rest = rest[at : text + _LINE_BYTES] if text else rest[at:]

    def _hit(self, name: bytes, number: bytes, text: bytes) -> None:
        self.total += 1
        if len(self.rows) < self._limit:
            line = text.decode("utf-8", "replace").rstrip("\r")
            line = line if len(line) <= LINE_CHARS else line[:LINE_CHARS] + "…"
            self.rows.append([os.fsdecode(name), int(number), line])


def hits(top: str, home: str, pattern: str, glob: str | None, settings: Head) -> tuple[Head, bytes]:
    """Find a Perl regular expression; the pattern reaches git as data only."""
    if not pattern or "\0" in pattern or "\n" in pattern:
        raise Refusal("bad_pattern: the pattern is empty, or has a NUL or a line break")
    paths = [f":(glob){text}" for text in expand(glob)] if glob else []
    for text in expand(glob) if glob else []:
        check(text)
    found = _Hits(int(str(settings["limit"])))
    fixed = ["grep", "--no-index", "--exclude-standard", "--no-color", "--no-recurse-submodules", "-nIPz"]
    code, complaint = _git(
        top,
        home,
        # Else `$` would not fit before the end of a CRLF line.
        [*fixed, "-e", f"(*ANYCRLF){pattern}", "--", *paths, f":(exclude,glob)**/{PASSING}"],
        found.add,
        int(str(settings["line"])),
    )
    if code > 1:
        raise Refusal(f"bad_pattern: {os.fsdecode(complaint).strip().removeprefix('fatal: ')}")
    return {"rows": found.rows, "total": found.total}, b""
