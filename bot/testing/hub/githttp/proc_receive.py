"""A git `proc-receive` hook that refuses refs whose new commits touch workflow files; it runs alone, as a script.

The protocol is that of githooks(5): pkt-lines on standard input and output. A ref that passes is handed back to
receive-pack (`fall-through`); one that does not gets `ng` with GitHub's reason, which no other hook can word.
"""

from __future__ import annotations

import subprocess
import sys

FOLDER = ".github/workflows"
FLUSH = b"0000"
ZERO = "0" * 40


def read_lines() -> list[bytes]:
    """Return the pkt-lines up to the next flush."""
    lines = []
    while (size := int(sys.stdin.buffer.read(4) or b"0000", 16)) > 0:
        lines.append(sys.stdin.buffer.read(size - 4).rstrip(b"\n"))
    return lines


def write_lines(*lines: bytes) -> None:
    """Send pkt-lines and a flush."""
    for line in lines:
        sys.stdout.buffer.write(b"%04x%s\n" % (len(line) + 5, line))
    sys.stdout.buffer.write(FLUSH)
    sys.stdout.buffer.flush()


def touched(new: str) -> list[str]:
    """Return workflow files in commits that no ref has yet."""
    if new == ZERO:
        return []
    command = ["git", "log", "--format=", "--name-only", "-m", "--no-renames", new, "--not", "--all", "--", FOLDER]
    done = subprocess.run(command, capture_output=True, check=True)
    return sorted(set(done.stdout.decode(errors="replace").split("\n")) - {""})


def judge(command: bytes) -> list[bytes]:
    """Return the verdict on one `old new ref` command."""
    _, new, ref = command.decode().split(" ", 2)
    paths = touched(new)
    if paths:
        reason = (
            f"refusing to allow a GitHub App to create or update workflow `{paths[0]}` without `workflows` permission"
        )
        return [f"ng {ref} {reason}".encode()]
    return [f"ok {ref}".encode(), b"option fall-through"]


def main() -> None:
    """Speak the protocol once."""
    read_lines()
    write_lines(b"version=1\0")
    commands = read_lines()
    write_lines(*(line for command in commands for line in judge(command)))


if __name__ == "__main__":
    main()
