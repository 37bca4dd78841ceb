"""What was spent on a day, held against its ceilings."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from bot.domain.ceilings import Ceilings, Reached, Spending

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_day_is_one_of_utc() -> None:
    """Half past midnight in the east is still the day before."""
    eastern = datetime(2026, 12, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert Spending(Ceilings(), eastern).day == datetime(2026, 11, 30, tzinfo=UTC)


def test_ten_times_ten_cents_are_a_dollar() -> None:
    """What floats lose lets no further run start."""
    spending = Spending(Ceilings(server=1.0), AT)
    for _ in range(10):
        assert spending.reached(1, 2) is None
        spending.add(1, 2, 0.1)
    assert spending.reached(1, 2) == Reached("server", 1.0, MIDNIGHT)


@pytest.mark.parametrize(
    ("place", "held"),
    [((1, 2), "installation"), ((1, 3), "installation"), ((4, 2), "repository"), ((None, 5), None)],
)
def test_each_place_has_its_own(place: tuple[int | None, int], held: str | None) -> None:
    """An installation's and a repository's ceilings hold nobody else, and the widest is named."""
    spending = Spending(Ceilings(server=9.0, installation=2.0, repository=2.0), AT)
    spending.add(1, 2, 2.0)
    reached = spending.reached(*place)
    assert (reached.whose if reached else None) == held


def test_no_ceiling_holds_nothing() -> None:
    """Without ceilings any sum will do."""
    spending = Spending(Ceilings(), AT)
    spending.add(None, 2, 1e9)
    assert spending.reached(None, 2) is None
    assert [Ceilings().any, Ceilings(repository=1.0).any] == [False, True]
