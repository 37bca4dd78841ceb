"""The system calls that no command may make, as a filter that every later process inherits."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Mapping, Sequence

from bot.sandbox.helper.frames import Broken
from bot.sandbox.helper.kernel import syscall

_Code = tuple[int, int, int, int]
"""One instruction of classic BPF: operation, jump if true, jump if false, operand."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _KILL, _NOTIFY = 0x7FFF_0000, 0x8000_0000, 0x7FC0_0000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 0x0005_0001, 0x0005_0026, 0x0005_0061
_FILTER, _NEW_LISTENER = 1, 8

_NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEW* of `clone`: user, mount, pid, net, ipc, uts and cgroup."""
_FAST_OPEN = 0x2000_0000
"""MSG_FASTOPEN: a connection that asks nobody."""
_STREAM, _PACKETS = 1, 5
UNIX, INET, INET6 = 1, 2, 10

# Names of calls and their numbers on x86_64 and aarch64; -1 where there is none.
# Source: https://github.com/torvalds/linux/blob/master/arch/x86/entry/syscalls/syscall_64.tbl
_DENIED: dict[str, tuple[int, int]] = {
    # Other processes: their memory, their descriptors.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # Namespaces and mounts.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    # Files by handle leave every folder.
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # Keys of the kernel, which are not shut into namespaces.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Large parts of the kernel that a build or a test does not need.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "personality": (135, 92),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "fanotify_init": (300, 262), "lookup_dcookie": (212, 18),
    "vmsplice": (278, 75), "remap_file_pages": (216, 234), "modify_ldt": (154, -1), "uselib": (134, -1),
    # The machine itself.
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "iopl": (172, -1), "ioperm": (173, -1), "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "syslog": (103, 116), "sethostname": (170, 161),
    "setdomainname": (171, 162), "vhangup": (153, 58),
}  # fmt: skip
_MISSING: dict[str, tuple[int, int]] = {
    # Answered as by an old kernel, so that a library takes the older way.
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip
_SHARED: dict[str, tuple[int, int]] = {
    # Belongs to nobody's files and outlives its maker: memory, semaphores and queues that the whole machine can use.
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
_OF_OTHERS: dict[str, tuple[int, int, int, int]] = {
    # Limits and priorities of any process with the same uid, as of the helper; the third number says which argument
    # names the process, the fourth what the first argument has to be where it says how many are meant, else -1.
    "prlimit64": (302, 261, 0, -1), "setpriority": (141, 140, 1, 0), "ioprio_set": (251, 30, 1, 1),
    "sched_setscheduler": (144, 119, 0, -1), "sched_setparam": (142, 118, 0, -1), "sched_setattr": (314, 274, 0, -1),
}  # fmt: skip
_PLACES: dict[str, tuple[int, int]] = {
    # Where another process and its memory are; the first argument names it.
    "sched_setaffinity": (203, 122), "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
_WITH_ARGUMENTS: dict[str, tuple[int, int]] = {
    "clone": (56, 220), "ioctl": (16, 29), "socket": (41, 198), "socketpair": (53, 199),
    "truncate": (76, 45), "connect": (42, 203), "sendto": (44, 206), "sendmsg": (46, 211),
    "sendmmsg": (307, 269), "listen": (50, 201), "seccomp": (317, 277),
}  # fmt: skip
_ARCHITECTURES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
"""Column of the tables, and the kernel's own name."""
_X32 = 0x4000_0000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


def program(
    machine: str, families: Iterable[int], *, watched: bool = False, shared: bool = False, truncates: bool = True
) -> bytes:
    """Assemble the filter.

    Args:
        machine: as `uname -m` says.
        families: of sockets that may be made; pairs of connected sockets always may.
        watched: whether TCP is all that is left of the internet, and each connection is asked for.
        shared: whether processes, sockets and memory of the machine are in sight, since there are no namespaces.
        truncates: whether files may be cut by their path.

    Raises:
        Broken: there is no table for this machine.
    """
    if machine not in _ARCHITECTURES:
        raise Broken(f"no list of system calls for {machine}; only {' and '.join(_ARCHITECTURES)} are known")
    column, name = _ARCHITECTURES[machine]
    number = {call: numbers[column] for call, numbers in _WITH_ARGUMENTS.items()}
    codes: list[_Code] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, name), (_RETURN, 0, 0, _KILL)]
    codes.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":
        codes += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)]
    for calls, answer in ((_DENIED, _EPERM), (_MISSING, _ENOSYS)):
        for numbers in calls.values():
            if numbers[column] >= 0:
                codes += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, answer)]
    codes += _when(number["clone"], [*_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, _EPERM)])
    pushed = [(_EQUAL, 1, 0, _TIOCSTI), (_EQUAL, 0, 1, _TIOCLINUX), (_RETURN, 0, 0, _EPERM)]
    codes += _when(number["ioctl"], [*_argument(1), *pushed])
    codes += _when(number["socket"], _socket(sorted(families), watched=watched))
    for *columns, place, kind in _OF_OTHERS.values():
        first = [*_argument(0), *_only(kind)] if kind >= 0 else []
        codes += _when(columns[column], [*first, *_argument(place), *_only(0)])
    if shared:
        codes += _strangers(column, number["socketpair"])
    if not truncates:
        codes += [(_EQUAL, 0, 1, number["truncate"]), (_RETURN, 0, 0, _EPERM)]
    if watched:
        codes += _asking(number)
    codes.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *code) for code in codes)


