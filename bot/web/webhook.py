"""The door for GitHub's deliveries: verify, decode what we read, keep it durably, answer."""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from bot.github.webhooks import decode, is_authentic, to_trigger
from bot.store.base import Delivery, DeliveryStore

Scope = MutableMapping[str, Any]  # ASGI's own shapes
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

Understand = Callable[[str, bytes], tuple[str | None, bool]]
"""Takes event and body; gives the key of the happening (None for what starts nothing) and whether to act on it.
Raises ValueError for a body that is not what it claims to be."""

MAX_BODY: Final = 25 * 1024 * 1024
"""Bytes. GitHub sends no larger payload: https://docs.github.com/en/webhooks/webhook-events-and-payloads#payload-cap"""
MAX_HELD: Final = 4 * MAX_BODY
"""Bytes of unfinished bodies over all connections: anybody can begin to send some."""
LARGE: Final = 256 * 1024
"""Bytes from which on a body is verified and decoded beside the event loop."""

_GUID = re.compile(rb"[A-Za-z0-9-]{1,64}")
_EVENT = re.compile(rb"[a-z][a-z0-9_]{0,63}")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the door waits."""

    body_s: float = 20.0
    """Seconds in which a body must arrive; GitHub itself gives up after 10."""
    store_s: float = 8.0
    """Seconds for the store; GitHub must hear a 503 within 10."""


class Refused(Exception):  # noqa: N818 - an answer, and it leaves this module never
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail


class _Gone(Exception):  # noqa: N818 - nobody is left to be told
    """The client hung up."""


def understanding(
    covers: Callable[[str], bool], *, own_app_id: int | None = None, own_user_ids: Collection[int] = ()
) -> Understand:
    """Make the usual way to understand deliveries.

    Args:
        covers: says of `owner/name` whether we serve it; deliveries of others are kept and ignored.
        own_app_id: our App; what it did itself starts nothing.
        own_user_ids: our bot accounts, for the same reason.
    """

    def understand(event: str, body: bytes) -> tuple[str | None, bool]:
        trigger = to_trigger(event, decode(body), own_app_id=own_app_id, own_user_ids=own_user_ids)
        if trigger is None or not covers(trigger.context.thread.repository.full_name):
            return None, False
        return trigger.context.event_key, True

    return understand


class WebhookReceiver:
    """ASGI application that takes deliveries."""

    def __init__(
        self,
        deliveries: DeliveryStore,
        secrets: Sequence[bytes],
        understand: Understand,
        clock: Callable[[], datetime],
        on_delivery: Callable[[], None],
        patience: Patience = Patience(),
    ) -> None:
        """Stand ready.

        Args:
            deliveries: where they are kept; stays the caller's.
            secrets: those that GitHub may sign with; without any, each delivery gets 503.
            understand: see `Understand`; called in a thread for large bodies.
            clock: the time, with a time zone.
            on_delivery: told after each new delivery to act on; must not raise.
            patience: how long to wait for bodies and for the store.
        """
        self._deliveries = deliveries
        self._secrets = tuple(secret for secret in secrets if secret)
        self._understand = understand
        self._clock = clock
        self._on_delivery = on_delivery
        self._patience = patience
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request."""
        try:
            status, answer = 202, await self._take(scope, receive)
        except Refused as refused:
            status = refused.status
            answer = json.dumps({"error": refused.code, "detail": refused.detail}).encode()
            logger.log(
                logging.ERROR if status == 503 else logging.WARNING,  # noqa: PLR2004 - as HTTP has it
                "webhook.refused",
                extra={"status": status, "code": refused.code},
            )
        except _Gone:
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        if status == 405:  # noqa: PLR2004 - as HTTP has it
            headers.append((b"allow", b"POST"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _take(self, scope: Scope, receive: Receive) -> bytes:
        if scope["method"] != "POST":
            raise Refused(405, "method_not_allowed", "GitHub posts deliveries here.")
        if not self._secrets:
            raise Refused(503, "not_set_up", "No webhook secret is configured, so no delivery can be trusted.")
        headers: dict[bytes, bytes] = dict(scope["headers"])
        guid, event, signature = _about(headers)
        body = await self._read(headers, receive)
        if len(body) < LARGE:
            key, wanted = self._open(event, body, signature)
        else:
            key, wanted = await asyncio.to_thread(self._open, event, body, signature)
        delivery = Delivery(guid, event, key, body, self._clock(), "received" if wanted else "ignored")
        if not await self._keep(delivery):
            return b'{"status":"duplicate"}'
        if not wanted:
            return b'{"status":"ignored"}'
        self._on_delivery()
        return b'{"status":"accepted"}'

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        length = headers.get(b"content-length", b"0")
        # More digits than this are no length that anybody sends, and `int` refuses thousands of them.
        if not length.isdigit() or len(length) > 12 or int(length) > MAX_BODY:  # noqa: PLR2004 - see above
            raise Refused(413, "too_large", "A delivery has at most 25 MiB.")
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            if len(body) > MAX_BODY:
                raise Refused(413, "too_large", "A delivery has at most 25 MiB.")
            return body
        try:
            async with asyncio.timeout(self._patience.body_s):
                return await self._gather(body, receive)
        except TimeoutError:
            seconds = self._patience.body_s
            raise Refused(408, "too_slow", f"The body did not arrive within {seconds:g} seconds.") from None

    async def _gather(self, first: bytes, receive: Receive) -> bytes:
        parts, size = [first], len(first)
        self._held += size
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Gone
                part: bytes = message.get("body", b"")
                more = message.get("more_body", False)
                parts.append(part)
                size += len(part)
                self._held += len(part)
                if size > MAX_BODY:
                    raise Refused(413, "too_large", "A delivery has at most 25 MiB.")
                if self._held > MAX_HELD:
                    raise Refused(503, "busy", "Too many large bodies at once.")
            return b"".join(parts)
        finally:
            self._held -= size

    def _open(self, event: str, body: bytes, signature: bytes) -> tuple[str | None, bool]:
        if not is_authentic(body, signature, self._secrets):
            raise Refused(401, "bad_signature", "The signature does not fit the body and our webhook secret.")
        try:
            return self._understand(event, body)
        except (ValueError, RecursionError) as error:
            raise Refused(400, "bad_payload", f"The body cannot be read: {str(error)[:200]}") from None

    async def _keep(self, delivery: Delivery) -> bool:
        try:
            async with asyncio.timeout(self._patience.store_s):
                return await self._deliveries.add(delivery)
        except Exception as error:
            # Whatever it was: what is not kept must not be acknowledged.
            logger.exception("webhook.not_kept", extra={"delivery": delivery.guid})
            raise Refused(503, "store_unavailable", "The delivery could not be kept; send it again.") from error


def _about(headers: dict[bytes, bytes]) -> tuple[str, str, bytes]:
    """Check what the headers say before anything of the body is read."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refused(
            415, "not_json", "Set the webhook's content type to application/json in the settings of the GitHub App."
        )
    signature = headers.get(b"x-hub-signature-256")
    if not signature:
        raise Refused(401, "bad_signature", "The header X-Hub-Signature-256 is missing.")
    guid = headers.get(b"x-github-delivery", b"")
    event = headers.get(b"x-github-event", b"")
    if not _GUID.fullmatch(guid) or not _EVENT.fullmatch(event):
        raise Refused(400, "bad_headers", "X-GitHub-Delivery and X-GitHub-Event must be there and well-formed.")
    return guid.decode("ascii"), event.decode("ascii"), signature
