"""Both stores keep what they promise, on SQLite and on a real Postgres."""

import asyncio
import signal
from dataclasses import replace
from datetime import timedelta

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, select

from bot.domain.events import Notice, RunQueued, ToolFinished
from bot.domain.messages import Message, TextPart, ThinkingPart, ToolCall, ToolResult
from bot.domain.refs import RepositoryRef
from bot.store import schema
from bot.store.base import DeliveryStore, Effect, InboxItem, TaskStore
from bot.store.migrate import migrate
from bot.store.revisions import upgrade
from tests.unit.store.made import CLEAN, EVIL, REPOSITORY, START, begin, delivery, numbers, queue, request
from tests.unit.store.places import Lazy, Place


async def test_a_delivery_comes_back_as_it_was(deliveries: DeliveryStore) -> None:
    """A delivery comes back as it was."""
    given = replace(delivery("g1", "k1"), note="played")
    assert await deliveries.add(given)
    assert await deliveries.get("g1") == given
    assert await deliveries.get("g2") is None


async def test_a_guid_or_an_event_key_is_taken_once(deliveries: DeliveryStore) -> None:
    """A guid or an event key is taken once."""
    assert await deliveries.add(delivery("g1", "k1"))
    assert not await deliveries.add(delivery("g1", "k2"))
    assert not await deliveries.add(delivery("g2", "k1"))
    assert await deliveries.add(delivery("g3"))
    assert await deliveries.add(delivery("g4"))
    assert [found.guid for found in await deliveries.pending()] == ["g1", "g3", "g4"]


async def test_of_a_hundred_at_once_one_is_new(deliveries: DeliveryStore) -> None:
    """Of a hundred at once one is new."""
    added = await asyncio.gather(*(deliveries.add(delivery("same", "key")) for _ in range(100)))
    assert sum(added) == 1


async def test_pending_is_oldest_first_and_settled_ones_leave(deliveries: DeliveryStore, place: Place) -> None:
    """Pending deliveries come oldest first, and settled ones are none of them."""
    late, early = place.clock(), START
    for guid, at in (("c", late), ("b", early), ("a", late)):
        await deliveries.add(delivery(guid, at=at))
    assert [found.guid for found in await deliveries.pending(limit=2)] == ["b", "a"]
    await deliveries.settle("a", "failed", EVIL)
    assert [found.guid for found in await deliveries.pending()] == ["b", "c"]
    settled = await deliveries.get("a")
    assert settled is not None
    assert (settled.state, settled.note) == ("failed", CLEAN)


async def test_a_cancelled_caller_hurts_nobody(deliveries: DeliveryStore) -> None:
    """A cancelled caller hurts nobody."""
    adding = [asyncio.ensure_future(deliveries.add(delivery(f"g{count}"))) for count in range(20)]
    await asyncio.sleep(0)
    adding[3].cancel()
    results = await asyncio.gather(*adding, return_exceptions=True)
    assert isinstance(results[3], asyncio.CancelledError)
    assert [result for count, result in enumerate(results) if count != 3] == [True] * 19


async def test_close_answers_everybody_and_keeps_everything(place: Place) -> None:
    """Whoever waits when the store closes is answered, and what was answered is there afterwards."""
    tasks, deliveries = place.open()
    adding = [asyncio.ensure_future(deliveries.add(delivery(f"g{count}"))) for count in range(50)]
    await asyncio.sleep(0)
    await deliveries.close()
    acknowledged = [result for result in await asyncio.gather(*adding) if result]
    await tasks.close()
    tasks, deliveries = place.open()
    assert len(await deliveries.pending()) == len(acknowledged) == 50
    await tasks.close()
    await deliveries.close()


