"""Serve a script on OpenAI's two wires beside Anthropic's, in the same server."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.testing.model import openai_chat_wire, openai_responses_wire
from bot.testing.model.anthropic_check import Rejected
from bot.testing.model.anthropic_read import Body
from bot.testing.model.cache import Usage, count
from bot.testing.model.openai_check import check_chat, check_key, check_responses, decode
from bot.testing.model.openai_errors import Event, fault_error, rejection
from bot.testing.model.openai_read import read_chat, read_responses, segments
from bot.testing.model.play import play
from bot.testing.model.reply import Fault, Reply, cut_in_call, fault_for, within
from bot.testing.model.request import Request
from bot.testing.model.sending import Played, streamed, whole
from bot.testing.model.server import SECRET_HEADERS, Recorded, ScriptedModel

SECRETS = SECRET_HEADERS | {"api-key"}


@dataclass(frozen=True, slots=True)
class _Wire:
    """One way to speak."""

    said: str
    """The key of the conversation in a body."""
    check: Callable[[Body], None]
    read: Callable[[Body], Request]
    body: Callable[[Reply, Usage, str], Event]
    frames: Callable[[Reply, Usage, str, bool], Iterable[tuple[bytes, bool]]]
    """The last argument: whether the client asked for the usage at the end."""
    broken: Callable[[Fault], bytes]


RESPONSES = _Wire(
    "input",
    check_responses,
    read_responses,
    openai_responses_wire.body,
    lambda reply, usage, model, _: openai_responses_wire.frames(reply, usage, model),
    openai_responses_wire.broken,
)
CHAT = _Wire(
    "messages",
    check_chat,
    read_chat,
    openai_chat_wire.body,
    lambda reply, usage, model, counted: openai_chat_wire.frames(reply, usage, model, counted=counted),
    openai_chat_wire.broken,
)


class ScriptedOpenAI(ScriptedModel):
    """A script behind a port that speaks all of it; its base URL for OpenAI's wires is `openai_url`."""

    @property
    def openai_url(self) -> str:
        """What a client of OpenAI's takes as its base URL; Azure's takes `url`."""
        return f"{self.url}/v1"

    def _app(self) -> Starlette:
        app = super()._app()
        for path in ("/v1/responses", "/openai/responses"):
            app.routes.append(Route(path, self._responses, methods=["POST"]))
        for path in ("/v1/chat/completions", "/openai/deployments/{deployment}/chat/completions"):
            app.routes.append(Route(path, self._completions, methods=["POST"]))
        return app

    async def _responses(self, http: HttpRequest) -> Response:
        return await self._answer(http, RESPONSES)

    async def _completions(self, http: HttpRequest) -> Response:
        return await self._answer(http, CHAT)

    async def _answer(self, http: HttpRequest, wire: _Wire) -> Response:
        recorded = await self._received(http)
        try:
            body = self._approved(recorded, {name.lower(): value for name, value in http.headers.items()}, wire)
        except Rejected as rejected:
            recorded.error, recorded.status = str(rejected), rejected.status
            self._note(f"refused with {rejected.status}: {rejected}")
            return JSONResponse(rejection(rejected), rejected.status, headers=self._headers())
        request = wire.read(body)
        reply = self._played(recorded, request)
        fault = recorded.fault
        if fault is not None and fault.kind == "status":
            return self._failed(recorded, fault, fault.status)
        reply = within(reply, request.max_tokens)
        if fault is not None and fault.kind == "cut":
            reply = cut_in_call(reply)
        await asyncio.sleep(reply.pace.delay_s)
        usage = self._cache.charge(segments(body, wire.said))
        if request.stream:
            return self._streamed(wire, reply, usage, fault, counted=_counts(body))
        if fault is not None and fault.kind == "stream_error":
            return self._failed(recorded, fault, 503)
        data = json.dumps(wire.body(reply, usage, self.model_id)).encode()
        headers = self._headers() | {"content-type": "application/json"}
        return Played(whole(data, fault), headers, complete=not _drops(fault))

    def _streamed(self, wire: _Wire, reply: Reply, usage: Usage, fault: Fault | None, *, counted: bool) -> Response:
        events = list(wire.frames(reply, usage, self.model_id, counted))
        headers = self._headers() | {"content-type": "text/event-stream; charset=utf-8"}
        frames = streamed(events, reply.pace, fault, wire.broken(fault or Fault()))
        return Played(frames, headers, complete=not _drops(fault))

    async def _received(self, http: HttpRequest) -> Recorded:
        kept = {name.lower(): value for name, value in http.headers.items() if name.lower() not in SECRETS}
        recorded = Recorded(http.method, http.url.path, kept, await http.body(), time.monotonic())
        self.requests.append(recorded)
        return recorded

    def _approved(self, recorded: Recorded, headers: Mapping[str, str], wire: _Wire) -> Body:
        """Return the body if the API would take the request. Raises `Rejected` else."""
        check_key(headers, self._api_key)
        body = decode(recorded.raw)
        wire.check(body)
        recorded.body = body
        tokens, window = count(segments(body, wire.said)), self.script.window
        if tokens > window:
            raise Rejected(
                f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
                "tokens. Please reduce the length of the messages."
            )
        return body

    def _played(self, recorded: Recorded, request: Request) -> Reply:
        try:
            reply = play(self.script, request)
        except Exception as error:  # noqa: BLE001 - a callable turn is a test's own code; its failure must be seen there
            reply = Reply(problem=f"a callable turn raised {error!r}", faults=[Fault(message=repr(error))])
        if reply.problem:
            self._note(reply.problem)
        recorded.conversation, recorded.turn = reply.conversation, reply.turn
        recorded.fault = fault_for(reply.faults, self._attempts[reply.key])
        self._attempts[reply.key] += 1
        return reply

    def _failed(self, recorded: Recorded, fault: Fault, status: int) -> Response:
        recorded.status = status
        headers = self._headers()
        if fault.retry_after_s is not None:
            headers["retry-after"] = f"{fault.retry_after_s:g}"
        return JSONResponse(fault_error(fault, status), status, headers=headers)


def _counts(body: Body) -> bool:
    """Whether the client asked for the usage at the end of a stream."""
    options = body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


def _drops(fault: Fault | None) -> bool:
    return fault is not None and fault.kind == "drop"
