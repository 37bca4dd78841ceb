"""Several files changed together: everything is agreed and written beside its place first, then named at once."""

from __future__ import annotations

import os
from contextlib import suppress

from bot.sandbox.helper.files import (
    FOLDER,
    agreed,
    check,
    explained,
    folder,
    forget,
    inside,
    install,
    parent_of,
    passing_name,
    regular,
    split,
    stage,
)
from bot.sandbox.helper.frames import Broken, Head, Refusal
from bot.sandbox.helper.kernel import open_beneath


class _Change:
    """One file: its folder, which stays open, its name there, and what was put beside it."""

    def __init__(self, fd: int, name: str, path: str) -> None:
        self.fd = fd
        self.name = name
        self.path = path
        self.new: str | None = None
        """The passing name of the new bytes."""
        self.old: str | None = None
        """A second name of the file that was there."""
        self.done = False

    def keep(self) -> None:
        """Give what is there a second name."""
        self.old = passing_name()
        os.link(self.name, self.old, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)

    def make(self) -> None:
        """Make the change visible."""
        with explained(self.path):
            if self.new is None:
                os.unlink(self.name, dir_fd=self.fd)
            else:
                install(self.fd, self.new, self.name, new=self.old is None)
        self.done = True

    def undo(self) -> None:
        """Put back what was there."""
        if not self.done:
            return
        if self.old is None:
            os.unlink(self.name, dir_fd=self.fd)
        else:
            os.replace(self.old, self.name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def close(self) -> None:
        """Take away what is left beside it."""
        for name in (self.new, self.old):
            if name is not None:
                forget(self.fd, name)
        os.close(self.fd)


class _Changes:
    """All of them, from the first look to the last name."""

    def __init__(self, root: int, largest: int) -> None:
        self._root = root
        self._largest = largest
        self._all: list[_Change] = []
        self._made: list[str] = []
        self._real: set[str] = set()

    def prepare(self, ask: Head, data: bytes | None) -> str | None:
        """Agree on one change and write its bytes; return their SHA-256."""
        path = str(ask["path"])
        check(path)
        with explained(path):
            change, mode = self._new(path, ask["mode"]) if ask["expected"] is None else self._known(path, ask, data)
            if data is None:
                return None
            change.new, facts = stage(change.fd, data, mode)
            return str(facts["sha256"])

    def _new(self, path: str, mode: object) -> tuple[_Change, int | None]:
        self._make_folders(path)
        with parent_of(self._root, path) as (fd, name):
            change = self._add(os.dup(fd), name, path)
        with suppress(FileNotFoundError):
            os.stat(change.name, dir_fd=change.fd, follow_symlinks=False)
            raise Refusal(f"exists: there is something of this name already: {path}")
        return change, mode & 0o777 if isinstance(mode, int) else None

    def _known(self, path: str, ask: Head, data: bytes | None) -> tuple[_Change, int | None]:
        try:
            with regular(self._root, path) as old:
                real = inside(self._root, old, path)
                mode = agreed(old, path, str(ask["expected"]), self._largest)
        except FileNotFoundError:
            raise Refusal(f"stale_file: the file is no longer there: {path}") from None
        if data is None:
            # The link itself goes, not what it leads to.
            with parent_of(self._root, path) as (fd, name):
                change = self._add(os.dup(fd), name, path)
        else:
            parent, name = split(real)
            change = self._add(open_beneath(self._root, parent, FOLDER, follow=False), name, path)
        change.keep()
        return change, mode

    def _add(self, fd: int, name: str, path: str) -> _Change:
        self._all.append(_Change(fd, name, path))
        place = os.path.join(os.readlink(f"/proc/self/fd/{fd}"), name)  # noqa: PTH115, PTH118 - as in files.py
        if place in self._real:
            raise Refusal(f"bad_patch: two changes concern the same file: {path}")
        self._real.add(place)
        return self._all[-1]

    def _make_folders(self, path: str) -> None:
        """Make the folders that a file needs, and note which were missing."""
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            part = "/".join(parts[:count])
            try:
                os.close(open_beneath(self._root, part, FOLDER))
            except FileNotFoundError:
                with parent_of(self._root, part) as (fd, name):
                    os.mkdir(name, 0o755, dir_fd=fd)
                self._made.append(part)

    def make(self) -> None:
        """Make them all visible, one after the other."""
        for change in self._all:
            change.make()

    def undo(self) -> None:
        """Put everything back."""
        try:
            for change in reversed(self._all):
                change.undo()
        except OSError as error:
            raise Broken(f"a change could not be taken back: {error}") from error

    def close(self, *, undone: bool) -> None:
        """Leave nothing but the changes, and not even folders where there are none."""
        for change in self._all:
            change.close()
        for part in reversed(self._made) if undone else ():
            with suppress(OSError, Refusal), parent_of(self._root, part) as (fd, name):
                os.rmdir(name, dir_fd=fd)


def apply(top: str, asked: object, body: bytes, largest: int) -> tuple[Head, bytes]:
    """Make all changes or none.

    Args:
        top: the workspace.
        asked: of each its `path`, `expected` and `mode`, and the `size` of its bytes; None removes it.
        body: the bytes, one after the other.
        largest: bytes that may be read of a file.
    """
    rows: list[list[object]] = []
    at, undone = 0, True
    with folder(top) as root:
        changes = _Changes(root, largest)
        try:
            for ask in asked if isinstance(asked, list) else ():
                size = ask["size"]
                rows.append([changes.prepare(ask, None if size is None else body[at : at + size])])
                at += size or 0
            changes.make()
            undone = False
        finally:
            if undone:
                changes.undo()
            changes.close(undone=undone)
    return {"rows": rows}, b""
