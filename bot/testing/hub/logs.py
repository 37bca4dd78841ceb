"""The host that logs of jobs are downloaded from: it takes links and no logins, and gives out parts."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.testing.hub.hub import Hub

PART = re.compile(r"bytes=(\d+)-(\d*)")


class LogApp:
    """Answers `/actions-logs/{code}`, the whole log or the part that a `Range` names.

    Args:
        hub: holds the links.
    """

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._answer(Request(scope, receive))(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        if "authorization" in request.headers:
            # A signed link and a login beside it are one too many for the real host too.
            return Response("InvalidAuthenticationInfo", 400)
        log = self.hub.linked_log(request.path_params["code"])
        if log is None:
            return Response("AuthenticationFailed", 403)
        asked = PART.fullmatch(request.headers.get("range", ""))
        if asked is None:
            return Response(log, media_type="text/plain")
        first = int(asked[1])
        last = min(int(asked[2] or len(log)), len(log) - 1)
        if first > last:
            return Response(status_code=416)
        where = {"Content-Range": f"bytes {first}-{last}/{len(log)}"}
        return Response(log[first : last + 1], 206, where, "text/plain")
