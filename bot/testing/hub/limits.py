"""The primary rate limit: requests of each credential in an hour of the hub's clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bot.testing.hub.errors import HubError

HOUR_S = 3600
PER_HOUR = 5000
"""What a small installation may ask (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api)."""


class Meter:
    """Counts requests by whoever makes them.

    Args:
        clock: the hub's time.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.limit = PER_HOUR
        self._clock = clock
        self._windows: dict[str, tuple[int, int]] = {}

    def check(self, key: str) -> None:
        """Refuse a caller whose hour is used up.

        Raises:
            HubError: 403.
        """
        if self.overview(key)["remaining"] <= 0:
            raise HubError(403, f"API rate limit exceeded for {key}.")

    def count(self, key: str) -> None:
        """Count one request."""
        reset, used = self._window(key)
        self._windows[key] = (reset, used + 1)

    def overview(self, key: str) -> dict[str, int]:
        """Return one `rate-limit`."""
        reset, used = self._window(key)
        used = min(used, self.limit)
        return {"limit": self.limit, "remaining": self.limit - used, "reset": reset, "used": used}

    def headers(self, key: str) -> dict[str, str]:
        """Return the `x-ratelimit-*` headers."""
        overview = self.overview(key)
        return {
            **{f"x-ratelimit-{name}": f"{value}" for name, value in overview.items()},
            "x-ratelimit-resource": "core",
        }

    def _window(self, key: str) -> tuple[int, int]:
        now = int(self._clock().timestamp())
        reset, used = self._windows.get(key, (0, 0))
        if reset <= now:
            reset, used = now + HOUR_S, 0
            self._windows[key] = (reset, used)
        return reset, used
