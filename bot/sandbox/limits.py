"""What one workspace may use up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of each process, but for those that say otherwise; None leaves what the machine sets."""

    open_files: int | None = 4096
    file_bytes: int | None = 4 << 30
    """The largest file that a command may write."""
    processes: int | None = 1024
    """Of the workspace's uid in all; applies only where that uid is not the server's own."""
    memory_bytes: int | None = None
    """Address space; Node and Java reserve far more than they use."""
    output_bytes: int = 256 << 20
    """Both streams of one command; more ends it."""
    readable_bytes: int = 64 << 20
    """The largest file that the file operations take."""

    def rlimits(self, *, own_uid: bool) -> dict[str, int]:
        """Name the kernel's limits and their values."""
        values = {
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NPROC": self.processes if own_uid else None,
            "RLIMIT_AS": self.memory_bytes,
        }
        return {name: value for name, value in values.items() if value is not None}
