"""Log lines say what they belong to and never hold a secret."""

import asyncio
import base64
import io
import json
import logging
import sys
import threading
import time
import urllib.parse
import warnings
from collections.abc import Iterator
from typing import cast

import pytest

from bot import log, redaction

SECRET = "hunter2/correct+horse battery&staple"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAsecret1\nMIIEowIBAAKCAQEAsecret2\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJSUzI1NiJ9." + "eyJpc3MiOiJpc3N1ZS13cmlnaHQifQ-_" * 12 + "." + "sig-_nature" * 10
TOKENS = [
    "ghs_" + "a1B2" * 9,
    f"ghs_123456_{JWT}",
    "ghp_" + "Z9" * 18,
    "gho_" + "Z9" * 18,
    "ghu_" + "Z9" * 18,
    "ghr_" + "Z9" * 18,
    "github_pat_11ABCDEFG0abcdefghijkl_" + "x" * 59,
    "sk-ant-api03-" + "Ab-_" * 20,
    JWT,
    PEM,
    PEM.replace("\n", "\\n"),
]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Log to a text in memory; afterwards all is as it was."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    out = io.StringIO()
    log.configure("INFO", "json", out)
    yield out
    root.handlers[:] = handlers
    root.setLevel(level)
    redaction.forget_secrets()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Read the lines."""
    return [cast("dict[str, object]", json.loads(line)) for line in stream.getvalue().splitlines()]


logger = logging.getLogger("bot.test")


def test_json_line(stream: io.StringIO) -> None:
    """A line is one JSON object with time, level, logger, event and fields."""
    logger.info("task.started", extra={"files": 3, "who": 'a"b\n'})
    logger.debug("unheard")
    (line,) = lines(stream)
    assert line.pop("at")
    assert line == {"level": "INFO", "logger": "bot.test", "event": "task.started", "files": 3, "who": 'a"b\n'}


def test_text_line(stream: io.StringIO) -> None:
    """Nobody's text can look like a line of ours."""
    log.configure("INFO", "text", stream)
    logger.info("asked", extra={"title": "x\n12:00:00 ERROR forged\x1b[31m"})
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r"INFO    test: asked title=x\n12:00:00 ERROR forged\x1b[31m")


def test_auto_follows_the_stream(stream: io.StringIO) -> None:
    """Without a terminal, lines are JSON; configuring again leaves one handler."""
    log.configure("INFO", "auto", stream)
    logger.info("once")
    assert len(lines(stream)) == 1


async def test_bound_fields_follow_the_task(stream: io.StringIO) -> None:
    """What is bound in one asyncio task stands in its lines and in no other's."""

    async def work(name: str) -> None:
        log.bind(task=name)
        await asyncio.sleep(0)
        with log.bind(turn=1):
            logger.info("inside")
        logger.info("after")

    await asyncio.gather(work("a"), work("b"))
    for line in lines(stream):
        assert line["task"] in {"a", "b"}
        assert ("turn" in line) == (line["event"] == "inside")
    assert log.bound() == {}


