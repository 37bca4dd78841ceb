"""Secrets in text are masked: the values that we hold, and whatever looks like a token.

Everything that leaves the process goes through here: what is posted, pushed, stored, logged, shown, or told to a model.
"""

import base64
import binascii
import itertools
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bot.known import MIN_SECRET, Known

MASK = "***"

_TOKENS: tuple[re.Pattern[str], ...] = (
    re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----(?:(?:\s|\\[nrt]){0,8}(?:Proc-Type|DEK-Info): [^\n\\]{1,200}){0,2}"
        r"(?:[A-Za-z0-9+/=\s:|>]|\\[nrt]){16,}+(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----)?"
    ),
    # Installation tokens are `ghs_` and 36 letters, or `ghs_<id>_<JWT>` of about 520 characters.
    re.compile(r"gh[pousr]_[A-Za-z0-9_.\-]{15,}[A-Za-z0-9_\-]"),
    re.compile(r"github_pat_[A-Za-z0-9_]{16,}"),
    re.compile(r"sk-ant-[A-Za-z0-9_\-]{8,}"),
    # With a digit in it: `task-force-of-the-whole-town` is none.
    re.compile(r"sk-(?<![A-Za-z0-9_\-]sk-)(?=[A-Za-z_\-]{0,80}[0-9])[A-Za-z0-9_\-]{20,}"),
    re.compile(r"eyJ(?<![A-Za-z0-9_\-]eyJ)[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
    # `x-access-token:` in Base64, as git sends it.
    re.compile(r"eC1hY2Nlc3MtdG9rZW46[A-Za-z0-9+/=_\-]+"),
    re.compile(r"A(?:KIA|SIA)(?<![A-Za-z0-9]A(?:KIA|SIA))[A-Z2-7]{16}(?![A-Za-z0-9])"),
    re.compile(r"AIza[A-Za-z0-9_\-]{35}"),
    re.compile(r"xox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    re.compile(r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    re.compile(r"pypi-AgE[A-Za-z0-9_\-]{50,}"),
)
"""Tokens that say themselves what they are.

Source: https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/ and
https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
"""
_PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"x-access-token(:|%3A)[^@\s]+?(@|%40|(?=\s)|\Z)", re.IGNORECASE), rf"x-access-token\1{MASK}\2"),
    (re.compile(r"(://[^/\s:@]{0,100}:)[^/\s@]{1,1000}@"), rf"\1{MASK}@"),
    # With a digit in it: `bearer authentication` is none.
    (re.compile(r"(B(?:earer|EARER)|bearer) (?=[A-Za-z+/=_.~\-]{0,400}[0-9])[A-Za-z0-9+/=_.~\-]{12,}"), rf"\1 {MASK}"),
)
"""Places where a password or token stands, whatever it looks like."""
_BASIC = re.compile(r"(B(?:asic|ASIC)|basic) ([A-Za-z0-9+/]{8,}={0,2})")

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a GitHub token",
        re.compile(
            r"gh[pousr]_[A-Za-z0-9]{36}(?![A-Za-z0-9])|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}(?![A-Za-z0-9])"
            r"|ghs_[0-9]{1,12}_eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"
        ),
    ),
    ("a key of Anthropic's API", re.compile(r"sk-ant-[a-z]{3,10}[0-9]{2}-[A-Za-z0-9_\-]{80,}")),
    ("a private key", re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----\s([A-Za-z0-9+/=\s]{64,}+)-----END ")),
)
"""What is worth a remark where a change adds it: its shape can be checked."""
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Leak:
    """A place of a change that adds a secret."""

    path: str
    """Masked, since a file's name may be the secret."""
    line: int | None
    """Of the new file, from 1; None where it is the name, or a file without lines."""
    what: str
    certain: bool
    """Whether it is a value that we hold, and not only something that looks like one."""

    def __str__(self) -> str:
        return f"`{self.path}`{f' line {self.line}' if self.line else ''}: {self.what}"


_known = Known()


def register_secret(value: str | bytes, *, passing: bool = False) -> None:
    """Mask this value from now on; values of fewer than four characters cannot be masked.

    Args:
        value: of a URL its password counts.
        passing: for tokens that expire: only the newest 256 are kept.
    """
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    for part in _parts(text.strip()):
        if len(part) >= MIN_SECRET:
            _known.add(part, passing=passing)


def forget_secrets() -> None:
    """Mask no exact values any more; for tests."""
    _known.clear()


def mask_known(text: str) -> str:
    """Replace the values that we hold by `***`, and nothing else: for text that has to stay what it is.

    Values of fewer than 8 characters, and words of fewer than 16 letters, are left: a file may say `postgres`.
    """
    return _without(text, weak=False)


