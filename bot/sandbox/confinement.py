"""The seam to what shuts a helper process in: one file for each level, and one for those of others.

An external runner (a container or virtual machine for each task) is one more `Confinement`: its command starts the
helper at the other end, with the line as standard input and output. See docs/extending.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bot.sandbox.base import Level, Place
from bot.sandbox.identity import Identity

AT_MOST = 99
"""Newer than any version of Landlock's interface."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one helper is started, and what it finds."""

    root: str
    """Where the work tree is."""
    home: str
    temporary: str
    """For `TMPDIR`."""
    command: Sequence[str] = ()
    """Comes before the interpreter and its arguments."""
    data: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of files: `{name}` in the command stands for a descriptor that gives them."""
    network: Literal["namespace", "proxy", "none"] = "none"
    """`namespace`: it has one of its own. `proxy`: each connection is asked for. `none`: no socket can be made."""
    landlock: int | None = None
    """The newest version of the interface to use; None where the helper does not use it."""
    seccomp: bool = True
    readable: Sequence[str] = ()
    devices: Sequence[str] = ()
    alone: bool = False
    """Whether it sees no process but its own children."""
    interpreters: Sequence[str] = ()
    """Pythons that can be started there, the best first."""


class Confinement(Protocol):
    """One level of confinement."""

    @property
    def level(self) -> Level:
        """Its name."""
        ...

    def layout(self, place: Place, identity: Identity, home: str) -> Layout:
        """Describe how to start the helper for a place.

        Args:
            place: what it is made for.
            identity: whom the helper acts as.
            home: the folder that is its home; has a folder `tmp`.

        Raises:
            SandboxError: this machine lacks what is needed.
        """
        ...
