"""Canaries: twelve kinds of secrets in eight encodings find none of seven ways out (F10, S97, S98)."""

import asyncio
import base64
import io
import json
import logging
import sqlite3
import sys
import threading
import urllib.parse
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.responses import JSONResponse

from bot import log, redaction
from bot.agent.limits import LimitGuard, Limits
from bot.cli.screen import Screen
from bot.domain.events import Fact, ModelReplied, Notice, RunEvent, RunFinished, ToolFinished
from bot.domain.messages import Message, Prompt, Reply, TextPart, ToolCall, ToolResult
from bot.domain.refs import RepositoryRef
from bot.domain.task import Run, Task
from bot.errors import GitHubError, ModelError, PushRejected
from bot.github.client import GitHubAppClient, GitHubClient
from bot.llm.anthropic import AnthropicModel
from bot.sandbox.base import ExecResult
from bot.settings.load import load_server, secret_values
from bot.tasks.engines.base import Step
from bot.tasks.opening import prepare
from bot.tasks.publishing import deliver
from bot.tasks.recorded import RecordedModel, RecordedToolset
from bot.testing.model.reply import Fault
from bot.testing.model.script import Conversation, Turn
from bot.testing.model.script import Script as Play
from bot.testing.model.server import ScriptedModel
from bot.workspace.base import Identity, Opened, Origin
from tests.unit.github.fake import APP_ID, INSTALLATION_ID, FakeGitHub, Time, fail, serve
from tests.unit.tasks.conftest import empty, world  # noqa: F401 - fixtures
from tests.unit.tasks.made import START, Copy, Script, Shop, World, reply, run, words
from tests.unit.workspace.helpers import AT, BOT, opened, seed

pytestmark = pytest.mark.security

REPOSITORY = RepositoryRef(5, "ada/engine", "main")
CHANCE = Random(20261130)


