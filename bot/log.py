"""Log lines: JSON or text, each with what it belongs to, and never with a secret."""

import base64
import contextlib
import contextvars
import json
import logging
import re
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal, Self, TextIO

Format = Literal["auto", "json", "text"]

MASK = "***"
_MIN_SECRET = 4
"""Characters; a shorter one would mask half of each line."""
_MIN_FORM = 8
"""Characters of an encoded form, or of one line of a key."""

_context: contextvars.ContextVar[Mapping[str, object] | None] = contextvars.ContextVar("bot_log", default=None)

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL), MASK),
    # Installation tokens are `ghs_` and 36 letters, or `ghs_<id>_<JWT>` of about 520 characters.
    (re.compile(r"gh[pousr]_[A-Za-z0-9_.\-]{16,}"), MASK),
    (re.compile(r"github_pat_[A-Za-z0-9_]{16,}"), MASK),
    (re.compile(r"sk-(?:ant-)?[A-Za-z0-9_\-]{16,}"), MASK),
    (re.compile(r"sk-ant-[A-Za-z0-9_\-]+"), MASK),
    (re.compile(r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"), MASK),
    (re.compile(r"x-access-token(:|%3A)[^@\s]+?(@|%40|(?=\s)|\Z)", re.IGNORECASE), rf"x-access-token\1{MASK}\2"),
    # `x-access-token:` in Base64, as git sends it.
    (re.compile(r"eC1hY2Nlc3MtdG9rZW46[A-Za-z0-9+/=_\-]+"), MASK),
    (re.compile(r"(://[^/\s:@]{0,100}:)[^/\s@]{1,1000}@"), rf"\1{MASK}@"),
    (re.compile(r"\b(basic|bearer) [A-Za-z0-9+/=_.\-]{12,}", re.IGNORECASE), rf"\1 {MASK}"),
)
"""What tokens look like. Source: https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/"""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class _Secrets:
    """The exact values to mask, in all forms in which they travel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        with self._lock:
            self._forms |= _forms(value)
            longest_first = sorted(self._forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def clear(self) -> None:
        with self._lock:
            self._forms.clear()
            self._pattern = None

    def mask(self, text: str) -> str:
        pattern = self._pattern
        return pattern.sub(MASK, text) if pattern else text


_secrets = _Secrets()


def _forms(value: str) -> set[str]:
    """Return a value as it is, quoted, escaped, in hexadecimal and in Base64 at each of the three alignments."""
    value = value.strip()
    if len(value) < _MIN_SECRET:
        return set()
    data = value.encode("utf-8", "surrogateescape")
    forms = {value, urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)}
    forms |= {json.dumps(value)[1:-1], repr(value)[1:-1]}
    encoded = {data.hex(), data.hex().upper()}
    for before in range(3):
        # The characters at both ends mix with the neighbours' bits.
        text = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        text = text[(0, 2, 3)[before] : len(text) - (1 if (before + len(data)) % 3 else 0)]
        encoded |= {text, text.replace("+", "-").replace("/", "_")}
    encoded |= {line.strip() for line in value.splitlines() if "\n" in value and not line.startswith("-----")}
    return forms | {form for form in encoded if len(form) >= _MIN_FORM}


def register_secret(value: str | bytes) -> None:
    """Mask this value from now on; values of fewer than four characters cannot be masked."""
    _secrets.add(value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value)


def forget_secrets() -> None:
    """Mask no exact values any more; for tests."""
    _secrets.clear()


def mask(text: str) -> str:
    """Replace registered secrets, and all that looks like a token, by `***`."""
    text = _secrets.mask(text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def _masked(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {mask(str(key)): _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_masked(item) for item in value]
    return mask(str(value))


class Bound(contextlib.AbstractContextManager["Bound"]):
    """What `bind` bound; leaving the `with` block unbinds it."""

    def __init__(self, token: contextvars.Token[Mapping[str, object] | None]) -> None:
        self._token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _context.reset(self._token)


def bind(**fields: object) -> Bound:
    """Put fields (delivery, task, repository, turn) into each log line of this asyncio task from now on."""
    return Bound(_context.set({**(_context.get() or {}), **fields}))


def bound() -> Mapping[str, object]:
    """Return the fields that are bound here."""
    return dict(_context.get() or {})


class MaskingFilter(logging.Filter):
    """Makes a record final: message, exception, stack and fields are text without secrets behind it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask in place, so that handlers behind us see no secret either."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            message = f"{record.msg} {record.args!r}"
        record.msg, record.args = mask(message), None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = mask(record.exc_text)
        if record.stack_info:
            record.stack_info = mask(record.stack_info)
        # The exception itself goes: another handler would format it anew.
        record.exc_info = None
        for name in vars(record).keys() - _OWN_FIELDS:
            setattr(record, name, _masked(getattr(record, name)))
        return True


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name, value in (_context.get() or {}).items():
        yield name, _masked(value)
    for name in sorted(vars(record).keys() - _OWN_FIELDS):
        yield name, getattr(record, name)


def _at(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": _at(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in _fields(record):
            line.setdefault(name, value)
        if record.exc_text:
            line["error"] = record.exc_text
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, ensure_ascii=False, default=str)


class _Text(logging.Formatter):
    """One line for people; a traceback follows indented, so that nobody's text can look like a line of ours."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_one_line(value)}" for name, value in _fields(record))
        name = record.name.removeprefix("bot.")
        line = f"{_at(record):%H:%M:%S} {record.levelname:<7} {name}: {_one_line(record.getMessage())}{fields}"
        for extra in (record.exc_text, record.stack_info):
            if extra:
                line += "".join(f"\n    {_one_line(part)}" for part in extra.splitlines())
        return line


def _one_line(value: object) -> str:
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}" if match[0] != "\n" else "\\n", str(value))


class Handler(logging.StreamHandler[TextIO]):
    """Our handler on the root logger; there is one at most."""


def configure(level: str, format: Format, stream: TextIO) -> None:  # noqa: A002 - the setting has this name
    """Send all log lines of this process to a stream; calling it again replaces what was before.

    Args:
        level: the least that is written, as `INFO`.
        format: `auto` is text where the stream is a terminal, else JSON.
        stream: stays the caller's to close.
    """
    as_text = format == "text" or (format == "auto" and stream.isatty())
    handler = Handler(stream)
    handler.addFilter(MaskingFilter())
    handler.setFormatter(_Text() if as_text else _Json())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    # They log each request's URL at INFO, and some URLs are secrets; alembic says nothing of use there.
    for name in ("httpx", "httpcore", "httpx2", "httpcore2", "hpack", "alembic", "uvicorn.access"):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))
