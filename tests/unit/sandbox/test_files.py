"""File operations stay inside the workspace and lose nothing."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bot.errors import ToolError
from bot.sandbox.base import Change
from bot.sandbox.process import ProcessSandbox

LIMIT = 1 << 20


def names(root: Path) -> list[str]:
    """List a folder."""
    return sorted(path.name for path in root.iterdir())


async def refused(sandbox: ProcessSandbox, path: str) -> set[str]:
    """Ask every operation for a path; the codes of the refusals."""
    codes = set()
    for ask in (
        lambda: sandbox.open(path, limit_bytes=LIMIT),
        lambda: sandbox.replace(path, b"x", expected_sha256=None),
        lambda: sandbox.replace(path, b"x", expected_sha256="0" * 64),
        lambda: sandbox.apply([Change(path, b"x", None)]),
        lambda: sandbox.apply([Change("beside", b"x", None), Change(path, b"x", "0" * 64)]),
        lambda: sandbox.apply([Change("beside", b"x", None), Change(path, None, "0" * 64)]),
        lambda: sandbox.delete(path),
        lambda: sandbox.move(path, "moved"),
        lambda: sandbox.move("mine.txt", path),
    ):
        with pytest.raises(ToolError) as caught:
            await ask()
        codes.add(str(caught.value).partition(":")[0])
    return codes


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "~", "~/x", "//x", "C:\\x", "C:/x", "\\\\host\\x",
     "../tree/mine.txt", "/proc/self/environ"],
)  # fmt: skip
async def test_traversal(sandbox: ProcessSandbox, place: Any, path: str) -> None:
    """S52: a path that leads out is refused by every operation, whatever it names."""
    place.put("mine.txt", b"mine")
    place.put("a/b.txt")
    assert await refused(sandbox, path) == {"path_outside_workspace"}
    assert (place.base / "secret.txt").read_text() == "secret beside the workspace"
    assert (place.root / "mine.txt").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "path",
    [".git/config", ".GIT/config", ".git./config", ".git /config", ".git", "sub/.Git. ./hooks/x", "git~1/config"],
)
async def test_git_folder(sandbox: ProcessSandbox, place: Any, path: str) -> None:
    """S52: git's own folder is refused in any spelling and at any depth."""
    place.put("mine.txt")
    place.put(".git/config", b"[core]")
    assert await refused(sandbox, path) == {"protected_path"}


async def test_git_folder_behind_a_link(sandbox: ProcessSandbox, place: Any) -> None:
    """S54: a link inside the tree does not open git's own folder."""
    place.put(".git/config", b"[core]")
    place.put("mine.txt")
    place.link("innocent", ".git")
    assert await refused(sandbox, "innocent/config") == {"protected_path"}
    assert (place.root / ".git/config").read_bytes() == b"[core]"


async def test_odd_names(sandbox: ProcessSandbox, place: Any) -> None:
    """S53: NUL and names that are too long are refused; line breaks and undecodable names are handled losslessly."""
    place.put("mine.txt")
    assert await refused(sandbox, "a\0b") == {"bad_path"}
    assert await refused(sandbox, "") == {"bad_path"}
    assert await refused(sandbox, "\ud800") == {"bad_path"}
    assert await refused(sandbox, "n" * 300) == {"bad_path"}
    for name in ("line\nbreak", os.fsdecode(b"Z\xfcrich"), "ünïcode", " space ", "-dash", "back\\slash"):
        await sandbox.replace(name, name.encode("utf-8", "replace"), expected_sha256=None)
        assert (place.root / name).is_file()
        assert (await sandbox.open(name, limit_bytes=LIMIT)).data == name.encode("utf-8", "replace")
    entries, total = await sandbox.list("**", limit=100)
    assert {"line\nbreak", os.fsdecode(b"Z\xfcrich")} < {entry.path for entry in entries}
    assert total == 7


@pytest.mark.parametrize(
    "target",
    ["../secret.txt", "/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/fd/0", "loop", ".."],
)
async def test_links_out(sandbox: ProcessSandbox, place: Any, target: str) -> None:
    """S54: a link that leaves the tree, goes round or passes through /proc is never followed."""
    place.link("loop", target)
    place.put("real/x.txt")
    with pytest.raises(ToolError, match="path_outside_workspace"):
        await sandbox.open("loop", limit_bytes=LIMIT)
    with pytest.raises(ToolError, match="path_outside_workspace"):
        await sandbox.replace("loop", b"x", expected_sha256=None)
    with pytest.raises(ToolError, match="path_outside_workspace"):
        await sandbox.replace("loop/below", b"x", expected_sha256=None)
    await sandbox.delete("loop")
    assert not (place.root / "loop").is_symlink()
    assert (place.base / "secret.txt").exists()


