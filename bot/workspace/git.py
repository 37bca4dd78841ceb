"""The one place that starts git: fixed flags, an environment of our own, and nothing left running."""

import asyncio
import os
import signal
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit

from bot.errors import OperatorError, RepositoryRefused, WorkspaceError
from bot.workspace import askpass, atomic
from bot.workspace.base import Origin

T = TypeVar("T")

# No hook, filter, helper or other program that a repository could name; no transport but the one a call asks for.
_FLAGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.sshCommand=false",
    "core.quotePath=false",
    "core.logAllRefUpdates=false",
    "core.alternateRefsCommand=true",
    "credential.helper=",
    f"credential.username={askpass.USER}",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "diff.ignoreSubmodules=all",
    "safe.bareRepository=explicit",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.followRedirects=initial",
    # A remote that stalls for a minute is gone.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "protocol.allow=never",
)
_PROGRAMS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_AUTHORITIES = "/etc/ssl/certs"
_LOCAL_S = 120.0
_LOGIN = (
    "the proxy wants a login (407); set ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN, or name a file in "
    "`network.https_proxy_login_file`"
)
_CLOSED = "the proxy does not let us connect there (403); allow that host in it"
_UNTRUSTED = "its certificate is not trusted; set `network.ca_bundle` to the file with the authority's certificate"
_REMEDIES = {
    # As curl says it, before 7.87 and since.
    "407 from proxy": _LOGIN,
    "tunnel failed, response 407": _LOGIN,
    "403 from proxy": _CLOSED,
    "tunnel failed, response 403": _CLOSED,
    # As GnuTLS and as OpenSSL say it.
    "server certificate verification failed": _UNTRUSTED,
    "SSL certificate problem": _UNTRUSTED,
}
"""What only the operator can mend, so that trying again is no use."""
_AUTHENTICATION = ("Authentication failed", "could not read Password", "could not read Username", "error: 401")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one git command ended."""

    code: int
    """Exit code; negative for a signal."""
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Standard output without surrounding white space."""
        return self.stdout.decode(errors="replace").strip()

    @property
    def unauthorised(self) -> bool:
        """Whether the remote did not take the credentials."""
        return self.code != 0 and any(text in self.stderr for text in _AUTHENTICATION)


