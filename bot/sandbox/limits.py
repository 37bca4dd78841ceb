"""What one workspace may use up."""

from dataclasses import dataclass

_MORE_PROCESSES = 64


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of a command and all its children together, but for those that say otherwise."""

    open_files: int = 4096
    """Of each process."""
    file_bytes: int = 2 << 30
    """The largest file that a command may write."""
    processes: int = 1024
    """Their threads included."""
    memory_bytes: int = 8 << 30
    cpu_s: int = 3600
    """Of each process."""
    disk_bytes: int = 10 << 30
    """Work tree, home and what set-up made, together."""
    files: int = 2_000_000
    """In these places."""
    output_bytes: int = 64 << 20
    """Both streams of one command; more ends it."""
    readable_bytes: int = 64 << 20
    """The largest file that the file operations take."""

    def rlimits(self) -> dict[str, int]:
        """Name the kernel's limits of each process, and their values."""
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": self.cpu_s,
            # What is only reserved does not count here, unlike the address space: Node and Java reserve a lot.
            "RLIMIT_DATA": self.memory_bytes,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_MEMLOCK": 8 << 20,
            "RLIMIT_MSGQUEUE": 1 << 20,
            "RLIMIT_NOFILE": self.open_files,
            # Of the uid. The watch, which says what was wrong, comes first.
            "RLIMIT_NPROC": self.processes + _MORE_PROCESSES,
        }

    def watched(self) -> dict[str, int]:
        """Name the limits of all processes together, as the helper's watch takes them."""
        return {
            "memory": self.memory_bytes,
            "processes": self.processes,
            "disk": self.disk_bytes,
            "files": self.files,
        }
