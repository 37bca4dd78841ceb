"""Keys of APIs: given, or printed by a command of the operator's, kept for a while and fetched anew when refused."""

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from io import FileIO

from bot.domain.messages import Prompt, Reply
from bot.errors import ModelRejected, ModelUnavailable
from bot.llm.base import Model, OnText
from bot.redaction import register_secret

ApiKey = str | Callable[[], Awaitable[str]]
"""A key, or what gives the one that is valid now; asked before each request."""

LIFETIME_S = 300.0
PATIENCE_S = 30.0
MAX_BYTES = 64 * 1024
"""Size of what a command prints; the longest tokens have a few kilobytes."""


class KeyRefused(ModelRejected):
    """The API does not take the key: it is wrong, or was valid once."""


class CommandKey:
    """The key that a command prints; callable, so that it is an `ApiKey`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        lifetime_s: float = LIFETIME_S,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is run yet.

        Args:
            command: its words, the first of which is a path or a name on the path.
            lifetime_s: how long a key is used before the command is asked again; 0: never twice.
            patience_s: how long the command may take.
            clock: seconds from any beginning.
        """
        self.program = command[0]
        """What is run, for people; the other words may be nobody's business."""
        self._command = tuple(command)
        self._lifetime_s = lifetime_s
        self._patience_s = patience_s
        self._clock = clock
        self._key = ""
        self._until_s = 0.0
        self._fetching = asyncio.Lock()

    async def __call__(self) -> str:
        """Return the key that is valid now; who asks at the same time gets the same one.

        Raises:
            ModelRejected: the command cannot be run, fails, or prints no key.
            ModelUnavailable: it takes too long.
        """
        async with self._fetching:
            if not self._key or self._clock() >= self._until_s:
                self._key = ""
                self._key = await self._fetch()
                self._until_s = self._clock() + self._lifetime_s
            return self._key

    def forget(self) -> None:
        """Ask the command again next time."""
        self._key = ""

    async def _fetch(self) -> str:
        name = f"The command of `api_key_command`, `{self.program}`,"
        with _limited_file() as file:
            status = await self._run(name, file.fileno())
            key = os.pread(file.fileno(), MAX_BYTES, 0).rstrip(b"\0").decode("ascii", "replace").strip()
        if status != 0:
            raise ModelRejected(f"{name} failed with exit code {status}. Run it by hand to see why")
        if not key:
            raise ModelRejected(f"{name} printed no key. Run it by hand to see why")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ModelRejected(f"{name} printed something that is no key: it has to be one word")
        register_secret(key, passing=True)
        return key

    async def _run(self, name: str, stdout: int) -> int:
        """Run the command to its end and return its exit code, below 0 where a signal ended it."""
        try:
            # Not in the working directory, which may be anybody's repository; what it says of errors may be secret too.
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a word of it cannot be passed on"
            raise ModelRejected(f"{name} cannot be run: {reason}") from None
        try:
            async with asyncio.timeout(self._patience_s):
                return await process.wait()
        except TimeoutError:
            raise ModelUnavailable(f"{name} did not end within {self._patience_s:g} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await asyncio.shield(process.wait())


def _limited_file() -> FileIO:
    """Open a file in memory that cannot grow: it waits for no end, as a pipe that a child has kept open would."""
    file = os.fdopen(os.memfd_create("key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+b", buffering=0)
    file.truncate(MAX_BYTES)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return file


class Renewing:
    """Asks once more with a new key where the one that a command gave is refused."""

    def __init__(self, model: Model, key: CommandKey) -> None:
        """Wrap a model.

        Args:
            model: whom to ask; closed with this one.
            key: what the model takes its keys from.
        """
        self._model = model
        self._key = key

    @property
    def name(self) -> str:
        """`provider:model` of the wrapped model."""
        return self._model.name

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask, and again after the key was refused; errors as `Model.ask` says."""
        try:
            return await self._model.ask(prompt, on_text=on_text)
        except KeyRefused:
            self._key.forget()
        try:
            return await self._model.ask(prompt, on_text=on_text)
        except KeyRefused as error:
            told = f"{error}. That key was just printed by `{self._key.program}` of `api_key_command`"
            raise KeyRefused(told) from error.__cause__

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()


def renewing(model: Model, key: ApiKey) -> Model:
    """Return the model as one that renews its key, where that is one of a command."""
    return Renewing(model, key) if isinstance(key, CommandKey) else model


async def current(key: ApiKey) -> str:
    """Return the key that is valid now; errors as of what gives it."""
    return key if isinstance(key, str) else await key()
