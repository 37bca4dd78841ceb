"""What AWS does at the other end: frames of its event stream, and the check of a signature."""

import base64
import binascii
import hashlib
import hmac
import json
import struct
from collections.abc import Mapping
from urllib.parse import quote

from tests.unit.llm.google_peer import Answer

STREAM = "application/vnd.amazon.eventstream"


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Spell one frame; all headers are texts, type 7.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
    """
    head = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    prelude += struct.pack("!I", binascii.crc32(prelude))
    whole = prelude + head + payload
    return whole + struct.pack("!I", binascii.crc32(whole))


def chunk(event: object) -> bytes:
    """Put one event of a model into a frame."""
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    inner = base64.b64encode(json.dumps(event).encode()).decode()
    return frame(headers, json.dumps({"bytes": inner, "p": "abc"}).encode())


def fault(kind: str, message: str) -> bytes:
    """Spell an error inside the stream."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


def streamed(*frames: bytes) -> Answer:
    """An answer that is a stream of frames."""
    return Answer(b"".join(frames), kind=STREAM)


def refused(status: int, kind: str, message: str) -> Answer:
    """An error as AWS sends it: what it is stands in a header."""
    header = f"x-amzn-ErrorType: {kind}:http://internal.amazon.com/coral/com.amazon.coral.service/"
    return Answer(json.dumps({"message": message}).encode(), status, "application/json", (header,))


def signature(head: str, body: bytes, secret: str) -> tuple[str, str]:
    """Return the signature that a request carries and the one that it should.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

    Args:
        head: request line and headers.
        body: as it came.
        secret: the access key that has to have signed it.
    """
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    fields = dict(part.split("=", 1) for part in headers["authorization"].partition(" ")[2].split(", "))
    _, day, region, service, last = fields["Credential"].split("/")
    names = fields["SignedHeaders"].split(";")
    signed = "".join(f"{name}:{headers[name]}\n" for name in names)
    # All services but S3 quote the path once more.
    canonical = "\n".join(
        [method, quote(path, safe="/~"), "", signed, fields["SignedHeaders"], hashlib.sha256(body).hexdigest()]
    )
    scope = f"{day}/{region}/{service}/{last}"
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4" + secret.encode()
    for part in (day, region, service, last):
        key = hmac.digest(key, part.encode(), "sha256")
    return fields["Signature"], hmac.digest(key, text.encode(), "sha256").hex()
