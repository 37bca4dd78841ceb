"""Made-up requests, deliveries and a clock for tests of the store."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack

from bot.domain.refs import RepositoryRef, ThreadKind
from bot.domain.task import Run
from bot.store.base import Delivery, NewRequest, TaskStore

EVIL = 'nul \0, lone \ud800, "quotes", 🌹, \u2028'
CLEAN = 'nul \ufffd, lone \ufffd, "quotes", 🌹, \u2028'
"""The same where a column holds plain text; JSON columns keep it as it is."""

START = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)


@dataclass(slots=True)
class Clock:
    """Moves on by one microsecond at each look."""

    at: datetime = START
    step: timedelta = field(default=timedelta(microseconds=1))

    def __call__(self) -> datetime:
        """Return the time."""
        self.at += self.step
        return self.at


class Changes(TypedDict, total=False):
    """What a test may want otherwise."""

    task_id: str
    repository: RepositoryRef
    number: int
    kind: ThreadKind
    title: str
    body: str
    request: str
    requester: str
    model: str | None
    comment_id: int | None
    installation_id: int | None
    base_branch: str
    pull_number: int | None
    commanded: bool


REPOSITORY = RepositoryRef(5_000_000_000, "octo/garden", "main", private=True)

_REQUEST = NewRequest(
    task_id="",
    event_key="",
    repository=REPOSITORY,
    number=7,
    kind="issue",
    title="Water the roses",
    body="They are dry.",
    requester="flora",
    requester_id=6_000_000_000,
    request="",
    model=None,
    comment_id=None,
    installation_id=11,
    branch="agent/7-0123abcd",
    base_branch="main",
    pull_number=None,
    abi=1,
)


def request(event_key: str, **changes: Unpack[Changes]) -> NewRequest:
    """Make a request; its task id follows from the event key."""
    task_id = event_key.encode().hex().zfill(32)[-32:]
    return replace(replace(_REQUEST, event_key=event_key, task_id=task_id), **changes)


def delivery(guid: str, event_key: str | None = None, at: datetime = START) -> Delivery:
    """Make a delivery whose body holds bytes that are no text."""
    return Delivery(guid, "issues", event_key, b"\x00\xff{}" + guid.encode(), at)


async def begin(store: TaskStore, key: str = "first", number: int = 7, installation: int | None = 11) -> Run:
    """Queue the first run of a new task."""
    accepted = await store.accept(request(key, number=number, installation_id=installation), START)
    return accepted.run


async def queue(store: TaskStore, clock: Clock, line: str) -> None:
    """Queue runs in order; each word is the installation and the number of its issue."""
    for word in line.split():
        installation = None if word[0] == "-" else ord(word[0])
        await store.accept(request(word, number=int(word[1:]), installation_id=installation), clock())


def numbers(runs: Sequence[Run]) -> list[int]:
    """Return the issues of runs."""
    return [run.number for run in runs]