async def test_a_first_request_begins_a_task(store: TaskStore) -> None:
    """A first request begins a task."""
    asked_at = START - timedelta(seconds=2)
    given = replace(request("k", request=EVIL, comment_id=7_000_000_000, model="a:b"), asked_at=asked_at)
    accepted = await store.accept(given, START)
    assert (accepted.kind, accepted.position) == ("new", 0)
    task = accepted.task
    assert task == await store.task(given.task_id) == await store.task_of(REPOSITORY.id, 7)
    assert (task.repository, task.title, task.installation_id) == (REPOSITORY, "Water the roses", 11)
    assert (task.pull_number, task.created_at, task.branch) == (None, START, given.branch)
    run = accepted.run
    assert run == await store.run(task.id, 1) == await store.open_run(task.id)
    assert (run.seq, run.state, run.outcome, run.request, run.model) == (1, "queued", None, CLEAN, "a:b")
    assert (run.comment_id, run.created_at, run.abi, run.number, run.kind) == (7_000_000_000, START, 1, 7, "issue")
    assert run.asked_at == asked_at
    [event] = await store.events(task.id)
    assert (event.seq, event.run, event.at) == (1, 1, START)
    assert event.fact == RunQueued("flora", EVIL, 0)
    assert await store.task("0" * 32) is None
    assert await store.task_of(REPOSITORY.id, 8) is None
    assert await store.open_run("0" * 32) is None


async def test_the_same_event_is_known(store: TaskStore) -> None:
    """The same event is known."""
    first = await store.accept(request("k"), START)
    again = await store.accept(replace(request("k"), task_id="f" * 32), START)
    assert (again.kind, again.task, again.run) == ("known", first.task, first.run)
    assert len(await store.events(first.task.id)) == 1


async def test_a_request_during_a_run_goes_to_its_inbox(store: TaskStore) -> None:
    """A request during a run goes to its inbox."""
    first = await store.accept(request("k1"), START)
    joined = await store.accept(request("k2", request="and the tulips", requester="bea"), START)
    assert (joined.kind, joined.task, joined.run) == ("joined", first.task, first.run)
    assert (await store.accept(request("k2"), START)).kind == "known"
    [item] = await store.inbox(first.task.id)
    assert (item.kind, item.author, item.text) == ("steer", "bea", "and the tulips")
    assert await store.inbox(first.task.id, after=item.id) == []
    assert len(await store.runs(first.task.id)) == 1


async def test_a_label_during_a_run_is_an_item_without_words(store: TaskStore) -> None:
    """A label that is added again while a run is open is an item without words, so that the run's end can see it."""
    run = await begin(store)
    assert (await store.accept(request("label", request=""), START)).kind == "joined"
    assert (await store.accept(request("label", request=""), START)).kind == "known"
    assert [(item.kind, item.text) for item in await store.inbox(run.task_id)] == [("steer", "")]


async def test_a_request_after_a_run_is_the_next_run(store: TaskStore) -> None:
    """A request on a task's thread that has no open run makes its next run, and brings the task up to date."""
    run = await begin(store)
    await store.finish(run.task_id, 1, "done", "", START)
    renamed = RepositoryRef(REPOSITORY.id, "octo/park", None)
    changed = request("k2", title="New", body="", repository=renamed, installation_id=12, request="more")
    again = await store.accept(changed, START)
    assert (again.kind, again.run.seq, again.run.request) == ("again", 2, "more")
    assert (again.task.id, again.task.title, again.task.body) == (run.task_id, "New", "")
    assert again.task.installation_id == 12
    assert again.task.repository == RepositoryRef(REPOSITORY.id, "octo/park", "main")
    assert [found.seq for found in await store.runs(run.task_id)] == [1, 2]
    assert [event.seq for event in await store.events(run.task_id)] == [1, 2]


async def test_a_pull_request_belongs_to_its_task(store: TaskStore) -> None:
    """A request on the task's pull request is a further run, and leaves the task's own text alone."""
    run = await begin(store)
    await store.set_pull(run.task_id, 8)
    await store.set_pull(run.task_id, 8)
    task = await store.task_of(REPOSITORY.id, 8)
    assert task is not None
    assert (task.id, task.pull_number) == (run.task_id, 8)
    await store.finish(run.task_id, 1, "done", "", START)
    again = await store.accept(request("k2", number=8, kind="pull", title="Pull", body="Its text"), START)
    assert (again.kind, again.task.title, again.task.number) == ("again", "Water the roses", 7)
    assert (again.run.number, again.run.kind) == (8, "pull")
    with pytest.raises(KeyError):
        await store.set_pull("0" * 32, 9)


