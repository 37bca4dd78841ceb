"""Fourteen attacks from inside a sandbox, each as a command of the model could make it; prints those that succeeded.

It is text for an interpreter of the machine: the standard library only, Python 3.9 onwards.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

# Paths as text: pathlib would only hide which call is tried.
# ruff: noqa: PTH123, PTH208, PTH211, T201

NUMBERS = {
    # keyctl, io_uring_setup, bpf, perf_event_open, ptrace, unshare, mount
    "x86_64": (250, 425, 321, 298, 101, 272, 165),
    "aarch64": (219, 425, 280, 241, 117, 97, 40),
}
_NEW_USER = 0x1000_0000


class Target(dict[str, str]):
    """What is outside, by name: `folder`, `secret`, `pid`, `victim`, `address`, `tcp`, `udp`, and kinds of sockets."""


def write_outside(target: Target) -> bool:
    """Write beside the workspace: by its path, by a link, and by cutting what is there."""
    folder = target["folder"]
    os.symlink(folder, "way-out")
    for path in (f"{folder}/written", "way-out/written", "../written", "/var/tmp/issuewright-written"):  # noqa: S108
        with suppress(OSError), open(path, "w"):
            pass
    with suppress(OSError):
        os.truncate(target["secret"], 1)
    # The outside looks whether something has arrived.
    return False


def read_secret(target: Target) -> bool:
    """Read a file that everybody may read, and the machine's own secrets."""
    paths = (target["secret"], "/etc/shadow", "/proc/kcore", f"/proc/1/root{target['secret']}")
    return any(_readable(path) for path in paths)


def hard_link(target: Target) -> bool:
    """Give a file outside a second name in the workspace."""
    os.link(target["secret"], "second-name")
    return True


def server_process(target: Target) -> bool:
    """Read environment, memory, descriptors or folder of the server."""
    process = f"/proc/{target['pid']}"
    if _readable(f"{process}/environ") or _readable(f"{process}/mem"):
        return True
    return any(_listed(f"{process}/{name}") for name in ("fd", "cwd/", "root/"))


def signals(target: Target) -> bool:
    """End a process outside that has the same uid."""
    with suppress(OSError):
        os.kill(int(target["victim"]), signal.SIGKILL)
    return False


def limits(target: Target) -> bool:
    """Take limits or processor time away from a process outside that has the same uid."""
    victim = int(target["victim"])
    with suppress(OSError):
        resource.prlimit(victim, resource.RLIMIT_CORE, (0, 0))
        return True
    os.setpriority(os.PRIO_PROCESS, victim, 19)
    return True


def metadata(target: Target) -> bool:
    """Change what is known of a file outside that has the same uid."""
    os.utime(target["secret"])
    return True


def tcp(target: Target) -> bool:
    """Connect to a service of the machine."""
    for host in ("127.0.0.1", target["address"]):
        with suppress(OSError), socket.socket() as line:
            line.settimeout(1)
            line.connect((host, int(target["tcp"])))
            return True
    return False


def udp(target: Target) -> bool:
    """Send a datagram to a service of the machine, also past `connect`."""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        with suppress(OSError), socket.socket(socket.AF_INET, kind) as line:
            line.sendto(b"x", ("127.0.0.1", int(target["udp"])))
    with suppress(OSError), socket.socket() as line:
        # TCP Fast Open sends without a connection that anybody could refuse.
        line.sendto(b"x", 0x2000_0000, ("127.0.0.1", int(target["tcp"])))
    return False


def unix_sockets(target: Target) -> bool:
    """Connect to a socket of the machine by its path and by its abstract name."""
    for address in (target["unix"], "\0" + target["abstract"]):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            return True
    with suppress(OSError):
        # Either end of a pair for datagrams can send to every other such socket.
        socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", target["datagrams"])
    return False


def privileges(_: Target) -> bool:
    """Be root, have a capability, or be able to get one."""
    with open("/proc/self/status", encoding="utf-8") as file:
        facts = dict(line.split(":", 1) for line in file if ":" in line)
    held = any(int(facts[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))
    return held or facts["NoNewPrivs"].strip() != "1" or 0 in os.getresuid() or 0 in os.getresgid()


def namespaces(_: Target) -> bool:
    """Make namespaces, in which one is root, and mount."""
    calls = NUMBERS[os.uname().machine]
    return _call(calls[5], _NEW_USER) or _call(calls[6], b"none", b"/", b"tmpfs", 0, 0)


def kernel(_: Target) -> bool:
    """Use parts of the kernel that are no command's matter, or change its settings."""
    calls = NUMBERS[os.uname().machine]
    # keyctl(KEYCTL_GET_KEYRING_ID, session), the others with arguments that a kernel takes for an error of its own.
    if _call(calls[0], 0, -3, 0) or _call(calls[1], 1, ctypes.create_string_buffer(120)) or _call(calls[4], 0, 0, 0, 0):
        return True
    with suppress(OSError):
        os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
        return True
    devices = ("mem", "kmsg", "kvm", "fuse", "net/tun", "vda", "sda")
    return any(os.access(f"/dev/{name}", os.R_OK | os.W_OK) for name in devices)


def survivors(target: Target) -> bool:
    """Leave a process behind that nobody waits for; the outside looks for it."""
    if os.fork():
        os.wait()
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 64)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.execv("/bin/sleep", ["sleep", target["survivor"]])  # noqa: S606 - it is what a command would do
    return True


ATTACKS: tuple[Callable[[Target], bool], ...] = (
    write_outside, read_secret, hard_link, server_process, signals, limits, metadata, tcp, udp, unix_sockets,
    privileges, namespaces, kernel, survivors,
)  # fmt: skip


def _readable(path: str) -> bool:
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        file.read(1)
        return True
    return False


def _listed(path: str) -> bool:
    with suppress(OSError):
        return os.listdir(path) is not None
    return False


def _call(number: int, *arguments: object) -> bool:
    """Whether a system call is let through, as far as an answer other than a refusal shows it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(libc.syscall(ctypes.c_long(number), *passed)) >= 0


def main() -> None:
    """Try all of them; print the names of those that succeeded and of those that could not be tried."""
    target = Target(json.loads(sys.argv[1]))
    succeeded, broken = [], {}
    for attack in ATTACKS:
        try:
            if attack(target):
                succeeded.append(attack.__name__)
        except OSError:
            continue
        except Exception as error:  # noqa: BLE001 - an attack that cannot be tried proves nothing
            broken[attack.__name__] = repr(error)
    print(json.dumps({"succeeded": succeeded, "broken": broken, "tried": len(ATTACKS)}))


if __name__ == "__main__":
    main()
