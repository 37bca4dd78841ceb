"""The one way out: a proxy of the server, reached through a descriptor that passes between helper and server."""

# Importing pathlib would take longer than all the rest of the start.
# ruff: noqa: PTH123

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from contextlib import suppress

_LISTEN = 64

_RECEIVE, _ANSWER, _ADD = 0xC050_2100, 0xC018_2101, 0x4018_2103
"""Source: https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html"""
_NOTICE = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")
_ADDITION = struct.Struct("=QIIII")
_SET = 1
_ADDRESS = struct.Struct("=H2s4s")


def offer(control: int, port: int) -> None:
    """Listen in this network namespace and give the listening socket to the server, which answers as the proxy.

    Args:
        control: the descriptor on which sockets are handed over; it is closed.
        port: of 127.0.0.1.
    """
    with socket.socket(fileno=control) as line, socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_LISTEN)
        socket.send_fds(line, [b"l"], [listener.fileno()])


class Doorkeeper:
    """Answers for `connect` where there is no network namespace.

    A command that connects to the proxy's address gets a socket that the server has connected, in place of its own;
    every other address is refused. The address is read once and the kernel never sees it, so that changing it
    meanwhile is of no use.
    """

    def __init__(self, listener: int, control: int, port: int) -> None:
        self.fd = listener
        self._proxy = _ADDRESS.pack(socket.AF_INET, port.to_bytes(2, "big"), bytes((127, 0, 0, 1)))
        # No command may inherit it.
        os.set_inheritable(control, False)  # noqa: FBT003 - the name of the function says it
        self._control = socket.socket(fileno=control)

    def answer(self) -> None:
        """Answer one call."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.fd, _RECEIVE, notice)
        except OSError:
            # It was killed while it waited.
            return
        number, pid, _, _, _, _, fd, address, length, *_ = _NOTICE.unpack(notice)
        code = self._decide(number, pid, fd, address, length)
        with suppress(OSError):
            fcntl.ioctl(self.fd, _ANSWER, _REPLY.pack(number, 0, -code, 0))

    def _decide(self, number: int, pid: int, fd: int, address: int, length: int) -> int:
        """Return the error that the caller gets, 0 where it is connected."""
        try:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                asked = os.pread(memory.fileno(), min(length, _ADDRESS.size), address)
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as facts:
                flags = next(int(line.split()[1], 8) for line in facts if line.startswith("flags:"))
        except (OSError, OverflowError, StopIteration):
            return errno.EACCES
        if asked != self._proxy:
            return errno.ENETUNREACH
        given = self._connection()
        if given is None:
            return errno.ECONNREFUSED
        try:
            os.set_blocking(given, not flags & os.O_NONBLOCK)
            addition = _ADDITION.pack(number, _SET, given, fd, flags & os.O_CLOEXEC)
            fcntl.ioctl(self.fd, _ADD, addition)
        except OSError as error:
            return error.errno or errno.EACCES
        finally:
            os.close(given)
        return 0

    def _connection(self) -> int | None:
        """Get a connection to the proxy; None where it does not answer."""
        try:
            self._control.send(b"c")
            _, given, _, _ = socket.recv_fds(self._control, 1, 1)
        except OSError:
            return None
        return given[0] if given else None
