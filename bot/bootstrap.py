"""Puts everything together: with `serving` the only module that names concrete classes; imported when asked for."""

import os
import random
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot import log
from bot.errors import OperatorError
from bot.facts import price, reply_cap, usable_window
from bot.github.base import GitHubApp
from bot.models import check_provider, make_model
from bot.providers import load_sdk
from bot.redaction import register_secret
from bot.sandbox.base import Access, Place, Sandbox
from bot.sandbox.choose import Chosen
from bot.settings.catalogue import load_catalogue
from bot.settings.load import NO_SANDBOX, environment, load_server, secret_values, take_secrets
from bot.settings.policy import Policy, file_of
from bot.settings.resolve import RunSettings
from bot.settings.server import ServerSettings
from bot.store.base import DeliveryStore, TaskStore
from bot.tasks.desk import Desk, Permits, Publisher, Shelter
from bot.tools.base import Ci, FileLedger, Tool, ToolContext, Toolset
from bot.workspace.base import Opened, Workspaces

if TYPE_CHECKING:
    from bot.sandbox.egress.network import Network

WORK_TREE = "/work/tree"
"""Where commands find every task's tree, if the sandbox can choose: what a set-up makes then fits the next task too."""
_SELF_TESTS = 1000
"""Uids for self-tests, so that two servers that start at once do not end each other's."""
Bind = Callable[[Sequence[Tool], Sandbox, FileLedger, Ci | None], Toolset]


def now() -> datetime:
    """Tell the time; the one place where the wall clock is read for records."""
    return datetime.now(UTC)  # noqa: TID251 - this is the clock that others take


def new_id() -> str:
    """Make an id of 32 hexadecimal digits; the one place where ids come from."""
    return uuid.uuid4().hex  # noqa: TID251 - these are the ids that others take


def load(config: Path | None, flags: dict[str, object], *, quiet: bool = False) -> ServerSettings:
    """Read what the operator says, take its secrets out of the environment, and begin the log.

    Args:
        config: the file that a flag names.
        flags: values of flags by dotted key; None counts as not given.
        quiet: whether the terminal is for people, so that only warnings are logged unless somebody asked for more.
    """
    if sys.platform == "linux":
        from bot.sandbox.helper.kernel import hide

        # The environment that it was started with holds secrets.
        hide()
    environ = environment()
    settings = load_server(config, environ, flags)
    take_secrets(environ)
    for secret in secret_values(settings):
        register_secret(secret)
    told = settings.log.level != ServerSettings().log.level
    log.configure("WARNING" if quiet and not told else settings.log.level, settings.log.format, sys.stderr)
    log.catch_uncaught()
    return settings


@dataclass(frozen=True, slots=True)
class Stores:
    """What remembers."""

    tasks: TaskStore
    deliveries: DeliveryStore

    async def close(self) -> None:
        """Give both back."""
        await self.deliveries.close()
        await self.tasks.close()


def open_stores(settings: ServerSettings) -> Stores:
    """Open the databases, brought up to date."""
    from bot.store.opening import open_store

    url = settings.database_url.get_secret_value() if settings.database_url else None
    tasks, deliveries = open_store(settings.state_dir, url, now=now)
    return Stores(tasks, deliveries)


def make_app(settings: ServerSettings, *, token: str | None = None) -> GitHubApp:
    """Make GitHub as the App sees it, or as the holder of one token."""
    from bot.github.client import GitHubAppClient

    github, network = settings.github, settings.network
    return GitHubAppClient(
        api_url=github.api_url,
        app_id=github.app_id,
        private_key=github.private_key.get_secret_value() if github.private_key else None,
        token=token,
        clock=now,
        random=random.random,
        ca_bundle=str(network.ca_bundle) if network.ca_bundle else None,
        proxy=network.proxy_for(github.api_url),
        web=github.web,
        write_interval_s=github.content_interval_s,
    )


def make_workspaces(settings: ServerSettings) -> Workspaces:
    """Make the working copies of this machine."""
    from bot.workspace.clone import GitWorkspaces
    from bot.workspace.uids import require_passable

    place = settings.workspace
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_passable(settings.state_dir)
    return GitWorkspaces(
        settings.state_dir,
        max_files=place.max_files,
        max_bytes=place.max_mib << 20,
        uids=range(place.first_uid, place.first_uid + place.uids),
        ca_bundle=settings.network.ca_bundle,
        https_proxy=settings.network.proxy_for(settings.github.web),
    )


def make_checkout(settings: ServerSettings) -> Workspaces:
    """Make working copies that are people's own checkouts."""
    from bot.workspace.inplace import InPlaceWorkspaces

    place = settings.workspace
    return InPlaceWorkspaces(settings.state_dir, max_files=place.max_files, max_bytes=place.max_mib << 20)


def warm(settings: ServerSettings) -> None:
    """Import the model's SDK on a thread, beside what is waited for now; the first request tells what is amiss."""

    def load() -> None:
        with suppress(Exception):
            load_sdk(settings.models.act)

    # No daemon: an interpreter that ends in the midst of an import of native code may crash.
    Thread(target=load, name="sdk").start()


