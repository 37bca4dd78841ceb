"""Messages and facts come back from plain JSON as they were, and later versions do no harm."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.codec import message_from_data, message_to_data
from bot.domain.events import KINDS, Fact, Notice, RunEvent, from_data, kind_of, to_data
from bot.domain.messages import (
    Image,
    ImageType,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    Usage,
)
from bot.domain.refs import RepositoryRef
from bot.domain.task import Run, branch_name

TEXTS = st.text(max_size=20)
IMAGES = st.builds(Image, st.sampled_from(get_args(ImageType)), TEXTS)
PARTS: st.SearchStrategy[Part] = st.one_of(
    IMAGES,
    st.builds(TextPart, TEXTS),
    st.builds(ThinkingPart, TEXTS, TEXTS, TEXTS, TEXTS),
    st.builds(ToolCall, TEXTS, TEXTS, TEXTS),
    st.builds(ToolResult, TEXTS, TEXTS, st.booleans(), st.lists(IMAGES, max_size=2).map(tuple)),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant"])
MESSAGES = st.builds(Message, ROLES, st.lists(PARTS, max_size=6).map(tuple))
SECONDS = st.floats(0, 1e6)


_OBJECTS = st.dictionaries(TEXTS, TEXTS | st.booleans())
_KINDS: Sequence[tuple[Any, st.SearchStrategy[Any]]] = (
    (float, SECONDS),
    (float | None, st.none() | SECONDS),
    (Sequence[Mapping[str, object]], st.lists(_OBJECTS)),
    (Sequence[Mapping[str, object]] | None, st.none() | st.lists(_OBJECTS)),
    (Mapping[str, object] | None, st.none() | _OBJECTS),
    (Sequence[str], st.lists(TEXTS)),
)


def _strategy(hint: Any) -> st.SearchStrategy[Any]:  # Any: a type hint
    """Make values of a field's kind; no fact holds what is no number, nor what is no JSON."""
    known = next((made for kind, made in _KINDS if hint == kind), None)
    if known is None and get_origin(hint) is Mapping:
        return st.dictionaries(TEXTS, TEXTS)
    return st.from_type(hint) if known is None else known


FACTS: st.SearchStrategy[Any] = st.one_of(
    *(
        st.builds(made, **{name: _strategy(hint) for name, hint in get_type_hints(made).items()})
        for made in KINDS.values()
    )
)


@given(MESSAGES)
def test_a_message_comes_back_from_json(message: Message) -> None:
    """A message is the same behind JSON, thinking and its seal to the byte."""
    assert message_from_data(json.loads(json.dumps(message_to_data(message)))) == message


@given(MESSAGES)
def test_what_a_later_version_added_is_passed_over(message: Message) -> None:
    """Fields that this version does not know are passed over."""
    data: Any = message_to_data(message)
    data["later"] = 1
    for part in data["parts"]:
        part["later"] = {"x": 1}
        for image in part.get("images", ()):
            image["later"] = 1
    assert message_from_data(data) == message


def test_an_unknown_part_is_no_part_to_leave_out() -> None:
    """A kind of part that is unknown raises: leaving it out would break the provider's protocol."""
    with pytest.raises(KeyError):
        message_from_data({"role": "user", "parts": [{"kind": "hologram", "text": "x"}]})


def test_a_part_of_an_earlier_version_has_the_defaults() -> None:
    """Fields that are missing take their defaults."""
    data = {"role": "assistant", "parts": [{"kind": "thinking", "text": "Hm."}]}
    assert message_from_data(data) == Message("assistant", (ThinkingPart("Hm."),))
    data = {"role": "user", "parts": [{"kind": "result", "call_id": "a", "text": "ok", "is_error": False}]}
    assert message_from_data(data) == Message("user", (ToolResult("a", "ok"),))


@given(FACTS)
def test_a_fact_comes_back_from_json(fact: Fact) -> None:
    """Each kind of fact is the same behind JSON, with what a later version added passed over."""
    data = json.loads(json.dumps(to_data(fact)))
    assert from_data(kind_of(fact), data) == fact
    assert from_data(kind_of(fact), {**data, "later": [1]}) == fact


def test_each_kind_has_one_name() -> None:
    """The names in the records are of the known kinds, one for each, and all facts have one."""
    assert set(KINDS.values()) == set(get_args(Fact))
    assert len(set(KINDS.values())) == len(KINDS)
    assert all(kind_of.__name__ and "." in name for name in KINDS if name != "notice")


def test_facts_hold_nothing_that_json_lacks() -> None:
    """Every field of every fact is plain: no date, no nested class."""
    for made in KINDS.values():
        for kind in get_type_hints(made).values():
            assert not is_dataclass(kind)
            assert kind is not datetime
        assert fields(made)


def test_values_are_frozen() -> None:
    """What happened cannot be changed."""
    event = RunEvent("t", 1, 1, datetime(2026, 11, 30, tzinfo=UTC), Notice("x"))
    with pytest.raises(AttributeError):
        event.seq = 2  # type: ignore[misc]


@given(st.integers(0, 10**9), st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_branch_is_named_by_us_alone(number: int, task_id: str) -> None:
    """A task's branch is its number and eight digits of its id."""
    assert branch_name(number, task_id) == f"agent/{number}-{task_id[:8]}"


def test_small_words() -> None:
    """Names split at the slash, texts join, tokens add up, and a run's id is its task's with its number."""
    repository = RepositoryRef(1, "octo/garden")
    assert (repository.owner, repository.name) == ("octo", "garden")
    message = Message("assistant", (TextPart("a"), ToolCall("1", "x", "{}"), TextPart("b")))
    assert (message.text, len(message.calls)) == ("a\n\nb", 1)
    assert Usage(1, 2, 3, 4).total_tokens == 10
    assert Usage(1, 2, 3, 4) + Usage(4, 3, 2, 1) == Usage(5, 5, 5, 5)
    at = datetime(2026, 11, 30, tzinfo=UTC)
    run = Run("ab" * 16, 2, 7, "issue", "queued", None, "", "", "flora", None, None, 1, at)
    assert run.id == "ab" * 16 + "-2"
