"""The story of the demo: an issue, a label, a pull request; a comment, a further commit."""

import asyncio
import os
import socket
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
from pydantic import SecretStr
from rich.markdown import Markdown
from rich.syntax import Syntax

from bot import __version__, bootstrap, serving
from bot.cli.demo.stage import Stage, build
from bot.cli.http import listener, web_app
from bot.cli.sandboxing import tell
from bot.cli.screen import Screen
from bot.domain.events import PullOpened
from bot.domain.task import Run
from bot.errors import BotError
from bot.models import require
from bot.settings.server import GitHubSection, LogSection, ProgressSection, PullSection, ServerSettings
from bot.tasks.standing import Standing, stand

PROVIDERS = {"anthropic": "anthropic", "openai-responses": "openai", "openai-chat": "openai-chat", "google": "google"}
"""For each wire of the scripted model, the provider whose models speak it."""
TITLE = "Discount is ignored"
BODY = """\
A cart with 10 percent discount costs as much as one without:

```python
cart = Cart(discount_percent=10)
cart.add("tea", 500, 2)
cart.total()  # 1000, should be 900
```
"""
FOLLOW_UP = "/agent fix Please refuse discounts below 0 and above 100 percent, with a test."
WAIT_S = 50.0
"""A scripted run takes a few seconds; a real model gets `REAL_WAIT_S`."""
REAL_WAIT_S = 900.0


class StoryError(BotError):
    """The story did not come to its end; the text says where it stopped."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays the model."""

    model: str | None
    """A real one; None: the scripted one, and only then the rest counts."""
    wire: str
    """The API that it speaks, one of `WIRES`."""
    dialect: str
    """How it calls tools."""

    @property
    def scripted(self) -> bool:
        """Whether it is no AI."""
        return self.model is None


def play(*, cast: Cast, port: int, stay: bool | None, state: Path | None, as_json: bool) -> int:
    """Play the story; returns 0 when it is complete."""
    screen = Screen(as_json=as_json)
    with ExitStack() as stack:
        folder = state or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="issuewright-demo-")))
        folder.mkdir(parents=True, exist_ok=True)
        # The model's commands run under other uids, which have to pass through.
        folder.chmod(0o711)
        code = asyncio.run(_play(folder.resolve(), screen, cast, port, stay=_stays(stay, as_json=as_json)))
    sys.stdout.flush()
    # DBOS's threads would hold the process; everything is recorded.
    os._exit(code)


def _stays(stay: bool | None, *, as_json: bool) -> bool:
    return stay if stay is not None else sys.stdout.isatty() and sys.stdin.isatty() and not as_json


async def _play(folder: Path, screen: Screen, cast: Cast, port: int, *, stay: bool) -> int:
    _introduce(screen, cast)
    async with AsyncExitStack() as stack:
        web = _free_port()
        hook = f"http://127.0.0.1:{web}/webhook"
        dialect = cast.dialect if cast.scripted else None
        stage = await build(stack, folder / "hub", webhook_url=hook, port=port, dialect=dialect)
        settings = _settings(folder / "server", stage, web, cast)
        require(settings)
        chosen = await bootstrap.choose_sandbox(settings)
        tell(chosen, screen.say)
        if not chosen.shell:
            screen.say("The story needs commands, and nothing on this machine can shut them in: see above.", "bold red")
            return 1
        server = serving.make_server(settings, chosen)
        await stack.enter_async_context(_Web(settings, server))
        story = _Story(stage, server, screen, WAIT_S if cast.scripted else REAL_WAIT_S)
        try:
            await story.tell()
        except StoryError as error:
            screen.say(f"The story stopped: {error}", "bold red")
            return 1
        if stay:
            screen.say("\nEverything stays up so that you can look at the pages. Ctrl-C ends it.", "bold")
            await _until_interrupted()
    return 0


def _introduce(screen: Screen, cast: Cast) -> None:
    screen.say(f"Issuewright {__version__}, demo", "bold")
    if cast.scripted:
        screen.say("No account, no key, nothing leaves this machine: GitHub is a local one, made for this demo.")
        screen.say("The model is SCRIPTED: it plays fixed turns and is no AI. Everything else is real:", "yellow")
        screen.say("webhooks, the durable engine, git, the tools, the tests that run.", "yellow")
        screen.say(f"It speaks the wire {cast.wire}, and calls tools as {cast.dialect}.\n", "yellow")
    else:
        screen.say("No account: GitHub is a local one, made for this demo.")
        screen.say(
            f"The model is {cast.model}, with your key: what it reads of the demo's repository goes there.\n", "yellow"
        )


def _settings(state: Path, stage: Stage, port: int, cast: Cast) -> ServerSettings:
    base = (
        bootstrap.load(None, {"models.act": cast.model}, quiet=True) if stage.model is None else _scripted(stage, cast)
    )
    return base.model_copy(
        update={
            "state_dir": state,
            "port": port,
            "github": GitHubSection(
                app_id=stage.app.id,
                private_key=SecretStr(stage.app.private_key),
                webhook_secret=SecretStr(stage.secret),
                api_url=stage.hub.api_url,
                web_url=stage.hub.base_url,
                content_interval_s=0,
            ),
            "progress": ProgressSection(interval_s=1),
            "pull": PullSection(settle_s=0),
            "log": LogSection(level="WARNING"),
        }
    )


