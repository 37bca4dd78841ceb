"""Level `landlock`: files by Landlock, everything else by a filter of system calls; needs no privilege at all.

It works in a plain container and on hosted runners, where namespaces are not to be had. It cannot hide the names and
arguments of other processes, and before version 6 of its interface it cannot stop signals to those of the same uid.
"""

import os
import platform

from bot.errors import SandboxError
from bot.sandbox.base import Level, Place
from bot.sandbox.confinement import AT_MOST, Layout
from bot.sandbox.helper.landlock import version
from bot.sandbox.identity import Identity, interpreters
from bot.sandbox.system import CONFIGURATION, DEVICES, FOLDERS, present, visible


class Landlock:
    """Shuts in by what the kernel gives to everybody."""

    def __init__(self, *, at_most: int = AT_MOST) -> None:
        """Use the newest version of the interface that the kernel has, or an older one.

        Args:
            at_most: the newest to use; tests name older ones.
        """
        self._at_most = at_most

    @property
    def level(self) -> Level:
        """`landlock`."""
        return "landlock"

    def layout(self, place: Place, identity: Identity, home: str) -> Layout:
        """Leave everything where it is, and name what may be used."""
        if not min(version(), self._at_most):
            raise SandboxError(
                f"the kernel ({platform.release()}) has no Landlock: it takes Linux 5.13 or later with `landlock` in "
                "the `lsm=` list of its command line"
            )
        if place.guarded:
            raise SandboxError(
                f"`landlock` cannot keep commands from changing {place.guarded[0]}; install the package `bubblewrap`, "
                "or let the work be done in a copy"
            )
        return Layout(
            root=str(place.root),
            home=home,
            temporary=f"{home}/tmp",  # noqa: S108 - it is below the home
            network="proxy" if place.proxy else "none",
            landlock=self._at_most,
            readable=[*present(FOLDERS), *present(CONFIGURATION), "/proc", *map(os.fspath, place.readable)],
            devices=present(DEVICES),
            alone=identity.alone,
            # Those whose library can be read inside, first.
            interpreters=sorted(interpreters(), key=lambda path: not visible(path, tuple(place.readable))),
        )