async def test_links_inside(sandbox: ProcessSandbox, place: Any) -> None:
    """S54: links inside the tree work, and writing through one changes the file and keeps the link."""
    place.put("deep/real.txt", b"old", 0o755)
    place.link("link.txt", "deep/real.txt")
    place.link("folder", "deep")
    place.link("deep/up", "../deep")
    content = await sandbox.open("folder/up/real.txt", limit_bytes=LIMIT)
    await sandbox.replace("link.txt", b"new", expected_sha256=content.sha256)
    assert (place.root / "link.txt").is_symlink()
    assert (place.root / "deep/real.txt").read_bytes() == b"new"
    await sandbox.replace("deep/up/made/below.txt", b"1", expected_sha256=None)
    assert (place.root / "deep/made/below.txt").read_bytes() == b"1"


async def test_dangling_link(sandbox: ProcessSandbox, place: Any) -> None:
    """S54: a link to nothing is not written through and not replaced."""
    place.link("dangling", "nothing.txt")
    with pytest.raises(ToolError, match="not_found"):
        await sandbox.open("dangling", limit_bytes=LIMIT)
    with pytest.raises(ToolError, match="exists"):
        await sandbox.replace("dangling", b"x", expected_sha256=None)
    assert names(place.root) == ["dangling"]


SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
os.makedirs("good", exist_ok=True)
os.symlink(sys.argv[2], "evil")
print("ready", flush=True)
while True:
    try:
        os.rename("good", "kept"); os.rename("evil", "good"); os.rename("good", "evil"); os.rename("kept", "good")
    except OSError:
        pass
"""


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.security)])
async def test_link_race(sandbox: ProcessSandbox, place: Any, count: int) -> None:
    """S55: while a folder is swapped with a link that leads out, nothing is ever written outside."""
    outside = place.base / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    command = [sys.executable, "-I", "-S", "-c", SWAPPER, str(place.root), str(outside)]
    drop = {} if place.uid is None else {"user": place.uid, "group": place.uid}
    done = 0
    with subprocess.Popen(  # noqa: ASYNC220 - it must run beside us
        command, stdout=subprocess.PIPE, **drop
    ) as swapper:
        try:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == b"ready\n"
            for number in range(count):
                try:
                    await sandbox.replace(f"good/{number}", b"x", expected_sha256=None)
                    done += 1
                except ToolError:
                    pass
        finally:
            swapper.kill()
    assert list(outside.iterdir()) == []
    assert done > 0


async def test_special_files(sandbox: ProcessSandbox, place: Any) -> None:
    """S56: pipes, sockets and folders are refused at once."""
    os.mkfifo(place.root / "pipe")
    place.put("folder/x")
    place.own(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place.root / "socket"))
        place.own(place.root / "socket")
        started = time.monotonic()
        for path in ("pipe", "socket", "folder", "folder/", "."):
            with pytest.raises(ToolError, match="not_regular_file"):
                await sandbox.open(path, limit_bytes=LIMIT)
            with pytest.raises(ToolError, match="not_regular_file"):
                await sandbox.replace(path, b"x", expected_sha256=None)
        assert time.monotonic() - started < 10


@pytest.mark.skipif(os.geteuid() != 0, reason="a device and a foreign file need root")
async def test_foreign_files(sandbox: ProcessSandbox, place: Any) -> None:
    """S56: a device, and a hard link to a file of somebody else, are refused."""
    if place.uid is None:
        pytest.skip("made by root only")
    os.mknod(place.root / "zero", 0o20666, os.makedev(1, 5))
    os.link(place.base / "secret.txt", place.root / "hard")
    with pytest.raises(ToolError, match="not_regular_file"):
        await sandbox.open("zero", limit_bytes=LIMIT)
    with pytest.raises(ToolError, match="permission_denied"):
        await sandbox.open("hard", limit_bytes=LIMIT)
    sha = hashlib.sha256((place.base / "secret.txt").read_bytes()).hexdigest()
    with pytest.raises(ToolError, match="permission_denied"):
        await sandbox.replace("hard", b"x", expected_sha256=sha)


async def test_huge_files(sandbox: ProcessSandbox, place: Any) -> None:
    """S56, S57: a file of a terabyte is refused without being read; a long one is cut, with its whole size."""
    place.put("sparse")
    os.truncate(place.root / "sparse", 1 << 40)
    place.put("long", b"x" * 5000)
    with pytest.raises(ToolError, match=f"too_large: {1 << 40} bytes"):
        await sandbox.open("sparse", limit_bytes=LIMIT)
    content = await sandbox.open("long", limit_bytes=100)
    assert (len(content.data), content.size_bytes) == (100, 5000)
    assert content.sha256 == hashlib.sha256(b"x" * 5000).hexdigest()


async def test_replace(sandbox: ProcessSandbox, place: Any) -> None:
    """S58: a file is replaced at once with its mode kept, and only while it is what the caller knows."""
    path = place.put("tool.sh", b"one", 0o750)
    before = path.stat().st_ino
    content = await sandbox.open("tool.sh", limit_bytes=LIMIT)
    assert (content.data, content.mode) == (b"one", 0o750)
    written = await sandbox.replace("tool.sh", b"two", expected_sha256=content.sha256)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o750)
    assert path.stat().st_ino != before
    assert written.sha256 == hashlib.sha256(b"two").hexdigest()
    assert path.stat().st_uid == place.owner
    with pytest.raises(ToolError, match="stale_file"):
        await sandbox.replace("tool.sh", b"three", expected_sha256=content.sha256)
    with pytest.raises(ToolError, match="exists"):
        await sandbox.replace("tool.sh", b"three", expected_sha256=None)
    with pytest.raises(ToolError, match="stale_file"):
        await sandbox.replace("gone.sh", b"three", expected_sha256=content.sha256)
    assert path.read_bytes() == b"two"
    assert names(place.root) == ["tool.sh"]


async def test_new_file(sandbox: ProcessSandbox, place: Any) -> None:
    """A new file and its folders have ordinary modes and the workspace's owner."""
    await sandbox.replace("a/b/c.txt", b"data", expected_sha256=None)
    made = place.root / "a/b/c.txt"
    assert made.stat().st_mode & 0o777 == 0o644
    assert made.parent.stat().st_mode & 0o777 == 0o755
    assert {made.stat().st_uid, made.parent.stat().st_uid} == {place.owner}
    with pytest.raises(ToolError, match="not_found"):
        await sandbox.replace("a/b/c.txt/d", b"", expected_sha256=None)


