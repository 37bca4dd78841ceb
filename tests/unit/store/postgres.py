"""A real Postgres server for tests: in a folder of its own, over a Unix socket, gone at the end."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

USER = "postgres"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server that trusts everybody who reaches its socket."""

    socket: Path

    def url(self, name: str) -> str:
        """Name one of its databases."""
        return f"postgresql://{USER}@/{name}?host={self.socket}"

    def create(self, name: str, template: str = "template1") -> str:
        """Make a database and return its URL."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        return self.url(name)


def binaries() -> Path:
    """Find the server's programs; skips where there are none, or fails where REQUIRE_POSTGRES says so."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    if elsewhere is not None:
        return Path(elsewhere).resolve().parent
    reason = "no Postgres server here: install Debian's package postgresql"
    if os.environ.get("REQUIRE_POSTGRES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def postgres_server() -> Iterator[Server]:
    """Run a server; as root it runs under the account `postgres`, since it refuses to be root."""
    bin_dir = binaries()
    account = pwd.getpwnam(USER) if os.geteuid() == 0 else None
    user = None if account is None else account.pw_uid
    group = None if account is None else account.pw_gid
    extra: list[int] | None = None if account is None else []
    home = Path(tempfile.mkdtemp(prefix="iw-pg-"))
    if account is not None:
        os.chown(home, account.pw_uid, account.pw_gid)
    data = home / "data"
    try:
        subprocess.run(
            [bin_dir / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=home,
            user=user,
            group=group,
            extra_groups=extra,
        )
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=100"]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                [bin_dir / "postgres", "-D", data, "-k", home, *options],
                stdout=log,
                stderr=log,
                cwd=home,
                user=user,
                group=group,
                extra_groups=extra,
            )
        try:
            server = Server(home)
            _wait(server, process)
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(timeout=30)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _wait(server: Server, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(server.url("postgres")).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((server.socket / "log").read_text()) from None
            time.sleep(0.05)
        else:
            return
