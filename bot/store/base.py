"""The seams to what is remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from bot.domain.ceilings import Ceilings, Reached
from bot.domain.events import Fact, RunEvent
from bot.domain.messages import Message
from bot.domain.refs import RepositoryRef, ThreadKind
from bot.domain.task import Intent, Outcome, Run, Task

DeliveryState = Literal["received", "done", "ignored", "failed"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One webhook HTTP request, or one that was played."""

    guid: str
    """`X-GitHub-Delivery`; the same when GitHub sends it again."""
    event: str
    """`X-GitHub-Event`."""
    event_key: str | None
    """The happening itself; None for what starts nothing."""
    body: bytes
    received_at: datetime
    state: DeliveryState = "received"
    note: str = ""
    """Why it was ignored or failed, for the operator."""


class DeliveryStore(Protocol):
    """Deliveries; durable before the 2xx."""

    async def add(self, delivery: Delivery) -> bool:
        """Keep a delivery; returns after it is synced to disk. False where the guid or event key is known already."""
        ...

    async def pending(self, *, limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries in state `received`, oldest first."""
        ...

    async def settle(self, guid: str, state: DeliveryState, note: str = "") -> None:
        """Say what became of a delivery."""
        ...

    async def get(self, guid: str) -> Delivery | None:
        """Return one delivery."""
        ...

    async def close(self) -> None:
        """Write what is waiting and give back the database."""
        ...


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What intake found: somebody who may asks for work on a thread."""

    task_id: str
    """The id of the task, should this begin one."""
    event_key: str
    repository: RepositoryRef
    number: int
    kind: ThreadKind
    title: str
    body: str
    requester: str
    requester_id: int
    request: str
    model: str | None
    comment_id: int | None
    installation_id: int | None
    branch: str
    base_branch: str
    pull_number: int | None
    """Set where the thread is a pull request."""
    abi: int
    commanded: bool = False
    """Whether a person asked in so many words, and not by a label."""
    intent: Intent = "fix"
    usd: float | None = None
    """Budget of the run in US dollars, where a person gave one."""
    fresh: bool = False
    """Whether it begins anew from the base branch: the task gets another branch, and its pull request stays as is."""
    merged: bool = False
    """Whether the task's pull request was merged: what follows begins anew from the base branch, with what is known."""
    joins: bool = True
    """Whether it may go to the inbox of an open run; else it is not accepted while there is one."""
    is_round: bool = False
    """Whether it is about what stands on lines by then: an open run does not know that, and another one follows."""
    is_talk: bool = False
    """Whether only an open run may hear it: it begins none."""
    asked_at: datetime | None = None
    """When it was asked for by GitHub's clock; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a request became."""

    task: Task
    run: Run
    kind: Literal["new", "again", "joined", "known", "busy", "unheard"]
    """`new`: a task began. `again`: a further run of the thread's task. `joined`: a run is open already, so the text
    went to its inbox. `known`: this very request was accepted before. `busy`: a run is open, and it joins none, so that
    nothing was kept. `unheard`: none is open, and it begins none."""
    position: int
    """Runs queued before it."""


InboxKind = Literal["steer", "talk", "stop", "push", "round"]
"""`steer`: words that the run hears, or else the next one. `talk`: words for this run alone. `round`: words, and what
stands on lines, for a run behind it."""
WORDS: frozenset[InboxKind] = frozenset({"steer", "talk"})
"""What an open run hears."""


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something a person said to an open run, or pushed under its feet."""

    id: int
    kind: InboxKind
    author: str
    text: str
    number: int | None = None
    """The issue or pull request on which it was said; None for the terminal."""
    thread: ThreadKind | None = None
    comment_id: int | None = None
    author_id: int = 0
    commanded: bool = False
    """Whether it was said in so many words, and not by a label."""
    model: str | None = None
    """`provider:name` that was chosen with it."""
    asked_at: datetime | None = None
    """When it was said by GitHub's clock; None where that is not known."""
    event_key: str = ""
    """Names the happening that brought it."""


DecisionVerdict = Literal["approved", "denied", "void", "superseded"]


@dataclass(frozen=True, slots=True)
class Decision:
    """A single action that people were asked about, and what became of that."""

    id: int
    task_id: str
    run: int
    """In which it was asked."""
    hash: str
    question: str
    """JSON, of whoever asked."""
    comment_id: int | None
    """The comment that holds the request; None while there is none."""
    verdict: DecisionVerdict | None
    """None while it is open. `void`: it counts no more. `superseded`: a later run asked the same."""
    actor: str
    """Who decided; of several who approved, joined by commas."""
    reason: str
    asked_at: datetime
    used_at: datetime | None
    """When what follows from it was begun; that happens once."""
    on_line: bool = False
    """Whether the comment stands on a line of a pull request: the ids of such comments are counted apart."""


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's yes."""

    actor_id: int
    actor: str
    """Login, at that time."""
    pattern: str
    """Of calls that are to be allowed from then on; empty for none."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something we made on the remote side."""

    slot: str
    """Unique in the task: `progress.1`, `pull`, `inbox`."""
    kind: str
    """`comment`, `line`, `pull`, `branch`."""
    remote_id: str


class TaskStore(Protocol):
    """Tasks, runs and everything that belongs to them; each method is one synced transaction."""

    async def accept(self, request: NewRequest, at: datetime) -> Accepted:
        """Turn a request into a queued run and append `run.queued`, or put its text into the inbox of the open run."""
        ...

    async def accepted(self, event_key: str) -> Accepted | None:
        """Return what a request became that was accepted before, or said to a run; None where it was not."""
        ...

    async def task(self, task_id: str) -> Task | None:
        """Return one task."""
        ...

    async def task_of(self, repository_id: int, number: int) -> Task | None:
        """Return the task to which an issue or pull request belongs."""
        ...

    async def tasks(self, *, limit: int = 50) -> Sequence[Task]:
        """Return tasks, newest first."""
        ...

    async def runs(self, task_id: str) -> Sequence[Run]:
        """Return all runs of a task, oldest first."""
        ...

    async def run(self, task_id: str, seq: int) -> Run | None:
        """Return one run."""
        ...

    async def open_run(self, task_id: str) -> Run | None:
        """Return the run that is queued or running; there is at most one."""
        ...

    async def admit(
        self, executor: str, *, slots: int, per_installation: int, ceilings: Ceilings | None = None
    ) -> Sequence[Run]:
        """Turn queued runs into running ones.

        Args:
            executor: who takes them.
            slots: how many this worker can still take.
            per_installation: how many may run at once for one installation, over all workers.
            ceilings: daily ones; what they keep waiting stays queued.

        Returns:
            The runs taken, in order: oldest request first, but installations take turns.
        """
        ...

    async def held(self, ceilings: Ceilings) -> Sequence[tuple[Run, Reached]]:
        """Return the queued runs that a daily ceiling keeps waiting and the ceiling of each, oldest request first."""
        ...

    async def claim(self, run: Run, executor: str) -> bool:
        """Turn this one queued run into a running one, whatever else is queued; False where it is queued no more."""
        ...

    async def running(self) -> Sequence[tuple[Run, str]]:
        """Return the runs that are running and the executor of each."""
        ...

    async def take_over(self, run: Run, executor: str) -> None:
        """Note that another executor goes on with a run."""
        ...

    async def finish(self, task_id: str, seq: int, outcome: Outcome, reason: str, at: datetime) -> None:
        """End a run; ending it again changes nothing, but that one which waits may still be stopped."""
        ...

    async def hand_over(  # noqa: PLR0913 - an end and a beginning
        self,
        task_id: str,
        seq: int,
        outcome: Outcome,
        reason: str,
        at: datetime,
        *,
        cursor: Effect,
        behind: NewRequest | None,
    ) -> bool:
        """End a run, note how far the inbox was read, and queue what follows, all at once; again it changes nothing.

        Args:
            task_id: whose.
            seq: of the run.
            outcome: how it ended.
            reason: one sentence for people.
            at: the present time.
            cursor: its `remote_id` is the last inbox item that was there.
            behind: what follows; None for nothing.

        Returns:
            False, and nothing is done, where more is in the inbox by now.
        """
        ...

    async def choose_model(self, task_id: str, name: str) -> None:
        """Note the model, as `provider:name`, that further runs of a task use where their request names none."""
        ...

    async def set_pull(self, task_id: str, number: int) -> None:
        """Note the pull request of a task, and that its thread belongs to the task."""
        ...

    async def record(self, task_id: str, run: int, key: str, fact: Fact, at: datetime) -> bool:
        """Append a fact to the task's stream; a key that is there already changes nothing and gives False."""
        ...

    async def events(self, task_id: str, *, after: int = 0, limit: int = 10_000) -> Sequence[RunEvent]:
        """Return the task's stream behind a position."""
        ...

    async def save_messages(self, task_id: str, run: int, first: int, messages: Sequence[Message]) -> None:
        """Keep messages at positions `first`, `first + 1`, … of a run; the same positions again change nothing."""
        ...

    async def messages(self, task_id: str, *, run: int | None = None) -> Sequence[Message]:
        """Return the transcript: of one run, or of all runs in order."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their SHA-256 and return it."""
        ...

    async def blob(self, sha256: str) -> bytes:
        """Return kept bytes; KeyError where there are none."""
        ...

    async def effect(self, task_id: str, slot: str) -> Effect | None:
        """Return what was made in a slot."""
        ...

    async def effects(self, task_id: str, begins: str) -> Sequence[Effect]:
        """Return what was made in all slots whose names begin so, by name."""
        ...

    async def keep_effect(self, task_id: str, effect: Effect) -> None:
        """Note what was made; the same slot again replaces it."""
        ...

    async def post(self, task_id: str, kind: InboxKind, *, author: str, text: str, event_key: str) -> bool:
        """Put something into the task's inbox.

        False, and nothing is kept, for a known event key, and for a stop where no run is open: the next one is not
        what it was meant for.
        """
        ...

    async def inbox(self, task_id: str, *, after: int = 0) -> Sequence[InboxItem]:
        """Return inbox items behind an id, oldest first; a label that was added again has no words."""
        ...

    async def ask_decision(self, task_id: str, run: int, hash_: str, question: str, at: datetime) -> Decision:
        """Note what is asked; asked again in the same run it is the same, and open ones of earlier runs end."""
        ...

    async def note_request(self, decision_id: int, comment_id: int, *, on_line: bool = False) -> None:
        """Note the comment that holds what is asked, and whether it stands on a line of a pull request."""
        ...

    async def decisions(self, task_id: str) -> Sequence[Decision]:
        """Return all that was asked in a task, oldest first."""
        ...

    async def approve(  # noqa: PLR0913 - a vote has these sides
        self,
        decision_id: int,
        *,
        actor_id: int,
        actor: str,
        event_key: str,
        at: datetime,
        required: int,
        pattern: str = "",
    ) -> Literal["approved", "more_needed", "known"]:
        """Count a person's yes; each person counts once, with the pattern that they wrote first.

        Returns:
            `approved` where it was the last one that was needed, also when the same happening is handled again;
            `known` where it was decided before.
        """
        ...

    async def decide(  # noqa: PLR0913 - a decision has these sides
        self,
        decision_id: int,
        verdict: DecisionVerdict,
        *,
        actor_id: int,
        actor: str,
        reason: str,
        at: datetime,
        event_key: str = "",
    ) -> bool:
        """Decide at once; False where it was decided before, but not where the same happening is handled again."""
        ...

    async def votes(self, decision_id: int) -> Sequence[Vote]:
        """Return who approved, oldest first; of what one person decides at once, that one."""
        ...

    async def take_back(self, decision_id: int, actor_id: int) -> None:
        """Count a person's yes no more, where nothing is decided yet."""
        ...

    async def decided_by(self, event_key: str) -> int | None:
        """Return the id of the decision for which a happening was counted before."""
        ...

    async def use(self, decision_id: int, at: datetime, *, void: str = "") -> bool:
        """Take a decision for used; False where it was before.

        Args:
            decision_id: which.
            at: the present time.
            void: why it does not count, where that is so.
        """
        ...

    async def steps(self, run_id: str) -> Mapping[str, str]:
        """Return the recorded outputs of a run's steps by name; the inline engine's."""
        ...

    async def keep_step(self, run_id: str, name: str, output: str) -> None:
        """Record the output of a step of the inline engine."""
        ...

    async def state_key(self) -> bytes:
        """Return the key of our markers; 32 bytes, made at first use."""
        ...

    async def set_state_key(self, key: bytes) -> None:
        """Set the key of our markers before its first use; a key that is there already stays."""
        ...

    async def audit(self, at: datetime, actor: str, action: str, subject: str, detail: str = "") -> None:
        """Append one line to the audit log."""
        ...

    async def close(self) -> None:
        """Give back the database."""
        ...
