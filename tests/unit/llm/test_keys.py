"""Keys that a command prints: real processes, and models that ask for a new one when theirs is refused."""

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.domain.messages import Message, Prompt, TextPart
from bot.errors import ModelError, ModelRejected, ModelUnavailable
from bot.llm.anthropic import AnthropicModel
from bot.llm.base import Model
from bot.llm.google import GoogleModel
from bot.llm.keys import MAX_BYTES, CommandKey, KeyRefused, Renewing, renewing
from bot.llm.openai_chat import OpenAIChatModel
from bot.llm.openai_client import Endpoint
from bot.llm.openai_responses import OpenAIResponsesModel
from bot.redaction import forget_secrets, mask
from tests.unit.llm.google_peer import Answer, serving

PROMPT = Prompt("", (), (Message("user", (TextPart("Hi"),)),))


def counting(folder: Path) -> list[str]:
    """Make a command that prints `key-number-1`, then `key-number-2`, and so on."""
    script = folder / "count"
    script.write_text(f"#!/bin/sh\necho >> {folder}/asked\necho key-number-$(wc -l < {folder}/asked)\n")
    script.chmod(stat.S_IRWXU)
    return [str(script)]


def asked(folder: Path) -> int:
    """Count how often that command was run."""
    path = folder / "asked"
    return len(path.read_text().splitlines()) if path.exists() else 0


def lives(pid: int) -> bool:
    """Say whether a process is there and has not ended."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    """What one test made known is none of the next one's."""
    forget_secrets()
    yield
    forget_secrets()


async def test_a_key_is_kept_for_its_time(tmp_path: Path) -> None:
    """Who asks at the same time gets the same one; after its time, or when it is forgotten, there is a new one."""
    now_s = [0.0]
    key = CommandKey(counting(tmp_path), lifetime_s=300, clock=lambda: now_s[0])
    assert set(await asyncio.gather(key(), key(), key())) == {"key-number-1"}
    now_s[0] = 299.9
    assert await key() == "key-number-1"
    now_s[0] = 300.0
    assert await key() == "key-number-2"
    key.forget()
    assert await key() == "key-number-3"
    assert asked(tmp_path) == 3


async def test_a_key_is_masked_everywhere(tmp_path: Path) -> None:
    """It is a secret like those of the settings."""
    assert "key-number-1" in mask("This is key-number-1!")
    await CommandKey(counting(tmp_path))()
    assert mask("This is key-number-1!") == "This is ***!"


