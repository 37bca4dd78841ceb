"""Where packages come from, as a package manager of this machine has it configured, and how the managers are asked."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from bot.errors import OperatorError
from bot.sandbox.egress.allowed import HTTPS, Allowed
from bot.sandbox.environment import PATH

ANSWER_S = 20.0
"""Seconds that a package manager has; a JVM or Node on a busy machine takes some."""

_KEPT = {"HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}
_KEPT |= {"GOENV", "GOFLAGS", "GONOPROXY", "GONOSUMDB", "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB"}
_KEPT |= {"JAVA_HOME", "MAVEN_HOME", "M2_HOME"}
_KEPT_PREFIXES = ("pip_", "npm_config_", "cargo_", "rustup_")
"""In lower case."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What a sandbox needs so that one package manager works in it."""

    hosts: tuple[str, ...] = ()
    """Names for `Allowed.parse`, with their port where it is not 443."""
    folders: tuple[Path, ...] = ()
    """Absolute; indexes and packages in files, which have to be readable inside at the same path."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For the sandbox's environment; holds no credentials."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts to put under the sandbox's home, by their path there, for managers that take mirrors from a file only."""
    remarks: tuple[str, ...] = ()
    """Sentences for the operator: what will not work inside, and what to do."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as its package managers see it."""

    environment: Mapping[str, str]
    """Of the server; a manager is told the part of it that is about packages."""
    never: Sequence[str] = ()
    """Hosts that are refused as GitHub's are."""
    ca_bundle: Path | None = None
    https_proxy: str | None = None
    """URL of a company's proxy, for the index that is asked over the network."""
    path: str = PATH
    """Where commands in a sandbox find programs."""

    @property
    def home(self) -> Path:
        """The home of the server's user."""
        return Path(self.environment.get("HOME") or Path.home())

    def clean(self) -> dict[str, str]:
        """Make the environment in which a manager is asked: what is about packages, and nothing else of the server's.

        The programs that a command in a sandbox finds come first, since those are the ones to be served.
        """
        kept = {
            name: value
            for name, value in self.environment.items()
            if name in _KEPT or name.lower().startswith(_KEPT_PREFIXES)
        }
        return {"PATH": ":".join(filter(None, [self.path, self.environment.get("PATH")])), "LC_ALL": "C.UTF-8", **kept}

    def programs(self, name: str) -> list[str]:
        """Find a program wherever commands in a sandbox, and the server, find it; each once."""
        found: dict[Path, str] = {}
        for folder in self.clean()["PATH"].split(":"):
            if path := shutil.which(name, path=folder):
                found.setdefault(Path(path).resolve(), path)
        return list(found.values())

    async def ask_json(self, *argv: str) -> dict[str, object] | None:
        """Run a package manager that prints a JSON object; None where there is no such program or no such object."""
        code, text, _ = await self.ask(*argv)
        try:
            said = json.loads(text) if code == 0 else None
        except ValueError:
            return None
        return said if isinstance(said, dict) else None

    async def ask(
        self, *argv: str, extra: Mapping[str, str] | None = None, cwd: Path = Path("/")
    ) -> tuple[int, str, str]:
        """Run a program, found on the path of `clean`, and return its exit code, output and complaints.

        One that cannot be started or runs out of time has the exit code -1.
        """
        environment = self.clean() | dict(extra or {})
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            return -1, "", os.strerror(error.errno or 0)
        try:
            async with asyncio.timeout(ANSWER_S):
                out, err = await process.communicate()
        except TimeoutError:
            return -1, "", f"no answer in {ANSWER_S:.0f} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


class Found:
    """Gathers what a manager says; what cannot be used becomes a remark instead."""

    def __init__(self, never: Sequence[str] = ()) -> None:
        self._never = never
        self.hosts: list[str] = []
        self.folders: list[Path] = []
        self.remarks: list[str] = []

    def take(self, url: str, what: str) -> bool:
        """Take the address of an index, and tell whether it can be used inside.

        Args:
            url: a URL, or the absolute path of a folder.
            what: the index as a remark names it; the URL itself may hold a secret.
        """
        try:
            parts = urlsplit(url)
            problem = self._place(parts, url)
        except (ValueError, OperatorError) as error:
            problem = str(error) if isinstance(error, OperatorError) else "its address cannot be read"
        if problem:
            self.remarks.append(f"{what} is not used in sandboxes: {problem}.")
        return not problem

    def _place(self, parts: SplitResult, url: str) -> str:
        """Put an address where it belongs; return what is wrong with it."""
        if parts.scheme == "file" or (not parts.scheme and url.startswith("/")):
            self.folders.append(Path(unquote(parts.path)))
            return ""
        if parts.username is not None or parts.password is not None:
            return (
                "its address holds credentials, which must not reach a sandbox; name an index that needs none, "
                "as a mirror that holds them itself"
            )
        if parts.scheme != "https" or not parts.hostname:
            return "only https goes through the egress proxy; give its https address"
        port = parts.port or HTTPS
        name = parts.hostname if port == HTTPS else f"{parts.hostname}:{port}"
        Allowed.parse([name], never=self._never)
        self.hosts.append(name)
        return ""

    def sources(self, environment: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None) -> Sources:
        """Make the answer, each host and folder once."""
        return Sources(
            tuple(dict.fromkeys(self.hosts)),
            tuple(dict.fromkeys(self.folders)),
            dict(environment or {}),
            dict(files or {}),
            tuple(dict.fromkeys(self.remarks)),
        )
