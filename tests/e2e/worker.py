"""The bot's server as a process of its own, which a test may let die at a chosen step.

`KILL_AT` is `<step>:<moment>`: `before` the step begins, or `inside` it, when its action is done and nothing is
recorded yet; several are joined by commas. `delivery:after` is when a delivery was answered and nobody looked at it
yet. `KILL_RUN` is the number of the run that it happens to. `KILLED` names a file that gets a line at each death, and
after `KILLS` deaths (1 if not set) life goes on. `STEPS` names a file that gets the name of each step that is made.
"""

import asyncio
import os
import signal
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from bot import bootstrap, serving
from bot.cli.http import listener, web_app
from bot.domain.task import Run
from bot.tasks.engines.base import Action, Body, Engine, Json, Step


class Killing:
    """An engine that ends this process with SIGKILL at one step."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner

    async def launch(self, body: Body) -> None:
        """Put ourselves around each step."""
        await self._inner.launch(deadly(body))

    async def start(self, run: Run) -> None:
        """As the inner engine."""
        await self._inner.start(run)

    async def recover(self, run: Run, dead_executor: str) -> None:
        """As the inner engine."""
        await self._inner.recover(run, dead_executor)

    async def cancel(self, run: Run) -> None:
        """As the inner engine."""
        await self._inner.cancel(run)

    async def recorded(self, run: Run) -> int:
        """As the inner engine."""
        return await self._inner.recorded(run)

    async def drain(self, *, grace_s: float) -> None:
        """As the inner engine."""
        await self._inner.drain(grace_s=grace_s)


def deadly(body: Body) -> Body:
    """Make of a workflow one that ends this process at a step."""
    wanted = os.environ.get("KILL_RUN", "1")

    async def around(run_id: str, step: Step) -> None:
        seq = run_id.rpartition("-")[2]

        async def killing(name: str, action: Action) -> Json:
            async def inside() -> Json:
                value = await action()
                if seq == wanted:
                    die(f"{name}:inside")
                return value

            if seq == wanted:
                die(f"{name}:before")
            note(name)
            return await step(name, inside)

        await body(run_id, killing)

    return around


def die(place: str) -> None:
    """End this process where it is told to end here, and has not done so often enough."""
    killed = os.environ.get("KILLED")
    if not killed or place not in os.environ.get("KILL_AT", "").split(","):
        return
    with Path(killed).open("a+", encoding="utf-8") as file:
        file.seek(0)
        if len(file.readlines()) >= int(os.environ.get("KILLS", "1")):
            return
        file.write(f"{place}\n")
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """Wraps the server's application so that it may die when a delivery was answered."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._inner(scope, receive, send)
        if scope["type"] == "http" and scope["path"] == "/webhook":
            die("delivery:after")


def note(name: str) -> None:
    """Write the name of a step down."""
    if path := os.environ.get("STEPS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def main() -> None:
    """Serve until killed."""
    settings = bootstrap.load(None, {})
    chosen = asyncio.run(bootstrap.choose_sandbox(settings))
    server = serving.make_server(settings, chosen, around=Killing)

    listener(Mortal(web_app(server)), host=settings.host, port=settings.port).run()
    os._exit(0)


if __name__ == "__main__":
    main()
