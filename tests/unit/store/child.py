"""A second process for tests: `python -m tests.unit.store.child VERB STATE_DIR [DATABASE_URL]`."""

import asyncio
import itertools
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from bot.store.base import Delivery
from bot.store.opening import open_store
from tests.unit.store.made import Clock, delivery


async def main(verb: str, state_dir: Path, database_url: str | None) -> None:
    """Open the store and do one thing with it; each line printed is a fact that holds."""
    tasks, deliveries = open_store(state_dir, database_url, now=Clock())
    try:
        if verb == "admit":
            while taken := await tasks.admit(str(os.getpid()), slots=1, per_installation=1000):
                say(*(run.id for run in taken))
        elif verb == "add":
            await asyncio.gather(*(_add_for_ever(deliveries.add, worker) for worker in range(8)))
        elif verb == "key":
            say((await tasks.state_key()).hex())
    finally:
        await tasks.close()
        await deliveries.close()


async def _add_for_ever(add: Callable[[Delivery], Awaitable[bool]], worker: int) -> None:
    for count in itertools.count():
        guid = f"{os.getpid()}-{worker}-{count}"
        assert await add(delivery(guid, f"key-{guid}"))
        say(guid)


def say(*words: str) -> None:
    """Print words past all buffers: a killed process has said what it said."""
    os.write(1, "".join(f"{word}\n" for word in words).encode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
