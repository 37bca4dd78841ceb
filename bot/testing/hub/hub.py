"""The whole state of a local GitHub."""

from __future__ import annotations

import asyncio

from bot.testing.hub.records import Delivery
from bot.testing.hub.state.actions import Actions

SETTLE_S = 30.0
"""Longest wait of `Hub.settled`."""


class Hub(Actions):
    """A GitHub in memory, with real git repositories below its root folder.

    Tests and seeding scripts call the methods of `state/` directly; each takes the lock, so any thread may call them.
    Looking at records while a server runs is safe for single values; take `hub.lock` to see several at one moment.
    """

    async def settled(self, timeout_s: float = SETTLE_S) -> None:
        """Wait until no webhook delivery is pending; those held back by `hooks.modes.hold` do not count.

        Raises:
            TimeoutError: when that takes longer.
        """
        if not await asyncio.to_thread(self.hooks.wait_idle, timeout_s):
            raise TimeoutError("webhook deliveries are still pending")

    def deliveries(self, event: str | None = None, action: str | None = None) -> list[Delivery]:
        """Return webhook deliveries, oldest first, of one event and action if given."""
        with self.lock:
            return [
                delivery
                for delivery in self.hooks.deliveries
                if event in (None, delivery.event) and action in (None, delivery.action)
            ]

    def close(self) -> None:
        """Send what is queued and stop the sending thread; the repositories on disk stay."""
        self.hooks.close()