class Git:
    """Starts git for repositories; every call names its git directory."""

    def __init__(
        self,
        state: Path,
        *,
        ca_bundle: Path | None = None,
        https_proxy: str | None = None,
        programs: str = _PROGRAMS,
        remote_timeout_s: float = 900.0,
    ) -> None:
        self._state = state / "git"
        self._ca_bundle = ca_bundle
        self._proxy = https_proxy
        self._programs = programs
        self._remote_timeout_s = remote_timeout_s

    async def run(
        self, git_dir: Path, *args: str, stdin: bytes | None = None, timeout_s: float = _LOCAL_S, trusted: bool = False
    ) -> Outcome:
        """Run a command that needs no remote.

        Args:
            git_dir: the repository.
            args: subcommand and its arguments.
            stdin: fed to it; None gives it none.
            timeout_s: seconds until it is killed.
            trusted: whether the repository is a person's own, which another user may own.

        Raises:
            WorkspaceError: it ran out of time.
        """
        protocol = "file" if trusted else "none"
        return await self._run(git_dir, args, self._environment(protocol), protocol, timeout_s, stdin=stdin)

    async def check(self, git_dir: Path, *args: str, stdin: bytes | None = None, trusted: bool = False) -> bytes:
        """Run a command that has to succeed and return what it printed."""
        outcome = await self.run(git_dir, *args, stdin=stdin, trusted=trusted)
        if outcome.code:
            raise WorkspaceError(f"`git {args[0]}` failed with exit code {outcome.code}: {outcome.stderr.strip()}")
        return outcome.stdout

    async def remote(self, git_dir: Path, origin: Origin, *args: str) -> Outcome:
        """Run a command that talks to the origin; a refused token is asked for once more.

        Args:
            git_dir: the repository.
            origin: whose URL is among `args`.
            args: subcommand and its arguments.
        """
        protocol = protocol_of(origin.url)
        env = self._environment(protocol)
        if protocol == "file":
            return await self._run(git_dir, args, env, protocol, self._remote_timeout_s)
        script = await asyncio.to_thread(askpass.install, self._state)
        outcome = Outcome(-1, b"", "")
        for _ in range(2):
            async with askpass.answering(script, origin.url, origin.credentials) as channel:
                outcome = await self._run(
                    git_dir, args, {**env, **channel.env}, protocol, self._remote_timeout_s, fds=channel.fds
                )
            if not outcome.unauthorised:
                break
        if outcome.code and (remedy := next((_REMEDIES[said] for said in _REMEDIES if said in outcome.stderr), "")):
            raise WorkspaceError(f"git cannot reach the repository: {remedy}")
        return outcome

    async def stream(
        self, git_dir: Path, *args: str, stdin: bytes = b"", consume: Callable[[IO[bytes]], T], trusted: bool = False
    ) -> T:
        """Run a command while a thread reads what it prints; the command is killed when the reader stops early.

        Args:
            git_dir: the repository.
            args: subcommand and its arguments.
            stdin: fed to it while it prints.
            consume: called in a thread with its standard output; may raise.
            trusted: as for `run`.
        """
        protocol = "file" if trusted else "none"
        output, theirs = os.pipe()
        with os.fdopen(output, "rb", 1 << 20) as reader:
            try:
                command = _command(git_dir, args, protocol)
                with _file(stdin) as given:
                    process = await _start(command, self._environment(protocol), stdin=given, stdout=theirs)
            finally:
                os.close(theirs)
            done = asyncio.create_task(process.communicate())
            reading = asyncio.create_task(asyncio.to_thread(consume, reader))
            try:
                result = await asyncio.shield(reading)
            finally:
                if not reading.done() or reading.exception() is not None:
                    _kill(process)
                # The thread ends when the killed command closes its pipe; the file must outlive it.
                await asyncio.wait([reading])
                reader.close()
                _, stderr = await done
        # A reader that has enough closes the pipe.
        if process.returncode not in {0, -signal.SIGPIPE}:
            raise WorkspaceError(f"`git {args[0]}` failed: {stderr.decode(errors='replace').strip()}")
        return result

    async def _run(  # noqa: PLR0913 the callers above are the interface
        self,
        git_dir: Path,
        args: Sequence[str],
        env: Mapping[str, str],
        protocol: str,
        timeout_s: float,
        *,
        stdin: bytes | None = None,
        fds: Sequence[int] = (),
    ) -> Outcome:
        with _file(stdin) as given:
            process = await _start(_command(git_dir, args, protocol), env, stdin=given, fds=fds)
        try:
            async with asyncio.timeout(timeout_s):
                stdout, stderr = await process.communicate()
        except TimeoutError as error:
            raise WorkspaceError(f"`git {args[0]}` took longer than {timeout_s:g} s") from error
        finally:
            await _reap(process)
        return Outcome(process.returncode or 0, stdout, stderr.decode(errors="replace"))

    def _environment(self, protocol: str) -> dict[str, str]:
        env = {
            "PATH": self._programs,
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": protocol,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        if protocol == "file":
            env["GIT_CONFIG_GLOBAL"] = str(self._trusting())
        if protocol in {"http", "https"}:
            env["no_proxy"] = "127.0.0.1,localhost,::1"
            if self._proxy:
                env["https_proxy"] = self._proxy
            if self._ca_bundle:
                # Beside the system's own, as elsewhere; alone it would replace them.
                env["GIT_SSL_CAINFO"] = str(self._ca_bundle)
                env["GIT_SSL_CAPATH"] = ssl.get_default_verify_paths().capath or _AUTHORITIES
        return env

    def _trusting(self) -> Path:
        """Return a configuration under which a repository may belong to another user.

        `-c safe.directory` does not reach the process at the other end of a local transport; this file does.
        """
        path = self._state / "trusting.config"
        if not path.exists():
            self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic.replace(path, b"[safe]\n\tdirectory = *\n")
        return path


def protocol_of(url: str) -> str:
    """Name the one transport that a URL needs: `https`, `http` (this machine only) or `file` (a path).

    Raises:
        RepositoryRefused: any other URL, and one that holds credentials.
    """
    if url.startswith("/"):
        return "file"
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise RepositoryRefused("the repository's URL holds credentials; leave them out")
    if parts.scheme == "https" and parts.hostname:
        return "https"
    if parts.scheme == "http" and _is_loopback(parts.hostname or ""):
        return "http"
    raise RepositoryRefused(f"the repository's URL is neither https nor an absolute path: {url[:200]}")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _command(git_dir: Path, args: Sequence[str], protocol: str) -> list[str]:
    flags = [*_FLAGS, f"protocol.{protocol}.allow=always"]
    options = [part for flag in flags for part in ("-c", flag)]
    return ["git", f"--git-dir={git_dir}", "--no-optional-locks", "--literal-pathspecs", *options, *args]


@contextmanager
def _file(data: bytes | None) -> Iterator[int]:
    """Hold what a command reads in a file of memory.

    A pipe would have to be written while git may end at any time, which the event loops answer differently.
    """
    if data is None:
        yield asyncio.subprocess.DEVNULL
        return
    with os.fdopen(os.memfd_create("stdin"), "w+b") as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file.fileno()


async def _start(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    stdin: int,
    fds: Sequence[int] = (),
    stdout: int = asyncio.subprocess.PIPE,
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=dict(env),
            pass_fds=tuple(fds),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise OperatorError("git is not installed; install it (2.39 or later)") from error


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _reap(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs and read its pipes to their end, which closes them."""
    if process.returncode is None:
        _kill(process)
        await asyncio.shield(process.communicate())
