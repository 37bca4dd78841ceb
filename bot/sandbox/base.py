"""The seam to the place where commands run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import Literal, Protocol

Level = Literal["bubblewrap", "landlock", "none"]
"""What stands between a command and the machine, the strongest first."""


class Proxy(Protocol):
    """The only way out of a sandbox."""

    async def start(self, listener: socket) -> None:
        """Answer on a listening socket, which it owns from now on."""
        ...

    async def close(self) -> None:
        """Answer no more."""
        ...

    def environment(self, url: str) -> Mapping[str, str]:
        """Name the variables that make programs use the proxy at this URL."""
        ...


@dataclass(frozen=True, slots=True)
class Access:
    """What a work tree's commands are given beside the tree."""

    readable: Sequence[Path] = ()
    """Files and folders that may be read and executed."""
    writable: Sequence[Path] = ()
    """Folders that may be written to."""
    environment: Mapping[str, str] = field(default_factory=dict)
    network: Sequence[str] = ()
    """Names of hosts and presets that may be reached; empty leaves the network off."""
    parallel: bool = False
    """Whether commands may go side by side."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a sandbox is made for."""

    root: Path
    """The work tree; it and its parents must be open to the uid."""
    uid: int | None = None
    """Of the workspace; None where the server's own is meant, which must not be root's."""
    alone: bool = True
    """Whether nobody else has that uid: then all its processes are ended with a command."""
    gid: int | None = None
    """Of the workspace; None means the same number as `uid`."""
    home: Path | None = None
    """Kept at the end; None makes a passing one."""
    at: str | None = None
    """Where commands find the work tree, if the level can choose that; None leaves it where it is."""
    readable: Sequence[Path] = ()
    """Files and folders beside the system's own that may be read and executed."""
    writable: Sequence[Path] = ()
    """Folders beside work tree and home that may be written to."""
    programs: Sequence[Path] = ()
    """Folders that come first on the path."""
    guarded: Sequence[Path] = ()
    """What may be read only although it is in the work tree; only some levels can do that."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of tools."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts to put under the home, by their path there."""
    proxy: Callable[[], Proxy] | None = None
    """Makes the way out; None leaves the network off."""
    parallel: bool = False
    """Whether operations go side by side, up to eight; else one after the other."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one command did."""

    exit_code: int | None
    """None where it was ended because its time was up; 128 + n where signal n ended it."""
    stdout: str
    """Head and tail; the middle is cut with a note that says how much."""
    stderr: str
    seconds: float
    timed_out: bool


@dataclass(frozen=True, slots=True)
class FileContent:
    """A regular file's bytes and the facts that a write must keep."""

    data: bytes
    """At most the asked number of bytes."""
    size_bytes: int
    """Of the whole file."""
    mode: int
    """Permission bits."""
    sha256: str
    """Of the whole file, hexadecimal."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing."""

    path: str
    """Relative to the workspace, `/` between parts."""
    kind: Literal["file", "directory", "symlink", "other"]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that a search found."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """One file of several that change together."""

    path: str
    data: bytes | None
    """The new bytes; None removes the file."""
    expected_sha256: str | None
    """Of the file that is replaced or removed; None where it must not exist yet."""
    mode: int | None = None
    """Permission bits of a new file; None for those of any new file. A replaced one keeps its own."""


class Sandbox(Protocol):
    """Everything a tool may do to a workspace; each path is relative to the workspace and stays inside it.

    Every method raises ToolError for what the model can mend (no such file, a path outside, a directory where a
    file was meant) and SandboxError where the place itself is broken.
    """

    @property
    def level(self) -> Level:
        """What people are told."""
        ...

    @property
    def root(self) -> str:
        """Where commands find the work tree."""
        ...

    async def run(self, command: str, *, timeout_s: float, cwd: str = ".", output_chars: int = 16_000) -> ExecResult:
        """Run `bash -c command` with an environment of our own; nothing that it started survives it."""
        ...

    async def open(self, path: str, *, limit_bytes: int) -> FileContent:
        """Read a regular file; FIFOs, devices and links that leave the workspace are refused."""
        ...

    async def replace(self, path: str, data: bytes, *, expected_sha256: str | None) -> FileContent:
        """Write a file whole and at once, keeping mode bits; missing folders are made.

        Args:
            path: where.
            data: the new bytes.
            expected_sha256: of the file that is replaced; None where it must not exist yet.
        """
        ...

    async def apply(self, changes: Sequence[Change]) -> Sequence[str | None]:
        """Make all of these changes or, where one cannot be made, none; the new SHA-256 of each, None where removed.

        No two may concern the same file.
        """
        ...

    async def delete(self, path: str) -> None:
        """Remove one file or link."""
        ...

    async def move(self, source: str, target: str) -> None:
        """Rename one file; the target must not exist."""
        ...

    async def list(self, pattern: str, *, limit: int) -> tuple[Sequence[Entry], int]:
        """List what is not ignored and matches a glob (`**` spans folders); sorted, and how many there are in all."""
        ...

    async def search(self, pattern: str, *, glob: str | None, limit: int) -> tuple[Sequence[Hit], int]:
        """Find a Perl regular expression in text files that are not ignored; the hits, and how many in all."""
        ...

    async def python_complaint(self, source: bytes) -> str | None:
        """Say what Python's compiler has against a source; None where it has nothing, or cannot judge it."""
        ...

    async def close(self) -> None:
        """End the helper and everything it started."""
        ...
