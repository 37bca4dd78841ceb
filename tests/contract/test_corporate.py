"""GitHub, git and models are reached through a company's proxy, under certificates of its own authority."""

import random
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot import redaction
from bot.domain.messages import Message, Prompt, TextPart
from bot.domain.refs import RepositoryRef
from bot.errors import BotError, Forbidden, ModelRejected, WorkspaceError
from bot.github.client import GitHubAppClient
from bot.llm.anthropic import AnthropicModel
from bot.llm.transport import ClientOptions
from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from bot.workspace.base import Origin
from bot.workspace.clone import GitWorkspaces
from tests.contract.corporate import Authority, Network, company
from tests.unit.github.fake import Time
from tests.unit.workspace.helpers import AT, BOT, tokens

LOGIN = "svc-agent:Pr0xy-pass.word"
GITHUB = "git.corp.test"
MODEL = "model.corp.test"
PROMPT = Prompt("You are a test.", (), (Message("user", (TextPart("Hello?"),)),))


@pytest.fixture
async def inside(tmp_path: Path) -> AsyncIterator[tuple[Network, AsyncExitStack]]:
    """A company's network whose proxy asks for a login."""
    async with company(tmp_path) as (network, stack):
        network.login = LOGIN
        yield network, stack


class Company:
    """A GitHub with our App on it, behind TLS."""

    def __init__(self, hub: Hub, network: Network) -> None:
        self.network = network
        ada = hub.create_user("ada")
        self.repository = hub.create_repository(ada, "engine", files={"README.md": "# Engine\n"})
        self.app = hub.create_app(ada, "Issuewright", webhook_url=None, webhook_secret="s")
        self.installation = hub.install(self.app, [self.repository.id])
        self.issue = hub.open_issue(self.repository, ada, "It breaks", "Badly.")
        self.ref = RepositoryRef(self.repository.id, self.repository.full_name, "main")
        self.time = Time()

    def client(self, path: str, *, ca_bundle: Path | None, proxy: str | None) -> GitHubAppClient:
        """Make our client of it."""
        return GitHubAppClient(
            api_url=f"https://{GITHUB}{path}",
            app_id=self.app.id,
            private_key=self.app.private_key,
            clock=lambda: datetime.now(UTC),
            random=random.Random(1).random,
            sleep=self.time.sleep,
            monotonic=self.time.monotonic,
            ca_bundle=str(ca_bundle) if ca_bundle else None,
            proxy=proxy,
            write_interval_s=0.0,
        )


@pytest.fixture
async def github(inside: tuple[Network, AsyncExitStack], tmp_path: Path) -> AsyncIterator[tuple[Company, str]]:
    """The GitHub, and the path of its API."""
    network, stack = inside
    hub = Hub(tmp_path / "hub")
    async with HubServer(hub) as server:
        path = server.api_url.removeprefix(server.url)
        await network.serve(stack, GITHUB, int(server.url.rpartition(":")[2]))
        yield Company(hub, network), path


async def test_github_is_reached_through_the_proxy(github: tuple[Company, str]) -> None:
    """Each call, the minting of a token included, goes through it, under the company's own certificate."""
    world, path = github
    network = world.network
    app = world.client(path, ca_bundle=network.authority.bundle, proxy=network.proxy_with_login)
    client = app.installation(world.installation.id)
    assert (await client.issue(world.ref, world.issue.number)).title == "It breaks"
    assert (await client.comment(world.ref, world.issue.number, "Hello.")).body == "Hello."
    assert set(network.asked) == {f"{GITHUB}:443"}
    await app.close()


async def test_what_is_missing_for_github_is_told(github: tuple[Company, str]) -> None:
    """A login, a certificate, a host that the proxy does not know: told at once and with what to set."""
    world, path = github
    network = world.network
    bundle = network.authority.bundle
    for ca_bundle, proxy, words in (
        (bundle, network.proxy, "(?s)proxy wants a login.*407.*HTTPS_PROXY_LOGIN"),
        (None, network.proxy_with_login, "not trusted: set `network.ca_bundle`"),
    ):
        app = world.client(path, ca_bundle=ca_bundle, proxy=proxy)
        with pytest.raises(Forbidden, match=words) as caught:
            await app.installation(world.installation.id).issue(world.ref, world.issue.number)
        assert "Pr0xy" not in str(caught.value)
        await app.close()
    network.forbidden.add(GITHUB)
    app = world.client(path, ca_bundle=bundle, proxy=network.proxy_with_login)
    with pytest.raises(Forbidden, match=f"does not let us connect to {GITHUB}.*allow that host"):
        await app.installation(world.installation.id).issue(world.ref, world.issue.number)
    await app.close()
    assert world.time.slept == []


@pytest.fixture
async def model(inside: tuple[Network, AsyncExitStack]) -> AsyncIterator[ScriptedModel]:
    """A model behind TLS."""
    network, stack = inside
    script = Script([Conversation("test", [Turn(text="Hello!")] * 3, match="/./")])
    async with ScriptedModel(script, api_key="k") as server:
        await network.serve(stack, MODEL, int(server.url.rpartition(":")[2]))
        yield server


def adapter(ca_bundle: Path | None, proxy: str | None) -> AnthropicModel:
    """Make our adapter of it."""
    options = ClientOptions(ca_bundle, proxy)
    return AnthropicModel(
        "anthropic:x", api_key="k", base_url=f"https://{MODEL}", max_output_tokens=100, client_options=options
    )


