"""What was asked and decided about single actions, on SQLite and on a real Postgres."""

import asyncio
from datetime import timedelta

from bot.store.base import TaskStore, Vote
from tests.unit.store.made import START, begin, request

HASH = "ab" * 32


async def test_a_question_is_asked_once_a_run(store: TaskStore) -> None:
    """The first words stand; a later run's question ends the earlier one."""
    run = await begin(store)
    first = await store.ask_decision(run.task_id, run.seq, HASH, "one", START)
    assert await store.ask_decision(run.task_id, run.seq, HASH, "two", START) == first
    assert (first.question, first.verdict, first.used_at) == ("one", None, None)
    assert not first.on_line
    for on_line in (True, False):
        await store.note_request(first.id, 77, on_line=on_line)
        kept = [(one.id, one.comment_id, one.on_line) for one in await store.decisions(run.task_id)]
        assert kept == [(first.id, 77, on_line)]
    await store.finish(run.task_id, run.seq, "waiting", "", START)
    further = (await store.accept(request("second"), START)).run
    again = await store.ask_decision(run.task_id, further.seq, HASH, "three", START)
    assert again.id != first.id
    assert [one.verdict for one in await store.decisions(run.task_id)] == ["superseded", None]


async def test_people_count_once_each(store: TaskStore) -> None:
    """As many as are needed; the same happening again changes nothing and says the same."""
    run = await begin(store)
    asked = await store.ask_decision(run.task_id, run.seq, HASH, "", START)

    async def vote(actor: int, key: str) -> str:
        return await store.approve(
            asked.id, actor_id=actor, actor=f"p{actor}", event_key=key, at=START + timedelta(actor), required=2
        )

    assert [await vote(1, "a"), await vote(1, "a"), await vote(1, "b")] == ["more_needed"] * 3
    assert [await vote(2, "c"), await vote(2, "c")] == ["approved"] * 2
    assert [await vote(3, "d"), await vote(2, "e")] == ["known"] * 2
    (kept,) = await store.decisions(run.task_id)
    assert (kept.verdict, kept.actor) == ("approved", "p1, p2")
    assert await store.decided_by("c") == asked.id
    assert await store.decided_by("d") is None


async def test_a_vote_is_kept_with_its_pattern_and_taken_back(store: TaskStore) -> None:
    """The first words of a person stand; where it is decided, nothing is taken back."""
    run = await begin(store)
    asked = await store.ask_decision(run.task_id, run.seq, HASH, "", START)

    async def vote(actor: int, key: str, pattern: str = "") -> str:
        return await store.approve(
            asked.id,
            actor_id=actor,
            actor=f"p{actor}",
            event_key=key,
            at=START + timedelta(actor),
            required=2,
            pattern=pattern,
        )

    assert [await vote(1, "a", "git push"), await vote(1, "b", "git")] == ["more_needed"] * 2
    assert await store.votes(asked.id) == [Vote(1, "p1", "git push")]
    await store.take_back(asked.id, 1)
    assert await store.votes(asked.id) == []
    assert [await vote(2, "c"), await vote(1, "d", "git")] == ["more_needed", "approved"]
    await store.take_back(asked.id, 1)
    assert await store.votes(asked.id) == [Vote(1, "p1", "git"), Vote(2, "p2", "")]


async def test_who_changes_their_mind_is_known_by_that(store: TaskStore) -> None:
    """A no in place of one's own yes is handled again as one, where the first life of it died behind it."""
    run = await begin(store)
    asked = await store.ask_decision(run.task_id, run.seq, HASH, "", START)
    await store.approve(asked.id, actor_id=1, actor="p", event_key="yes", at=START, required=2)

    async def no(actor: int, key: str) -> bool:
        return await store.decide(asked.id, "denied", actor_id=actor, actor="p", reason="no", at=START, event_key=key)

    assert [await no(1, "no"), await no(1, "no"), await no(2, "other")] == [True, True, False]
    assert await store.decided_by("no") == asked.id


async def test_of_many_at_once_one_decides(store: TaskStore) -> None:
    """The first answer wins, and what it allows is used by one."""
    run = await begin(store)
    asked = await store.ask_decision(run.task_id, run.seq, HASH, "", START)

    async def say(number: int) -> bool:
        if number % 2:
            key = f"k{number}"
            given = await store.approve(asked.id, actor_id=number, actor="", event_key=key, at=START, required=1)
            return given == "approved"
        return await store.decide(
            asked.id, "denied", actor_id=number, actor="", reason="no", at=START, event_key=f"k{number}"
        )

    assert sum(await asyncio.gather(*(say(number) for number in range(1, 21)))) == 1
    assert sum(await asyncio.gather(*(store.use(asked.id, START) for _ in range(20)))) == 1


async def test_what_is_void_says_why(store: TaskStore) -> None:
    """It is used by that."""
    run = await begin(store)
    asked = await store.ask_decision(run.task_id, run.seq, HASH, "", START)
    await store.approve(asked.id, actor_id=1, actor="p", event_key="k", at=START, required=1)
    assert await store.use(asked.id, START, void="too late")
    assert not await store.use(asked.id, START)
    (kept,) = await store.decisions(run.task_id)
    assert (kept.verdict, kept.reason, kept.used_at) == ("void", "too late", START)
