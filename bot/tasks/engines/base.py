"""The seam to a durable engine."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol

from bot.domain.task import Run

Json = object
"""A plain JSON value; a step's value is at most 64 kB of JSON text."""
Action = Callable[[], Awaitable[Json]]
Body = Callable[[str, "Step"], Coroutine[object, object, None]]
"""The workflow: takes a run's id and the way to make steps; deterministic between steps."""

ABI = 1
"""The version of the workflow's body; a change that would replay old runs wrongly counts it up and branches on it."""


class Step(Protocol):
    """Runs one action at most once per recorded result."""

    async def __call__(self, name: str, action: Action) -> Json:
        """Return the recorded value of this step, or run the action and record its value before returning.

        Args:
            name: unique in the run, the same at every replay: `model/3`, `tool/3/0`.
            action: what to do; returns an envelope and does not raise for what can be expected.
        """
        ...


class Engine(Protocol):
    """Runs workflows and remembers their steps."""

    async def launch(self, body: Body) -> None:
        """Get ready to run workflows with this body."""
        ...

    async def start(self, run: Run) -> None:
        """Begin a run under its own id; a run that began already is left alone."""
        ...

    async def recover(self, run: Run, dead_executor: str) -> None:
        """Go on with a run whose executor is gone."""
        ...

    async def cancel(self, run: Run) -> None:
        """Never go on with a run of a dead executor again; what is recorded stays."""
        ...

    async def recorded(self, run: Run) -> int:
        """Count the steps that are recorded for a run."""
        ...

    async def drain(self, *, grace_s: float) -> None:
        """Begin no further step, and wait for those in flight at most `grace_s` seconds."""
        ...
