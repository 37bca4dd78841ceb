"""Files that are no files, files of somebody else, and files that change under our hands."""

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from bot.errors import ToolError
from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext, ToolOutput
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from tests.security.poisoned import Arena, arena, own
from tests.security.test_paths import refusals

pytestmark = pytest.mark.security

LIMIT = 1 << 20
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can put a device or another's file there")
CANARY = "canary-of-the-server"
Use = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture(name="place")
def arena_fixture() -> Iterator[Arena]:
    """A folder with a secret beside the workspace."""
    with arena() as made:
        yield made


@pytest.fixture
def root(place: Arena) -> Path:
    """A workspace."""
    folder = place.base / "tree"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine\n")
    own(folder)
    return folder


@pytest.fixture
async def sandbox(root: Path) -> AsyncIterator[ProcessSandbox]:
    """What acts in it."""
    made = ProcessSandbox(Place(root, uid=own(root)))
    yield made
    await made.close()


@pytest.fixture
def use(sandbox: ProcessSandbox) -> Use:
    """Call a tool as a model does."""
    toolset = StandardToolset(standard_tools(), ToolContext(sandbox, FileLedger()))

    async def call(name: str, **arguments: object) -> ToolOutput:
        return await toolset.call(1, 0, name, json.dumps(arguments))

    return call


async def refused_all(sandbox: ProcessSandbox, path: str) -> set[str]:
    """Read and write a path; the codes of the refusals."""
    return await refusals(
        sandbox.open(path, limit_bytes=LIMIT),
        sandbox.replace(path, b"x", expected_sha256=None),
        sandbox.replace(path, b"x", expected_sha256="0" * 64),
    )


async def test_special_files(root: Path, sandbox: ProcessSandbox) -> None:
    """S56: a pipe, a socket and a folder are refused at once, without waiting for anybody."""
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        own(root)
        await sandbox.start()
        started = time.monotonic()
        for path in ("pipe", "socket", ".", "./"):
            assert await refused_all(sandbox, path) == {"not_regular_file"}
        assert time.monotonic() - started < 10


@NEEDS_ROOT
@pytest.mark.parametrize(("name", "device"), [("zero", (1, 5)), ("full", (1, 7)), ("tty", (5, 0)), ("mem", (1, 1))])
async def test_devices(root: Path, sandbox: ProcessSandbox, name: str, device: tuple[int, int]) -> None:
    """S56: a device is refused, whatever its rights say."""
    os.mknod(root / name, 0o20666, os.makedev(*device))
    (root / name).chmod(0o666)
    assert await refused_all(sandbox, name) <= {"not_regular_file", "permission_denied"}


async def test_terabyte(root: Path, sandbox: ProcessSandbox, use: Use) -> None:
    """S56: a sparse file of a terabyte is refused unread, by its size."""
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    own(root)
    started = time.monotonic()
    with pytest.raises(ToolError, match=f"too_large: {1 << 40} bytes"):
        await sandbox.open("sparse", limit_bytes=LIMIT)
    for tool, more in (("read", {}), ("edit", {"old": "a", "new": "b"})):
        assert (await use(tool, path="sparse", **more)).text.startswith("too_large")
    assert time.monotonic() - started < 20


@NEEDS_ROOT
async def test_hard_link_to_a_secret(place: Arena, root: Path, sandbox: ProcessSandbox) -> None:
    """S56: a hard link to a file of somebody else is refused even where its rights would let us."""
    place.secret.chmod(0o666)
    os.link(place.secret, root / "innocent")
    assert await refused_all(sandbox, "innocent") == {"permission_denied"}
    sha = hashlib.sha256(place.secret.read_bytes()).hexdigest()
    with pytest.raises(ToolError, match="permission_denied"):
        await sandbox.replace("innocent", b"x", expected_sha256=sha)
    assert CANARY in place.secret.read_text()