async def test_position_counts_the_queued_before(store: TaskStore, place: Place) -> None:
    """Position counts the queued runs that `admit` takes earlier, those of the same moment too."""
    times = [place.clock(), *[place.clock()] * 2]
    accepted = [await store.accept(request(f"k{number}", number=number), times[number]) for number in range(3)]
    assert [one.position for one in accepted] == [0, 1, 2]
    assert numbers(await store.admit("e", slots=2, per_installation=9)) == [0, 1]
    assert (await store.accept(request("k2", number=2), START)).position == 0
    assert (await store.accept(request("k1", number=1), START)).position == 0


async def test_many_requests_on_one_thread_make_one_task(store: TaskStore) -> None:
    """Many requests on one thread make one task."""
    asked = [request(f"k{count}", request=f"word {count}") for count in range(20)]
    accepted = await asyncio.gather(*(store.accept(one, START) for one in asked))
    assert sorted(one.kind for one in accepted) == ["joined"] * 19 + ["new"]
    assert len(await store.tasks()) == 1
    assert len(await store.inbox(accepted[0].task.id)) == 19


async def test_tasks_are_newest_first(store: TaskStore, place: Place) -> None:
    """Tasks are newest first."""
    for number in (1, 2, 3):
        await store.accept(request(f"k{number}", number=number), place.clock())
    assert [task.number for task in await store.tasks(limit=2)] == [3, 2]


async def test_the_oldest_request_goes_first(store: TaskStore, place: Place) -> None:
    """The oldest request goes first."""
    await queue(store, place.clock, "a3 a1 a2")
    taken = await store.admit("e", slots=2, per_installation=9)
    assert numbers(taken) == [3, 1]
    assert {run.state for run in taken} == {"running"}
    assert await store.running() == [(run, "e") for run in taken]
    assert numbers(await store.admit("e", slots=2, per_installation=9)) == [2]
    assert await store.admit("e", slots=2, per_installation=9) == []
    assert await store.admit("e", slots=0, per_installation=9) == []


async def test_installations_take_turns(store: TaskStore, place: Place) -> None:
    """The installation with the fewest running runs comes next."""
    await queue(store, place.clock, "a1 a2 a3 b4 -5 b6")
    assert numbers(await store.admit("e", slots=5, per_installation=9)) == [1, 4, 5, 2, 6]


async def test_turns_are_remembered_when_nothing_runs(store: TaskStore, place: Place) -> None:
    """With one slot, the installation whose last run started longest ago comes next."""
    await queue(store, place.clock, "a1 a2 a3 b4 b5")
    order = []
    for _ in range(5):
        [run] = await store.admit("e", slots=1, per_installation=9)
        await store.finish(run.task_id, run.seq, "done", "", place.clock())
        order.append(run.number)
    assert order == [1, 4, 2, 5, 3]


async def test_an_installation_has_its_limit_over_all_workers(store: TaskStore, place: Place) -> None:
    """An installation has its limit over all workers."""
    await queue(store, place.clock, "a1 a2 a3 b4 -5 -6")
    assert numbers(await store.admit("e1", slots=2, per_installation=1)) == [1, 4]
    assert numbers(await store.admit("e2", slots=9, per_installation=1)) == [5]
    assert await store.admit("e2", slots=9, per_installation=1) == []
    [first, *_] = [run for run, _ in await store.running()]
    await store.finish(first.task_id, first.seq, "failed", "broken", START)
    assert numbers(await store.admit("e2", slots=9, per_installation=1)) == [2]


async def test_what_follows_is_queued_as_a_run_ends(store: TaskStore) -> None:
    """Once, and only by who read all of the inbox; a request that wants a round is told apart from words."""
    run = await begin(store)
    await store.admit("e", slots=1, per_installation=1)
    later = START + timedelta(seconds=5)
    asked = replace(request("round", task_id=run.task_id), is_round=True, asked_at=later)
    assert (await store.accept(asked, START)).kind == "joined"
    [item] = await store.inbox(run.task_id)
    assert (item.kind, item.asked_at) == ("round", later)
    behind = replace(request("behind", task_id=run.task_id), base_branch="next")
    read, unread = (Effect("inbox", "cursor", str(number)) for number in (item.id, item.id - 1))

    async def ends(cursor: Effect) -> bool:
        return await store.hand_over(run.task_id, 1, "done", "", START, cursor=cursor, behind=behind)

    assert not await ends(unread)
    assert await store.effect(run.task_id, "inbox") is None
    for _ in range(2):
        assert await ends(read)
    assert [(one.state, one.outcome) for one in await store.runs(run.task_id)] == [
        ("finished", "done"),
        ("queued", None),
    ]
    assert await store.effect(run.task_id, "inbox") == read
    task = await store.task(run.task_id)
    assert task is not None
    assert task.base_branch == "next"