async def choose_sandbox(settings: ServerSettings) -> Chosen:
    """Try what can shut commands in on this machine, and take the strongest; takes half a second."""
    from bot.sandbox.choose import choose
    from bot.sandbox.egress.allowed import Allowed
    from bot.sandbox.egress.presets import PRESETS
    from bot.sandbox.helper.kernel import hide

    if sys.platform != "linux":
        raise OperatorError("commands are run on Linux (or WSL 2) only; on macOS use the container")
    # The self-test attacks this process too; the demo reads no settings.
    hide()
    place, wanted = settings.workspace, settings.sandbox
    if missing := [str(path) for path in wanted.paths if not path.exists()]:
        raise OperatorError(f"`sandbox.paths` names what is not there: {', '.join(missing)}")
    never = [urlsplit(url).hostname or "" for url in (settings.github.api_url, settings.github.web)]
    for names in (wanted.network, wanted.setup_network):
        Allowed.parse([name for name in names if name not in PRESETS], never=never)
    # Behind the uids of work trees, where no task is, and no other self-test that begins now.
    uid = place.first_uid + 2 * place.uids + os.getpid() % _SELF_TESTS if os.geteuid() == 0 else None
    return await choose(wanted.kind, wanted.min, uid=uid, allowed_none=environment().get(NO_SANDBOX) == "accepted")


def shelter(chosen: Chosen) -> Shelter:
    """Say what tasks have to know of the sandbox."""
    return Shelter(chosen.level, chosen.shell)


def sandboxes(settings: ServerSettings, chosen: Chosen) -> Callable[[Opened, Access], Awaitable[Sandbox]]:
    """Make what starts the helper process of one work tree, under the uid that owns it."""
    from bot.sandbox.limits import ResourceLimits
    from bot.sandbox.process import ProcessSandbox

    wanted = settings.sandbox
    limits = ResourceLimits(
        processes=wanted.processes,
        memory_bytes=wanted.memory_mib << 20,
        cpu_s=wanted.cpu_s,
        disk_bytes=wanted.disk_mib << 20,
    )

    network = _network(settings)

    async def make(opened: Opened, access: Access) -> Sandbox:
        way = await network.way(access.network)
        place = Place(
            opened.workspace.root,
            uid=opened.owner_uid,
            alone=opened.alone,
            at=WORK_TREE if opened.movable else None,
            programs=[path / "bin" for path in wanted.paths if (path / "bin").is_dir()],
            readable=[*wanted.paths, *opened.readable, *access.readable, *way.readable],
            writable=access.writable,
            guarded=opened.guarded,
            environment={**way.environment, **access.environment},
            files=way.files,
            # Without a wall there is nothing to let out of.
            proxy=way.proxy if chosen.level != "none" else None,
            parallel=access.parallel,
        )
        sandbox = ProcessSandbox(place, chosen.confinement, limits=limits)
        await sandbox.start()
        return sandbox

    return make


def _network(settings: ServerSettings) -> "Network":
    """Make what lets commands out to named hosts."""
    from bot.sandbox.egress.network import Network, with_system_certificates
    from bot.sandbox.egress.sources import Machine
    from bot.sandbox.egress.upstream import Upstream

    own, bundle = settings.network, None
    if own.ca_bundle is not None:
        settings.state_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
        bundle = with_system_certificates(own.ca_bundle, settings.state_dir / "certificates.pem")
    proxy = own.proxy_for("https://anywhere.invalid")
    machine = Machine(
        dict(environment()),
        never=[urlsplit(url).hostname or "" for url in (settings.github.api_url, settings.github.web)],
        ca_bundle=own.ca_bundle,
        https_proxy=proxy,
    )
    upstream = Upstream.parse(proxy, ca_bundle=own.ca_bundle) if proxy else None
    return Network(machine, upstream=upstream, ca_bundle=bundle, private=settings.sandbox.private_hosts)


def offered_tools(settings: RunSettings) -> Sequence[Tool]:
    """Make all tools; what a phase of the run is offered, it chooses from them."""
    from bot.tools.standard import standard_tools

    return standard_tools(command_s=settings.limits.command_s, checks=settings.checks, network=settings.network)


def bind(tools: Sequence[Tool], sandbox: Sandbox, ledger: FileLedger, ci: Ci | None) -> Toolset:
    """Bind tools to one place, and to CI."""
    from bot.tools.toolset import StandardToolset

    return StandardToolset(tools, ToolContext(sandbox, ledger, ci))


def load_policies(settings: ServerSettings) -> Mapping[str, Policy]:
    """Read the policies, the operator's own file in front.

    Raises:
        OperatorError: as `bot.agent.policy.load`, and where the named one is not there.
    """
    from bot.agent.policy import load as load_file

    policies = load_file(file_of(settings.policy))
    if file_of(settings.policy) is None and settings.policy not in policies:
        raise OperatorError(f"`policy`: there is no {settings.policy!r}; there are {', '.join(sorted(policies))}")
    return policies


def make_desk(  # noqa: PLR0913 - a desk is what all of these are put on
    settings: ServerSettings,
    store: TaskStore,
    publisher: Publisher,
    chosen: Chosen,
    *,
    workspaces: Workspaces | None = None,
    bind_tools: Bind = bind,
    permits: Permits | None = None,
) -> Desk:
    """Fill a worker's desk.

    Raises:
        OperatorError: a provider or a policy is not there, or the file of policies is broken.
    """
    from bot.agent.context.window import Window
    from bot.workspace.prepared import PreparedFolders

    for name in (settings.models.act, *settings.models.fallback):
        check_provider(name)
    catalogue = load_catalogue(settings.models.catalogue)
    return Desk(
        store=store,
        workspaces=workspaces or make_workspaces(settings),
        publisher=publisher,
        shelter=shelter(chosen),
        sandbox=sandboxes(settings, chosen),
        tools=offered_tools,
        toolset=bind_tools,
        model=lambda name, tell, meter: make_model(settings, catalogue, name, tell, meter),
        window=lambda name: Window.of(usable_window(settings, catalogue, name), reply_cap(settings, catalogue, name)),
        price_usd=price(settings, catalogue),
        policies=load_policies(settings),
        minimum=settings.sandbox.min,
        permits=permits,
        environments=PreparedFolders(settings.state_dir),
        clock=now,
    )
