"""The head of a CONNECT request or answer, and the short answers of the proxy. Pure."""

import re
from dataclasses import dataclass
from http import HTTPStatus

END = b"\r\n\r\n"
CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"

_REQUEST = re.compile(r"([!-~]{1,40}) ([^ \r\n]+) HTTP/1\.[01]")
_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*")
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")


@dataclass(frozen=True, slots=True)
class Request:
    """The first line of a request; all else of its head is of no concern to a tunnel."""

    method: str
    target: str
    """Untrusted, in Latin-1; never empty and without spaces."""


def read_request(head: bytes) -> Request | None:
    """Read a request's head with its empty line; None where it is malformed."""
    first, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    line = _REQUEST.fullmatch(first)
    if line is None or not all(map(_FIELD.fullmatch, fields)):
        return None
    return Request(line[1], line[2])


def read_status(head: bytes) -> int:
    """Read the status out of an answer's head; 0 where it is malformed."""
    line = _STATUS.fullmatch(head.decode("latin-1").partition("\r\n")[0])
    return int(line[1]) if line else 0


def answer(status: HTTPStatus, sentence: str) -> bytes:
    """Write an answer that ends the connection.

    Args:
        status: not of success.
        sentence: without its full stop, in printable ASCII; most clients show nothing but the first line, so it also
            stands there.
    """
    body = f"{sentence}.\n".encode("ascii")
    allow = "Allow: CONNECT\r\n" if status == HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {status} {status.phrase}: {sentence}\r\n{allow}Content-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


def connect_request(host: str, port: int, authorization: str) -> bytes:
    """Write the request to another proxy.

    Args:
        host: a name that was decided on.
        port: of it.
        authorization: value of `Proxy-Authorization`; empty sends none.
    """
    credentials = f"Proxy-Authorization: {authorization}\r\n" if authorization else ""
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{credentials}\r\n".encode("ascii")
