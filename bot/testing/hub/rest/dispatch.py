"""From a request to an answer: who calls, which route, may they, what comes out, with GitHub's headers."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import format_datetime

from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.hub import Hub
from bot.testing.hub.identity import ANONYMOUS, Caller, identify
from bot.testing.hub.permissions import check_kind, check_repository
from bot.testing.hub.records import Repository
from bot.testing.hub.rest.call import JSON_TYPE, Answer, Call, parse_query
from bot.testing.hub.rest.routing import Router
from bot.testing.hub.rest.table import ROUTES

BY_ID = re.compile(r"/repositories/(\d+)(/.*)?")
NOT_MODIFIED = 304
OK = 200


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request; header names are lower case, `path` is below the API root and still quoted."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Dispatcher:
    """Answers requests, one at a time, under the hub's lock."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.router = Router(ROUTES)

    def answer(self, request: Request) -> Answer:
        """Return GitHub's answer to a request."""
        caller = ANONYMOUS
        with self.hub.lock:
            try:
                caller = identify(self.hub, request.headers.get("authorization"))
                self._check_limit(request, caller)
                answer = self._handle(request, caller)
            except HubError as refusal:
                answer = Answer(refusal.body(), refusal.status, refusal.headers)
            return self._finish(request, caller, answer)

    def _handle(self, request: Request, caller: Caller) -> Answer:
        path = self._by_name(request.path)
        found = self.router.find(request.method, path)
        if found is None:
            raise not_found()
        route, params = found
        check_kind(route.need, caller)
        repository = self._repository(params)
        if repository is not None and route.need.who == "repository":
            check_repository(self.hub, route.need, caller, repository)
        return route.handler(
            Call(
                hub=self.hub,
                caller=caller,
                method=request.method,
                path=path,
                params=params,
                query=parse_query(request.query),
                accept=request.headers.get("accept", ""),
                raw=request.body,
                found=repository,
            )
        )

    def _check_limit(self, request: Request, caller: Caller) -> None:
        if request.path != "/rate_limit":
            self.hub.meter.check(caller.key)

    def _by_name(self, path: str) -> str:
        """Turn `/repositories/1/x` into `/repos/owner/name/x`."""
        match = BY_ID.fullmatch(path)
        if match is None:
            return path
        repository = self.hub.repositories.get(int(match[1]))
        if repository is None:
            raise not_found()
        return f"/repos/{repository.full_name}{match[2] or ''}"

    def _repository(self, params: Mapping[str, str]) -> Repository | None:
        if "repo" not in params:
            return None
        return self.hub.repository(params["owner"], params["repo"])

    def _finish(self, request: Request, caller: Caller, answer: Answer) -> Answer:
        headers = {
            "Content-Type": JSON_TYPE,
            # the hub's clock, by which clients correct the times of their JSON web tokens
            "Date": format_datetime(self.hub.clock().astimezone(UTC), usegmt=True),
            "Cache-Control": "private, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP, Accept-Encoding, Accept, X-Requested-With",
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": secrets.token_hex(12).upper(),
        }
        if request.method == "GET" and answer.status == OK:
            etag = f'W/"{hashlib.sha256(answer.encoded()).hexdigest()}"'
            headers["ETag"] = etag
            if etag in re.split(r"\s*,\s*", request.headers.get("if-none-match", "")):
                answer = Answer(b"", NOT_MODIFIED)
        if answer.status != NOT_MODIFIED and request.path != "/rate_limit":
            self.hub.meter.count(caller.key)
        return Answer(answer.body, answer.status, {**headers, **self.hub.meter.headers(caller.key), **answer.headers})
