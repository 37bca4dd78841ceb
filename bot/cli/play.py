"""What `run`, `receive` and `ci` share: one run, worked on in this process while its events are shown."""

import asyncio
import os
import signal
import socket
import sys
from types import FrameType

from bot import bootstrap
from bot.cli.screen import EXIT_CODES, Screen
from bot.domain.task import Run
from bot.tasks.oneshot import OneShot


async def worked(
    shot: OneShot, run: Run, screen: Screen, stores: bootstrap.Stores, *, after: int = 0, again: str = ""
) -> Run:
    """Work on a run while its events are shown.

    The first interrupt asks it to stop and keeps what was done; the second one ends the process as a kill would, which
    loses nothing that is recorded.

    Args:
        shot: works.
        run: on this.
        screen: shows it.
        stores: where its events come from.
        after: the position in its task's stream from which on events are shown.
        again: the command that goes on with it; empty where there is none.
    """
    loop = asyncio.get_running_loop()
    stopping: set[asyncio.Task[None]] = set()

    def leave(_number: int, _frame: FrameType | None) -> None:
        os.write(sys.stderr.fileno(), f"\nLeft{f'; `{again}` goes on' if again else ''}.\n".encode())
        os._exit(EXIT_CODES["stopped"])

    def stop() -> None:
        if not stopping:
            # Before it is said: a second one that comes at once has to be heard.
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, leave)
            screen.say("\nStopping; what was done is kept. Ctrl-C once more leaves at once.", "yellow")
            stopping.add(loop.create_task(shot.stop(run)))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    shown = asyncio.create_task(screen.follow(stores.tasks, run, after=after))
    try:
        done = await shot.work(run)
        await asyncio.wait_for(shown, 10)
    finally:
        shown.cancel()
        await asyncio.gather(shown, *stopping, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return done


def executor() -> str:
    """Name this process among those that share a state folder."""
    return f"{socket.gethostname()}-{os.getpid()}-{bootstrap.new_id()[:8]}"