def word(size: int) -> str:
    """Make up letters and digits."""
    return "".join(CHANCE.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", k=size))


def jwt(size: int) -> str:
    """Make up a JSON web token."""
    parts = (base64.urlsafe_b64encode(CHANCE.randbytes(part)).decode().rstrip("=") for part in (90, size))
    return f"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.{'.'.join(parts)}"


def pem() -> str:
    """Make a private key."""
    key = rsa.generate_private_key(65537, 2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


APP_KEY = pem()
FROM_SETTINGS = {
    "ISSUEWRIGHT_GITHUB__PRIVATE_KEY": APP_KEY,
    "ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET": word(40),
    "ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET_PREVIOUS": f"correct/horse+{word(8)}&staple={word(6)}",
    "ISSUEWRIGHT_DATABASE_URL": f"postgresql://issuewright:{word(24)}@db.example.org/issuewright",
    "ANTHROPIC_API_KEY": f"sk-ant-api03-{word(93)}AA",
    "ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN": f"svc:{word(20)}",
}
MINTED = {"new token": f"ghs_{APP_ID}_{jwt(256)}", "old token": f"ghs_{word(36)}"}
GIVEN = {
    "job's token": f"ghs_{word(36)}",
    "person's token": f"ghp_{word(36)}",
    "fine-grained token": f"github_pat_{word(22)}_{word(59)}",
    "hexadecimal": CHANCE.randbytes(20).hex(),
}
CANARIES = {
    **{name.rpartition("__")[2].lower(): value for name, value in FROM_SETTINGS.items()},
    "issuewright_database_url": FROM_SETTINGS["ISSUEWRIGHT_DATABASE_URL"].split(":")[2].split("@")[0],
    "https_proxy_login": FROM_SETTINGS["ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN"].split(":")[1],
    **MINTED,
    **GIVEN,
}
ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "base64": lambda text: base64.b64encode(b"u:" + text.encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "quoted": lambda text: urllib.parse.quote(text, safe=""),
    "json": lambda text: json.dumps(text)[1:-1],
    "reversed": lambda text: text[::-1],
    "in lines": lambda text: "\n".join(text[at : at + 9] for at in range(0, len(text), 9)),
}


@dataclass(frozen=True)
class Sent:
    """One canary in one encoding."""

    name: str
    text: str

    def found_in(self, out: str) -> bool:
        """Look for it by letters and digits alone; at its ends it may have mixed with its neighbours."""
        return _letters(self.text)[4:-4] in out


def _letters(text: str) -> str:
    plain = text.replace("\\n", "").replace("\\r", "")
    return "".join(char for char in plain if char.isascii() and char.isalnum())


SENT = [
    Sent(f"{kind}, {encoding}", encode(value))
    for kind, value in CANARIES.items()
    for encoding, encode in ENCODINGS.items()
]


def leaked(*outs: str) -> list[str]:
    """Name the canaries that came out."""
    out = _letters("\n".join(outs))
    assert len(out) > 100, "nothing came out at all"
    return [sent.name for sent in SENT if sent.found_in(out)]


@pytest.fixture(autouse=True)
async def armed() -> AsyncIterator[None]:
    """Let the bot learn its secrets as it does: from its settings, from GitHub's answers, from what it is given."""
    assert len(CANARIES) == 12
    settings = load_server(None, {"HOME": "/h", **FROM_SETTINGS})
    for value in secret_values(settings):
        redaction.register_secret(value)
    time = Time()
    for token in MINTED.values():
        fake = FakeGitHub(time, "")
        answer = JSONResponse({"token": token, "expires_at": "2026-11-30T13:00:00Z"}, 201)
        async for url in serve(fake.app()):
            fake.plan("POST", "/app/installations/*", lambda _, answer=answer: answer)  # type: ignore[misc]
            app = _client(url, time)
            assert await app.installation(INSTALLATION_ID).git_token(REPOSITORY) == token
            await app.close()
    for token in GIVEN.values():
        await _client("http://127.0.0.1:9", time, token=token).close()
    yield
    redaction.forget_secrets()


def _client(url: str, time: Time, token: str | None = None) -> GitHubAppClient:
    return GitHubAppClient(
        api_url=url,
        app_id=APP_ID,
        private_key=APP_KEY,
        token=token,
        clock=time.clock,
        random=Random(1).random,
        sleep=time.sleep,
        monotonic=time.monotonic,
        write_interval_s=0.0,
    )


async def _post(github: GitHubClient, number: int, text: str) -> list[str]:
    """Comment and open a pull request; returns what the errors say with which they end."""
    with pytest.raises(GitHubError) as first:
        await github.comment(REPOSITORY, 7, f"I did it: {text}\n\n`{text}`")
    with pytest.raises(GitHubError) as second:
        await github.open_pull(
            REPOSITORY, head=f"agent/{number}", base="main", title=f"Fix {text}", body=text, draft=True
        )
    return [str(first.value), str(second.value)]


async def test_nothing_is_sent_to_github() -> None:
    """First way out: comments, pull requests and their titles, whatever is in them, and what GitHub's errors say."""
    time, said = Time(), list[str]()
    fake = FakeGitHub(time, "")
    async for url in serve(fake.app()):
        app = _client(url, time, token="t0ken-of-the-test")
        for number, sent in enumerate(SENT):
            fake.plan("*", "/repos/*", *[lambda _, text=sent.text: fail(422, f"bad {text}")] * 2)
            said += await _post(app.installation(None), number, sent.text)
        await app.close()
    bodies = [json.dumps(seen.body, ensure_ascii=False) for seen in fake.seen if seen.body]
    assert len(bodies) == 2 * len(SENT)
    assert leaked(*bodies) == []
    assert leaked(*said) == []


def _facts(text: str) -> Sequence[Fact]:
    return (
        Notice(f"see {text}"),
        ToolFinished(1, 0, "run", f"echo {text}", is_error=False, seconds=1.0, command=f"echo {text}", output=text),
        ModelReplied(1, f"It is {text}", 0, 1, 1, 1, 1, None, "m"),
        RunFinished("failed", f"it broke: {text}", f"I printed {text}", 1, 1, None, 1.0),
    )


def _stored(folder: Path) -> str:
    """Everything that the databases hold, as bytes of their files."""
    for file in folder.glob("*.db*"):
        if file.suffix == ".db":
            with sqlite3.connect(file) as database:
                database.execute("pragma wal_checkpoint(truncate)")
            database.close()
    return "\n".join(path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file())


async def test_nothing_is_stored(world: World, tmp_path: Path) -> None:  # noqa: F811
    """Second way out: the stream of events and the database behind it."""
    task, one = await world.begin()

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step)
        for number, sent in enumerate(SENT):
            for kind, fact in enumerate(_facts(sent.text)):
                await scene.recorder.note(f"{number}/{kind}", fact)

    await world.live(one, body)
    assert leaked(*(repr(event.fact) for event in await world.store.events(task.id))) == []
    assert leaked(_stored(tmp_path)) == []


async def test_nothing_reaches_the_model(world: World, tmp_path: Path) -> None:  # noqa: F811
    """Third way out: what a command printed, a person wrote or a check said, as the provider and the record get it."""
    for number, sent in enumerate(SENT):
        shown = ExecResult(1, f"out {sent.text}", sent.text, 0.1, timed_out=False)
        world.commands[f"leak {number}"] = lambda _, shown=shown: shown  # type: ignore[misc]
    task, one = await world.begin()
    told = Prompt("s", (), tuple(Message("user", (TextPart(sent.text), ToolResult("c", sent.text))) for sent in SENT))
    script = Script(*(_echo(sent.text) for sent in SENT))
    outputs: list[str] = []

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step, script)
        await prepare(scene)
        guard = LimitGuard(Limits(10**6, 10**9, 1e9, 1e9))
        model, tools = (
            RecordedModel(scene, "m", guard, started=START, window=200_000),
            RecordedToolset(scene, scene.lease.tools),
        )
        for number in range(len(SENT)):
            outputs.append(repr((await model.ask(told)).message))
            call = run(f"leak {number}")
            outputs.append(repr(await tools.call(number + 1, 0, call.name, call.arguments)))
        await scene.lease.close()

    await world.live(one, body)
    assert leaked(*(repr(prompt) for prompt in script.prompts)) == []
    assert leaked(*outputs) == []
    assert leaked(_stored(tmp_path)) == []


