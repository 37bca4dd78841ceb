"""Calling tools as a model does, and looking at what they did."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from bot.tools.base import ToolContext, ToolOutput

Use = Callable[..., Awaitable[ToolOutput]]
"""The name of a tool, and its arguments by name."""
Put = Callable[..., Awaitable[None]]
"""A path, bytes and perhaps mode bits in octal: changes a file behind the tools' back."""


async def raw(context: ToolContext, path: str) -> bytes:
    """Read past the tools."""
    return (await context.sandbox.open(path, limit_bytes=1 << 20)).data


def tree(context: ToolContext) -> dict[str, tuple[bytes, int]]:
    """Everything in the workspace: bytes and mode bits by path; folders have a `/` behind their name."""
    root = Path(context.sandbox.root)
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_dir():
            found[name + "/"] = (b"", 0)
        else:
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o7777)
    return found
