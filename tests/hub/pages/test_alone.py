"""The local GitHub as a command of its own."""

import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx


def command(*args: str) -> list[str]:
    """Return the command line of `issuewright hub`."""
    return [sys.executable, "-m", "bot", "hub", *args]


def test_the_command_serves_until_interrupted(tmp_path: Path) -> None:
    """Facts for machines on standard output, the rest on standard error; the example works; the key is private."""
    process = subprocess.Popen(
        command("--port", "0", "--data", str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [shlex.split(process.stdout.readline()) for _ in range(5)]
    facts = dict(line[1].split("=", 1) for line in lines)
    assert all(line[0] == "export" for line in lines)
    key = Path(facts["ISSUEWRIGHT_GITHUB__PRIVATE_KEY_FILE"])
    assert key.parent == tmp_path
    assert key.stat().st_mode & 0o777 == 0o600
    url = facts["ISSUEWRIGHT_GITHUB__WEB_URL"]
    assert "corner-shop/cart" in httpx.get(url, trust_env=False, verify=False).text
    assert httpx.post(f"{url}/api/graphql", trust_env=False, verify=False).status_code == 401
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    token = re.search(r"with the token (ghp_\w+)", told)
    assert token is not None
    assert token[1] in told.rpartition("curl")[2]
    again = subprocess.run(command("--port", "0", "--data", str(tmp_path)), capture_output=True, text=True, check=False)
    assert again.returncode == 4
    assert "earlier hub" in again.stderr


def test_a_taken_port_is_named() -> None:
    """One sentence with the remedy, and the exit code of a wrong configuration."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(command("--port", port), capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert f"port {port} cannot be listened on (Address already in use): name another with --port" in done.stderr