async def test_no_shell_reads_the_words() -> None:
    """They are passed as they are; the standard input is empty, and the working directory nobody's repository."""
    code = "import os, sys; print('|'.join([*sys.argv[1:], os.getcwd(), repr(sys.stdin.read())]).replace(' ', '_'))"
    key = CommandKey([sys.executable, "-c", code, "$HOME;*", "a b"])
    assert await key() == "$HOME;*|a_b|/|''"


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["sh", "-c", "echo the-secret; exit 3"], ModelRejected, "`sh`, failed with exit code 3. Run it by hand to se"),
        (["sh", "-c", "echo the-secret >&2; exit 1"], ModelRejected, "failed with exit code 1"),
        (["sh", "-c", "echo the-secret; kill -9 $$"], ModelRejected, "failed with exit code -9"),
        (["true", "the-secret"], ModelRejected, "`true`, printed no key"),
        (["printf", " \\n\\t\\n"], ModelRejected, "printed no key"),
        (["printf", "the-secret\\nsecond"], ModelRejected, "printed something that is no key: it has to be one word"),
        (["echo", "the-secret is"], ModelRejected, "no key"),
        (["echo", "the-secret-ü"], ModelRejected, "no key"),
        (["head", "-c", str(MAX_BYTES + 1), "/dev/zero"], ModelRejected, "exit code 1"),
        (["/nowhere/at-all", "the-secret"], ModelRejected, "`/nowhere/at-all`, cannot be run: No such file"),
        (["sh", "the\0secret"], ModelRejected, "cannot be run: a word of it cannot be passed on"),
        (["sleep", "30"], ModelUnavailable, "did not end within 0.3 s"),
        (["yes"], ModelRejected, "failed with exit code"),
    ],
)
async def test_a_command_that_gives_no_key_is_told_in_one_sentence(
    words: list[str], kind: type[ModelError], said: str
) -> None:
    """Its name and how it ended, nothing of what it printed or was told."""
    with pytest.raises(kind) as caught:
        await CommandKey(words, patience_s=0.3 if words[0] == "sleep" else 30)()
    assert type(caught.value) is kind
    assert said in str(caught.value)
    assert "the-secret" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_what_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    """Nothing is left running; a child that lives on behind a key that was printed is waited for no longer."""
    slow = CommandKey(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], patience_s=2)
    with pytest.raises(ModelUnavailable):
        await slow()
    while lives(int((tmp_path / "pid").read_text())):  # noqa: ASYNC110 - it is no child of ours
        await asyncio.sleep(0.01)
    # The child keeps what it was given for its output open.
    quick = CommandKey(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/child; echo a-key"])
    assert await quick() == "a-key"
    os.kill(int((tmp_path / "child").read_text()), 9)


async def test_a_failure_is_forgotten(tmp_path: Path) -> None:
    """The next request asks again."""
    key = CommandKey(["cat", str(tmp_path / "key")])
    with pytest.raises(ModelRejected, match="failed with exit code 1"):
        await key()
    (tmp_path / "key").write_text("  the-key \n")
    assert await key() == "the-key"


REFUSED = Answer(b'{"error": {"type": "authentication_error", "message": "No"}}', 401, "application/json")
HEARD = {
    "anthropic": '{"model": "m", "content": [], "stop_reason": "end_turn", "usage": {}}',
    "responses": '{"id": "r", "object": "response", "status": "completed", "output": [], "usage": null}',
    "chat": '{"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}',
    "google": '{"candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}]}',
}
Make = Callable[[str, CommandKey], Model]
MADE: dict[str, Make] = {
    "anthropic": lambda url, key: AnthropicModel("anthropic:m", api_key=key, base_url=url, max_output_tokens=9),
    "responses": lambda url, key: OpenAIResponsesModel("openai:m", endpoint=Endpoint(key, url), max_output_tokens=99),
    "chat": lambda url, key: OpenAIChatModel("openai-chat:m", endpoint=Endpoint(key, url), max_output_tokens=99),
    "google": lambda url, key: GoogleModel("google:m", api_key=key, base_url=url, max_output_tokens=9),
}


@pytest.mark.parametrize("api", MADE)
async def test_a_refused_key_is_fetched_anew_once(api: str, tmp_path: Path) -> None:
    """Through each vendor's SDK: the second request has the new key, and a later one that is refused twice fails."""
    whole = Answer(HEARD[api].encode(), kind="application/json")
    async with serving(REFUSED, whole, whole, REFUSED, REFUSED) as peer:
        key = CommandKey(counting(tmp_path))
        model = renewing(MADE[api](peer.url, key), key)
        assert (await model.ask(PROMPT)).stop == "end"
        assert (await model.ask(PROMPT)).stop == "end"
        with pytest.raises(KeyRefused, match=r"answered 401.*That key was just printed by `.*/count` of `api_key_com"):
            await model.ask(PROMPT)
        await model.close()
    assert [f"key-number-{n}" in head for n, head in zip([1, 2, 2, 2, 3], peer.heads, strict=True)] == [True] * 5
    assert asked(tmp_path) == 3


@pytest.mark.parametrize("api", MADE)
async def test_a_command_that_fails_fails_the_request(api: str) -> None:
    """No request is made, and what the model raises is ours."""
    async with serving() as peer:
        key = CommandKey(["false"])
        model = renewing(MADE[api](peer.url, key), key)
        with pytest.raises(ModelRejected, match="`false`, failed with exit code 1"):
            await model.ask(PROMPT)
        await model.close()
    assert peer.heads == []


def test_only_the_keys_of_commands_are_renewed() -> None:
    """A key that stands in the settings stays what it is."""
    model = MADE["anthropic"]("http://127.0.0.1:9", CommandKey(["true"]))
    assert renewing(model, "key") is model
    assert isinstance(renewing(model, CommandKey(["true"])), Renewing)
