"""The tables; a change here needs a revision in `migrations/`, and a test holds the two together."""

from collections.abc import Mapping
from typing import Literal

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from bot.store.types import Id, UtcDateTime, Words

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""Both databases name constraints alike, so that a later revision can drop one."""

Which = Literal["deliveries", "tasks"]
DELIVERIES = MetaData(naming_convention=NAMES)
TASKS = MetaData(naming_convention=NAMES)
BRANCHES: Mapping[Which, MetaData] = {"deliveries": DELIVERIES, "tasks": TASKS}
"""Both may live in one database; each has revisions of its own."""
NEWEST: Mapping[Which, str] = {"deliveries": "deliveries_0001", "tasks": "tasks_0007"}
"""The last revisions: what the tables below are."""


def _version(which: Which) -> Table:
    name = f"issuewright_{which}_version"
    key = PrimaryKeyConstraint("version_num", name=f"{name}_pkc")
    return Table(name, MetaData(), Column("version_num", String(32), nullable=False), key)


VERSIONS: Mapping[Which, Table] = {"deliveries": _version("deliveries"), "tasks": _version("tasks")}
"""Where a branch keeps its revision, as Alembic makes and reads it."""

deliveries = Table(
    "deliveries",
    DELIVERIES,
    Column("guid", Words, primary_key=True),
    Column("event_key", Words, unique=True),
    Column("event", Words, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("state", String(16), nullable=False),
    Column("note", Words, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    # A sweep reads only what waits, however many were settled.
    Index(
        "ix_deliveries_waiting",
        "received_at",
        sqlite_where=text("state = 'received'"),
        postgresql_where=text("state = 'received'"),
    ),
)

tasks = Table(
    "tasks",
    TASKS,
    Column("id", String(32), primary_key=True),
    Column("repository_id", BigInteger, nullable=False),
    Column("full_name", Words, nullable=False),
    Column("default_branch", Words),
    Column("private", Boolean, nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("title", Words, nullable=False),
    Column("body", Words, nullable=False),
    Column("requester", Words, nullable=False),
    Column("installation_id", BigInteger, index=True),
    Column("branch", Words, nullable=False),
    Column("base_branch", Words, nullable=False),
    Column("pull_number", Integer),
    # `provider:name` that a person chose for further runs.
    Column("model", Words),
    Column("created_at", UtcDateTime, nullable=False, index=True),
)

threads = Table(
    "threads",
    TASKS,
    Column("repository_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("task_id", ForeignKey("tasks.id"), nullable=False, index=True),
    PrimaryKeyConstraint("repository_id", "number"),
)

runs = Table(
    "runs",
    TASKS,
    Column("task_id", ForeignKey("tasks.id"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("outcome", String(16)),
    Column("reason", Words, nullable=False),
    Column("request", Words, nullable=False),
    Column("requester", Words, nullable=False),
    Column("requester_id", BigInteger, nullable=False),
    Column("model", Words),
    Column("commanded", Boolean, nullable=False, server_default=false()),
    Column("intent", String(16), nullable=False, server_default="fix"),
    Column("usd", Float),
    Column("fresh", Boolean, nullable=False, server_default=false()),
    Column("comment_id", BigInteger),
    Column("event_key", Words, nullable=False, unique=True),
    Column("executor", Words),
    Column("abi", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    # By GitHub's clock.
    Column("asked_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    PrimaryKeyConstraint("task_id", "seq"),
    Index(None, "state", "created_at"),
    # What a day cost is asked for again and again, however many runs ended before it.
    Index(None, "finished_at"),
    Index(
        "uq_runs_open",
        "task_id",
        unique=True,
        sqlite_where=text("state != 'finished'"),
        postgresql_where=text("state != 'finished'"),
    ),
)

blobs = Table(
    "blobs",
    TASKS,
    Column("sha256", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

messages = Table(
    "messages",
    TASKS,
    Column("task_id", String(32), nullable=False),
    Column("run", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("role", String(16), nullable=False),
    # JSON text; null where it was so long that it became a blob.
    Column("content", Text),
    Column("blob", ForeignKey("blobs.sha256"), index=True),
    PrimaryKeyConstraint("task_id", "run", "position"),
    ForeignKeyConstraint(["task_id", "run"], ["runs.task_id", "runs.seq"]),
)

events = Table(
    "events",
    TASKS,
    Column("task_id", String(32), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("run", Integer, nullable=False),
    Column("key", Words, nullable=False),
    Column("kind", String(64), nullable=False),
    # As `messages.content`.
    Column("data", Text),
    Column("blob", ForeignKey("blobs.sha256"), index=True),
    Column("at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("task_id", "seq"),
    UniqueConstraint("task_id", "key"),
    ForeignKeyConstraint(["task_id", "run"], ["runs.task_id", "runs.seq"]),
)

effects = Table(
    "effects",
    TASKS,
    Column("task_id", ForeignKey("tasks.id"), nullable=False),
    Column("slot", Words, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("remote_id", Words, nullable=False),
    PrimaryKeyConstraint("task_id", "slot"),
)

inbox = Table(
    "inbox",
    TASKS,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("task_id", ForeignKey("tasks.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("author", Words, nullable=False),
    Column("author_id", BigInteger, nullable=False, server_default="0"),
    Column("commanded", Boolean, nullable=False, server_default=false()),
    Column("model", Words),
    Column("text", Words, nullable=False),
    Column("number", Integer),
    Column("thread", String(8)),
    Column("comment_id", BigInteger),
    Column("event_key", Words, nullable=False, unique=True),
    Column("at", UtcDateTime, nullable=False),
    # By GitHub's clock.
    Column("asked_at", UtcDateTime),
    Index(None, "task_id", "id"),
    # A cursor stands behind an id, so no id may come twice.
    sqlite_autoincrement=True,
)

decisions = Table(
    "decisions",
    TASKS,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("task_id", String(32), nullable=False),
    Column("run", Integer, nullable=False),
    # SHA-256 over what was asked: task, tool, arguments, folder, head and policy version.
    Column("hash", String(64), nullable=False),
    Column("question", Words, nullable=False),
    Column("comment_id", BigInteger),
    # Comments on lines of a pull request are counted apart.
    Column("on_line", Boolean, nullable=False, server_default=false()),
    # Null while nobody has answered.
    Column("verdict", String(16)),
    Column("actor_id", BigInteger),
    Column("actor", Words),
    Column("reason", Words, nullable=False),
    Column("asked_at", UtcDateTime, nullable=False),
    Column("at", UtcDateTime),
    Column("used_at", UtcDateTime),
    Index(None, "task_id", "hash"),
    ForeignKeyConstraint(["task_id", "run"], ["runs.task_id", "runs.seq"]),
    sqlite_autoincrement=True,
)

votes = Table(
    "votes",
    TASKS,
    Column("decision_id", ForeignKey("decisions.id"), nullable=False),
    Column("actor_id", BigInteger, nullable=False),
    Column("actor", Words, nullable=False),
    # One comment decides once, however often its delivery is handled.
    Column("event_key", Words, nullable=False, unique=True),
    Column("at", UtcDateTime, nullable=False),
    # Of calls that are allowed from then on.
    Column("pattern", Words, nullable=False, server_default=""),
    PrimaryKeyConstraint("decision_id", "actor_id"),
)

buckets = Table(
    "buckets",
    TASKS,
    Column("name", Words, primary_key=True),
    Column("capacity", Float, nullable=False),
    Column("tokens", Float, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

executors = Table(
    "executors",
    TASKS,
    Column("id", Words, primary_key=True),
    Column("host", Words, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
)

audit = Table(
    "audit",
    TASKS,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", Words, nullable=False),
    Column("action", Words, nullable=False),
    Column("subject", Words, nullable=False),
    Column("detail", Words, nullable=False),
    sqlite_autoincrement=True,
)

steps = Table(
    "steps",
    TASKS,
    Column("run_id", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("output", Words, nullable=False),
    PrimaryKeyConstraint("run_id", "name"),
)

keys = Table(
    "keys",
    TASKS,
    Column("name", Words, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