def _echo(text: str) -> Reply:
    return reply(words(f"I found {text}"), ToolCall("w", "write", json.dumps({"path": "a", "content": text})))


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """The log, and everything that Python would say by itself."""
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook, sys.unraisablehook)
    level, handlers, out = root.level, list(root.handlers), io.StringIO()
    log.configure("DEBUG", "json", out)
    log.catch_uncaught()
    yield out
    logging.captureWarnings(capture=False)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    root.handlers[:] = handlers
    root.setLevel(level)


class Fails:
    """Something whose end raises."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __del__(self) -> None:
        raise RuntimeError(self.text)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("form", ["json", "text"])
async def test_nothing_is_logged(logged: io.StringIO, form: log.Format) -> None:
    """Fourth way out: lines, fields, tracebacks, and what threads, finalizers, tasks and warnings say."""
    log.configure("DEBUG", form, logged)
    loop = asyncio.get_running_loop()
    for sent in SENT:
        text, error = sent.text, ValueError(sent.text)
        logging.getLogger("uvicorn.error").error("failed %s", text, exc_info=error, extra={"field": {"a": [text]}})
        logging.getLogger("bot.x").info(text)
        loop.call_exception_handler({"message": f"lost {text}", "exception": error})
        sys.excepthook(ValueError, error, None)
        thread = threading.Thread(target=_raise, args=(text,))
        thread.start()
        thread.join()
        Fails(text)
        warnings.warn(text, stacklevel=1)
    out = logged.getvalue()
    assert out.count("uncaught") >= 3 * len(SENT)
    assert leaked(out) == []


def _raise(text: str) -> None:
    raise KeyError(text)


@pytest.mark.parametrize("as_json", [True, False])
def test_nothing_is_shown(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    """Fifth way out: the terminal, and with it a job's log."""
    screen = Screen(as_json=as_json)
    for sent in SENT:
        screen.say(f"The model says: {sent.text}")
        for seq, fact in enumerate(_facts(sent.text)):
            screen.event(RunEvent("t", seq, 1, START, fact))
    said = capsys.readouterr()
    assert leaked(said.err, said.out) == []


