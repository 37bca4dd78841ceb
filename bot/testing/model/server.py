"""Serve a script over HTTP on 127.0.0.1, in a thread with its own event loop."""

import asyncio
import hashlib
import json
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.testing.model.anthropic_check import check_body, check_headers, check_signatures
from bot.testing.model.anthropic_read import segments
from bot.testing.model.body import Asked, Body, Event, Rejected
from bot.testing.model.cache import PromptCache, count
from bot.testing.model.reply import Fault, Pace, Reply, cut_in_call, fault_for, within
from bot.testing.model.request import Request
from bot.testing.model.script import Script
from bot.testing.model.sending import Played, streamed, whole
from bot.testing.model.spoken import NATIVE, play_spoken
from bot.testing.model.wires import ANTHROPIC, SPOKEN, Wire

THREAD = "scripted-model"
SECRET_HEADERS = frozenset({"x-api-key", "api-key", "x-goog-api-key", "authorization"})


@dataclass(slots=True)
class Recorded:
    """One request as it came, and what became of it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case; keys left out."""
    raw: bytes
    at_s: float
    """Monotonic seconds."""
    body: Mapping[str, object] | None = None
    """As it was decoded, on Google's wire with what the path says; None where its check refused it."""
    status: int = 200
    conversation: str = ""
    turn: int = 0
    fault: Fault | None = None
    error: str = ""
    """Why it was refused."""


