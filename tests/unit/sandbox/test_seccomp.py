"""The filter of system calls, interpreted as the kernel would: on machines too that these tests do not run on."""

import struct

import pytest

from bot.sandbox.helper.frames import Broken
from bot.sandbox.helper.seccomp import INET, INET6, UNIX, program

X86, ARM = "x86_64", "aarch64"
NAMES = {X86: 0xC000003E, ARM: 0xC00000B7}
ALLOW, KILL, NOTIFY = 0x7FFF0000, 0x80000000, 0x7FC00000
EPERM, ENOSYS, EAFNOSUPPORT = 0x50001, 0x50026, 0x50061
CALLS = {
    X86: {
        "read": 0, "openat": 257, "openat2": 437, "execve": 59, "clone": 56, "socket": 41, "connect": 42, "sendto": 44,
        "listen": 50, "ioctl": 16, "ptrace": 101, "mount": 165, "keyctl": 250, "bpf": 321, "clone3": 435,
        "io_uring_setup": 425, "seccomp": 317, "socketpair": 53, "kill": 62, "landlock_create_ruleset": 444,
    },
    ARM: {
        "read": 63, "openat": 56, "openat2": 437, "execve": 221, "clone": 220, "socket": 198, "connect": 203,
        "sendto": 206, "listen": 201, "ioctl": 29, "ptrace": 117, "mount": 40, "keyctl": 219, "bpf": 280, "clone3": 435,
        "io_uring_setup": 425, "seccomp": 277, "socketpair": 199, "kill": 129, "landlock_create_ruleset": 444,
    },
}  # fmt: skip
FORK, NEW_USER = 0x1200011, 0x10000011


def answer(
    machine: str, call: int | str, *arguments: int, watched: bool = False, families: tuple[int, ...] = ()
) -> int:
    """Run the filter over one call of this machine and return what the kernel would do."""
    number = CALLS[machine][call] if isinstance(call, str) else call
    given = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, NAMES[machine], 0, *given)
    return interpret(program(machine, families, watched=watched), data)


def interpret(text: bytes, data: bytes) -> int:
    """Interpret classic BPF as far as the filter uses it."""
    codes = list(struct.iter_unpack("HBBI", text))
    at = value = 0
    while True:
        operation, yes, no, operand = codes[at]
        at += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x45:
                at += yes if value & operand else no
            case 0x06:
                return int(operand)
            case _:
                pytest.fail(f"unknown operation {operation:#x}")


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize("watched", [False, True])
def test_what_a_program_needs_is_allowed(machine: str, *, watched: bool) -> None:
    """Files, processes, threads and pairs of sockets work."""
    for call in ("read", "openat", "openat2", "execve", "socketpair", "kill", "landlock_create_ruleset"):
        assert answer(machine, call, watched=watched) == ALLOW, call
    assert answer(machine, "clone", FORK, watched=watched) == ALLOW
    assert answer(machine, "ioctl", 1, 0x5401, watched=watched) == ALLOW


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize("watched", [False, True])
def test_what_leads_out_is_refused(machine: str, *, watched: bool) -> None:
    """Tracing, mounts, keys, BPF, namespaces and characters pushed into a terminal."""
    for call in ("ptrace", "mount", "keyctl", "bpf"):
        assert answer(machine, call, watched=watched) == EPERM, call
    for call in ("clone3", "io_uring_setup"):
        assert answer(machine, call, watched=watched) == ENOSYS, call
    assert answer(machine, "clone", NEW_USER, watched=watched) == EPERM
    assert answer(machine, "ioctl", 0, 0x5412, watched=watched) == EPERM
    # The kernel looks at the lower half of a request only.
    assert answer(machine, "ioctl", 0, (1 << 32) | 0x5412, watched=watched) == EPERM


@pytest.mark.parametrize("machine", [X86, ARM])
def test_sockets(machine: str) -> None:
    """Only the families that are named; where connections are watched, only TCP of those."""
    for family in range(46):
        allowed = family in (UNIX, INET, INET6)
        got = answer(machine, "socket", family, 2, families=(UNIX, INET, INET6))
        assert got == (ALLOW if allowed else EAFNOSUPPORT), family
        assert answer(machine, "socket", family, 1) == EAFNOSUPPORT, family
    for kind, protocol, expected in (
        (1, 0, ALLOW), (1, 6, ALLOW), (1 | 0o2004000, 0, ALLOW), (2, 0, EAFNOSUPPORT), (3, 6, EAFNOSUPPORT),
        (1, 132, EAFNOSUPPORT), (1, 262, EAFNOSUPPORT), (5, 0, EAFNOSUPPORT),
    ):  # fmt: skip
        got = answer(machine, "socket", INET, kind, protocol, watched=True, families=(INET, INET6))
        assert got == expected, (kind, protocol)


@pytest.mark.parametrize("machine", [X86, ARM])
def test_watched_connections(machine: str) -> None:
    """Each connection is asked for, and nothing goes round the question."""
    assert answer(machine, "connect", 3, watched=True) == NOTIFY
    assert answer(machine, "connect", 3) == ALLOW
    assert answer(machine, "listen", 3, watched=True) == EPERM
    assert answer(machine, "seccomp", 1, watched=True) == EPERM
    assert answer(machine, "sendto", 3, 0, 0, 0x20000000, watched=True) == EPERM
    assert answer(machine, "sendto", 3, 0, 0, 0x4000, watched=True) == ALLOW


def test_other_ways_of_calling() -> None:
    """Calls of 32-bit programs end the process; those of the x32 kind are refused; an unknown machine is an error."""
    data = struct.pack("=iIQ6Q", 0, 0x40000003, 0, *[0] * 6)
    assert interpret(program(X86, (), watched=False), data) == KILL
    assert answer(X86, 0x40000000 | 101) == EPERM
    with pytest.raises(Broken, match="riscv64"):
        program("riscv64", (), watched=False)
