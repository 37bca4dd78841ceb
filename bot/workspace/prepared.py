"""Prepared environments on disk: one folder for each, made by a task's uid, then sealed and only read.

A folder is made at the very place where it is used, since virtual environments hold their own path; it counts from the
moment that its seal appears beside it, by a rename. What is in it was written by installers of other people: the server
opens nothing in it but to take it over, follows no link, and never reads a content.
"""

import asyncio
import fcntl
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bot.errors import SandboxError
from bot.workspace import files
from bot.workspace.clone import named
from bot.workspace.locks import locked

KEEP = 10
"""Environments of one repository; of more, those that were used longest ago go."""
DEEPEST = 200
"""Folders inside each other."""
_CONTENT = "content"
_SEAL = "sealed"
_MAKING, _USE = ".making", ".use"
"""Locks beside the folder. Two, so that whoever waits to make one does not wait for the end of a task that uses it."""
_PAUSE_S = 0.05


@dataclass(slots=True)
class Held:
    """An environment that nobody removes before it is released; goes with the process too."""

    folder: Path
    """What is in it."""
    fresh: bool
    """Whether it was made just now."""
    _lock: int

    def release(self) -> None:
        """Let it go."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class PreparedFolders:
    """All prepared environments of this machine, under `environments/` of the state folder."""

    def __init__(self, state: Path, *, keep: int = KEEP) -> None:
        """Keep them in one folder.

        Args:
            state: open to be passed through by the uids of tasks.
            keep: of one repository.
        """
        self._root = state.absolute() / "environments"
        self._keep = keep

    async def hold(self, repository: str, key: str) -> Held | None:
        """Take an environment for use; None where there is none yet."""
        place = self._place(repository, key)
        if not place.is_dir():
            return None
        lock = await _shared(place.with_suffix(_USE))
        seal = place / _SEAL
        if not seal.exists():
            os.close(lock)
            return None
        # Those that were used last stay longest.
        os.utime(seal)
        return Held(place / _CONTENT, False, lock)  # noqa: FBT003 - the class says which

    async def take(
        self, repository: str, key: str, owner: int | None, make: Callable[[Path], Awaitable[bool]]
    ) -> Held | None:
        """Take an environment for use, made where there is none; of two that want it, the second uses the first's.

        Args:
            repository: names the repository.
            key: names what is made, from which tools and which files.
            owner: the uid of the task that makes it; None where that is the server's own.
            make: fills a folder that belongs to `owner`, and says whether it could; else nothing is kept, and None is
                returned. When it returns, no process of that uid may be left.

        Raises:
            SandboxError: what was made cannot be taken over, as files that are not the owner's.
        """
        place = self._place(repository, key)
        made = False
        while True:
            if held := await self.hold(repository, key):
                held.fresh = made
                return held
            for folder in (self._root, place.parent):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o711)
            async with locked(place.with_suffix(_MAKING)):
                if (place / _SEAL).exists():
                    continue
                if not await self._make(place, owner, make):
                    return None
                made = True
            await asyncio.to_thread(self._prune, place.parent, key)

    async def _make(self, place: Path, owner: int | None, make: Callable[[Path], Awaitable[bool]]) -> bool:
        content = place / _CONTENT
        await asyncio.to_thread(_begin, place, owner)
        done = False
        try:
            if await make(content):
                await asyncio.to_thread(_take_over, place, owner)
                fresh = place / f"{_SEAL}.new"
                fresh.touch(mode=0o600)
                fresh.replace(place / _SEAL)
                done = True
        finally:
            if not done:
                await asyncio.shield(asyncio.to_thread(_discard, place))
        return done

    def _prune(self, folder: Path, key: str) -> None:
        """Remove what was used longest ago, and what nobody finished; what is in use stays."""
        ages = {}
        for place in folder.iterdir():
            if place.is_dir() and place.name != key:
                seal = place / _SEAL
                ages[place] = seal.stat().st_mtime if seal.exists() else 0.0
        kept = sorted(ages, key=lambda place: ages[place], reverse=True)[: max(0, self._keep - 1)]
        for place, age in ages.items():
            if place in kept and age:
                continue
            with suppress(BlockingIOError), _alone(place.with_suffix(_MAKING)), _alone(place.with_suffix(_USE)):
                _discard(place)

    def _place(self, repository: str, key: str) -> Path:
        return self._root / named(repository) / named(key)


def own_folder(place: Path, owner: int | None, *, empty: bool) -> None:
    """Make the folder that a task has for itself.

    Args:
        place: in the task's own folder, where no task can write.
        owner: the task's uid; None where that is the server's own.
        empty: whether what is in it goes.
    """
    if empty and place.exists():
        with files.opened_root(place.parent) as parent:
            files.remove(parent, os.fsencode(place.name))
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
        if owner is not None:
            os.chown(place, owner, owner)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock without waiting for it; its file stays, since one that is removed could be locked twice.

    Raises:
        BlockingIOError: somebody has it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


async def _shared(path: Path) -> int:
    """Wait while somebody removes an environment, and keep others from removing it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return lock
            await asyncio.sleep(_PAUSE_S)
    except BaseException:
        os.close(lock)
        raise