def _only(value: int) -> list[_Code]:
    """Refuse everything but this value."""
    return [(_EQUAL, 1, 0, value), (_RETURN, 0, 0, _EPERM)]


def _strangers(column: int, socketpair: int) -> list[_Code]:
    """Refuse what reaches other processes of the machine where nothing hides them."""
    codes: list[_Code] = []
    for numbers in _SHARED.values():
        codes += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ENOSYS)]
    for numbers in _PLACES.values():
        codes += _when(numbers[column], [*_argument(0), *_only(0)])
    # Either end of a pair for datagrams can send to every other such socket.
    kinds = [(_AND, 0, 0, 0xF), (_EQUAL, 2, 0, _STREAM), (_EQUAL, 1, 0, _PACKETS), (_RETURN, 0, 0, _EPERM)]
    return codes + _when(socketpair, [*_argument(1), *kinds])


def _asking(number: Mapping[str, int]) -> list[_Code]:
    """Ask for each connection, and refuse what would be one without `connect`."""
    codes: list[_Code] = []
    # A later filter could answer for ours; who listens can be called from outside.
    for call, answer in (("seccomp", _EPERM), ("listen", _EPERM), ("connect", _NOTIFY)):
        codes += [(_EQUAL, 0, 1, number[call]), (_RETURN, 0, 0, answer)]
    for call, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        fast = [*_argument(place), (_ANY_BIT, 0, 1, _FAST_OPEN), (_RETURN, 0, 0, _EPERM)]
        codes += _when(number[call], fast)
    return codes


def _argument(place: int) -> list[_Code]:
    """Load the lower half of an argument."""
    return [(_LOAD, 0, 0, _ARGUMENTS + 8 * place)]


def _when(number: int, body: Sequence[_Code]) -> list[_Code]:
    """Do this for one call only, and have its number at hand again behind it."""
    return [(_EQUAL, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NUMBER)]


def _socket(families: Sequence[int], *, watched: bool) -> list[_Code]:
    """Refuse every family but these; where connections are watched, everything of the internet but TCP."""
    # The low nibble of the type is the kind, what is above are flags.
    tcp: list[_Code] = [
        *_argument(1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, _STREAM), (_RETURN, 0, 0, _EAFNOSUPPORT),
        *_argument(2), (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, 6), (_RETURN, 0, 0, _EAFNOSUPPORT),
    ]  # fmt: skip
    tail: list[_Code] = tcp if watched else []
    body: list[_Code] = _argument(0)
    for index, family in enumerate(families):
        # Over the other families and the refusal behind them.
        body.append((_EQUAL, len(families) - index, 0, family))
    return [*body, (_RETURN, 0, 0, _EAFNOSUPPORT), *tail]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("codes", ctypes.c_void_p))


def install(families: Iterable[int], *, watched: bool, shared: bool, truncates: bool) -> int | None:
    """Put the filter on this process for good; the listener's descriptor where connections are watched.

    Args:
        families: as for `program`, like the others.
        watched: whether each connection is asked for.
        shared: whether the machine is in sight.
        truncates: whether files may be cut by their path.

    Source: https://man7.org/linux/man-pages/man2/seccomp.2.html
    """
    machine = os.uname().machine
    text = program(machine, families, watched=watched, shared=shared, truncates=truncates)
    codes = ctypes.create_string_buffer(text, len(text))
    described = _Program(len(text) // 8, ctypes.addressof(codes))
    number = _WITH_ARGUMENTS["seccomp"][_ARCHITECTURES[machine][0]]
    found = syscall(number, _FILTER, _NEW_LISTENER if watched else 0, ctypes.byref(described))
    return found if watched else None
