"""What one sandbox may use of the network, and how much of it is left."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """Limits of one proxy."""

    up_bytes: int = 100 << 20
    """Sent by the sandbox, over all connections."""
    down_bytes: int = 4 << 30
    """Received by the sandbox, over all connections."""
    connection_up_bytes: int = 32 << 20
    """Sent over one connection; downloads take some KiB."""
    connection_down_bytes: int = 4 << 30
    """Received over one connection."""
    connections: int = 64
    """Open at once."""
    requests: int = 20_000
    """In all; each leaves a line in the log, so this also bounds what a loop can write there."""
    head_bytes: int = 16 << 10
    head_s: float = 10.0
    """Seconds from the connection to the end of the request's head."""
    connect_s: float = 20.0
    """Seconds to look a name up and to connect to it."""
    idle_s: float = 300.0
    """Seconds without a byte in either direction, after which a tunnel is closed."""


class Budget:
    """How many bytes may still pass in one direction."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used = 0
        """Bytes that were taken."""

    def take(self, size_bytes: int) -> bool:
        """Take so many bytes; False, with nothing taken, where not as many are left."""
        if self.used + size_bytes > self._limit:
            return False
        self.used += size_bytes
        return True

    def __str__(self) -> str:
        return f"{self._limit:,} bytes"
