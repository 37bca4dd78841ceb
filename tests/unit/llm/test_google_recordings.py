"""Recorded traffic with Google: what the API said is what comes out, and what goes back is what it took."""

import base64
import itertools
import json
from collections import Counter
from typing import Any

import pytest

from bot.domain.messages import Message, Part, Prompt, Reply, Role, TextPart, ThinkingPart, ToolCall, ToolResult, Usage
from bot.errors import MalformedReply, ModelError, ModelRejected, ModelUnavailable
from bot.llm.anthropic_wire import NO_TEXT
from bot.llm.google_errors import error_for
from bot.llm.google_reply import ReplyBuilder
from bot.llm.google_wire import UNSEALED, from_wire, to_wire
from tests.unit.llm.google_traffic import MODEL, Json, Talk, lines, others, talks

STOPS = {"STOP": "end", "MAX_TOKENS": "length"}
OURS = {"text", "thought", "thoughtSignature", "functionCall"}


def answered() -> list[Talk]:
    """All replies of the cassettes, and of gemini-cli's lines."""
    return [talk for talk in (*talks(), *lines()) if talk.status == 200]


def malformed(talk: Talk) -> bool:
    """Whether the API could not read the model's call."""
    return any(c.get("finishReason") == "MALFORMED_FUNCTION_CALL" for x in talk.chunks for c in x.get("candidates", ()))


def kind(part: Json) -> str:
    """Name what a part is."""
    return "thought" if part.get("thought") else next(key for key in ("functionCall", "text") if key in part)


def shown(talk: Talk) -> list[tuple[str, str]]:
    """Tell the parts that are ours: texts that follow each other joined, calls as JSON."""
    ours = [part for part in talk.parts if part.keys() & {"text", "functionCall"}]
    told = []
    for what, run in itertools.groupby(ours, kind):
        if what == "functionCall":
            told += [(what, json.dumps([p["functionCall"]["name"], p["functionCall"].get("args", {})])) for p in run]
        elif joined := "".join(part["text"] for part in run):
            told.append((what, joined))
    return told


def seen(reply: Reply) -> list[tuple[str, str]]:
    """Tell the parts of our message in the same way; seals without a text are none."""
    told = []
    for part in reply.message.parts:
        if isinstance(part, ToolCall):
            told.append(("functionCall", json.dumps([part.name, json.loads(part.arguments)])))
        elif isinstance(part, ThinkingPart) and part.text:
            told.append(("thought", part.text))
        elif isinstance(part, TextPart):
            told.append(("text", part.text))
    return told


def seals(parts: list[Json]) -> list[tuple[str, str]]:
    """Tell each signature, and what it seals."""
    return [
        (part["functionCall"]["name"] if "functionCall" in part else "text", part["thoughtSignature"])
        for part in parts
        if "thoughtSignature" in part and part.keys() <= OURS
    ]


def kept(reply: Reply) -> list[tuple[str, str]]:
    """Tell the seals of our message, and what they seal."""
    parts = reply.message.parts
    told = []
    for place, part in enumerate(parts):
        if isinstance(part, ThinkingPart) and (part.signature or part.data):
            following = parts[place + 1] if part.signature and not part.text else None
            told.append((following.name if isinstance(following, ToolCall) else "text", part.signature or part.data))
    return told


def counted(talk: Talk) -> Usage:
    """Read the last count of an answer."""
    usage: Json = next((c["usageMetadata"] for c in reversed(talk.chunks) if "usageMetadata" in c), {})
    cached = usage.get("cachedContentTokenCount", 0)
    output = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    return Usage(usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0) - cached, cached, 0, output)


