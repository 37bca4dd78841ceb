"""Serve a script over HTTP on 127.0.0.1, in a thread with its own event loop."""

import asyncio
import hashlib
import json
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.testing.model import anthropic_wire as wire
from bot.testing.model.anthropic_check import Rejected, check_body, check_headers
from bot.testing.model.anthropic_read import Body, read_request, segments
from bot.testing.model.cache import PromptCache, count
from bot.testing.model.play import play
from bot.testing.model.reply import Fault, Reply, cut_in_call, fault_for, within
from bot.testing.model.script import Script
from bot.testing.model.sending import Played, streamed, whole

THREAD = "scripted-model"
SECRET_HEADERS = frozenset({"x-api-key", "authorization"})


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
    """None if it was refused before it was understood."""
    status: int = 200
    conversation: str = ""
    turn: int = 0
    fault: Fault | None = None
    error: str = ""
    """Why it was refused."""


class ScriptedModel:
    """A script behind a port, until it is closed.

    Nothing but the counters of `Fault.times` and the prompt cache lives in the server: a new one on the same script
    goes on with every conversation where it was.
    """

    def __init__(
        self, script: Script, *, port: int = 0, api_key: str | None = None, cache: PromptCache | None = None
    ) -> None:
        """Prepare; nothing is open yet.

        Args:
            script: what to play.
            port: on 127.0.0.1; 0: a free one.
            api_key: the only key accepted; None: any.
            cache: the prompt cache, for another clock or size; owned by the server from here on.
        """
        self.script = script
        self.requests: list[Recorded] = []
        """All requests, oldest first."""
        self.problems: list[str] = []
        """Unmet expectations, missing turns, refused requests; each once. Empty at the end of a good test."""
        self._port = port
        self._api_key = api_key
        self._cache = cache or PromptCache()
        self._attempts: Counter[str] = Counter()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self._port}"

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
        return Starlette(
            routes=[
                Route("/", self._about),
                Route("/v1/models", self._models),
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
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
        recorded = await self._record(http)
        try:
            body = self._checked(recorded, counting=True)
        except Rejected as rejected:
            return self._refuse(recorded, rejected)
        return JSONResponse({"input_tokens": count(segments(body))}, headers=self._headers())

    async def _messages(self, http: HttpRequest) -> Response:
        recorded = await self._record(http)
        try:
            body = self._checked(recorded)
        except Rejected as rejected:
            return self._refuse(recorded, rejected)
        reply = self._reply(recorded, body)
        fault = recorded.fault
        if fault is not None and fault.kind == "status":
            return self._fail(recorded, fault, fault.status)
        reply = within(reply, read_request(body).max_tokens)
        if fault is not None and fault.kind == "cut":
            reply = cut_in_call(reply)
        await asyncio.sleep(reply.pace.delay_s)
        usage = self._cache.charge(segments(body))
        if body.get("stream") is not True:
            return self._whole(recorded, wire.message_body(reply, usage, self.model_id))
        events = [
            (wire.sse(event), event["type"] == "content_block_delta")
            for event in wire.message_events(reply, usage, self.model_id)
        ]
        broken = wire.sse(wire.fault_error(fault or Fault(), 529, self._request_id()))
        headers = self._headers() | {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        return Played(streamed(events, reply.pace, fault, broken), headers, complete=not _drops(fault))

    async def _record(self, http: HttpRequest) -> Recorded:
        headers = {name.lower(): value for name, value in http.headers.items()}
        kept = {name: value for name, value in headers.items() if name not in SECRET_HEADERS}
        recorded = Recorded(http.method, http.url.path, kept, await http.body(), time.monotonic())
        self.requests.append(recorded)
        try:
            check_headers(headers, self._api_key)
        except Rejected as rejected:
            recorded.error, recorded.status = str(rejected), rejected.status
        return recorded

    def _checked(self, recorded: Recorded, *, counting: bool = False) -> Body:
        """Return the body if the API would take the request. Raises `Rejected` else."""
        if recorded.error:
            raise Rejected(recorded.error, recorded.status)
        body = check_body(recorded.raw, counting=counting)
        recorded.body = body
        wire.check_signatures(body)
        tokens = count(segments(body))
        if not counting and tokens > self.script.window:
            raise Rejected(f"prompt is too long: {tokens} tokens > {self.script.window} maximum")
        return body

    def _reply(self, recorded: Recorded, body: Body) -> Reply:
        try:
            reply = play(self.script, read_request(body))
        except Exception as error:  # noqa: BLE001 - a callable turn is a test's own code; its failure must be seen there
            reply = Reply(problem=f"a callable turn raised {error!r}", faults=[Fault(message=repr(error))])
        if reply.problem:
            self._note(reply.problem)
        recorded.conversation, recorded.turn = reply.conversation, reply.turn
        recorded.fault = fault_for(reply.faults, self._attempts[reply.key])
        self._attempts[reply.key] += 1
        return reply

    def _refuse(self, recorded: Recorded, rejected: Rejected) -> Response:
        recorded.error, recorded.status = str(rejected), rejected.status
        self._note(f"refused with {rejected.status}: {rejected}")
        error = wire.rejection(rejected, self._request_id())
        return JSONResponse(error, rejected.status, headers=self._headers())

    def _fail(self, recorded: Recorded, fault: Fault, status: int) -> Response:
        recorded.status = status
        headers = self._headers()
        if fault.retry_after_s is not None:
            headers["retry-after"] = f"{fault.retry_after_s:g}"
        return JSONResponse(wire.fault_error(fault, status, headers["request-id"]), status, headers=headers)

    def _whole(self, recorded: Recorded, body: Mapping[str, object]) -> Response:
        """Answer without a stream; faults of a stream become what they are without one."""
        fault = recorded.fault
        if fault is not None and fault.kind == "stream_error":
            return self._fail(recorded, fault, 529)
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
