"""The allow-list: which host names on which ports a sandbox may reach. Pure.

A name is compared as ASCII text in lower case, label for label, and nothing is ever decoded: a name in Unicode is
refused, and one in punycode counts as the letters that it is written in, so that look-alikes are other names. A
trailing dot is refused: it means the same name, which has one spelling here.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.errors import OperatorError

HTTPS = 443
_LOW_PORTS = (80, HTTPS)
"""Below 1024 only these: the others are SSH, mail, names and directories, through which no package comes."""
_FIRST_FREE_PORT = 1024
_LAST_PORT = 65535

_MOST_NAME = 253
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_BLANK = re.compile(r"[\x00-\x20\x7f]")
_SHOWN = 300
"""Characters of what was asked that a decision keeps."""

_GITHUB = (
    "github.com",
    "github.dev",
    "github.io",
    "githubapp.com",
    "githubassets.com",
    "githubcopilot.com",
    "githubusercontent.com",
    "ghe.com",
    # In two parts, since no file of ours may name a registry.
    ".".join(("ghcr", "io")),  # noqa: FLY002 - see above
)
"""With all below them. A command that reaches these can push anywhere with a token of its own."""

Why = Literal["form", "address", "github", "unlisted", "port", "resolved", "limit", "method"]
"""What a refusal comes from: the spelling, an IP literal, GitHub, the list, the port, what the name resolves to, a cap,
or a request that is no CONNECT."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one request may pass."""

    asked: str
    """What was asked for, in printable ASCII, cut short where it is long; of the sandbox's choosing."""
    host: str = ""
    """The name in lower case; empty where it could not be read."""
    port: int = 0
    """From 1 to 65535; 0 where it could not be read."""
    why: Why | None = None
    """None where it may pass."""
    refusal: str = ""
    """A sentence without its full stop; empty where it may pass."""

    @property
    def allowed(self) -> bool:
        """Whether it may pass."""
        return self.why is None

    def refused(self, why: Why, refusal: str) -> "Decision":
        """Return the same request with a refusal."""
        return replace(self, why=why, refusal=refusal)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The names and ports that may be reached; empty allows nothing."""

    exact: frozenset[tuple[str, int]] = frozenset()
    below: frozenset[tuple[str, int]] = frozenset()
    """Domains of which every subdomain at any depth may be reached, but not they themselves."""
    never: frozenset[str] = frozenset(_GITHUB)
    """Domains that are never reached, nor anything below them, whatever else is said."""

    @classmethod
    def parse(cls, names: Sequence[str], *, never: Sequence[str] = ()) -> "Allowed":
        """Read an allow-list.

        Args:
            names: each `example.com`, `*.example.com` (its subdomains only) or one of them with `:port`; without one it
                is port 443.
            never: hosts that are refused as GitHub's are, as that of an Enterprise server; a port is left aside.

        Raises:
            OperatorError: a name cannot be on an allow-list; the text says which, why and what to write.
        """
        banned = frozenset(_GITHUB) | {_without_port(host) for host in never}
        exact: set[tuple[str, int]] = set()
        below: set[tuple[str, int]] = set()
        for name in names:
            host, port = _read_name(name)
            domain = host.removeprefix("*.")
            if _under(domain, banned):
                raise _unusable(name, "GitHub is never reached from a sandbox; the server itself talks to it")
            (exact if domain == host else below).add((domain, port))
        return cls(frozenset(exact), frozenset(below), banned)

    def decide(self, authority: str) -> Decision:
        """Decide on the `host:port` of a CONNECT request, which is untrusted text of any form and length."""
        asked = Decision(printable(authority))
        if problem := _problem(authority):
            return asked.refused("form", problem)
        host, _, number = authority.lower().rpartition(":")
        if _is_address(host):
            return asked.refused("address", "addresses are not reached, only names")
        if problem := _misspelt(host):
            return asked.refused("form", problem)
        port = int(number) if _PORT.fullmatch(number) else 0
        if not 0 < port <= _LAST_PORT:
            return asked.refused("form", "this is no port")
        return self._listed(replace(asked, host=host, port=port))

    def _listed(self, asked: Decision) -> Decision:
        if _under(asked.host, self.never):
            return asked.refused("github", "GitHub is never reached from a sandbox")
        ports = {port for host, port in self.exact if host == asked.host}
        ports |= {port for domain, port in self.below if asked.host.endswith(f".{domain}")}
        if not ports:
            return asked.refused("unlisted", f"{asked.host} is not on the allow-list of the operator")
        if asked.port not in ports:
            listed = ", ".join(map(str, sorted(ports)))
            return asked.refused("port", f"{asked.host} is reached on port {listed} only")
        return asked


def printable(text: str) -> str:
    """Escape what is not printable ASCII, and cut a long text."""
    return ascii(text[:_SHOWN])[1:-1][:_SHOWN]


def _problem(authority: str) -> str:
    """Say what keeps an authority from being a host and a port; empty where nothing does."""
    checks = (
        (not authority, "no host is named"),
        (len(authority) > _MOST_NAME + len(":65535"), "the name is too long"),
        (not authority.isascii(), "a name is written in ASCII, as xn--..."),
        (_BLANK.search(authority), "a name holds no spaces and no control characters"),
        ("@" in authority, "a name holds no user"),
        (":" not in authority, "no port is named"),
    )
    return next((problem for wrong, problem in checks if wrong), "")


def _misspelt(host: str) -> str:
    """Say what keeps a text in lower case from being a full host name; empty where nothing does."""
    if host.endswith("."):
        return "a name ends without a dot"
    if len(host) > _MOST_NAME or not all(map(_LABEL.fullmatch, host.split("."))):
        return "this is no host name"
    if "." not in host:
        return "a name has a dot: what a single word stands for differs between machines"
    return ""


def _is_address(host: str) -> bool:
    """Tell an IP literal in any spelling, after the rule for URLs: a name of which the last label is a number.

    Source: https://url.spec.whatwg.org/#ends-in-a-number-checker
    """
    last = host.removesuffix(".").rpartition(".")[2]
    return "[" in host or "]" in host or ":" in host or _NUMBER.fullmatch(last) is not None


def _read_name(name: str) -> tuple[str, int]:
    """Read one name of the allow-list: the host, with its `*.`, and the port."""
    host, colon, number = name.lower().rpartition(":") if name.count(":") == 1 else (name.lower(), "", "")
    domain = host.removeprefix("*.")
    if _is_address(domain):
        raise _unusable(name, "write a name, not an address")
    if problem := _misspelt(domain):
        wild = "*" in name
        raise _unusable(name, "write *.example.com for the subdomains of one domain" if wild else problem)
    if not colon:
        return host, HTTPS
    port = int(number) if _PORT.fullmatch(number) else 0
    if port not in _LOW_PORTS and not _FIRST_FREE_PORT <= port <= _LAST_PORT:
        raise _unusable(name, f"a port is 80, 443 or from {_FIRST_FREE_PORT} to {_LAST_PORT}")
    return host, port


def _unusable(name: str, why: str) -> OperatorError:
    return OperatorError(f'"{printable(name)}" cannot be on the allow-list of the network: {why}')


def _under(host: str, domains: Iterable[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _without_port(host: str) -> str:
    name, colon, number = host.lower().rpartition(":")
    return (name if colon and number.isdigit() else host.lower()).removesuffix(".")
