"""Files that are there whole or not at all, whoever writes them at the same time."""

import os
import secrets
from pathlib import Path


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file beside its place and move it there; the last of several writers wins, and none sees another's half.

    The name beside it is random: threads share a process id, and so do containers that share a volume.
    """
    made = path.with_name(f"tmp_{secrets.token_hex(8)}")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    made.replace(path)