async def test_a_run_ends_once(store: TaskStore) -> None:
    """A run ends once."""
    run = await begin(store)
    await store.admit("e", slots=1, per_installation=1)
    await store.finish(run.task_id, 1, "waiting", EVIL, START)
    await store.finish(run.task_id, 1, "done", "", START)
    ended = await store.run(run.task_id, 1)
    assert ended is not None
    assert (ended.state, ended.outcome, ended.reason) == ("finished", "waiting", CLEAN)
    assert await store.open_run(run.task_id) is None
    assert await store.running() == []
    assert await store.run(run.task_id, 2) is None


async def test_another_executor_takes_over(store: TaskStore) -> None:
    """Another executor takes over."""
    run = await begin(store)
    await store.take_over(run, "early")
    await store.admit("e1", slots=1, per_installation=1)
    await store.take_over(run, "e2")
    assert [executor for _, executor in await store.running()] == ["e2"]


async def test_one_run_is_claimed_whatever_else_is_queued(store: TaskStore, place: Place) -> None:
    """A queued run is claimed once, by name; others stay queued, and a run that is over or running is not claimed."""
    await queue(store, place.clock, "a0 a1")
    first, second = [(await store.runs(task.id))[0] for task in reversed(await store.tasks())]
    assert [await store.claim(second, "e1"), await store.claim(second, "e2")] == [True, False]
    assert [(run.id, executor) for run, executor in await store.running()] == [(second.id, "e1")]
    again = await store.run(first.task_id, first.seq)
    assert again is not None
    assert again.state == "queued"
    await store.finish(first.task_id, first.seq, "stopped", "", START)
    assert not await store.claim(first, "e1")


async def test_two_processes_admit_each_run_once(store: TaskStore, place: Place) -> None:
    """Two processes admit each run once."""
    await queue(store, place.clock, " ".join(f"a{number}" for number in range(40)))
    children = [place.child("admit") for _ in range(2)]
    outputs = [await asyncio.to_thread(child.communicate) for child in children]
    taken = [line for output, _ in outputs for line in output.decode().split()]
    assert sorted(taken) == sorted(run.id for run, _ in await store.running())
    assert len(taken) == 40
    assert [child.returncode for child in children] == [0, 0]


async def test_two_stores_admit_each_run_once(store: TaskStore, place: Place) -> None:
    """Two stores admit each run once."""
    await queue(store, place.clock, " ".join(f"a{number}" for number in range(10)))
    other, others_deliveries = place.open()
    took = await asyncio.gather(
        *(one.admit("e", slots=1, per_installation=99) for one in (store, other) for _ in range(10))
    )
    assert sorted(numbers([run for runs in took for run in runs])) == list(range(10))
    await other.close()
    await others_deliveries.close()


async def test_a_key_is_recorded_once(store: TaskStore) -> None:
    """A key is recorded once."""
    run = await begin(store)
    assert await store.record(run.task_id, 1, "a", Notice("one"), START)
    assert not await store.record(run.task_id, 1, "a", Notice("two"), START)
    assert await store.record(run.task_id, 1, "b", Notice(EVIL), START)
    events = await store.events(run.task_id, after=1)
    assert [(event.seq, event.fact) for event in events] == [(2, Notice("one")), (3, Notice(EVIL))]
    assert [event.seq for event in await store.events(run.task_id, limit=2)] == [1, 2]
    with pytest.raises(KeyError):
        await store.record("0" * 32, 1, "a", Notice("one"), START)


async def test_the_stream_has_no_holes(store: TaskStore) -> None:
    """The stream has no holes."""
    run = await begin(store)
    keys = [f"k{count % 15}" for count in range(30)]
    kept = await asyncio.gather(*(store.record(run.task_id, 1, key, Notice(key), START) for key in keys))
    assert sum(kept) == 15
    assert [event.seq for event in await store.events(run.task_id)] == list(range(1, 17))