def test_what_is_not_chosen_is_listed() -> None:
    """Of the cassettes all that ask generateContent or its stream are chosen; the rest are other APIs."""
    assert Counter((talk.status, talk.is_stream) for talk in talks()) == {
        (200, False): 88,
        (404, False): 1,
        (200, True): 27,
    }
    assert Counter(talk.is_stream for talk in lines()) == {True: 204, False: 33}
    assert others() == {
        "api.anthropic.com messages": 8,
        "api.openai.com completions": 2,
        "api.openai.com responses": 8,
        "generativelanguage.googleapis.com 7lf5him5ev4iemi1yjv2gwli5bhpz3yidzejwllo": 1,
        "generativelanguage.googleapis.com batchEmbedContents": 5,
        "generativelanguage.googleapis.com cachedContents": 1,
        "generativelanguage.googleapis.com completions": 2,
        "generativelanguage.googleapis.com fileSearchStores": 1,
        "generativelanguage.googleapis.com models": 2,
        "generativelanguage.googleapis.com testfilesearchgroundingstre-p2hcv3cs2i69": 1,
        "generativelanguage.googleapis.com uploadToFileSearchStore": 2,
    }


def test_replies_are_read_as_they_were_sent() -> None:
    """Texts, thoughts, calls with ids and arguments, signatures where they were, usage and stop reason of each."""
    tally: Counter[str] = Counter()
    for talk in answered():
        if malformed(talk):
            continue
        reply = from_wire(talk.chunks, model=MODEL)
        assert seen(reply) == shown(talk), talk.name
        assert kept(reply) == seals(talk.parts), talk.name
        given = [part["functionCall"].get("id") for part in talk.parts if "functionCall" in part]
        ids = [call.id for call in reply.message.calls]
        assert ids == [theirs or ours for theirs, ours in zip(given, ids, strict=True)], talk.name
        assert len(set(ids)) == len(ids)
        assert reply.usage == counted(talk), talk.name
        reason = [c["finishReason"] for x in talk.chunks for c in x.get("candidates", ()) if "finishReason" in c][-1]
        assert reply.stop == ("tool" if ids else STOPS[reason]), talk.name
        assert reply.model == talk.chunks[-1].get("modelVersion", "")
        tally.update(calls=len(ids), made=given.count(None), seals=len(seals(talk.parts)), replies=1)
    assert tally == {"replies": 351, "calls": 201, "made": 153, "seals": 143}


def test_usage_adds_up_to_what_was_billed() -> None:
    """Our disjoint fields give the provider's own total; one line that was written by hand has a wrong one."""
    odd = []
    for talk in answered():
        total = next((c["usageMetadata"]["totalTokenCount"] for c in talk.chunks[::-1] if "usageMetadata" in c), 0)
        if counted(talk).total_tokens != total:
            odd.append(talk.name)
    assert odd == ["perf-tests__perf.asian-language#1"]


def test_what_is_passed_over_is_counted() -> None:
    """Parts of Google's own tools, and what it tells of its searches; nothing else in any recording is unknown."""
    total: Counter[str] = Counter()
    for talk in answered():
        builder = ReplyBuilder(MODEL)
        for chunk in talk.chunks:
            builder.feed(chunk)
        expected = Counter(f"part {key}" for part in talk.parts for key in part if key not in OURS)
        expected["candidate groundingMetadata"] = sum(
            "groundingMetadata" in c for x in talk.chunks for c in x.get("candidates", ())
        )
        assert builder.unknown == +expected, talk.name
        total += builder.unknown
    assert total == {
        "candidate groundingMetadata": 8,
        "part executableCode": 6,
        "part codeExecutionResult": 6,
        "part toolCall": 8,
        "part toolResponse": 8,
    }


def test_a_call_that_the_api_could_not_read_is_no_reply() -> None:
    """The one recorded MALFORMED_FUNCTION_CALL is an error that is tried again."""
    found = [talk for talk in answered() if malformed(talk)]
    assert len(found) == 1
    with pytest.raises(MalformedReply, match="MALFORMED_FUNCTION_CALL"):
        from_wire(found[0].chunks, model=MODEL)


def test_a_stream_that_is_cut_anywhere_is_no_reply() -> None:
    """Whatever chunk is the last one: before the one with a reason to stop there is an error and never a call."""
    cuts = 0
    for talk in answered():
        finishing = next(n for n, x in enumerate(talk.chunks) for c in x.get("candidates", ()) if "finishReason" in c)
        for end in range(finishing + 1):
            with pytest.raises(ModelUnavailable, match="broke off"):
                from_wire(talk.chunks[:end], model=MODEL)
            cuts += 1
    assert cuts > 450


