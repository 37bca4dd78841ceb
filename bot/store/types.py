"""Column types that mean the same on SQLite and on Postgres."""

from datetime import UTC, datetime

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

Id = BigInteger().with_variant(Integer, "sqlite")
"""A number that the database gives; SQLite counts only in a column declared INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime with microseconds; comes back in UTC."""

    impl = DateTime
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(timezone=True)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive datetime, whose meaning depends on the machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"A naive datetime has no place in the store: {value}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Name the zone: SQLite keeps none, Postgres answers in the session's."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text that people or models wrote; what a database cannot hold becomes U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace NUL, which Postgres refuses, and lone surrogates, which neither database encodes."""
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """Replace the characters that one of the databases refuses."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