def mask_tokens(text: str) -> str:
    """Replace the values that we hold, and tokens that say themselves what they are: for what a command prints."""
    return _without_tokens(mask_known(text))


def mask(text: str) -> str:
    """Replace by `***` the values that we hold, what looks like a token, and what stands where passwords stand."""
    text = _without_tokens(_without(text, weak=True))
    for pattern, replacement in _PLACES:
        text = pattern.sub(replacement, text)
    return _BASIC.sub(_basic, text)


def masked(value: object) -> object:
    """Return a value, of JSON or not, as JSON with all its texts masked."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {mask(str(key)): masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked(item) for item in value]
    return mask(str(value))


def holds_secret(data: bytes) -> bool:
    """Tell whether bytes of any kind hold a value that we hold, UTF-16 included."""
    return bool(_known.spans(data))


def leaks(diff: str) -> tuple[list[Leak], set[str]]:
    """Find what a change adds that should stay secret; what it removes or leaves as it is does not count.

    Args:
        diff: unified, as git writes it.

    Returns:
        The leaks, and the paths of all files of which the diff shows lines: binary ones are not among them.
    """
    found: list[Leak] = []
    paths: set[str] = set()
    for path, added in _added(diff):
        paths.add(path)
        text = "\n".join(line for _, line in added)
        data = text.encode("utf-8", "surrogatepass")
        lines = {added[data.count(b"\n", 0, start)][0]: "a secret of this server" for start, _ in _known.spans(data)}
        found += [Leak(mask(path), line, what, certain=True) for line, what in lines.items()]
        alike = {added[text.count("\n", 0, start)][0]: what for start, what in _shapes(text)}
        found += [Leak(mask(path), line, what, certain=False) for line, what in alike.items() if line not in lines]
    return found, paths


def leaks_in_names(paths: Iterable[str]) -> list[Leak]:
    """Find names of files that hold a value that we hold."""
    hold = (path for path in paths if holds_secret(path.encode("utf-8", "surrogateescape")))
    return [Leak(mask(path), None, "a secret of this server in its name", certain=True) for path in hold]


def _without(text: str, *, weak: bool) -> str:
    data = text.encode("utf-8", "surrogatepass")
    spans = _known.spans(data, weak=weak)
    if not spans:
        return text
    ends = [0, *itertools.chain.from_iterable(spans), len(data)]
    kept = (data[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
    return MASK.join(part.decode("utf-8", "surrogatepass") for part in kept)


def _without_tokens(text: str) -> str:
    for pattern in _TOKENS:
        text = pattern.sub(MASK, text)
    return text


def _parts(value: str) -> list[str]:
    """Return what is secret of a value: of a URL with a password that, since the rest of it stands in every manual."""
    try:
        password = urllib.parse.urlsplit(value).password if "://" in value and "\n" not in value else None
    except ValueError:
        password = None
    return [value] if not password else list({password, urllib.parse.unquote(password)})


def _basic(match: re.Match[str]) -> str:
    """Mask what decodes to `user:password`: `basic documentation` does not."""
    try:
        found = b":" in base64.b64decode(match[2] + "=" * (-len(match[2]) % 4))
    except binascii.Error:
        found = False
    return f"{match[1]} {MASK}" if found else match[0]


def _shapes(text: str) -> Iterator[tuple[int, str]]:
    for what, pattern in _SHAPES:
        for match in pattern.finditer(text):
            if not match.re.groups or _is_key(match[1]):
                yield match.start(), what


def _is_key(body: str) -> bool:
    """Tell whether the body of a PEM block is one: Base64 of ASN.1, or of OpenSSH's own format."""
    try:
        data = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error:
        return False
    return data.startswith((b"\x30", b"openssh-key-v1"))


def _added(diff: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Give each file of a diff with the lines that are added to it and their numbers."""
    path, added = "", list[tuple[int, str]]()
    old = new = number = 0
    for line in diff.split("\n"):
        if old > 0 or new > 0:
            sign = line[:1]
            if sign == "+":
                added.append((number, line[1:]))
            old -= sign not in {"+", "\\"}
            new -= sign not in {"-", "\\"}
            number += sign not in {"-", "\\"}
        elif match := _HUNK.match(line):
            old, number, new = int(match[1] or 1), int(match[2]), int(match[3] or 1)
        elif line.startswith("+++ "):
            if path:
                yield path, added
            # A tab follows a name with a space in it.
            path, added = line[len("+++ b/") :].rstrip("\t"), []
    if path:
        yield path, added
