"""What people read when a model cannot be asked: one clear sentence, the same kinds on every wire.

`UPDATE_CASES=1` writes `error_sentences.md` anew; look at what it says before you keep it.
"""

import os
import re
import socket
from pathlib import Path

import pytest

from bot.domain.messages import Prompt
from bot.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from bot.llm.base import Model
from bot.providers import MAKERS, Wanted
from bot.settings.server import ServerSettings
from bot.testing.model.reply import Fault
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from tests.contract.models import prompt, user

PAGE = Path(__file__).with_name("error_sentences.md")
PROVIDERS = {"anthropic": "anthropic", "openai-responses": "openai", "openai-chat": "openai-chat", "google": "google"}
ASKED = prompt(user("Is anybody there?"))
LONG = prompt(user("Is anybody there? " * 2000))
FAILURES: dict[str, tuple[type[ModelError], Prompt, Turn]] = {
    "a wrong key": (ModelRejected, ASKED, Turn(text="yes")),
    "a wrong model name": (ModelRejected, ASKED, Turn(faults=[Fault(status=404)])),
    "an unreachable base URL": (ModelUnavailable, ASKED, Turn(text="yes")),
    "a rate limit": (ModelUnavailable, ASKED, Turn(faults=[Fault(status=429, retry_after_s=7)])),
    "an overflow": (ContextOverflow, LONG, Turn(text="yes")),
}


def made(wire: str, url: str, key: str) -> Model:
    """Make a model as the operator's settings say."""
    provider = PROVIDERS[wire]
    section = {"api_key": key, "base_url": url}
    settings = ServerSettings.model_validate({provider.replace("-", "_"): section})
    return MAKERS[provider](settings, Wanted(f"{provider}:some-model", 1000, "none"))


async def told(wire: str, what: str) -> str:
    """Provoke a failure and return what is said of it, without what differs from one time to the next."""
    kind, asked, turn = FAILURES[what]
    script = Script([Conversation("only", [turn])], window=5000)
    async with ScriptedModel(script, api_key="the-key") as server:
        url = server.base_url(wire)
        if what == "an unreachable base URL":
            with socket.create_server(("127.0.0.1", 0)) as closed:
                port = closed.getsockname()[1]
            url = f"http://127.0.0.1:{port}" + url.removeprefix(server.url)
        model = made(wire, url, "another-key" if what == "a wrong key" else "the-key")
        try:
            with pytest.raises(kind) as raised:
                await model.ask(asked)
        finally:
            await model.close()
        if what == "a rate limit":
            assert isinstance(raised.value, ModelUnavailable)
            assert raised.value.retry_after_s == 7
        # The count of tokens is the scripted server's, and not the point.
        said = re.sub(r"\b9\d{3}\b", "9000", str(raised.value))
        return said.replace(url.partition("//")[2].partition("/")[0], "HOST")


@pytest.mark.parametrize("wire", PROVIDERS)
async def test_each_failure_is_one_sentence(wire: str) -> None:
    """It names what happened and, where somebody can mend it, what to set."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    lines = [f"| {wire} | {what} | {await told(wire, what)} |" for what in FAILURES]
    if os.environ.get("UPDATE_CASES"):
        others = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(f"| {wire} |")]
        head = ["| wire | failure | sentence |", "|---|---|---|"]
        rows = sorted({line for line in [*others, *lines] if not line.startswith("| wire")})
        PAGE.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")
        return
    assert [line for line in lines if line not in page.splitlines()] == []
