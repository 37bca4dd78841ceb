"""What every command may see of the machine: programs and libraries, and nothing of its people."""

import os
from pathlib import Path

FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
CONFIGURATION = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/fonts", "/etc/gradle", "/etc/group",
    "/etc/host.conf", "/etc/hosts", "/etc/java-8-openjdk", "/etc/java-11-openjdk", "/etc/java-17-openjdk",
    "/etc/java-21-openjdk", "/etc/java-25-openjdk", "/etc/javascript-common", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/localtime", "/etc/lsb-release", "/etc/magic", "/etc/maven",
    "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls",
    "/etc/protocols", "/etc/services", "/etc/shells", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
    "/etc/timezone",
)  # fmt: skip
"""What programs need of `/etc`. Not there: package managers' own files, which may hold credentials."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")  # noqa: S108
"""What a command may use of `/dev` where it has none of its own."""
OWN = ("/etc/passwd", "/etc/group", "/etc/hosts")
"""Those of which a sandbox with a root of its own has its own text."""


def present(paths: tuple[str, ...]) -> list[str]:
    """Leave out what this machine does not have."""
    return [path for path in paths if os.path.lexists(path)]


def visible(path: str, more: tuple[Path, ...] = ()) -> bool:
    """Whether a program at this path can be started by a command."""
    return any(Path(path).is_relative_to(folder) for folder in (*map(Path, FOLDERS), *more))
