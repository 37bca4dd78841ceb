"""Log lines: JSON or text, each with what it belongs to, and never with a secret."""

import contextlib
import contextvars
import json
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self, TextIO

from bot import redaction
from bot.redaction import mask, masked

Format = Literal["auto", "json", "text"]

register_secret = redaction.register_secret
"""Also here, where the process's doors look for it."""

_context: contextvars.ContextVar[Mapping[str, object] | None] = contextvars.ContextVar("bot_log", default=None)

_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


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
            setattr(record, name, masked(getattr(record, name)))
        return True


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name, value in (_context.get() or {}).items():
        yield name, masked(value)
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
        return inert_json(json.dumps(line, ensure_ascii=False, default=str))


class _Text(logging.Formatter):
    """One line for people; a traceback follows indented, so that nobody's text can look like a line of ours."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_one_line(value)}" for name, value in _fields(record))
        name = record.name.removeprefix("bot.")
        line = f"{_at(record):%H:%M:%S} {record.levelname:<7} {name}: {_one_line(record.getMessage())}{fields}"
        for extra in (record.exc_text, record.stack_info):
            if extra:
                line += "".join(f"\n    {_one_line(part)}" for part in extra.splitlines())
        return inert(line)


def inert(text: str) -> str:
    """Put a space into what GitHub's runner would take for a command in a job's log: `::name` and `##[name]`.

    Source: https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
    """
    return _COMMAND.sub(lambda match: "## " if match[0] == "##" else f"{match[1]}: ", text)


def inert_json(line: str) -> str:
    """Do the same to a JSON object on a line, which stays the same object."""
    return line.replace("##[", "##\\u005b")


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


def catch_uncaught() -> None:
    """Log what nobody catches, in any thread or finalizer, and warnings: Python itself would print them unmasked.

    What asyncio finds in a task that nobody awaited is logged by itself.
    """
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(
        args.exc_type,
        args.exc_value or args.exc_type(),
        args.exc_traceback,
        where=args.thread.name if args.thread else None,
    )
    sys.unraisablehook = lambda args: _uncaught(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback, where=args.err_msg
    )
    logging.captureWarnings(capture=True)


def _uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None, *, where: str | None = None
) -> None:
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    logging.getLogger(__name__).critical("uncaught", exc_info=(kind, error, trace), extra={"where": where})