async def test_delete_and_move(sandbox: ProcessSandbox, place: Any) -> None:
    """Deleting takes files only; moving never overwrites."""
    place.put("a.txt", b"a")
    place.put("b.txt", b"b")
    place.put("folder/c.txt", b"c")
    with pytest.raises(ToolError, match="exists"):
        await sandbox.move("a.txt", "b.txt")
    await sandbox.move("a.txt", "new/d.txt")
    assert (place.root / "new/d.txt").read_bytes() == b"a"
    assert not (place.root / "a.txt").exists()
    for refusal in (sandbox.delete("folder"), sandbox.move("folder", "other")):
        with pytest.raises(ToolError, match="not_regular_file"):
            await refusal
    with pytest.raises(ToolError, match="not_found"):
        await sandbox.delete("a.txt")
    await sandbox.delete("b.txt")
    assert names(place.root) == ["folder", "new"]


async def test_secrets_of_the_server(sandbox: ProcessSandbox, place: Any) -> None:
    """S59: no file operation reads with the server's own rights."""
    if place.uid is None:
        pytest.skip("the server has no rights of its own")
    (place.root / "private").write_text("root's own")
    (place.root / "private").chmod(0o600)
    with pytest.raises(ToolError, match="permission_denied"):
        await sandbox.open("private", limit_bytes=LIMIT)
    with pytest.raises(ToolError, match="permission_denied"):
        await sandbox.replace("private", b"x", expected_sha256="0" * 64)


async def test_full_disk(make: Any, place: Any) -> None:
    """A write that the limits refuse leaves the old file and no half of the new one."""
    from bot.sandbox.limits import ResourceLimits  # noqa: PLC0415

    sandbox = make(limits=ResourceLimits(file_bytes=1000))
    place.put("small", b"old")
    content = await sandbox.open("small", limit_bytes=LIMIT)
    with pytest.raises(ToolError, match="too_large"):
        await sandbox.replace("small", b"x" * 5000, expected_sha256=content.sha256)
    assert (place.root / "small").read_bytes() == b"old"
    assert names(place.root) == ["small"]


async def test_round_trip(sandbox: ProcessSandbox) -> None:
    """Opening and replacing take about a millisecond; ten times that is the alarm here."""
    content = await sandbox.replace("x", b"0", expected_sha256=None)
    started = time.perf_counter()
    for number in range(50):
        content = await sandbox.replace("x", b"%d" % number, expected_sha256=content.sha256)
        content = await sandbox.open("x", limit_bytes=LIMIT)
    assert (time.perf_counter() - started) / 100 < 0.01


def test_needs() -> None:
    """The tests need git and bash."""
    assert shutil.which("git")
    assert Path("/bin/bash").exists()
