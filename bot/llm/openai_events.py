"""What the streams of both of OpenAI's wires are made of."""

from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]  # Any: the provider's JSON
"""The decoded data of one server-sent event."""

DONE: Event = {"type": "[DONE]"}
"""Stands for the line that closes a stream and is no JSON."""
