"""The allow-list: what can be on it, and what it says of a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import OperatorError
from bot.sandbox.egress.allowed import Allowed, Decision


def ports(allowed: Allowed, host: str) -> list[int]:
    """The ports on which a host is reached."""
    return [port for port in (22, 80, 443, 8443) if allowed.decide(f"{host}:{port}").allowed]


def test_ports() -> None:
    """A name is 443 unless it says another port; naming it twice allows both."""
    allowed = Allowed.parse(["example.com", "Plain.Example.com:80", "example.org", "example.org:8443", "*.a.test:8443"])
    assert ports(allowed, "example.com") == [443]
    assert ports(allowed, "plain.example.com") == [80]
    assert ports(allowed, "example.org") == [443, 8443]
    assert ports(allowed, "x.a.test") == [8443]


def test_wildcard() -> None:
    """A wildcard stands for subdomains at any depth, and not for the domain itself."""
    allowed = Allowed.parse(["*.example.com"])
    assert ports(allowed, "a.example.com") == ports(allowed, "a.b.example.com") == [443]
    assert ports(allowed, "example.com") == []


def test_nothing() -> None:
    """An empty list allows nothing."""
    assert Allowed.parse([]).decide("example.com:443").why == "unlisted"


@pytest.mark.parametrize(
    "name",
    [
        "", " ", ":443", ".", "*", "*.", "*.com", "*.*.com", "a.*.com", "*a.example.com", "**.example.com", "localhost",
        "example", "example.com.", ".example.com", "example..com", "127.0.0.1", "127.0.0.1:443", "127.1", "2130706433",
        "0x7f000001", "0177.0.0.1", "*.0.0.1", "::1", "[::1]", "[::1]:443", "https://example.com", "example.com/simple",
        "user@example.com", "example.com:", "example.com:0", "example.com:22", "example.com:25", "example.com:1023",
        "example.com:65536", "example.com:https", "example.com:0443", "ex\u0430mple.com", "example.com\n",
        " a.example.com",
        "-a.example.com", "a" * 64 + ".com", ".".join(["a" * 60] * 5), "github.com", "GitHub.com", "api.github.com",
        "*.github.com", "raw.githubusercontent.com", "acme.github.io", "*.githubusercontent.com", "acme.ghe.com",
        "git.corp.test", "*.git.corp.test", "git.corp.test:8443",
    ],
)  # fmt: skip
def test_cannot_be_listed(name: str) -> None:
    """What cannot be on the list is named to the operator, in printable text."""
    with pytest.raises(OperatorError, match="cannot be on the allow-list") as caught:
        Allowed.parse(["example.com", name], never=["Git.Corp.test:8443"])
    assert str(caught.value).isprintable()


def test_never_wins() -> None:
    """A wildcard around the Enterprise server allows its neighbours and not the server."""
    allowed = Allowed.parse(["*.corp.test"], never=["git.corp.test"])
    assert ports(allowed, "packages.corp.test") == [443]
    assert allowed.decide("git.corp.test:443").why == "github"
    assert allowed.decide("raw.git.corp.test:443").why == "github"


def test_decision() -> None:
    """A decision keeps what was asked in printable text, and the name apart."""
    allowed = Allowed.parse(["example.com"])
    assert allowed.decide("EXAMPLE.com:443") == Decision("EXAMPLE.com:443", "example.com", 443)
    refused = allowed.decide("\x1b[2J\n'\u202e" + "x" * 5000)
    assert refused.asked.startswith("\\x1b[2J\\n")
    assert len(refused.asked) == 300


@given(st.text())
def test_any_text(authority: str) -> None:
    """No text at all raises, or passes without being an allowed name."""
    decision = Allowed.parse(["example.com", "*.example.org"]).decide(authority)
    assert decision.allowed == (decision.refusal == "")
    assert not decision.allowed or decision.host == "example.com" or decision.host.endswith(".example.org")