def test_recorded_errors_become_ours() -> None:
    """The one that was recorded is a wrong name of a model."""
    found = [talk for talk in talks() if talk.status != 200]
    assert [talk.status for talk in found] == [404]
    error = error_for(404, found[0].chunks[0])
    assert type(error) is ModelRejected
    assert "models/gemini-3.6-flahs is not found" in str(error)
    assert "Set the model to one that this account has" in str(error)


def test_no_error_of_a_recording_is_foreign() -> None:
    """Streams in a wrong order, and chunks that lost a field, are replies or a `ModelError`."""
    for talk in answered()[:80]:
        for chunks in itertools.islice(itertools.permutations(talk.chunks), 6):
            for field in ("content", "index", "finishReason"):
                broken = json.loads(json.dumps(chunks).replace(f'"{field}"', '"role"'))
                try:
                    from_wire(broken, model=MODEL)
                except ModelError:
                    continue


def calls_in(content: Json) -> list[Json]:
    """The calls of a recorded message, however they are spelt."""
    return [part.get("functionCall") or part.get("function_call") for part in content["parts"] if is_call(part)]


def is_call(part: Json) -> bool:
    """Whether it is a call."""
    return bool(part.keys() & {"functionCall", "function_call"})


def is_plain(talk: Talk) -> bool:
    """Whether the request has nothing but what the bot sends: texts, thoughts, calls and their results."""
    own = {*OURS, "functionResponse", "function_call", "function_response"}
    return all(part.keys() <= own for content in talk.request["contents"] for part in content["parts"])


def number_of(call: Json, places: dict[str, int]) -> str:
    """Name a call by its id, or by its name and how often that came."""
    places[call["name"]] = places.get(call["name"], -1) + 1
    return call.get("id") or f"{call['name']}-{places[call['name']]}"


def read(contents: list[Json]) -> list[Message]:
    """Read recorded messages into ours; a seal that another model's call was given is none."""
    asked: dict[str, int] = {}
    heard: dict[str, int] = {}
    return [
        Message(role_of(content), tuple(p for part in content["parts"] for p in parts_of(part, asked, heard)))
        for content in contents
    ]


def role_of(content: Json) -> Role:
    """Return our name of the role."""
    return "user" if content["role"] == "user" else "assistant"


def parts_of(part: Json, asked: dict[str, int], heard: dict[str, int]) -> list[Part]:
    """Read one recorded part."""
    seal = part.get("thoughtSignature", "")
    before: list[Part] = [ThinkingPart("", signature=seal, model=MODEL)] if seal and not is_sentinel(seal) else []
    if is_call(part):
        call = part.get("functionCall") or part.get("function_call") or {}
        return [*before, ToolCall(number_of(call, asked), call["name"], json.dumps(call["args"]))]
    if result := part.get("functionResponse") or part.get("function_response"):
        is_error = result["response"].keys() == {"error"}
        return [ToolResult(number_of(result, heard), json.dumps(result["response"]), is_error=is_error)]
    if part.get("thought"):
        return [ThinkingPart(part["text"], signature=seal, model=MODEL)]
    return [*before, TextPart(part["text"])]


def is_sentinel(seal: str) -> bool:
    """Whether it is the documented word, as it stands or in Base64 as pydantic-ai's SDK spells it."""
    return seal in (UNSEALED, base64.b64encode(UNSEALED.encode()).decode())


def normal(contents: list[Json], *, loosely: bool = False) -> list[Any]:
    """Leave out what may differ: neighbours of one role, spellings of names and results, the sentinel, empty texts.

    Loosely: ids as well, which each client makes itself, and thoughts, which some clients keep back.
    """
    told: list[Any] = []
    asked: dict[str, int] = {}
    heard: dict[str, int] = {}
    for content in contents:
        places = asked if content["role"] == "model" else heard
        shown = [
            part
            for part in content["parts"]
            if part.get("text") not in ("", NO_TEXT) and not (loosely and part.get("thought"))
        ]
        parts = [normal_part(part, places, ids=not loosely) for part in shown]
        if told and told[-1][0] == content["role"]:
            told[-1][1].extend(parts)
        else:
            told.append((content["role"], parts))
    return told


