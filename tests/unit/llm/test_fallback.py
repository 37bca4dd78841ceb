"""A model with others behind it."""

import pytest

from bot.domain.messages import Usage
from bot.errors import (
    BotError,
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
)
from bot.llm.discarded import DroppedReply, RefusedReply
from bot.llm.fallback import Fallback
from tests.unit.llm.flaky import PROMPT, REPLY, Flaky


class Rig:
    """Models in a row, and what was told of changes between them."""

    def __init__(self, *errors: list[BotError]) -> None:
        self.inner = [Flaky(*mine, name=f"test:{number}") for number, mine in enumerate(errors)]
        self.told: list[tuple[str, str]] = []
        self.model = Fallback(self.inner, lambda error, name: self.told.append((str(error), name)))

    @property
    def asked(self) -> list[int]:
        """How often each was asked."""
        return [inner.asked for inner in self.inner]


async def test_the_first_answers() -> None:
    """Nobody else is asked."""
    rig = Rig([], [])
    assert await rig.model.ask(PROMPT) == REPLY
    assert (rig.asked, rig.told, rig.model.name) == ([1, 0], [], "test:0")


@pytest.mark.parametrize(
    "error",
    [ModelUnavailable("away"), MalformedReply("broken"), ModelRejected("no credit"), OperatorError("not installed")],
)
async def test_the_next_one_goes_on_and_stays(error: BotError) -> None:
    """It is told why, and the first one is not asked again."""
    rig = Rig([error], [])
    assert await rig.model.ask(PROMPT) == REPLY
    assert await rig.model.ask(PROMPT) == REPLY
    assert (rig.asked, rig.told, rig.model.name) == ([1, 2], [(str(error), "test:1")], "test:1")


@pytest.mark.parametrize("error", [ModelRefused("no"), ContextOverflow("too long")])
async def test_what_another_provider_does_not_cure_is_final(error: ModelError) -> None:
    """A refusal is the model's word; a long conversation is made shorter by who owns it."""
    rig = Rig([error], [])
    with pytest.raises(type(error)):
        await rig.model.ask(PROMPT)
    assert (rig.asked, rig.told) == ([1, 0], [])


@pytest.mark.parametrize("last", [DroppedReply("two", usage=Usage(20)), RefusedReply("no", usage=Usage(20))])
async def test_an_error_is_what_the_last_model_gave(last: ModelError) -> None:
    """What was used before it is counted within."""
    with pytest.raises(ModelError) as raised:
        await Rig([DroppedReply("one", usage=Usage(1))], [last]).model.ask(PROMPT)
    assert raised.value is last


async def test_the_last_one_that_cannot_be_asked_is_final() -> None:
    """What it lacks is told."""
    rig = Rig([ModelUnavailable("away")], [OperatorError("not installed")])
    with pytest.raises(OperatorError, match="not installed"):
        await rig.model.ask(PROMPT)
    assert rig.asked == [1, 1]


async def test_a_reply_is_what_its_model_gave() -> None:
    """Nothing of what was lost before it is added."""
    assert await Rig([DroppedReply("one", usage=Usage(100))], []).model.ask(PROMPT) == REPLY


async def test_all_are_closed() -> None:
    """Connections are given back, those of models that were given up too."""
    rig = Rig([ModelUnavailable("away")], [])
    await rig.model.ask(PROMPT)
    await rig.model.close()
    assert [inner.is_closed for inner in rig.inner] == [True, True]