async def test_long_events_and_messages_come_back_whole(store: TaskStore, place: Place) -> None:
    """Long events and messages come back whole."""
    run = await begin(store)
    fact = ToolFinished(1, 0, "run", "ls", is_error=False, seconds=0.5, output=EVIL * 10_000)
    await store.record(run.task_id, 1, "long", fact, START)
    assert (await store.events(run.task_id))[-1].fact == fact
    long = Message("user", (ToolResult("c", EVIL * 10_000),))
    await store.save_messages(run.task_id, 1, 0, [long, long])
    assert await store.messages(run.task_id) == [long, long]
    engine = place.engine("tasks.db")
    with engine.connect() as connection:
        assert len(connection.execute(select(schema.blobs)).all()) == 2
        assert connection.scalars(select(schema.messages.c.content)).all() == [None, None]
    engine.dispose()


async def test_the_transcript_is_kept_by_run(store: TaskStore) -> None:
    """The transcript is kept by run."""
    run = await begin(store)
    ask = Message("user", (TextPart(EVIL),))
    answer = Message("assistant", (ThinkingPart("hm", "seal", "data", "a:b"), ToolCall("c", "run", '{"a": 1 }')))
    await store.save_messages(run.task_id, 1, 0, [])
    await store.save_messages(run.task_id, 1, 0, [ask, answer])
    await store.save_messages(run.task_id, 1, 1, [ask, ask])
    await store.finish(run.task_id, 1, "done", "", START)
    await store.accept(request("k2"), START)
    await store.save_messages(run.task_id, 2, 0, [answer])
    assert await store.messages(run.task_id) == [ask, answer, ask, answer]
    assert await store.messages(run.task_id, run=1) == [ask, answer, ask]
    assert await store.messages(run.task_id, run=2) == [answer]


async def test_a_blob_is_found_by_its_hash(store: TaskStore) -> None:
    """A blob is found by its hash."""
    name = await store.put_blob(b"\x00\xff")
    assert name == await store.put_blob(b"\x00\xff")
    assert await store.blob(name) == b"\x00\xff"
    assert await store.blob(await store.put_blob(b"")) == b""
    with pytest.raises(KeyError):
        await store.blob("0" * 64)


async def test_a_slot_holds_what_was_made_last(store: TaskStore) -> None:
    """A slot holds what was made last."""
    run = await begin(store)
    assert await store.effect(run.task_id, "pull") is None
    await store.keep_effect(run.task_id, Effect("pull", "pull", "1"))
    await store.keep_effect(run.task_id, Effect("pull", "pull", "2"))
    await store.keep_effect(run.task_id, Effect("progress/1", "comment", "3"))
    assert await store.effect(run.task_id, "pull") == Effect("pull", "pull", "2")
    await store.keep_effect(run.task_id, Effect("pull.2", "pull", "4"))
    await store.keep_effect(run.task_id, Effect("pull.1", "pull", "5"))
    assert [one.remote_id for one in await store.effects(run.task_id, "pull.")] == ["5", "4"]
    assert await store.effects(run.task_id, "pull%") == []


async def test_an_event_is_posted_once(store: TaskStore) -> None:
    """An event is posted once, and a stop to an open run alone."""
    run = await begin(store, "first")
    task = run.task_id
    assert await store.post(task, "steer", author="bea", text=EVIL, event_key="k1")
    assert not await store.post(task, "steer", author="bea", text="again", event_key="k1")
    assert not await store.post(task, "stop", author="bea", text="", event_key="first")
    assert await store.post(task, "stop", author="bea", text="", event_key="k2")
    steer, stop = await store.inbox(task)
    assert steer == InboxItem(steer.id, "steer", "bea", CLEAN, event_key="k1")
    assert stop == InboxItem(stop.id, "stop", "bea", "", event_key="k2")
    assert steer.id < stop.id
    assert await store.inbox(task, after=steer.id) == [stop]
    await store.finish(task, 1, "done", "", START)
    assert not await store.post(task, "stop", author="bea", text="", event_key="for no run")
    assert await store.post(task, "push", author="bea", text="", event_key="k4")
    assert [item.kind for item in await store.inbox(task, after=stop.id)] == ["push"]
    with pytest.raises(KeyError):
        await store.post("0" * 32, "stop", author="bea", text="", event_key="k3")


