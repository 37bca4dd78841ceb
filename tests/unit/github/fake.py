"""A small GitHub over HTTP whose next answers a test can plan, and a clock that only moves when it is told to."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from fnmatch import fnmatchcase
from typing import Any

import jwt
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

Answer = Callable[[Request], Response | None]

APP_ID = 4821
INSTALLATION_ID = 77
REPOSITORY = {"id": 5, "full_name": "ada/engine", "default_branch": "main", "private": True}


class Time:
    """Wall clock and monotonic clock; sleeping moves both at once."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
        self.seconds = 1000.0
        self.slept: list[float] = []

    def clock(self) -> datetime:
        """Return the wall clock."""
        return self.now

    def monotonic(self) -> float:
        """Return the seconds."""
        return self.seconds

    def pass_(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds

    async def sleep(self, seconds: float) -> None:
        """Let time pass and note it."""
        self.slept.append(seconds)
        self.pass_(seconds)
        await asyncio.sleep(0)


class Truncated(Response):
    """Announces more than it sends, and then the connection drops."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the half of it."""
        headers = [(b"content-length", b"100"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"id":', "more_body": True})


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    raw_path: bytes


@dataclass
class FakeGitHub:
    """State first, HTTP second."""

    time: Time
    public_key: str
    url: str = ""
    skew: timedelta = timedelta()
    """How far its clock is ahead of ours."""
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, Any] = field(default_factory=dict)
    reactions: set[tuple[str, str]] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    mint_delay_s: float = 0.0
    delay_s: float = 0.0
    """Of each call on a repository."""
    expires_format: str = "%Y-%m-%dT%H:%M:%SZ"
    most_at_once: int = 0
    _at_once: int = 0
    _plan: list[tuple[str, str, Answer]] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        """Return the time by its own clock."""
        return self.time.now + self.skew

    def plan(self, method: str, path: str, *answers: Answer) -> None:
        """Let the next calls of this method and path glob be answered so; an answer of None works as ever."""
        self._plan += [(method, path, answer) for answer in answers]

    def calls(self, method: str, path: str) -> list[Seen]:
        """Return the requests of this method and path glob."""
        return [seen for seen in self.seen if seen.method == method and fnmatchcase(seen.path, path)]

    def app(self) -> Callable[[Scope, Receive, Send], Any]:
        """Return it as an ASGI application."""
        routes: list[tuple[str, str, Any]] = [
            ("POST", "/app/installations/{id:int}/access_tokens", self._mint),
            ("GET", "/app", self._app),
            ("GET", "/user", self._user),
            ("GET", "/users/{login}", self._account),
            ("GET", "/repositories/{id:int}", self._repository),
            ("GET", "/repos/ada/engine/collaborators/{login}/permission", self._permission),
            ("GET", "/repos/ada/engine/issues/{number:int}", self._issue),
            ("GET", "/repos/ada/engine/issues/{number:int}/comments", self._list_comments),
            ("POST", "/repos/ada/engine/issues/{number:int}/comments", self._comment),
            ("PATCH", "/repos/ada/engine/issues/comments/{id:int}", self._edit),
            ("POST", "/repos/ada/engine/issues/{subject:path}/reactions", self._react),
            ("GET", "/repos/ada/engine/pulls", self._list_pulls),
            ("POST", "/repos/ada/engine/pulls", self._open),
            ("GET", "/repos/ada/engine/pulls/{number:int}", self._pull),
            ("PATCH", "/repos/ada/engine/pulls/{number:int}", self._update_pull),
            ("GET", "/repos/ada/engine/contents/{path:path}", self._content),
            ("GET", "/repos/ada/engine/git/ref/heads/agent/installation", self._issue),
        ]
        inner = Starlette(routes=[Route(f"/api/v3{path}", handler, methods=[m]) for m, path, handler in routes])

        async def outer(scope: Scope, receive: Receive, send: Send) -> None:
            body = b""
            while True:
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break

            async def replay() -> Any:
                return {"type": "http.request", "body": body}

            request = Request(scope, replay)
            path = request.url.path.removeprefix("/api/v3")
            self.seen.append(
                Seen(request.method, path, dict(request.headers), json.loads(body) if body else None, scope["raw_path"])
            )
            self._at_once += path.startswith("/repos/")
            self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                await asyncio.sleep(self.delay_s if path.startswith("/repos/") else 0.0)
                planned = self._take(request.method, path)
                answer = planned(request) if planned else None
                await (answer or inner)(scope, replay, self._dated(send))
            finally:
                self._at_once -= path.startswith("/repos/")

        return outer

    def _dated(self, send: Send) -> Send:
        async def dated(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ())]
                if not any(name.lower() == b"date" for name, _ in headers):
                    headers.append((b"date", format_datetime(self.now, usegmt=True).encode()))
                message = {**message, "headers": headers}
            await send(message)

        return dated

    def _take(self, method: str, path: str) -> Answer | None:
        for index, (want, glob, answer) in enumerate(self._plan):
            if want in ("*", method) and fnmatchcase(path, glob):
                del self._plan[index]
                return answer
        return None

    async def _mint(self, request: Request) -> Response:
        if not self._app_signed(request):
            return fail(401, "A JSON web token could not be decoded")
        await asyncio.sleep(self.mint_delay_s)
        value = f"ghs_{len(self.tokens) + 1}"
        expires = self.now + timedelta(hours=1)
        self.tokens[value] = {**(await request.json()), "expires": expires}
        return JSONResponse({"token": value, "expires_at": expires.strftime(self.expires_format)}, 201)

    def _app_signed(self, request: Request) -> bool:
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        options: Any = {"verify_exp": False, "verify_iat": False}
        try:
            claims = jwt.decode(value, self.public_key, algorithms=["RS256"], options=options)
        except jwt.PyJWTError:
            return False
        now = self.now.timestamp()
        return kind == "Bearer" and claims["iss"] == str(APP_ID) and claims["iat"] <= now < claims["exp"] <= now + 600

    def _known(self, request: Request) -> bool:
        token = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        return token is not None and token["expires"] > self.now

    async def _app(self, request: Request) -> Response:
        if not self._app_signed(request):
            return fail(401, "A JSON web token could not be decoded")
        return JSONResponse({"id": APP_ID, "slug": "issuewright"})

    async def _user(self, request: Request) -> Response:
        return fail(403, "Resource not accessible by integration")

    async def _account(self, request: Request) -> Response:
        if not self._known(request):
            return fail(401, "Bad credentials")
        login = request.path_params["login"]
        return JSONResponse({"id": 900, "login": login, "type": "Bot" if login.endswith("[bot]") else "User"})

    async def _repository(self, request: Request) -> Response:
        return JSONResponse(REPOSITORY) if self._known(request) else fail(401, "Bad credentials")

    async def _permission(self, request: Request) -> Response:
        role = self.roles.get(request.path_params["login"])
        return JSONResponse(role) if role else fail(404, "Not Found")

    async def _issue(self, request: Request) -> Response:
        if not self._known(request):
            return fail(401, "Bad credentials")
        number = request.path_params.get("number", 1)
        return JSONResponse({"number": number, "title": "T", "body": None, "state": "open", "user": None, "labels": []})

    async def _list_comments(self, request: Request) -> Response:
        page, size = int(request.query_params["page"]), int(request.query_params["per_page"])
        shown = self.comments[(page - 1) * size : page * size]
        more = page * size < len(self.comments)
        # A link that leads elsewhere: nobody may follow it with a token.
        headers = {"link": '<https://elsewhere.example/comments?page=2>; rel="next"'} if more else {}
        return JSONResponse(shown, headers=headers)

    async def _comment(self, request: Request) -> Response:
        if not self._known(request):
            return fail(401, "Bad credentials")
        body = (await request.json())["body"]
        comment = {"id": len(self.comments) + 1, "body": body, "html_url": "u", "user": {"id": 900, "login": "b"}}
        self.comments.append(comment)
        return JSONResponse(comment, 201)

    async def _edit(self, request: Request) -> Response:
        comment = next((c for c in self.comments if c["id"] == request.path_params["id"]), None)
        if comment is None:
            return fail(404, "Not Found")
        comment["body"] = (await request.json())["body"]
        return JSONResponse(comment)

    async def _react(self, request: Request) -> Response:
        self.reactions.add((request.path_params["subject"], (await request.json())["content"]))
        return JSONResponse({"id": 1}, 201)

    async def _list_pulls(self, request: Request) -> Response:
        return JSONResponse(self.pulls)

    async def _open(self, request: Request) -> Response:
        wanted = await request.json()
        if any(pull["head"]["ref"] == wanted["head"] for pull in self.pulls):
            reason = f"A pull request already exists for ada:{wanted['head']}."
            return JSONResponse({"message": "Validation Failed", "errors": [{"message": reason}]}, 422)
        self.pulls.append(pull(len(self.pulls) + 10, wanted["head"], title=wanted["title"], body=wanted["body"]))
        return JSONResponse(self.pulls[-1], 201)

    async def _pull(self, request: Request) -> Response:
        return JSONResponse(pull(request.path_params["number"], "b"))

    async def _update_pull(self, request: Request) -> Response:
        return JSONResponse(pull(request.path_params["number"], "b", body=(await request.json())["body"]))

    async def _content(self, request: Request) -> Response:
        content = self.files.get(request.path_params["path"])
        if content is None:
            return fail(404, "Not Found")
        if isinstance(content, bytes):
            return JSONResponse({"type": "file", "encoding": "base64", "content": base64.encodebytes(content).decode()})
        return JSONResponse(content)


def pull(number: int, head: str, *, repository: int | None = 5, **more: object) -> dict[str, Any]:
    """Make a pull request as GitHub sends it."""
    return {
        "number": number,
        "html_url": f"https://github.com/ada/engine/pull/{number}",
        "title": "T",
        "body": None,
        "state": "open",
        "user": {"id": 1, "login": "ada", "type": "User"},
        "head": {"ref": head, "sha": "a" * 40, "repo": None if repository is None else {"id": repository}},
        "base": {"ref": "main", "sha": "b" * 40, "repo": {"id": 5}},
        **more,
    }


def fail(status: int, message: str = "no", **headers: str) -> Response:
    """Answer with a refusal; underscores in header names become dashes."""
    return JSONResponse({"message": message}, status, {name.replace("_", "-"): text for name, text in headers.items()})


async def serve(app: Any) -> AsyncIterator[str]:
    """Serve without uvicorn's main loop, whose ticks would cost each test some tenths of a second."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", date_header=False)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/v3"
    for connection in list(server.server_state.connections):
        connection.shutdown()
    for task in list(server.server_state.tasks):
        task.cancel()
    for listening in server.servers:
        listening.close()
    listener.close()
    await asyncio.sleep(0)
