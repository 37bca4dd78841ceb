"""Steps of a run: an envelope around each action, so that a replay sees exactly what the first life saw."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from bot import errors
from bot.errors import BotError, Cancelled, GitHubError, ModelUnavailable, RateLimited
from bot.store.base import TaskStore
from bot.tasks.engines.base import Json, Step

log = logging.getLogger(__name__)

ENVELOPE_CHARS = 64_000
"""A larger value goes into a blob; the engine's record holds its hash."""

REGISTRY = (
    "announce",
    "prepare",
    "check/stale",
    "update",
    "environment",
    "check/before",
    "check/head",
    "approved",
    "inbox",
    "model",
    "tool",
    "plan",
    "question",
    "gate",
    "answer",
    "environment/after",
    "check/after",
    "check/definitions",
    "check/base",
    "check/proof",
    "commit",
    "protected",
    "push",
    "pull",
    "check/shown",
    "marks",
    "answers",
    "report",
    "close",
)
"""The kinds of steps of a run, in the order in which a run first meets them; names begin with one of these."""

PATIENCE_S = (2.0, 4.0, 8.0, 16.0, 30.0, 60.0, 120.0, 240.0)
"""Waits between the tries of a patient step."""
LONGEST_S = 3_700.0
"""A primary rate limit of GitHub ends within the hour; a longer wait ends the run instead."""


class Steps:
    """Makes the steps of one run; the only way in which a workflow touches the world."""

    def __init__(
        self,
        step: Step,
        store: TaskStore,
        stop: asyncio.Event,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._step = step
        self._store = store
        self._stop = stop

    @property
    def stopping(self) -> bool:
        """Whether a person asked for the run's end, so that nothing is begun any more."""
        return self._stop.is_set()

    async def do(
        self, name: str, action: Callable[[], Awaitable[Json]], *, stoppable: bool = False, patient: bool = False
    ) -> Json:
        """Run an action as a step and return its value, from the record where there is one.

        Args:
            name: unique in the run and deterministic.
            action: returns JSON; may raise any BotError, which a replay raises again.
            stoppable: whether a person's stop may cut it short.
            patient: whether it is tried again for some minutes where the error says that this may help; for what talks
                to GitHub and looks its effects up before it makes them.

        Raises:
            BotError: what the action raised, as the same class.
            Cancelled: a person stopped the run while it went on.
        """
        tried = (lambda: self._persist(action)) if patient else action
        envelope = await self._step(name, lambda: self._envelope(tried, stoppable=stoppable))
        return await self._open(cast("dict[str, object]", envelope))

    async def _envelope(self, action: Callable[[], Awaitable[Json]], *, stoppable: bool) -> Json:
        try:
            value = await (self._race(action) if stoppable else action())
        except Cancelled:
            return {"stopped": True}
        except BotError as error:
            return {"error": describe(error)}
        text = json.dumps(value)
        if len(text) > ENVELOPE_CHARS or _is_broken(text):
            return {"blob": await self._store.put_blob(text.encode())}
        return {"value": value}

    async def _persist(self, action: Callable[[], Awaitable[Json]]) -> Json:
        """Try again what may succeed later, for about ten minutes in all; a rate limit says itself how long."""
        for wait_s in PATIENCE_S:
            try:
                return await action()
            except BotError as error:
                if not error.retryable:
                    raise
                asked = error.retry_after_s if isinstance(error, RateLimited) else 0.0
                if asked > LONGEST_S:
                    raise
                log.warning("step.again", extra={"error": str(error), "wait_s": max(wait_s, asked)})
                await self._sleep(max(wait_s, asked))
        return await action()

    async def _race(self, action: Callable[[], Awaitable[Json]]) -> Json:
        if self._stop.is_set():
            raise Cancelled("stopped by a person")
        work = asyncio.ensure_future(action())
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise Cancelled("stopped by a person")
        finally:
            for future in (work, stop):
                future.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)

    async def _open(self, envelope: dict[str, object]) -> Json:
        if "stopped" in envelope:
            raise Cancelled("stopped by a person")
        if "error" in envelope:
            raise rebuild(cast("dict[str, object]", envelope["error"]))
        if "blob" in envelope:
            value: Json = json.loads(await self._store.blob(str(envelope["blob"])))
            return value
        return envelope["value"]


def _is_broken(text: str) -> bool:
    """Whether a JSON text stands for what an engine cannot record: the lone surrogates of names that are no UTF-8."""
    if "\\ud" not in text:
        return False
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def describe(error: BotError) -> dict[str, Json]:
    """Return an error as plain values; what only this process knows of it is left out."""
    # A subclass that a room made for itself counts as the one that all rooms know.
    known = next(one.__name__ for one in type(error).__mro__ if hasattr(errors, one.__name__))
    return {
        "class": known,
        "text": str(error).encode(errors="backslashreplace").decode(),
        "retry_after_s": getattr(error, "retry_after_s", None),
        "status": getattr(error, "status", None),
    }


def rebuild(kept: dict[str, object]) -> BotError:
    """Return the error that `describe` told of."""
    made: type[BotError] = getattr(errors, str(kept["class"]), BotError)
    text, wait, status = str(kept["text"]), kept["retry_after_s"], cast("int | None", kept["status"])
    if issubclass(made, ModelUnavailable):
        return made(text, retry_after_s=cast("float | None", wait))
    if issubclass(made, RateLimited):
        return made(text, retry_after_s=cast("float", wait), status=status)
    if issubclass(made, GitHubError):
        return made(text, status=status)
    return made(text)
