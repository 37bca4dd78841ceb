"""Seals with which the scripted model proves that thinking comes back as it was sent; pure."""

import base64
import binascii
import hashlib

_URL_SAFE = str.maketrans("-_", "+/")


def seal(thinking: str) -> str:
    """Return what proves that thinking is ours and unchanged, for wires on which it comes back beside its seal."""
    return base64.b64encode(_digest(thinking)).decode()


def letter(words: str) -> str:
    """Return a seal that holds its words, for wires on which thinking itself does not come back."""
    return base64.b64encode(_digest(words) + words.encode()).decode()


def opened(sealed: str) -> str | None:
    """Return the words of a letter, or None if it is none of ours, or was changed.

    Both alphabets of base64 are read, as the JSON of protocol buffers is: Google's own SDK spells it anew.
    """
    try:
        raw = base64.b64decode(sealed.translate(_URL_SAFE), validate=True)
        words = raw[hashlib.sha512().digest_size :].decode()
    except (binascii.Error, ValueError):
        return None
    return words if raw.startswith(_digest(words)) else None


def _digest(words: str) -> bytes:
    return hashlib.sha512(b"scripted:" + words.encode(errors="replace")).digest()
