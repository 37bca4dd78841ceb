"""What the contracts of models share: every way to reach one, what is said to it, and a place that answers anything."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bot.domain.messages import Message, Part, Prompt, TextPart, ToolSpec
from bot.llm.anthropic import AnthropicModel
from bot.llm.google import GoogleModel
from bot.llm.openai_chat import OpenAIChatModel
from bot.llm.openai_client import Endpoint
from bot.llm.openai_responses import OpenAIResponsesModel

Adapter = AnthropicModel | OpenAIResponsesModel | OpenAIChatModel | GoogleModel
TOOLS = (ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
AZURE = "2025-04-01-preview"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to reach a model, and what it does not share with the others."""

    wire: str
    """As the scripted model names it."""
    name: str
    key: str
    """The variable that is named where the key is wrong."""
    make: Callable[..., Adapter]
    """Takes the server's address without a path, the key, and options of the adapter."""
    thinks: Mapping[str, Any] = field(default_factory=dict)
    """Options with which it shows its thinking, where it does not do that by itself."""
    is_azure: bool = False

    def model(self, url: str | None, key: Any = "k", **options: Any) -> Adapter:
        """Make a model of the server at this address, or of the vendor's own."""
        return self.make(self.name, url, key, **{"max_output_tokens": 4096, **options})


def anthropic(name: str, url: str | None, key: Any, **options: Any) -> Adapter:
    """On Anthropic's wire."""
    return AnthropicModel(name, api_key=key, base_url=url, **options)


def responses(name: str, url: str | None, key: Any, **options: Any) -> Adapter:
    """On OpenAI's newer wire."""
    return OpenAIResponsesModel(name, endpoint=Endpoint(key, url and f"{url}/v1"), **options)


def chat(name: str, url: str | None, key: Any, **options: Any) -> Adapter:
    """On OpenAI's older wire."""
    return OpenAIChatModel(name, endpoint=Endpoint(key, url and f"{url}/v1"), **options)


def azure_responses(name: str, url: str | None, key: Any, **options: Any) -> Adapter:
    """The newer wire at Azure."""
    return OpenAIResponsesModel(name, endpoint=Endpoint(key, url, api_version=AZURE, deployment="mine"), **options)


def azure_chat(name: str, url: str | None, key: Any, **options: Any) -> Adapter:
    """The older wire at Azure."""
    return OpenAIChatModel(name, endpoint=Endpoint(key, url, api_version=AZURE, deployment="mine"), **options)


def google(name: str, url: str | None, key: Any, **options: Any) -> Adapter:
    """On Google's wire."""
    return GoogleModel(name, api_key=key, base_url=url, **options)


LOW = {"effort": "low"}
WAYS = {
    "anthropic": Way("anthropic", "anthropic:claude-x", "ANTHROPIC_API_KEY", anthropic, {"thinking_budget": 2000}),
    "responses": Way("openai-responses", "openai:gpt-x", "OPENAI_API_KEY", responses),
    "chat": Way("openai-chat", "openai:gpt-x", "OPENAI_API_KEY", chat, LOW),
    "google": Way("google", "google:gemini-3-x", "GEMINI_API_KEY", google, {"thinking_budget": "adaptive"}),
    "azure-responses": Way("openai-responses", "openai:gpt-x", "OPENAI_API_KEY", azure_responses, is_azure=True),
    "azure-chat": Way("openai-chat", "openai:gpt-x", "OPENAI_API_KEY", azure_chat, LOW, is_azure=True),
}


def user(*parts: Part | str) -> Message:
    """A user message."""
    return Message("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def prompt(*messages: Message) -> Prompt:
    """A prompt with a tool."""
    return Prompt("You are a test.", TOOLS, messages)


async def no_sleep(_seconds: float) -> None:
    """Wait for nothing."""


@asynccontextmanager
async def answering(*answers: Response) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serve the answers one after the other, word for word, whatever is asked; gives the address and the requests."""
    left, seen = list(answers), list[Any]()

    async def answer(request: Request) -> Response:
        seen.append(await request.json())
        return left.pop(0)

    app = Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
        finally:
            server.should_exit = True
            await asyncio.to_thread(thread.join)


def stream(*pieces: bytes) -> Response:
    """Bytes as events."""
    return StreamingResponse(iterate(pieces), media_type="text/event-stream")


async def iterate(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces."""
    for piece in pieces:
        yield piece
