"""What people are asked to decide about single actions, who decided, and that it was used once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, delete, select, update

from bot.store.base import Decision, DecisionVerdict, Vote
from bot.store.database import Shelf, insert, lock_task, replace
from bot.store.rows import AnyRow
from bot.store.schema import decisions, votes


class Decisions(Shelf):
    """Requests of a task; each is decided once and used once."""

    async def ask_decision(self, task_id: str, run: int, hash_: str, question: str, at: datetime) -> Decision:
        """Note what is asked; asked again in the same run it is the same, and open ones of earlier runs end.

        Raises:
            KeyError: no such task.
        """

        def act(connection: Connection) -> Decision:
            lock_task(connection, task_id)
            same = (decisions.c.task_id == task_id) & (decisions.c.hash == hash_)
            kept = connection.execute(select(decisions).where(same, decisions.c.run == run)).one_or_none()
            if kept is None:
                ended = update(decisions).where(same, decisions.c.verdict.is_(None))
                connection.execute(ended.values(verdict="superseded", at=at, used_at=at))
                values = {"task_id": task_id, "run": run, "hash": hash_, "question": question, "asked_at": at}
                connection.execute(decisions.insert().values(reason="", **values))
                kept = connection.execute(select(decisions).where(same, decisions.c.run == run)).one()
            return _decision(kept)

        return await self._database.write(act)

    async def note_request(self, decision_id: int, comment_id: int, *, on_line: bool = False) -> None:
        """Note the comment that holds what is asked."""
        noted = update(decisions).where(decisions.c.id == decision_id)
        values = noted.values(comment_id=comment_id, on_line=on_line)
        await self._database.write(lambda connection: connection.execute(values))

    async def decisions(self, task_id: str) -> Sequence[Decision]:
        """Return all that was asked in a task, oldest first."""
        query = select(decisions).where(decisions.c.task_id == task_id).order_by(decisions.c.id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_decision(row) for row in rows]

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
        """Count a person's yes, with the pattern that they wrote first.

        Returns:
            `approved` where it was the last one that was needed, also when the same happening is handled again;
            `known` where somebody decided before.
        """

        def act(connection: Connection) -> Literal["approved", "more_needed", "known"]:
            row = _locked(connection, decision_id)
            if row.verdict is not None:
                mine = row.verdict == "approved" and _is_mine(connection, decision_id, event_key)
                return "approved" if mine else "known"
            insert(connection, votes, _vote(decision_id, (actor_id, actor), event_key, at, pattern))
            given = select(votes.c.actor).where(votes.c.decision_id == decision_id).order_by(votes.c.at)
            names = list(connection.scalars(given))
            if len(names) < required:
                return "more_needed"
            _decide(connection, decision_id, "approved", (actor_id, ", ".join(names)), "", at)
            return "approved"

        return await self._database.write(act)

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

        def act(connection: Connection) -> bool:
            row = _locked(connection, decision_id)
            if row.verdict is not None:
                return row.verdict == verdict and _is_mine(connection, decision_id, event_key)
            if event_key:
                # In place of their own yes, where they said that before.
                replace(connection, votes, _vote(decision_id, (actor_id, actor), event_key, at))
            _decide(connection, decision_id, verdict, (actor_id, actor), reason, at)
            return True

        return await self._database.write(act)

    async def votes(self, decision_id: int) -> Sequence[Vote]:
        """Return who approved, oldest first."""
        query = select(votes).where(votes.c.decision_id == decision_id).order_by(votes.c.at)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [Vote(row.actor_id, row.actor, row.pattern) for row in rows]

    async def take_back(self, decision_id: int, actor_id: int) -> None:
        """Count a person's yes no more, where nothing is decided yet."""

        def act(connection: Connection) -> None:
            if _locked(connection, decision_id).verdict is None:
                mine = (votes.c.decision_id == decision_id) & (votes.c.actor_id == actor_id)
                connection.execute(delete(votes).where(mine))

        await self._database.write(act)

    async def decided_by(self, event_key: str) -> int | None:
        """Return the id of the decision for which a happening was counted before."""
        query = select(votes.c.decision_id).where(votes.c.event_key == event_key)
        return await self._database.read(lambda connection: connection.scalar(query))

    async def use(self, decision_id: int, at: datetime, *, void: str = "") -> bool:
        """Take a decision for used; False where it was before.

        Args:
            decision_id: which.
            at: the present time.
            void: why it does not count, where that is so.
        """
        values: dict[str, object] = {"used_at": at}
        values |= {"verdict": "void", "reason": void} if void else {}
        statement = update(decisions).where(decisions.c.id == decision_id, decisions.c.used_at.is_(None))
        return await self._database.write(lambda connection: connection.execute(statement.values(values)).rowcount == 1)


def _locked(connection: Connection, decision_id: int) -> AnyRow:
    """Return a decision, held until the transaction ends."""
    return connection.execute(select(decisions).where(decisions.c.id == decision_id).with_for_update()).one()


def _is_mine(connection: Connection, decision_id: int, event_key: str) -> bool:
    """Whether this very happening was counted for this decision."""
    return connection.scalar(select(votes.c.decision_id).where(votes.c.event_key == event_key)) == decision_id


def _vote(
    decision_id: int, actor: tuple[int, str], event_key: str, at: datetime, pattern: str = ""
) -> dict[str, object]:
    vote = {"decision_id": decision_id, "actor_id": actor[0], "actor": actor[1], "event_key": event_key, "at": at}
    return {**vote, "pattern": pattern}


def _decide(
    connection: Connection, decision_id: int, verdict: str, actor: tuple[int, str], reason: str, at: datetime
) -> None:
    values = {"verdict": verdict, "actor_id": actor[0], "actor": actor[1], "reason": reason, "at": at}
    connection.execute(update(decisions).where(decisions.c.id == decision_id).values(values))


def _decision(row: AnyRow) -> Decision:
    return Decision(
        id=row.id,
        task_id=row.task_id,
        run=row.run,
        hash=row.hash,
        question=row.question,
        comment_id=row.comment_id,
        verdict=row.verdict,
        actor=row.actor or "",
        reason=row.reason,
        asked_at=row.asked_at,
        used_at=row.used_at,
        on_line=row.on_line,
    )
