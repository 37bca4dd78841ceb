"""The seal with which the scripted model proves that reasoning comes back as it was sent."""

import base64
import hashlib


def seal(thinking: str) -> str:
    """Return what stands for the encrypted content of reasoning."""
    return base64.b64encode(hashlib.sha512(b"scripted:" + thinking.encode(errors="replace")).digest()).decode()
