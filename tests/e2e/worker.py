"""The bot's server as a process of its own, which a test may let die at a chosen step.

`KILL_AT` is `<step>:<moment>`: `before` the step begins, or `inside` it, when its action is done and nothing is recorded
yet. `KILLED` names a file that is made at the death, so that the next life goes on. `STEPS` names a file that gets the
name of each step that is made.
"""

import os
import signal
from pathlib import Path

import uvicorn

from bot import __version__, bootstrap
from bot.domain.task import Run
from bot.tasks.engines.base import Action, Body, Engine, Json, Step
from bot.web.app import Services, create_app
from bot.web.webhook import understanding


class Killing:
    """An engine that ends this process with SIGKILL at one step."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self._name, _, self._moment = os.environ.get("KILL_AT", "").rpartition(":")

    async def launch(self, body: Body) -> None:
        """Put ourselves around each step."""

        async def around(run_id: str, step: Step) -> None:
            async def killing(name: str, action: Action) -> Json:
                async def inside() -> Json:
                    value = await action()
                    self._die(name, "inside")
                    return value

                self._die(name, "before")
                note(name)
                return await step(name, inside)

            await body(run_id, killing)

        await self._inner.launch(around)

    def _die(self, name: str, moment: str) -> None:
        killed = os.environ.get("KILLED")
        if killed and name == self._name and moment == self._moment and not Path(killed).exists():
            Path(killed).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    async def start(self, run: Run) -> None:
        """As the inner engine."""
        await self._inner.start(run)

    async def recover(self, run: Run, dead_executor: str) -> None:
        """As the inner engine."""
        await self._inner.recover(run, dead_executor)

    async def recorded(self, run: Run) -> int:
        """As the inner engine."""
        return await self._inner.recorded(run)

    async def drain(self, *, grace_s: float) -> None:
        """As the inner engine."""
        await self._inner.drain(grace_s=grace_s)


def note(name: str) -> None:
    """Write the name of a step down."""
    if path := os.environ.get("STEPS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def main() -> None:
    """Serve until killed."""
    settings = bootstrap.load(None, {})
    server = bootstrap.make_server(settings, around=Killing)

    services = Services(
        deliveries=server.stores.deliveries,
        tasks=server.stores.tasks,
        secrets=settings.github.webhook_secrets,
        missing=[],
        facts={"version": __version__, "sandbox": "none"},
        host=settings.host,
        understand=understanding(settings.covers, own_app_id=settings.github.app_id),
        clock=bootstrap.now,
        on_delivery=server.inlet.wake,
        running=server.running,
    )
    uvicorn.run(create_app(services), host=settings.host, port=settings.port, log_config=None)
    os._exit(0)


if __name__ == "__main__":
    main()