class ScriptedModel:
    """A script behind a port, until it is closed; it speaks every wire at once.

    Nothing but the counters of `Fault.times` and the prompt cache lives in the server: a new one on the same script
    goes on with every conversation where it was.
    """

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        api_key: str | None = None,
        dialect: str = NATIVE,
        cache: PromptCache | None = None,
    ) -> None:
        """Prepare; nothing is open yet.

        Args:
            script: what to play.
            port: on 127.0.0.1; 0: a free one.
            api_key: the only key accepted; None: any.
            dialect: how calls are spelled: by the API (`native`), or as text that the system prompt teaches.
            cache: the prompt cache, for another clock or size; owned by the server from here on.
        """
        self.script = script
        self.requests: list[Recorded] = []
        """All requests, oldest first."""
        self.problems: list[str] = []
        """Unmet expectations, missing turns, refused requests; each once. Empty at the end of a good test."""
        self._port = port
        self._api_key = api_key
        self._dialect = dialect
        self._cache = cache or PromptCache()
        self._attempts: Counter[str] = Counter()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Scheme, host and port: what clients of Anthropic, Google and Azure take as their base URL."""
        return f"http://127.0.0.1:{self._port}"

    def base_url(self, wire: str) -> str:
        """Return what a client of that vendor takes as its base URL.

        Args:
            wire: one of `WIRES`.
        """
        return self.url + SPOKEN[wire].base

    @property
    def model_id(self) -> str:
        """The model id of every reply."""
        return f"scripted:{self.script.name}"

    def start(self) -> None:
        """Open the port and serve; connections wait in the socket from the moment this returns.

        Raises:
            OSError: the port is taken.
        """
        listening = socket.create_server(("127.0.0.1", self._port), backlog=512)
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._app(), lifespan="off", ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
        logging.getLogger("uvicorn.error").addFilter(_not_ours)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, args=(self._server, listening), name=THREAD, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port; answers under way have a second. Twice does no harm."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join()
        self._server = self._thread = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    @staticmethod
    def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
        with listening:
            server.run([listening])

    def _app(self) -> Starlette:
        spoken = [
            Route(path, self._speaking(wire), methods=["POST"]) for wire in SPOKEN.values() for path in wire.paths
        ]
        return Starlette(
            routes=[
                Route("/", self._about),
                Route("/v1/models", self._models),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                *spoken,
            ]
        )

    async def _about(self, http: HttpRequest) -> Response:
        text = f'This is no AI. It plays the script "{self.script.name}".\n'
        return PlainTextResponse(text, headers=self._headers())

    async def _models(self, http: HttpRequest) -> Response:
        model = {"type": "model", "id": self.model_id, "display_name": f"Scripted (no AI): {self.script.name}"}
        data = [{**model, "created_at": "2026-01-01T00:00:00Z"}]
        page = {"data": data, "has_more": False, "first_id": self.model_id, "last_id": self.model_id}
        return JSONResponse(page, headers=self._headers())

    async def _count_tokens(self, http: HttpRequest) -> Response:
        recorded, asked = await self._record(http)
        try:
            check_headers(asked.headers, self._api_key)
            body = check_body(asked.raw, counting=True)
            check_signatures(body)
        except Rejected as rejected:
            return self._refuse(recorded, rejected, ANTHROPIC)
        recorded.body = body
        return JSONResponse({"input_tokens": count(segments(body))}, headers=self._headers())

    def _speaking(self, wire: Wire) -> Callable[[HttpRequest], Awaitable[Response]]:
        """Return what answers requests on a wire."""

        async def answer(http: HttpRequest) -> Response:
            recorded, asked = await self._record(http)
            try:
                body = self._checked(recorded, asked, wire)
            except Rejected as rejected:
                return self._refuse(recorded, rejected, wire)
            request = wire.read(body)
            reply = self._reply(recorded, request)
            fault = recorded.fault
            if fault is not None and fault.kind == "status":
                return self._fail(recorded, fault, fault.status, wire)
            reply = within(reply, request.max_tokens)
            if fault is not None and fault.kind == "cut":
                reply = cut_in_call(reply)
            await asyncio.sleep(reply.pace.delay_s)
            usage = self._cache.charge(wire.segments(body))
            if request.stream:
                return self._streamed(wire.frames(reply, usage, self.model_id, body), reply.pace, fault, wire)
            return self._whole(recorded, wire.body(reply, usage, self.model_id), wire)

        return answer

    async def _record(self, http: HttpRequest) -> tuple[Recorded, Asked]:
        """Keep a request before anything of it is judged."""
        headers = {name.lower(): value for name, value in http.headers.items()}
        asked = Asked(http.url.path, http.query_params, headers, await http.body())
        kept = {name: value for name, value in headers.items() if name not in SECRET_HEADERS}
        recorded = Recorded(http.method, asked.path, kept, asked.raw, time.monotonic())
        self.requests.append(recorded)
        return recorded, asked

    def _checked(self, recorded: Recorded, asked: Asked, wire: Wire) -> Body:
        """Return the body if the API would take the request. Raises `Rejected` else."""
        body = recorded.body = wire.check(asked, self._api_key)
        tokens = count(wire.segments(body))
        if tokens > self.script.window:
            raise Rejected(wire.overflow.format(tokens=tokens, window=self.script.window))
        return body

    def _reply(self, recorded: Recorded, request: Request) -> Reply:
        try:
            reply = play_spoken(self.script, request, self._dialect)
        except Exception as error:  # noqa: BLE001 - a callable turn is a test's own code; its failure must be seen there
            reply = Reply(problem=f"a callable turn raised {error!r}", faults=[Fault(message=repr(error))])
        if reply.problem:
            self._note(reply.problem)
        recorded.conversation, recorded.turn = reply.conversation, reply.turn
        recorded.fault = fault_for(reply.faults, self._attempts[reply.key])
        self._attempts[reply.key] += 1
        return reply

    def _refuse(self, recorded: Recorded, rejected: Rejected, wire: Wire) -> Response:
        recorded.error, recorded.status = str(rejected), rejected.status
        self._note(f"refused with {rejected.status}: {rejected}")
        headers = self._headers()
        return JSONResponse(wire.refusal(rejected, headers["request-id"]), rejected.status, headers=headers)

    def _fail(self, recorded: Recorded, fault: Fault, status: int, wire: Wire) -> Response:
        recorded.status = status
        headers = self._headers()
        if fault.retry_after_s is not None:
            headers["retry-after"] = f"{fault.retry_after_s:g}"
        return JSONResponse(wire.failure(fault, status, headers["request-id"]), status, headers=headers)

    def _streamed(self, frames: Iterable[tuple[bytes, bool]], pace: Pace, fault: Fault | None, wire: Wire) -> Response:
        headers = self._headers() | {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        broken = wire.broken(fault or Fault(), headers["request-id"])
        return Played(streamed(list(frames), pace, fault, broken), headers, complete=not _drops(fault))

    def _whole(self, recorded: Recorded, body: Event, wire: Wire) -> Response:
        """Answer without a stream; faults of a stream become what they are without one."""
        fault = recorded.fault
        if fault is not None and fault.kind == "stream_error":
            return self._fail(recorded, fault, wire.overloaded, wire)
        headers = self._headers() | {"content-type": "application/json"}
        return Played(whole(json.dumps(body).encode(), fault), headers, complete=not _drops(fault))

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _headers(self) -> dict[str, str]:
        return {"x-scripted-model": "true", "request-id": self._request_id()}

    def _request_id(self) -> str:
        digest = hashlib.sha256(f"{self._port}:{len(self.requests)}".encode()).hexdigest()
        return f"req_01{digest[:22]}"


def _not_ours(record: logging.LogRecord) -> bool:
    """Keep uvicorn quiet about connections that are dropped on purpose, in our thread and nowhere else."""
    return record.threadName != THREAD


def _drops(fault: Fault | None) -> bool:
    return fault is not None and fault.kind == "drop"
