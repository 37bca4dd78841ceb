"""The prompt cache that is pretended: what right and wrong breakpoints cost."""

from typing import Any

from bot.testing.model.cache import PromptCache, Segment, Usage
from bot.testing.model.script import Conversation, Script, Turn
from tests.model.conftest import Serve


class Clock:
    """A clock that stands until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


def block(name: str, tokens: int, lifetime: str | None = None) -> Segment:
    """Return a block of so many tokens."""
    return Segment(name.ljust(tokens * 4, ".").encode(), lifetime)


def test_a_marked_prefix_is_written_once_and_read_after() -> None:
    """The first request writes up to the breakpoint; the next reads it; what follows is fresh each time."""
    cache = PromptCache()
    prompt = [block("tools", 1000), block("system", 1000, "5m"), block("task", 100)]
    assert cache.charge(prompt) == Usage(fresh=100, written_5m=2000)
    assert cache.charge(prompt) == Usage(fresh=100, read=2000)


def test_without_breakpoints_everything_is_fresh() -> None:
    """Nothing is cached that was not marked."""
    cache = PromptCache()
    for _ in range(2):
        assert cache.charge([block("a", 2000)]) == Usage(fresh=2000)


def test_one_changed_byte_before_the_breakpoint_misses() -> None:
    """A volatile line at the front makes every request pay for writing."""
    cache = PromptCache()
    assert cache.charge([block("time 1", 2000, "5m")]).written == 2000
    assert cache.charge([block("time 2", 2000, "5m")]) == Usage(fresh=0, written_5m=2000)


def test_a_moving_breakpoint_reads_the_old_and_writes_the_new() -> None:
    """Each turn reads what the turn before wrote, and writes only what was added."""
    cache = PromptCache()
    first = [block("system", 2000, "5m"), block("u1", 500, "5m")]
    cache.charge(first)
    second = [block("system", 2000, "5m"), block("u1", 500), block("a1", 50), block("u2", 300, "5m")]
    assert cache.charge(second) == Usage(fresh=0, read=2500, written_5m=350)


def test_more_than_twenty_blocks_ahead_is_out_of_reach() -> None:
    """An entry is found only within twenty blocks of a breakpoint."""
    start = [block("system", 2000, "5m")]
    near, far = PromptCache(), PromptCache()
    near.charge(start)
    far.charge(start)
    middle = [block(str(n), 10) for n in range(19)]
    assert near.charge([block("system", 2000), *middle[:18], block("end", 10, "5m")]).read == 2000
    assert far.charge([block("system", 2000), *middle, block("end", 10, "5m")]).read == 0


def test_short_prefixes_are_not_cached() -> None:
    """Below the least size a breakpoint does nothing."""
    cache = PromptCache(min_tokens=1024)
    for _ in range(2):
        assert cache.charge([block("a", 1000, "5m"), block("b", 10)]) == Usage(fresh=1010)


def test_entries_expire_and_reads_keep_them_young() -> None:
    """Five minutes after its last use an entry is gone; one of an hour is not."""
    clock = Clock()
    cache = PromptCache(clock=clock)
    prompt, lasting = [block("a", 2000, "5m")], [block("b", 2000, "1h")]
    cache.charge(prompt)
    assert cache.charge(lasting) == Usage(fresh=0, written_1h=2000)
    clock.now = 299
    assert cache.charge(prompt).read == 2000
    clock.now = 299 + 299
    assert cache.charge(prompt).read == 2000
    clock.now = 299 + 299 + 301
    assert cache.charge(prompt).written == 2000
    assert cache.charge(lasting).read == 2000


def test_a_read_from_afar_keeps_the_entry_young() -> None:
    """An entry found by looking back from a later breakpoint lives on as well."""
    clock = Clock()
    cache = PromptCache(clock=clock)
    cache.charge([block("a", 2000, "5m")])
    clock.now = 299
    assert cache.charge([block("a", 2000), block("b", 10, "5m")]).read == 2000
    clock.now = 299 + 299
    assert cache.charge([block("a", 2000), block("c", 10, "5m")]).read == 2000


def test_the_two_lifetimes_are_counted_apart() -> None:
    """What lies before an hour's breakpoint is written for an hour, the rest for five minutes."""
    usage = PromptCache().charge([block("a", 2000, "1h"), block("b", 500, "5m"), block("c", 7)])
    assert usage == Usage(fresh=7, written_5m=500, written_1h=2000)
    assert usage.total == 2507


LONG = "A rule of the house that is always the same. " * 200
CONTROL = {"cache_control": {"type": "ephemeral"}}


def _system(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, **more}]


async def test_usage_over_http_shows_the_effect_of_breakpoints(serve: Serve) -> None:
    """The SDK sees a write, then a read; another model, another system text or no breakpoint sees none."""
    model, client = await serve(Script([Conversation("c", [Turn(text="Yes.")])]))
    ask: Any = {"max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
    marked: Any = _system(LONG, **CONTROL)
    first = (await client.messages.create(model="a", system=marked, **ask)).usage
    assert first.cache_creation_input_tokens
    assert first.cache_creation_input_tokens > 2000
    assert first.cache_creation is not None
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
    async with client.messages.stream(model="a", system=marked, **ask) as streaming:
        second = (await streaming.get_final_message()).usage
    assert (second.cache_read_input_tokens, second.input_tokens) == (
        first.cache_creation_input_tokens,
        first.input_tokens,
    )
    other: Any = _system("12:01 " + LONG, **CONTROL)
    assert (await client.messages.create(model="a", system=other, **ask)).usage.cache_read_input_tokens == 0
    assert (await client.messages.create(model="b", system=marked, **ask)).usage.cache_read_input_tokens == 0
    plain: Any = _system(LONG)
    unmarked = (await client.messages.create(model="a", system=plain, **ask)).usage
    assert unmarked.cache_read_input_tokens == unmarked.cache_creation_input_tokens == 0
    assert unmarked.input_tokens == second.input_tokens + (second.cache_read_input_tokens or 0)
    assert model.problems == []


async def test_automatic_caching_marks_the_last_block(serve: Serve) -> None:
    """A `cache_control` at the top of the body caches the whole prompt and is read by a longer one."""
    _, client = await serve(Script([Conversation("c", [Turn(text="Yes."), Turn(text="Yes.")])]))
    ask: Any = {"model": "a", "max_tokens": 100, "system": LONG, "extra_body": CONTROL}
    messages: Any = [{"role": "user", "content": "Hello"}]
    first = (await client.messages.create(messages=messages, **ask)).usage
    assert first.input_tokens == 0
    messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And?"}]
    second = (await client.messages.create(messages=messages, **ask)).usage
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert 0 < (second.cache_creation_input_tokens or 0) < 100


async def test_a_refused_request_caches_nothing(serve: Serve) -> None:
    """Nothing was billed, so nothing was written."""
    script = Script([Conversation("c", [Turn(text="Yes.")])], window=1)
    model, client = await serve(script)
    ask: Any = {"model": "a", "max_tokens": 100, "system": _system(LONG, **CONTROL)}
    response = await client.messages.with_raw_response.count_tokens(
        model="a", messages=[{"role": "user", "content": "Hello"}], system=ask["system"]
    )
    assert response.status_code == 200
    model.script = Script(script.conversations)
    usage = (await client.messages.create(messages=[{"role": "user", "content": "Hello"}], **ask)).usage
    assert usage.cache_read_input_tokens == 0