def _scripted(stage: Stage, cast: Cast) -> ServerSettings:
    """Say where the scripted model is, as an operator says it of a real one."""
    if stage.model is None:
        raise StoryError("there is no scripted model")
    provider = PROVIDERS[cast.wire]
    access = {"api_key": "scripted", "base_url": stage.model.base_url(cast.wire)}
    models = {"act": f"{provider}:{stage.model.model_id}", "dialect": cast.dialect}
    return ServerSettings.model_validate({"models": models, provider.replace("-", "_"): access})


class _Web:
    """The bot's own server, in this process."""

    def __init__(self, settings: ServerSettings, server: serving.Server) -> None:
        self._server = listener(web_app(server), host=settings.host, port=settings.port, grace_s=2)
        # The story, not uvicorn, hears Ctrl-C.
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._server._serve())  # noqa: SLF001 - `serve` would take the signals over
        while not self._server.started:
            if self._task.done():
                await self._task
                raise StoryError("the server did not start")
            await asyncio.sleep(0.02)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task


@dataclass(frozen=True, slots=True)
class _Story:
    """Acts as the person would, through the API of the local GitHub, and shows what happens."""

    stage: Stage
    server: serving.Server
    screen: Screen
    wait_s: float

    async def tell(self) -> None:
        """Tell it from beginning to end.

        Raises:
            StoryError: something did not happen.
        """
        path = f"/repos/{self.stage.repository.full_name}"
        headers = {"Authorization": f"Bearer {self.stage.token.value}"}
        async with httpx.AsyncClient(base_url=self.stage.hub.api_url, headers=headers) as person:
            self.screen.say("1. Maria opens an issue and adds the label `agent`", "bold cyan")
            issue = await _post(person, f"{path}/issues", {"title": TITLE, "body": BODY})
            await _post(person, f"{path}/issues/{issue['number']}/labels", {"labels": ["agent"]})
            first = await self._watch(int(str(issue["number"])), 1)
            pull = self._pull(first)
            self.screen.say(f"\nThe pull request stands: {pull.url}\n", "bold green")
            self.screen.say("2. Maria asks for more on the pull request", "bold cyan")
            await _post(person, f"{path}/issues/{pull.number}/comments", {"body": FOLLOW_UP})
            second = await self._watch(pull.number, 2)
            if second.commit is None:
                raise StoryError("the follow-up made no commit")
            await self._show(person, path, pull.number, str(issue["html_url"]), pull.url)

    async def _watch(self, number: int, seq: int) -> Standing:
        store = self.server.stores.tasks
        try:
            async with asyncio.timeout(self.wait_s):
                run: Run | None = None
                while run is None:
                    task = await store.task_of(self.stage.repository.id, number)
                    run = await store.run(task.id, seq) if task else None
                    await asyncio.sleep(0.05)
                await self.screen.follow(store, run)
                await self._closed(run)
        except TimeoutError:
            raise StoryError(f"nothing more happened on #{number} for {self.wait_s:.0f} seconds") from None
        standing = stand(await store.events(run.task_id), seq)
        if standing.finished is None or standing.finished.outcome != "done":
            reason = standing.finished.reason if standing.finished else "it did not end"
            raise StoryError(f"the run on #{number} ended otherwise: {reason}")
        if self.stage.model is not None and self.stage.model.problems:
            raise StoryError(f"the scripted model met something else than it expected: {self.stage.model.problems[0]}")
        return standing

    async def _closed(self, run: Run) -> None:
        """Wait until a run is closed: what is asked before would be said to it, and it hears no more."""
        store = self.server.stores.tasks
        while (now := await store.run(run.task_id, run.seq)) is not None and now.state != "finished":  # noqa: ASYNC110 - a look at the database
            await asyncio.sleep(0.05)

    @staticmethod
    def _pull(standing: Standing) -> PullOpened:
        if standing.pull is None:
            raise StoryError("there is no pull request")
        return standing.pull

    async def _show(self, person: httpx.AsyncClient, path: str, number: int, issue_url: str, pull_url: str) -> None:
        diff = await person.get(f"{path}/pulls/{number}", headers={"Accept": "application/vnd.github.diff"})
        pull = (await person.get(f"{path}/pulls/{number}")).json()
        commits = (await person.get(f"{path}/pulls/{number}/commits")).json()
        console = self.screen.console
        console.rule("The change")
        console.print(Syntax(diff.text, "diff", background_color="default", word_wrap=True))
        console.rule("The pull request's text, with the evidence")
        console.print(Markdown(str(pull["body"]).split("<!--", maxsplit=1)[0]))
        console.rule()
        self.screen.say(
            f"\nComplete: issue → pull request with {len(commits)} commits, updated on request.", "bold green"
        )
        self.screen.say(f"  issue         {issue_url}\n  pull request  {pull_url}")
        self.screen.say(
            "\nNext: `issuewright run --repo . --task '…' --model anthropic:NAME` on a repository of yours."
        )


async def _post(person: httpx.AsyncClient, path: str, body: dict[str, object]) -> dict[str, object]:
    answer = await person.post(path, json=body)
    if answer.is_error:
        raise StoryError(f"the local GitHub said {answer.status_code} to {path}: {answer.text[:200]}")
    found: object = answer.json()
    return found if isinstance(found, dict) else {}


async def _until_interrupted() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
