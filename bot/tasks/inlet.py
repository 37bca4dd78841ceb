"""Takes stored deliveries to intake, again where GitHub could not be asked, until each is settled."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from bot.errors import BotError, RateLimited
from bot.log import bind
from bot.store.base import Delivery, DeliveryStore
from bot.tasks.intake import Intake

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Deliveries that are handled side by side."""
AT_A_LOOK = 100
"""Deliveries that are read at once, beside those that wait."""
TRIES = 10
FIRST_WAIT_S = 2.0
"""Doubled at each further try, up to ten minutes: about half an hour in all."""
LOOK_S = 2.0


class Inlet:
    """Handles what the receiver kept."""

    def __init__(
        self, deliveries: DeliveryStore, intake: Intake, clock: Callable[[], datetime], *, queued: Callable[[], None]
    ) -> None:
        self._deliveries = deliveries
        self._intake = intake
        self._clock = clock
        self._queued = queued
        self._wake = asyncio.Event()
        self._tries: dict[str, tuple[int, datetime]] = {}
        self._loop: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Say that a delivery was kept."""
        self._wake.set()

    def start(self) -> None:
        """Begin to handle deliveries, those of an earlier life first."""
        self._loop = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Handle no more; what is not settled waits in the store."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._round()
            except Exception:
                # The database may be away for a moment; the deliveries are looked at again.
                log.exception("inlet.failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._wake.wait()

    async def _round(self) -> None:
        now = self._clock()
        # Those that wait for their next try must not hide the ones behind them.
        pending = await self._deliveries.pending(limit=AT_A_LOOK + len(self._tries))
        due = [one for one in pending if self._tries.get(one.guid, (0, now))[1] <= now]
        room = asyncio.Semaphore(AT_ONCE)

        async def one(delivery: Delivery) -> None:
            async with room:
                await self._settle(delivery)

        await asyncio.gather(*(one(delivery) for delivery in due))

    async def _settle(self, delivery: Delivery) -> None:
        bind(delivery=delivery.guid)
        try:
            handled = await self._intake.handle(delivery)
        except BotError as error:
            await self._again(delivery, f"{type(error).__name__}: {error}", error)
        except Exception:
            # A fault of ours must not stop the deliveries behind it.
            log.exception("delivery.broken", extra={"delivery": delivery.guid})
            await self._again(delivery, "internal error, see the log", None)
        else:
            self._tries.pop(delivery.guid, None)
            await self._deliveries.settle(delivery.guid, handled.state, handled.note)
            if handled.accepted is not None:
                self._queued()

    async def _again(self, delivery: Delivery, note: str, error: BotError | None) -> None:
        tries = self._tries.get(delivery.guid, (0, self._clock()))[0] + 1
        if tries >= TRIES or (error is not None and not error.retryable):
            log.error("delivery.failed", extra={"delivery": delivery.guid, "note": note})
            self._tries.pop(delivery.guid, None)
            await self._deliveries.settle(delivery.guid, "failed", note)
            return
        wait = min(FIRST_WAIT_S * 2 ** (tries - 1), 600.0)
        if isinstance(error, RateLimited):
            wait = max(wait, error.retry_after_s)
        self._tries[delivery.guid] = (tries, self._clock() + timedelta(seconds=wait))
        log.warning("delivery.again", extra={"delivery": delivery.guid, "note": note, "wait_s": wait})