def _begin(place: Path, owner: int | None) -> None:
    """Make an empty environment that its maker alone can enter; what nobody finished goes first."""
    _discard(place)
    place.mkdir()
    place.chmod(0o711)
    own_folder(place / _CONTENT, owner, empty=False)


def _discard(place: Path) -> None:
    """Remove an environment, its seal first."""
    if not place.is_dir():
        return
    (place / _SEAL).unlink(missing_ok=True)
    with files.opened_root(place) as folder:
        for name in files.names_in(folder):
            files.remove(folder, name)
    place.rmdir()


def _take_over(place: Path, owner: int | None) -> None:
    """Make everything in an environment the server's own, readable for all and writable for nobody."""
    with files.opened_root(place) as folder:
        _folder(folder, _CONTENT.encode(), _Seal(os.geteuid() if owner is None else owner, owner is not None), 0)


@dataclass(frozen=True, slots=True)
class _Seal:
    """How one environment is taken over."""

    maker: int
    """The uid that everything in it has to have: a link to another's file must not open that to readers."""
    own: bool
    """Whether that is another uid than the server's."""

    def put(self, fd: int, status: os.stat_result) -> None:
        """Take over one open file or folder: others may do what its maker could, but write; no uid comes with it."""
        if status.st_uid != self.maker:
            raise SandboxError("the set-up left a file that belongs to another user, so nothing of it is kept")
        if self.own:
            os.fchown(fd, 0, 0)
        readable = status.st_mode & 0o500
        os.fchmod(fd, readable | readable >> 3 | readable >> 6)


def _folder(parent: int, name: bytes, seal: _Seal, depth: int) -> None:
    if depth > DEEPEST:
        raise SandboxError(f"the set-up left more than {DEEPEST} folders inside each other, so nothing of it is kept")
    with files.opened(parent, name) as fd:
        # From the inside out: until its folder is taken over, the maker may still read and remove what is in it.
        for inner in files.names_in(fd):
            _entry(fd, inner, seal, depth)
        seal.put(fd, os.fstat(fd))


def _entry(fd: int, name: bytes, seal: _Seal, depth: int) -> None:
    status = files.status_of(fd, name)
    if stat.S_ISDIR(status.st_mode):
        _folder(fd, name, seal, depth + 1)
    elif stat.S_ISLNK(status.st_mode):
        if seal.own:
            os.chown(name, 0, 0, dir_fd=fd, follow_symlinks=False)
    elif stat.S_ISREG(status.st_mode):
        with files.readable(fd, name, None) as (file, found):
            seal.put(file, found)
    else:
        # A pipe or a socket: what waits there could hold a later task up.
        os.unlink(name, dir_fd=fd)
