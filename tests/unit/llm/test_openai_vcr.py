"""Recorded traffic played through the real SDK: vcrpy answers in the network's place, if we say what was recorded."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import vcr
from vcr.errors import CannotOverwriteExistingCassetteException

from bot.domain.messages import Prompt
from bot.errors import ModelError
from bot.llm import openai_chat_wire as chat_wire
from bot.llm import openai_responses_wire as responses_wire
from bot.llm.openai_chat import OpenAIChatModel
from bot.llm.openai_client import Endpoint
from bot.llm.openai_errors import error_for
from bot.llm.openai_responses import OpenAIResponsesModel
from tests.unit.llm import test_openai_chat_recordings as chat
from tests.unit.llm import test_openai_responses_recordings as responses
from tests.unit.llm.cassettes import Exchange, interactions

URL = "https://api.openai.com/v1/chat/completions"


class Reader:
    """Reads cassettes of both kinds, those with decoded bodies too; writes none."""

    @staticmethod
    def deserialize(name: str) -> dict[str, Any]:
        """Read the cassette of this name."""
        return {"version": 1, "interactions": [_plain(one) for one in interactions(Path(name))]}

    @staticmethod
    def serialize(cassette: Mapping[str, Any]) -> str:
        """Refuse."""
        raise AssertionError(f"nothing is recorded here: {cassette}")


class Shelf:
    """Hands a cassette's name to its reader, which knows how to open it."""

    @staticmethod
    def load_cassette(path: Any, serializer: Any) -> tuple[list[Any], list[Any]]:
        """Return requests and answers."""
        from vcr.serialize import deserialize  # noqa: PLC0415 - of the library's own kind

        found: tuple[list[Any], list[Any]] = deserialize(str(path), serializer)
        return found

    @staticmethod
    def save_cassette(path: Any, cassette: Any, serializer: Any) -> None:
        """Refuse to write."""


def _plain(interaction: Mapping[str, Any]) -> dict[str, Any]:
    request, response = dict(interaction["request"]), dict(interaction["response"])
    if "parsed_body" in request:
        request["body"] = json.dumps(request.pop("parsed_body"))
    if "parsed_body" in response:
        response["body"] = {"string": json.dumps(response.pop("parsed_body"))}
    return {"request": request, "response": response}


def player(normal: Callable[[Any], Any], said: str) -> vcr.VCR:
    """Make a player that answers only what says the same."""

    def same_conversation(ours: Any, theirs: Any) -> None:
        assert ours.uri == theirs.uri
        assert normal(json.loads(ours.body)[said]) == normal(json.loads(theirs.body)[said])

    made = vcr.VCR(record_mode="none", match_on=("method", "uri", "conversation"), serializer="reader")
    made.register_serializer("reader", Reader)
    made.register_persister(Shelf)
    made.register_matcher("conversation", same_conversation)
    return made


def chat_prompt(exchange: Exchange) -> Prompt:
    """What was asked."""
    system, messages = chat.conversation(exchange.request["messages"])
    return Prompt(system, (), messages)


def by_file(exchanges: Iterable[Exchange]) -> list[tuple[str, list[Exchange]]]:
    """Group what one cassette holds, in its order."""
    return [(str(path), list(group)) for path, group in itertools.groupby(exchanges, key=lambda one: one.path)]


async def test_recorded_completions_come_through_the_sdk() -> None:
    """Each recorded reply to texts and tool loops, streamed or not, is what it is without a network."""
    tape = player(chat.normal, "messages")
    model = OpenAIChatModel(chat.MODEL, endpoint=Endpoint("k"), max_output_tokens=100)
    found = [one for one in chat.answered() if one.url == URL and all(map(chat.is_plain, one.request["messages"]))]
    for path, exchanges in by_file(found):
        with tape.use_cassette(path):
            for exchange in exchanges:
                reply = await model.ask(chat_prompt(exchange))
                assert reply == chat_wire.from_wire(chat.told(exchange), model=chat.MODEL), exchange.name
    await model.close()
    assert len(found) == 139
    assert model.unknown == {}


async def test_recorded_responses_come_through_the_sdk() -> None:
    """The same of the other wire, sealed reasoning included."""
    tape = player(responses.normal, "input")
    model = OpenAIResponsesModel(
        responses.MODEL, endpoint=Endpoint("k"), max_output_tokens=100, reasoning=responses_wire.Reasoning()
    )
    found = [one for one in responses.answered() if not responses.foreign(one)]
    for path, exchanges in by_file(found):
        with tape.use_cassette(path):
            for exchange in exchanges:
                reply = await model.ask(Prompt("", (), responses.conversation(exchange.request["input"])))
                assert reply == responses_wire.from_wire(responses.told(exchange), model=responses.MODEL), exchange.name
    await model.close()
    assert len(found) == 132


async def test_recorded_errors_come_through_the_sdk() -> None:
    """An error is the same one whether it came through the SDK or not."""
    tape = player(chat.normal, "messages")
    model = OpenAIChatModel(chat.MODEL, endpoint=Endpoint("k"), max_output_tokens=100)
    for exchange in [one for one in chat.recorded() if one.status != 200]:
        with tape.use_cassette(str(exchange.path)), pytest.raises(ModelError) as caught:
            await model.ask(chat_prompt(exchange))
        expected = error_for(exchange.status, exchange.body)
        assert (type(caught.value), str(caught.value)) == (type(expected), str(expected)), exchange.name
    await model.close()


async def test_another_conversation_is_not_answered() -> None:
    """The player compares what is said, so the tests above hold our requests against the recorded ones."""
    exchange = next(one for one in chat.answered() if one.url == URL)
    model = OpenAIChatModel(chat.MODEL, endpoint=Endpoint("k"), max_output_tokens=100)
    tape = player(chat.normal, "messages")
    with tape.use_cassette(str(exchange.path)), pytest.raises(CannotOverwriteExistingCassetteException):
        await model.ask(Prompt("other", (), ()))
    await model.close()
