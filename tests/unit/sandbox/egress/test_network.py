"""Ways out: what a sandbox is given for the names of hosts and presets."""

import sys
from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.sandbox.egress.network import Network, with_system_certificates
from bot.sandbox.egress.sources import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose package manager of Go is a script, and which counts how often it is asked."""
    asked = tmp_path / "asked"
    program = tmp_path / "go"
    program.write_text(
        f'#!/bin/sh\necho >>{asked}\nprintf \'{{"GOPROXY": "https://go.example.com", "GOSUMDB": "off"}}\'\n'
    )
    program.chmod(0o755)
    return Machine({"HOME": str(tmp_path)}, never=["github.example.com"], path=str(tmp_path))


async def test_nothing_is_named(machine: Machine) -> None:
    """Without a name there is no way out."""
    way = await Network(machine).way([])
    assert (way.proxy, list(way.readable), way.environment, way.files) == (None, [], {}, {})


async def test_preset_is_asked_once(machine: Machine, tmp_path: Path) -> None:
    """A preset gives the host and the variables of this machine's mirror; the package manager is asked once."""
    network = Network(machine)
    for _ in range(2):
        way = await network.way(["go"])
        assert way.proxy is not None
        assert way.environment["GOPROXY"] == "https://go.example.com"
    assert (tmp_path / "asked").read_text() == "\n"


async def test_certificates_come_along(machine: Machine, tmp_path: Path) -> None:
    """A company's certificates are readable inside, and the tools are told; without a host there is no need."""
    bundle = tmp_path / "certificates.pem"
    network = Network(machine, ca_bundle=bundle)
    way = await network.way(["example.com"])
    assert list(way.readable) == [bundle]
    assert way.proxy is not None
    variables = way.proxy().environment("http://127.0.0.1:3128")
    assert variables["SSL_CERT_FILE"] == str(bundle)
    assert variables["HTTPS_PROXY"] == "http://127.0.0.1:3128"
    assert list((await network.way([])).readable) == []


async def test_wrong_names(machine: Machine) -> None:
    """GitHub, an enterprise's own one too, and what is no host are refused."""
    for name in ("github.com", "api.github.com", "github.example.com", "1.2.3.4", "*"):
        with pytest.raises(OperatorError):
            await Network(machine).way([name])


def test_certificates_that_cannot_be_read_are_the_operators(tmp_path: Path) -> None:
    """A missing file, and one that is no text, are told with the setting's name."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("missing", "binary"):
        with pytest.raises(OperatorError, match=r"network\.ca_bundle"):
            with_system_certificates(tmp_path / name, tmp_path / "made.pem")


def test_certificates_hold_both(tmp_path: Path) -> None:
    """Tools trust one file alone: it has the company's certificates and those of the system."""
    own = tmp_path / "own.pem"
    own.write_text("OURS")
    made = with_system_certificates(own, tmp_path / "made.pem")
    text = made.read_text()
    assert text.endswith("OURS")
    assert made.stat().st_mode & 0o777 == 0o644
    if sys.platform == "linux" and Path("/etc/ssl/certs/ca-certificates.crt").exists():
        assert "BEGIN CERTIFICATE" in text