@pytest.mark.usefixtures("model")
async def test_a_model_is_reached_through_the_proxy(inside: tuple[Network, AsyncExitStack]) -> None:
    """A request goes through it, under the company's own certificate, and its answer streams back."""
    network, _ = inside
    made = adapter(network.authority.bundle, network.proxy_with_login)
    assert (await made.ask(PROMPT)).message.text == "Hello!"
    assert network.asked == [f"{MODEL}:443"]
    await made.close()


@pytest.mark.usefixtures("model")
async def test_what_is_missing_for_a_model_is_told(
    inside: tuple[Network, AsyncExitStack], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login, a certificate, a forbidden host: told with what to set; the environment's proxy is not asked."""
    network, _ = inside
    bundle = network.authority.bundle
    for ca_bundle, proxy, words in (
        (bundle, network.proxy, "(?s)proxy wants a login.*407.*HTTPS_PROXY_LOGIN"),
        (None, network.proxy_with_login, "(?s)not trusted. Set `network.ca_bundle`"),
    ):
        made = adapter(ca_bundle, proxy)
        with pytest.raises(ModelRejected, match=words):
            await made.ask(PROMPT)
        await made.close()
    network.forbidden.add(MODEL)
    made = adapter(bundle, network.proxy_with_login)
    with pytest.raises(ModelRejected, match="Allow that host"):
        await made.ask(PROMPT)
    await made.close()
    monkeypatch.setenv("HTTPS_PROXY", network.proxy_with_login)
    asked = len(network.asked)
    made = adapter(bundle, None)
    with pytest.raises(BotError, match="cannot be reached"):
        await made.ask(PROMPT)
    assert len(network.asked) == asked
    await made.close()


@contextmanager
def arguments_seen() -> Iterator[set[bytes]]:
    """Collect the arguments of all processes while the block runs."""
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.001):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.add(path.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


async def test_git_goes_through_the_proxy(github: tuple[Company, str], tmp_path: Path) -> None:
    """Clone and push go through it, under the company's own certificate; its login is in no argument."""
    world, path = github
    network, bundle = world.network, world.network.authority.bundle
    app = world.client(path, ca_bundle=bundle, proxy=network.proxy_with_login)
    client = app.installation(world.installation.id)
    token = await client.git_token(world.ref)
    await app.close()
    network.asked.clear()
    workspaces = GitWorkspaces(tmp_path / "state", ca_bundle=bundle, https_proxy=network.proxy_with_login)
    origin = Origin("github-1", f"https://{GITHUB}/{world.ref.full_name}.git", tokens(token))
    with arguments_seen() as seen:
        opened = await workspaces.open("t1", origin, "main")
        (opened.workspace.root / "fix.txt").write_text("fixed\n")
        commit = await opened.workspace.commit("Fix", BOT, AT, parent=opened.base)
        assert commit is not None
        await opened.workspace.push(commit, "agent/1-a", expected=None)
    assert any(b"remote-https" in line for line in seen)
    assert [line for line in seen if b"Pr0xy" in line or token.encode() in line] == []
    assert await workspaces.remote_head("t1", origin, "agent/1-a") == commit
    assert set(network.asked) == {f"{GITHUB}:443"}
    await opened.workspace.close()


async def test_what_is_missing_for_git_is_told(github: tuple[Company, str], tmp_path: Path) -> None:
    """A login, a certificate, a forbidden host: told with what to set, and not tried again."""
    world, _ = github
    network, bundle = world.network, world.network.authority.bundle
    origin = Origin("github-1", f"https://{GITHUB}/{world.ref.full_name}.git", tokens("t"))
    for number, (ca_bundle, proxy, words) in enumerate(
        (
            (bundle, network.proxy, "407.*HTTPS_PROXY_LOGIN"),
            (None, network.proxy_with_login, "not trusted; set `network.ca_bundle`"),
        )
    ):
        workspaces = GitWorkspaces(tmp_path / f"state{number}", ca_bundle=ca_bundle, https_proxy=proxy)
        with pytest.raises(WorkspaceError, match=words) as caught:
            await workspaces.open("t1", origin, "main")
        assert not caught.value.retryable
    network.forbidden.add(GITHUB)
    workspaces = GitWorkspaces(tmp_path / "state", ca_bundle=bundle, https_proxy=network.proxy_with_login)
    with pytest.raises(WorkspaceError, match="allow that host"):
        await workspaces.remote_head("t1", origin, "main")


def rehashed(folder: Path, authority: Authority) -> Path:
    """Make a folder of certificates as a system has it."""
    folder.mkdir()
    (folder / "root.pem").write_bytes(authority.bundle.read_bytes())
    subprocess.run(["openssl", "rehash", str(folder)], check=True)
    return folder


async def test_git_trusts_the_bundle_beside_the_system(
    github: tuple[Company, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle for one host leaves the others as they were: what the system trusts is trusted on."""
    world, _ = github
    network = world.network
    monkeypatch.setenv("SSL_CERT_DIR", str(rehashed(tmp_path / "system", network.authority)))
    other = Authority(tmp_path, "Another Root").bundle
    origin = Origin("github-1", f"https://{GITHUB}/{world.ref.full_name}.git", tokens("t"))
    workspaces = GitWorkspaces(tmp_path / "state", ca_bundle=other, https_proxy=network.proxy_with_login)
    assert await workspaces.remote_head("t1", origin, "main") is not None
    assert redaction.mask(network.proxy_with_login).endswith(f"svc-agent:***@127.0.0.1:{network.port}")
