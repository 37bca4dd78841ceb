"""A model that tries again."""

from collections.abc import Callable

import pytest

from bot.domain.messages import Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelRefused, ModelRejected, ModelUnavailable
from bot.llm.base import Model
from bot.llm.discarded import DroppedReply, RefusedReply
from bot.llm.retrying import Retrying
from tests.unit.llm.flaky import PROMPT, REPLY, Flaky


class Rig:
    """A retrying model whose waits are noted and take no time."""

    def __init__(self, *errors: ModelError, random: Callable[[], float] = lambda: 1.0, **knobs: float) -> None:
        self.inner = Flaky(*errors)
        self.waits: list[float] = []
        self.heard: list[tuple[ModelError, float]] = []
        self.model: Model = Retrying(
            self.inner,
            sleep=self._sleep,
            random=random,
            on_retry=lambda error, delay_s: self.heard.append((error, delay_s)),
            **knobs,  # type: ignore[arg-type]  # numbers all
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def down(wait_s: float | None = None) -> ModelUnavailable:
    """A failure that passes."""
    return ModelUnavailable("down", retry_after_s=wait_s)


async def test_it_waits_longer_each_time_and_says_so() -> None:
    """1, 2, 4 and 8 seconds, half of each by chance; the fifth request is the last one."""
    rig = Rig(down(), down(), down(), down())
    assert await rig.model.ask(PROMPT) == REPLY
    assert rig.waits == [1, 2, 4, 8]
    assert [delay_s for _, delay_s in rig.heard] == rig.waits
    lazy = Rig(*[down()] * 9, random=lambda: 0.0, attempts=8)
    with pytest.raises(ModelUnavailable, match="down"):
        await lazy.model.ask(PROMPT)
    assert lazy.waits == [0.5, 1, 2, 4, 8, 15, 15]
    assert lazy.inner.asked == 8


async def test_five_requests_are_enough() -> None:
    """Then the last error comes through, as it was."""
    errors = [down() for _ in range(5)]
    rig = Rig(*errors)
    with pytest.raises(ModelUnavailable) as caught:
        await rig.model.ask(PROMPT)
    assert caught.value is errors[-1]
    assert len(rig.waits) == 4


async def test_it_waits_as_long_as_the_provider_asks() -> None:
    """Never shorter; and what it asks counts against the deadline."""
    rig = Rig(down(20), down(0.1), down(100))
    assert await rig.model.ask(PROMPT) == REPLY
    assert rig.waits == [20, 2, 100]
    late = Rig(down(200), down(101))
    with pytest.raises(ModelUnavailable) as caught:
        await late.model.ask(PROMPT)
    assert late.waits == [200]
    assert caught.value.retry_after_s == 101
    just = Rig(down(300))
    assert await just.model.ask(PROMPT) == REPLY


async def test_a_malformed_reply_gets_one_more_try() -> None:
    """The second one is the model's way."""
    assert await Rig(MalformedReply("x")).model.ask(PROMPT) == REPLY
    assert await Rig(down(), MalformedReply("x"), down()).model.ask(PROMPT) == REPLY
    rig = Rig(MalformedReply("x"), down(), MalformedReply("y"))
    with pytest.raises(MalformedReply, match="y"):
        await rig.model.ask(PROMPT)
    assert rig.inner.asked == 3


@pytest.mark.parametrize("error", [ContextOverflow("x"), ModelRejected("x"), ModelRefused("x")])
async def test_what_will_not_pass_is_not_tried_again(error: ModelError) -> None:
    """Nothing would change."""
    rig = Rig(error)
    with pytest.raises(type(error)) as caught:
        await rig.model.ask(PROMPT)
    assert caught.value is error
    assert rig.inner.asked == 1


async def test_a_reply_and_an_error_are_what_the_last_request_gave() -> None:
    """Nothing of the replies that were thrown away is added to them; a meter within has counted those."""
    lost, last = DroppedReply("lost", usage=Usage(10, 0, 0, 5)), DroppedReply("last", usage=Usage(1))
    assert await Rig(lost, down(), lost).model.ask(PROMPT) == REPLY
    with pytest.raises(ModelUnavailable) as caught:
        await Rig(lost, last, attempts=2).model.ask(PROMPT)
    assert caught.value is last
    refusal = RefusedReply("no", usage=Usage(1))
    with pytest.raises(ModelRefused) as refused:
        await Rig(lost, refusal).model.ask(PROMPT)
    assert refused.value is refusal


async def test_text_of_a_failed_try_is_not_taken_back() -> None:
    """The next one begins at its first word."""
    heard: list[str] = []
    await Rig(down()).model.ask(PROMPT, on_text=heard.append)
    assert heard == ["1 ", "2 "]


async def test_it_is_the_model_it_wraps() -> None:
    """Name and end are the wrapped one's."""
    rig = Rig()
    assert rig.model.name == "test:flaky"
    await rig.model.close()
    assert rig.inner.is_closed