@pytest.mark.parametrize("token", TOKENS, ids=range(len(TOKENS)))
@pytest.mark.parametrize("form", ["json", "text"])
def test_tokens_are_masked_everywhere(stream: io.StringIO, token: str, form: log.Format) -> None:
    """What looks like a token shows in no message, argument, field, exception or traceback."""
    log.configure("INFO", form, stream)
    logger.info("plain %s", token)
    logger.info(f"in text ={token}, and {{'Authorization': 'token {token}'}}")  # noqa: G004 - the careless way
    logger.info("field", extra={"url": f"https://x/?t={token}", "deep": {"k": [token]}})
    log.bind(task=token)
    try:
        try:
            raise ValueError(token)  # noqa: TRY301 - its traceback is what we look at
        except ValueError as error:
            raise RuntimeError(f"again {token}") from error
    except RuntimeError:
        logger.exception("failed")
    text = stream.getvalue()
    log.bind(task="")
    assert text.count("***") >= 6
    for piece in [token, *token.replace("\\n", "\n").split("\n")]:
        if not piece.startswith("-----"):
            assert piece not in text
            assert piece[len(piece) // 2 :] not in text


@pytest.mark.usefixtures("stream")
def test_a_handler_behind_ours_sees_no_secret() -> None:
    """Another handler on the same logger finds the masked text and no exception that it could format anew."""
    seen: list[logging.LogRecord] = []

    class Other(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    logging.getLogger().addHandler(Other())
    logger.error("failed %s", TOKENS[1], exc_info=ValueError(TOKENS[0]))
    (record,) = seen
    assert record.exc_info is None
    assert record.exc_text == "ValueError: ***"
    assert record.getMessage() == "failed ***"


def test_credentials_in_urls_are_masked() -> None:
    """User and password of a URL, and git's own form, are gone; the host stays."""
    assert redaction.mask("https://x-access-token:abc@github.com/a/b") == "https://x-access-token:***@github.com/a/b"
    assert redaction.mask("x-access-token:abc@github.com") == "x-access-token:***@github.com"
    assert redaction.mask("postgresql://me:pw@db/x") == "postgresql://me:***@db/x"
    encoded = base64.b64encode(b"x-access-token:ghs_abc").decode()
    assert encoded[8:] not in redaction.mask(f"AUTHORIZATION: basic {encoded}")
    assert redaction.mask("http://127.0.0.1:8080/a@b and a:b@c") == "http://127.0.0.1:8080/a@b and a:b@c"


@pytest.mark.parametrize("secret", [SECRET, PEM, "s3cret", "pässwörter", 'quote"back\\slash'])
def test_registered_secrets_are_masked_in_all_forms(stream: io.StringIO, secret: str) -> None:
    """A registered value shows neither as it is nor quoted, escaped, in Base64 or in hexadecimal."""
    redaction.register_secret(secret)
    data = secret.encode()
    forms = [
        secret,
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        data.hex(),
        data.hex().upper(),
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
    ]
    for form in forms:
        assert form not in redaction.mask(f"a {form} b")
    for before in range(4):
        wrapped = base64.b64encode(b"u" * before + data + b"~" * before).decode()
        if len(data) >= 9:
            middle = base64.b64encode(b"\0" * (before % 3) + data).decode()[4:-4]
            assert middle not in redaction.mask(wrapped)
    logger.info("a %s", secret, extra={"f": {secret: data.hex()}})
    for form in forms:
        assert form not in stream.getvalue()
    for line in secret.splitlines():
        if not line.startswith("-----"):
            assert line not in redaction.mask(f"first {line} last")


def test_short_values_mask_nothing() -> None:
    """A value of a few characters would blacken each line."""
    redaction.register_secret("a")
    redaction.register_secret("")
    assert redaction.mask("a banana") == "a banana"


def test_a_broken_call_is_logged_all_the_same(stream: io.StringIO) -> None:
    """Arguments that do not fit the message neither raise nor get lost."""
    logger.info("%d files", "x")
    assert lines(stream)[0]["event"] == "%d files ('x',)"


def test_masking_is_fast() -> None:
    """Hostile text does not make masking slow."""
    for text in (
        "://" * 40_000,
        "-----BEGIN A-----" * 5_000,
        "x-access-token:" * 8_000,
        "eyJ" * 40_000,
        "ghs_" * 30_000,
    ):
        before = time.process_time()
        redaction.mask(text)
        assert time.process_time() - before < 1, text[:20]


COMMANDS = ["::set-output name=x::1", "  ::add-mask::x", "\t::stop-commands::x", "##[command]rm", "so ##[error]x"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", ["json", "text"])
def test_nothing_commands_the_runner_of_a_job(stream: io.StringIO, command: str, form: log.Format) -> None:
    """What GitHub's runner would take for a command of its own is no such thing any more."""
    log.configure("INFO", form, stream)
    logger.info(command, extra={"said": command})
    logger.error("failed", exc_info=ValueError(f"x\n{command}"))
    for line in stream.getvalue().splitlines():
        assert not line.strip().startswith("::")
        assert "##[" not in line
    if form == "json":
        assert lines(stream)[0]["said"] == command


def test_inert_text_is_otherwise_the_same() -> None:
    """Colons and hashes elsewhere stay: `std::vector`, a heading, a comment."""
    text = "std::vector\n## Title\n# [x]\nhttp://[::1]/ a::b"
    assert log.inert(text) == text
    assert log.inert("::x::y") == ": :x::y"


class Broken:
    """Raises when it is given back."""

    def __del__(self) -> None:
        raise RuntimeError(SECRET)


@pytest.mark.filterwarnings("default")
def test_what_nobody_catches_is_logged_and_masked(stream: io.StringIO) -> None:
    """Errors at the top, in threads and in finalizers, and warnings, are lines of the log; an interrupt is none."""
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    redaction.register_secret(SECRET)
    log.catch_uncaught()
    try:
        sys.excepthook(ValueError, ValueError(SECRET), None)
        sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
        thread = threading.Thread(target=[].pop, name="worker")
        thread.start()
        thread.join()
        Broken()
        warnings.warn(f"old {SECRET}", DeprecationWarning, stacklevel=1)
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(capture=False)
    found = lines(stream)
    assert [line["event"] for line in found[:3]] == ["uncaught"] * 3
    assert str(found[0]["error"]).endswith("ValueError: ***")
    assert found[1]["where"] == "worker"
    assert "pop from empty list" in str(found[1]["error"])
    assert str(found[2]["error"]).endswith("RuntimeError: ***")
    assert "old ***" in str(found[3]["event"])
    assert SECRET not in stream.getvalue()


async def test_asyncio_tells_the_log(stream: io.StringIO) -> None:
    """What a task raised that nobody awaited is a masked line too."""
    redaction.register_secret(SECRET)
    asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": ValueError(SECRET)})
    (line,) = lines(stream)
    assert line["logger"] == "asyncio"
    assert str(line["error"]).endswith("ValueError: ***")
