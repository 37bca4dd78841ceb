"""The presets of the allow-list: what the package managers of this machine say about where packages come from."""

import os
from collections.abc import Awaitable, Callable, Mapping

from bot.errors import OperatorError
from bot.sandbox.egress.managers import go, java, node, python, rust
from bot.sandbox.egress.sources import Machine, Sources

PRESETS = ("python", "node", "rust", "go", "java")

_MANAGERS: Mapping[str, Callable[[Machine], Awaitable[Sources]]] = {
    "python": python.ask,
    "node": node.ask,
    "rust": rust.ask,
    "go": go.ask,
    "java": java.ask,
}


async def ask(preset: str, machine: Machine | None = None) -> Sources:
    """Ask a package manager of this machine, as the server's user in `/`, where its packages come from.

    What is missing or cannot be used is a remark; it takes seconds, so ask once.

    Args:
        preset: one of `PRESETS`.
        machine: None is this one, with the environment of this process.

    Raises:
        OperatorError: there is no such preset.
    """
    if preset not in _MANAGERS:
        raise OperatorError(f'there is no preset "{preset}" for the network; there are {", ".join(PRESETS)}')
    return await _MANAGERS[preset](machine or Machine(dict(os.environ)))
