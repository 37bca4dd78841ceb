"""Hands a token to git over inherited pipes, so that it is in no argument, URL, environment or file."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bot.workspace import atomic
from bot.workspace.base import Credentials

USER = "x-access-token"
"""The user name that GitHub takes with an installation token."""

# `/dev/fd`: dash knows no descriptor above 9 in a redirection.
_SCRIPT = """#!/bin/sh
printf '%s\\n' "$1" >"/dev/fd/$ISSUEWRIGHT_ASK" || exit 1
IFS= read -r answer <"/dev/fd/$ISSUEWRIGHT_TELL" || exit 1
[ -n "$answer" ] || exit 1
printf '%s\\n' "$answer"
"""


@dataclass(frozen=True, slots=True)
class Channel:
    """What a git process needs to ask."""

    fds: Sequence[int]
    """Descriptors to inherit."""
    env: Mapping[str, str]


def install(folder: Path) -> Path:
    """Write the helper script that git starts; it holds no secret."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    script = folder / "askpass"
    if not script.exists() or script.read_text() != _SCRIPT:
        atomic.replace(script, _SCRIPT.encode(), 0o700)
    return script


@asynccontextmanager
async def answering(script: Path, url: str, credentials: Credentials) -> AsyncIterator[Channel]:
    """Answer git's questions about one remote while the block runs; another host gets no answer."""
    asked, ask = os.pipe()
    tell, told = os.pipe()
    os.set_blocking(asked, False)
    loop = asyncio.get_running_loop()
    questions: asyncio.Queue[str] = asyncio.Queue()
    loop.add_reader(asked, _read_lines, asked, questions)
    answers = asyncio.create_task(_answer(questions, told, url, credentials))
    env = {"GIT_ASKPASS": str(script), "ISSUEWRIGHT_ASK": str(ask), "ISSUEWRIGHT_TELL": str(tell)}
    try:
        yield Channel((ask, tell), env)
    finally:
        loop.remove_reader(asked)
        answers.cancel()
        with suppress(asyncio.CancelledError):
            await answers
        for fd in (asked, ask, tell, told):
            os.close(fd)


def _read_lines(fd: int, questions: asyncio.Queue[str]) -> None:
    with suppress(BlockingIOError):
        for line in os.read(fd, 65_536).decode(errors="replace").splitlines():
            questions.put_nowait(line)


async def _answer(questions: asyncio.Queue[str], told: int, url: str, credentials: Credentials) -> None:
    while True:
        question = await questions.get()
        answer = ""
        if _asks_about(question, url):
            answer = USER if question.startswith("Username") else await credentials() or ""
        os.write(told, answer.encode() + b"\n")


def _asks_about(question: str, url: str) -> bool:
    """Tell whether git asks for the host of `url`, and not for one that it was redirected to."""
    named = re.search(r"'(https?://[^']*)'", question)
    if named is None:
        return False
    asked, ours = urlsplit(named[1]), urlsplit(url)
    return (asked.scheme, asked.hostname, asked.port) == (ours.scheme, ours.hostname, ours.port)