async def test_a_step_keeps_its_first_output(store: TaskStore) -> None:
    """A step keeps its first output."""
    assert await store.steps("r-1") == {}
    await store.keep_step("r-1", "turn/1", "{}")
    await store.keep_step("r-1", "turn/1", "[]")
    await store.keep_step("r-2", "turn/1", "")
    await store.keep_step("r-1", "turn/2", "2")
    assert await store.steps("r-1") == {"turn/1": "{}", "turn/2": "2"}
    assert await store.steps("r-2") == {"turn/1": ""}


async def test_the_state_key_is_set_once(store: TaskStore) -> None:
    """A key that is set before its first use stands, and stays."""
    await store.set_state_key(b"k" * 32)
    await store.set_state_key(b"l" * 32)
    assert await store.state_key() == b"k" * 32


async def test_the_state_key_makes_itself(store: TaskStore) -> None:
    """Asked for before it was set, it is made, the same for all who ask at once."""
    [key] = set(await asyncio.gather(*(store.state_key() for _ in range(5))))
    assert len(key) == 32
    await store.set_state_key(b"l" * 32)
    assert await store.state_key() == key


async def test_the_audit_log_keeps_its_lines(store: TaskStore, place: Place) -> None:
    """The audit log keeps its lines."""
    await store.audit(START, "flora", "setting.changed", "budget", "5 to 6")
    await store.audit(START, "flora", "task.stopped", "x")
    engine = place.engine("tasks.db")
    with engine.connect() as connection:
        rows = connection.execute(select(schema.audit).order_by(schema.audit.c.id)).all()
    engine.dispose()
    assert [tuple(row)[1:] for row in rows] == [
        (START, "flora", "setting.changed", "budget", "5 to 6"),
        (START, "flora", "task.stopped", "x", ""),
    ]


async def test_processes_that_start_at_once_agree(place: Place, postgres: Lazy) -> None:
    """Processes that start at once agree."""
    if place.url is not None:
        place.url = postgres.empty()
    children = [place.child("key") for _ in range(3)]
    outputs = [await asyncio.to_thread(child.communicate) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    [key] = {output for output, _ in outputs}
    tasks, deliveries = place.open()
    assert (await tasks.state_key()).hex() == key.decode().strip()
    assert len(await tasks.state_key()) == 32
    await tasks.close()
    await deliveries.close()


async def test_a_killed_process_loses_no_acknowledged_delivery(place: Place) -> None:
    """A killed process loses no acknowledged delivery."""
    tasks, deliveries = place.open()
    for _ in range(2):
        child = place.child("add")
        assert child.stdout is not None
        guids = [(await asyncio.to_thread(child.stdout.readline)).decode().strip() for _ in range(100)]
        child.send_signal(signal.SIGKILL)
        guids += (await asyncio.to_thread(child.stdout.read)).decode().split()
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        kept = await asyncio.gather(*(deliveries.get(guid) for guid in guids))
        assert len(guids) >= 100
        assert [found.guid for found in kept if found is not None] == guids
    await tasks.close()
    await deliveries.close()
    tasks, deliveries = place.open()
    assert len(await deliveries.pending(limit=10)) == 10
    assert await deliveries.add(delivery("after"))
    await tasks.close()
    await deliveries.close()


@pytest.mark.parametrize("which", ["deliveries", "tasks"])
def test_the_revisions_come_to_the_declared_tables(place: Place, postgres: Lazy, which: schema.Which) -> None:
    """What all revisions make of an empty database is what a first start makes, and no start changes it again."""
    if place.url is not None:
        place.url = postgres.empty()
    place.state_dir.mkdir()
    engine, version = place.engine(f"{which}.db"), schema.VERSIONS[which]
    with engine.begin() as connection:
        upgrade(connection, which)
    _is_declared(engine, which)
    migrate(engine, which)
    _is_declared(engine, which)
    schema.BRANCHES[which].drop_all(engine)
    version.drop(engine)
    for _ in range(2):
        migrate(engine, which)
        _is_declared(engine, which)
    engine.dispose()


def _is_declared(engine: Engine, which: schema.Which) -> None:
    metadata, version = schema.BRANCHES[which], schema.VERSIONS[which]
    with engine.connect() as connection:
        assert connection.scalars(select(version.c.version_num)).all() == [schema.NEWEST[which]]
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "version_table": version.name,
                "include_name": lambda name, kind, _: kind != "table" or name in metadata.tables,
            },
        )
        assert compare_metadata(context, metadata) == []
