"""The words between server and helper: a head in JSON and a body in bytes, each with its length before it."""

from __future__ import annotations

import json
import os
import struct

LENGTHS = struct.Struct(">II")
"""Bytes of the head, bytes of the body."""

Head = dict[str, object]


class Refusal(Exception):  # noqa: N818 - it is an answer to the model
    """What the model can mend; begins with a code, as `stale_file: ...`."""


class Broken(Exception):  # noqa: N818 - the pair of Refusal
    """The place itself cannot be used."""


class Gone(Exception):  # noqa: N818 - the regular end
    """The server closed the line."""


def pack(head: Head, body: bytes = b"") -> bytes:
    """Make one frame; undecodable file names survive as lone surrogates."""
    text = json.dumps(head).encode("ascii")
    return LENGTHS.pack(len(text), len(body)) + text + body


def take(fd: int, count: int) -> bytes:
    """Read exactly so many bytes."""
    data = bytearray()
    while len(data) < count:
        chunk = os.read(fd, min(count - len(data), 1 << 20))
        if not chunk:
            raise Gone
        data += chunk
    return bytes(data)


def receive(fd: int) -> tuple[Head, bytes]:
    """Read one frame."""
    head, body = LENGTHS.unpack(take(fd, LENGTHS.size))
    return json.loads(take(fd, head)), take(fd, body)


def send(fd: int, head: Head, body: bytes = b"") -> None:
    """Write one frame."""
    rest = memoryview(pack(head, body))
    while rest:
        rest = rest[os.write(fd, rest) :]