async def test_what_was_not_shown_is_not_lost(root: Path, use: Use) -> None:
    """S57: large, binary and long-lined files are cut in words, and neither edit nor write loses what was cut."""
    kept = {
        "large": b"line\n" * (3 << 20),
        "long": b"x" * 100_000 + b"tail\n",
        "lines": b"y\n" * 5000,
        "binary": b"PNG\0\xff" * 100,
        "latin": b"Z\xfcrich\n",
    }
    for name, data in kept.items():
        (root / name).write_bytes(data)
    own(root)
    words = {"large": "truncated", "long": "more characters", "lines": "of 5000", "binary": "NUL", "latin": "UTF-8"}
    for name, word in words.items():
        shown = await use("read", path=name)
        assert word in shown.text
        assert len(shown.text) < 60_000
        assert (await use("write", path=name, content="new\n")).is_error
    for name in ("large", "binary", "latin"):
        assert (await use("edit", path=name, old="line", new="x")).is_error
    assert {name: (root / name).read_bytes() for name in kept} == kept


async def test_changed_since_read(root: Path, use: Use) -> None:
    """S58: what changed since it was read is not written over, and mode, line ends and byte order mark are kept."""
    path = root / "crlf.sh"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o750)
    own(root)
    await use("read", path="crlf.sh")
    assert not (await use("write", path="crlf.sh", content="three\nfour\n")).is_error
    assert path.read_bytes() == b"\xef\xbb\xbfthree\r\nfour\r\n"
    assert path.stat().st_mode & 0o7777 == 0o750
    path.write_bytes(b"theirs\n")
    assert (await use("write", path="crlf.sh", content="mine\n")).text.startswith("stale_file")
    assert path.read_bytes() == b"theirs\n"
    assert sorted(os.listdir(root)) == ["crlf.sh", "mine.txt"]  # noqa: PTH208 - a test may block


async def test_writes_are_whole(root: Path, sandbox: ProcessSandbox) -> None:
    """S58: whoever reads meanwhile sees the old file or the new one, never a part."""
    texts = [bytes([65 + number]) * 300_000 for number in range(2)]
    written = await sandbox.replace("big", texts[0], expected_sha256=None)
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add((root / "big").read_bytes())

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in range(200):
            written = await sandbox.replace("big", texts[number % 2], expected_sha256=written.sha256)
    finally:
        done.set()
        reader.join()
    assert seen <= set(texts)


def secrets(place: Arena, root: Path) -> list[str]:
    """Name twenty places where secrets are, as paths that lead there."""
    out = os.path.relpath(place.secret, root)
    server = os.getpid()
    return [
        str(place.secret), out, f"./{out}", f"mine.txt/../{out}", "/proc/self/environ", f"/proc/{server}/environ",
        f"/proc/{server}/mem", f"/proc/{server}/maps", f"/proc/{server}/root{place.secret}", f"/proc/{server}/cwd/x",
        "/proc/1/environ", "/etc/shadow", "/root/.ssh/id_ed25519", "~/.ssh/id_ed25519", "/root/.netrc",
        "/var/run/docker.sock", f"/proc/{server}/task/{server}/environ", "/dev/fd/0", "/proc/self/fd/0",
        f"{root}/../secret.txt",
    ]  # fmt: skip


async def test_no_tool_reads_a_secret(place: Arena, root: Path, use: Use) -> None:
    """S59: no file tool reaches one of twenty secret places, by name or through a link."""
    paths = secrets(place, root)
    for number, path in enumerate(paths):
        (root / f"link{number}").symlink_to(path)
    (root / ".gitattributes").symlink_to(place.secret)
    own(root)
    asked = [*paths, *(f"link{number}" for number in range(len(paths)))]
    for path in asked:
        for tool, more in (
            ("read", {}),
            ("edit", {"old": "a", "new": "b"}),
            ("edit", {"old": "", "new": "b"}),
            ("write", {"content": "b"}),
        ):
            output = await use(tool, path=path, **more)
            assert CANARY not in output.text
            assert output.is_error, (tool, path, output.text)
        for tool, more in (("search", {"pattern": "canary", "glob": path}), ("list", {"pattern": path})):
            assert CANARY not in (await use(tool, **more)).text
    for path in paths:
        assert CANARY not in (await use("delete", path=path)).text
    assert (await use("search", pattern=CANARY)).text == "nothing found"
    assert place.secret.read_text() == f"{CANARY}\n"


@NEEDS_ROOT
async def test_rights_are_the_workspaces(root: Path, sandbox: ProcessSandbox) -> None:
    """S59: a file in the tree that only the server may read is not read with the server's rights."""
    (root / "private").write_text(CANARY)
    (root / "private").chmod(0o600)
    assert await refused_all(sandbox, "private") == {"permission_denied"}
