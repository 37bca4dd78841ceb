"""Failure switches: which call of which route fails, and how."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

Kind = Literal[
    "status",  # answers `status` and does nothing
    "status_after",  # does it, then answers `status`
    "timeout_after",  # does it, then is silent for `seconds` and drops the connection
    "reset",  # drops the connection and does nothing
    "reset_after",  # does it, then drops the connection
    "delay",  # waits `seconds`, then works as ever
    "truncate",  # does it, then sends half of the body and drops the connection
    "unauthorized",  # 401 although the token is good, as right after minting
    "secondary",  # the secondary rate limit, with `status` 403 or 429 and `retry_after` if given
]


@dataclass(slots=True)
class Fault:
    """One planned failure.

    Args:
        kind: what happens.
        method: HTTP method, or `*`.
        route: glob over the path below the API root, such as `/repos/*/issues/*/comments`; git paths count too.
        nth: the first matching call that fails, counted from 1.
        times: how many calls from there on fail.
        status: of `status`, `status_after` and `secondary`.
        seconds: of `delay` and `timeout_after`.
        retry_after: seconds or an HTTP date in the `retry-after` header of `secondary` and `status`.
    """

    kind: Kind
    method: str = "*"
    route: str = "*"
    nth: int = 1
    times: int = 1
    status: int = 502
    seconds: float = 0.0
    retry_after: str | None = None
    seen: int = field(default=0, init=False)

    def meets(self, method: str, path: str) -> bool:
        """Count a call and tell whether it must fail."""
        if self.method not in ("*", method) or not fnmatchcase(path, self.route):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class Faults:
    """The plan of failures; empty at first."""

    def __init__(self) -> None:
        self._plan: list[Fault] = []
        self._lock = threading.Lock()
        self.hits: list[tuple[str, str, Kind]] = []
        """(method, path, kind) of each failure so far."""

    def add(self, fault: Fault) -> Fault:
        """Plan a failure and return it."""
        with self._lock:
            self._plan.append(fault)
        return fault

    def clear(self) -> None:
        """Forget the plan."""
        with self._lock:
            self._plan.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Count a call against the plan and return the failure due now, if any."""
        with self._lock:
            due = [fault for fault in self._plan if fault.meets(method, path)]
            if not due:
                return None
            self.hits.append((method, path, due[0].kind))
            return due[0]