class NotingCopy(Copy):
    """A working copy that never changed, and notes what it was asked to commit."""

    async def commit(
        self, message: str, author: Identity, at: datetime, *, parent: str, without: str | None = None
    ) -> str | None:
        """Note the message."""
        self.shop.log.append(message)
        return None


class NotingShop(Shop):
    """Working copies that note messages."""

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Make such a copy."""
        made = await super().open(task_id, origin, branch, commit=commit)
        return replace(made, workspace=NotingCopy(self, dict(self.commits[made.base])))


async def test_nothing_is_committed(world: World) -> None:  # noqa: F811
    """Sixth way out: the message of a commit, made of the model's words and the issue's title."""
    shop = world.shop = NotingShop()
    for number, sent in enumerate(SENT):
        task, one = await world.begin(f"k{number}", title=f"Mend {sent.text}"[:200], number=100 + number)

        async def body(_: str, step: Step, task: Task = task, one: Run = one, text: str = sent.text) -> None:
            scene = await world.scene(task, one, step)
            await deliver(scene, await prepare(scene), summary=f"I used {text}", complete=True)
            await scene.lease.close()

        await world.live(one, body)
        await world.store.finish(task.id, 1, "done", "", START)
    messages = [message for message in shop.log if "\n\n" in message]
    assert len(messages) == len(SENT)
    assert leaked(*messages) == []


async def test_nothing_is_pushed(tmp_path: Path) -> None:
    """Seventh way out: the change itself, in a file's lines, in a binary file and in a file's name."""
    seed(tmp_path / "source", {"a.py": "x = 1\n", "b.bin": b"\0\1"})
    workspace, base = await opened(tmp_path / "state", tmp_path / "source")
    for sent in SENT:
        (workspace.root / "a.py").write_text(f"x = 1\ny = '''{sent.text}'''\n")
        commit = await workspace.commit("Change", BOT, AT, parent=base)
        assert commit is not None
        found, paths = redaction.leaks(await workspace.diff(base, commit, limit_chars=1 << 20))
        certain = [leak for leak in found if leak.certain]
        # The first line of a key in PEM form is no secret.
        assert [(leak.path, leak.line) for leak in certain] in ([("a.py", 2)], [("a.py", 3)]), sent.name
        assert paths == {"a.py"}
        assert leaked("x" * 200, *map(str, found)) == []
        assert redaction.holds_secret(b"\0\1" + sent.text.encode("utf-16-le")), sent.name
    await workspace.close()


async def test_a_change_with_a_secret_stays_here(world: World) -> None:  # noqa: F811
    """The push is refused with the place and without the value, and the work is kept."""
    secret = CANARIES["webhook_secret"]
    task, one = await world.begin()

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step)
        prepared = await prepare(scene)
        live = await scene.lease.live()
        live.workspace.files["conf/keys.env"] = f"HOOK={secret}\n".encode()  # type: ignore[attr-defined]
        with pytest.raises(PushRejected, match=r"`conf/keys\.env`: a secret of this server") as caught:
            await deliver(scene, prepared, summary="Done.", complete=True)
        assert secret not in str(caught.value)

    await world.live(one, body)
    assert set(world.shop.branches) == {"main"}


async def test_errors_of_a_model_say_nothing() -> None:
    """What a provider's error quotes of a request is masked."""
    text = CANARIES["anthropic_api_key"]
    turn = Turn(text="x", faults=[Fault(status=400, message=f"no: {text}")])
    play = Play([Conversation("t", [turn], match="/./")])
    async with ScriptedModel(play, api_key="k") as server:
        model = AnthropicModel("anthropic:x", api_key="k", base_url=server.url, max_output_tokens=10)
        with pytest.raises(ModelError) as caught:
            await model.ask(Prompt("s", (), (Message("user", (TextPart("Hi"),)),)))
        await model.close()
    assert str(caught.value).endswith("no: ***")
