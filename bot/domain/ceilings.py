"""Daily ceilings: US dollars in one UTC day, from which on no further run starts."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Whose = Literal["server", "installation", "repository"]


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the operator allows in one day, in US dollars; None where there is no ceiling."""

    server: float | None = None
    installation: float | None = None
    """Of each installation."""
    repository: float | None = None
    """Of each repository."""

    @property
    def any(self) -> bool:
        """Whether there is a ceiling at all."""
        return (self.server, self.installation, self.repository) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Reached:
    """A ceiling that keeps a run waiting."""

    whose: Whose
    usd: float
    """The ceiling itself."""
    until: datetime
    """When the next day begins."""


class Spending:
    """What was spent on one UTC day, held against the ceilings."""

    def __init__(self, ceilings: Ceilings, at: datetime) -> None:
        """Begin with nothing, on the day of an aware datetime."""
        self._ceilings = ceilings
        self.day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        self._server = 0.0
        self._installations: defaultdict[int | None, float] = defaultdict(float)
        self._repositories: defaultdict[int, float] = defaultdict(float)

    def add(self, installation: int | None, repository: int, usd: float) -> None:
        """Count what one run cost."""
        self._server += usd
        self._installations[installation] += usd
        self._repositories[repository] += usd

    def reached(self, installation: int | None, repository: int) -> Reached | None:
        """Name the widest ceiling that keeps runs of this repository waiting; None where they may start."""
        allowed = self._ceilings
        places: tuple[tuple[Whose, float | None, float], ...] = (
            ("server", allowed.server, self._server),
            ("installation", allowed.installation, self._installations[installation]),
            ("repository", allowed.repository, self._repositories[repository]),
        )
        for whose, usd, spent in places:
            # Ten times ten cents are a dollar, also in floats.
            if usd is not None and round(spent, 6) >= usd:
                return Reached(whose, usd, self.day + timedelta(days=1))
        return None
