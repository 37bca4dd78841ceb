import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.sandbox.base import Place as Where
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.process import ProcessSandbox

# Of this run of the tests: whoever has the first is ended with its sandbox.
OWN_UID = 30_000 + os.getpid() % 4096 * 2
OTHER_UID = OWN_UID + 1


@dataclass(frozen=True)
class Place:
    """A workspace and what lies beside it."""

    base: Path
    root: Path
    uid: int | None

    @property
    def owner(self) -> int:
        """The uid of its files."""
        return os.geteuid() if self.uid is None else self.uid

    def put(self, path: str, data: bytes = b"", mode: int = 0o644) -> Path:
        """Make a file that belongs to the workspace."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)
        self.own(target)
        return target

    def own(self, target: Path) -> None:
        """Give everything down to a path to the workspace."""
        for part in [target, *target.parents]:
            if part.is_relative_to(self.root) and self.uid is not None:
                os.chown(part, self.uid, self.uid, follow_symlinks=False)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link."""
        (self.root / path).symlink_to(target)


def _uids() -> list[str]:
    return ["own", "same"] if os.geteuid() == 0 else ["same"]


@pytest.fixture(params=_uids())
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A workspace with a uid of its own, and one with the server's, where root becomes somebody else meanwhile."""
    base = Path(tempfile.mkdtemp(prefix="iw-test-", dir="/tmp"))
    base.chmod(0o755)
    root = base / "tree"
    root.mkdir()
    (base / "secret.txt").write_text("secret beside the workspace")
    drop = request.param == "same" and os.geteuid() == 0
    uid = OWN_UID if request.param == "own" else None
    if drop:
        for target in (base, root):
            os.chown(target, OTHER_UID, OTHER_UID)
        groups = os.getgroups()
        os.setgroups([])
        os.setresgid(OTHER_UID, OTHER_UID, 0)
        os.setresuid(OTHER_UID, OTHER_UID, 0)
    elif uid is not None:
        os.chown(root, uid, uid)
    try:
        yield Place(base, root, uid)
    finally:
        if drop:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.setgroups(groups)
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
async def make(place: Place) -> AsyncIterator[Callable[..., ProcessSandbox]]:
    """Make sandboxes over the workspace; all are closed at the end."""
    made: list[ProcessSandbox] = []

    def build(*, environment: dict[str, str] | None = None, limits: ResourceLimits | None = None) -> ProcessSandbox:
        made.append(ProcessSandbox(Where(place.root, uid=place.uid, environment=environment or {}), limits=limits))
        return made[-1]

    yield build
    for sandbox in made:
        await sandbox.close()


@pytest.fixture
async def sandbox(make: Callable[..., ProcessSandbox]) -> ProcessSandbox:
    """One started sandbox."""
    built = make()
    await built.start()
    return built


def alive(word: str) -> list[str]:
    """List the command lines that have a word in them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if word in line and int(entry.name) != os.getpid():
                found.append(line)
    return found


@pytest.fixture(name="alive")
def alive_fixture() -> Callable[[str], list[str]]:
    """Tell what is running."""
    return alive