def normal_part(part: Json, places: dict[str, int], *, ids: bool) -> Json:
    """Leave out the same of one part."""
    seal = part.get("thoughtSignature", "")
    sealed = {"seal": base64.urlsafe_b64decode(seal.translate(str.maketrans("+/", "-_")))} if seal else {}
    if is_sentinel(seal):
        sealed = {}
    if is_call(part):
        call = part.get("functionCall") or part.get("function_call") or {}
        return {"call": number_of(call, places) if ids else call["name"], "args": json.dumps(call["args"]), **sealed}
    if result := part.get("functionResponse") or part.get("function_response"):
        response = result["response"]
        text = response.get("output", response.get("error")) if response.keys() <= {"output", "error"} else None
        told = text if isinstance(text, str) and text.startswith("{") else json.dumps(response)
        return {"result": number_of(result, places) if ids else result["name"], "of": told}
    return {"text": part["text"], "thought": part.get("thought", False), **sealed}


def test_recorded_requests_come_out_as_they_went_in() -> None:
    """Each recorded conversation of texts, thoughts and tool loops, read into our messages, is written the same."""
    found = [talk for talk in talks() if talk.status == 200 and is_plain(talk)]
    loops = [talk for talk in found if any(calls_in(content) for content in talk.request["contents"])]
    assert (len(talks()) - len(found), len(found), len(loops)) == (4, 112, 52)
    for talk in found:
        sent = talk.request["contents"]
        written = to_wire(Prompt("", (), read(sent)), model=MODEL, max_output_tokens=100)["contents"]
        assert normal(written) == normal(sent), talk.name


def test_a_recorded_sentinel_is_ours_too() -> None:
    """Where a foreign call was sent with the documented word, and taken, our request has it in the same place."""
    checked = 0
    for talk in talks():
        if talk.status == 200 and is_plain(talk):
            written = to_wire(Prompt("", (), read(talk.request["contents"])), model=MODEL, max_output_tokens=100)
            ours = [part for content in written["contents"] for part in content["parts"] if is_call(part)]
            theirs = [part for content in talk.request["contents"] for part in content["parts"] if is_call(part)]
            for our, their in zip(ours, theirs, strict=True):
                if is_sentinel(their.get("thoughtSignature", "")):
                    assert our["thoughtSignature"] == UNSEALED, talk.name
                    checked += 1
    assert checked == 19


def test_a_recorded_loop_goes_on_with_the_reply_that_was_read() -> None:
    """A reply read from a recording and written back is what the recorded next request has in its place."""
    checked, unanswered = 0, []
    for first, second in itertools.pairwise(talks()):
        if first.path != second.path or not (first.status == second.status == 200):
            continue
        before, after = first.request["contents"], second.request["contents"]
        calls = [part for part in first.parts if "functionCall" in part]
        if not (is_plain(first) and is_plain(second) and calls) or len(after) < len(before) + 2:
            continue
        said, heard = after[len(before)], [*itertools.takewhile(is_users, after[len(before) + 1 :])]
        if normal(after[: len(before)], loosely=True) != normal(before, loosely=True) or is_users(said):
            continue
        reply = from_wire(first.chunks, model=MODEL)
        given = [result for content in heard for part in content["parts"] if (result := answer_in(part))]
        if len(given) != len(calls):
            unanswered.append(first.name)
            continue
        pairs = zip(reply.message.calls, given, strict=True)
        results = [ToolResult(call.id, json.dumps(result["response"])) for call, result in pairs]
        texts = [TextPart(part["text"]) for content in heard for part in content["parts"] if "text" in part]
        history = [*read(before), reply.message, Message("user", (*results, *texts))]
        written = to_wire(Prompt("", (), history), model=MODEL, max_output_tokens=100)["contents"]
        assert normal(written, loosely=True) == normal([*before, said, *heard], loosely=True), first.name
        checked += 1
    # Once the client put a call of its own behind Google's.
    assert (checked, len(unanswered)) == (44, 1)


def is_users(content: Json) -> bool:
    """Whether a recorded message is the user's."""
    return bool(content["role"] == "user")


def answer_in(part: Json) -> Json | None:
    """The result in a part."""
    return part.get("functionResponse") or part.get("function_response")
