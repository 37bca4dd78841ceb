"""The working copy of a run, taken up by several calls at once."""

import asyncio

import pytest

from bot.errors import CloneFailed
from bot.tasks.lease import Lease
from bot.workspace.base import Opened, Origin
from tests.unit.tasks.made import Script, Shop, World

CALLS = 5


class Slow(Shop):
    """Lets everybody else go first; fails as often as it is told to."""

    failures = 0

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Open slowly, or fail."""
        opened = await super().open(task_id, origin, branch, commit=commit)
        await asyncio.sleep(0.01)
        if self.failures:
            self.failures -= 1
            raise CloneFailed("the remote is away")
        return opened


@pytest.fixture
def shop(world: World) -> Slow:
    """The slow shop of this world."""
    world.shop = shop = Slow()
    return shop


async def lease_of(world: World) -> Lease:
    """Make the lease of a run that is taken up again."""
    task, _ = await world.begin()
    lease = Lease(world.desk(Script()), task)
    lease.commit = world.shop.branches["main"]
    return lease


async def test_calls_at_once_share_one_copy(world: World, shop: Slow) -> None:
    """Whoever comes while it is opened gets the same copy, with one place for tools."""
    lease = await lease_of(world)
    lives = await asyncio.gather(*(lease.live() for _ in range(CALLS)))
    assert all(live is lives[0] for live in lives)
    assert len(shop.opened) == len(world.benches) == 1


async def test_calls_at_once_share_a_failure(world: World, shop: Slow) -> None:
    """Whoever waited for it does not try again; whoever comes later does."""
    lease = await lease_of(world)
    shop.failures = 1
    given = await asyncio.gather(*(lease.live() for _ in range(CALLS)), return_exceptions=True)
    assert [str(one) for one in given] == ["the remote is away"] * CALLS
    assert len(shop.opened) == 1
    assert (await lease.live()).opened.base == lease.commit


async def test_who_is_cancelled_leaves_the_opening_to_the_next(world: World, shop: Slow) -> None:
    """A call that is cut short while it opens the copy fails none of those that wait."""
    lease = await lease_of(world)
    first, second = (asyncio.ensure_future(lease.live()) for _ in "ab")
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(shop.opened) == 1
    first.cancel()
    assert (await second).opened.base == lease.commit
    assert len(shop.opened) == 2
