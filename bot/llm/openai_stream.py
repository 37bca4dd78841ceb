"""A stream of OpenAI's SDK that tells how it ended; imported when a request is made, since the SDK is heavy."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import openai

if TYPE_CHECKING:
    from openai._streaming import ServerSentEvent


class Stream(openai.AsyncStream[object]):
    """Gives the decoded data of each event.

    The SDK keeps to itself whether a stream was closed by `[DONE]` or merely ended, and takes the empty data of an
    event that only keeps the connection alive for JSON. It has no public place to see events before it reads them.
    """

    is_done = False
    """Whether the line that closes a stream has come."""

    async def _iter_events(self) -> "AsyncIterator[ServerSentEvent]":
        async for sent in super()._iter_events():
            self.is_done = self.is_done or sent.data.startswith("[DONE]")
            if sent.data:
                yield sent
