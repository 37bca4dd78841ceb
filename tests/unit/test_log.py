"""Log lines say what they belong to and never hold a secret."""

import asyncio
import base64
import io
import json
import logging
import time
import urllib.parse
from collections.abc import Iterator
from typing import cast

import pytest

from bot import log

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
    log.forget_secrets()


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
    assert log.mask("https://x-access-token:abc@github.com/a/b") == "https://x-access-token:***@github.com/a/b"
    assert log.mask("x-access-token:abc@github.com") == "x-access-token:***@github.com"
    assert log.mask("postgresql://me:pw@db/x") == "postgresql://me:***@db/x"
    encoded = base64.b64encode(b"x-access-token:ghs_abc").decode()
    assert encoded[8:] not in log.mask(f"AUTHORIZATION: basic {encoded}")
    assert log.mask("http://127.0.0.1:8080/a@b and a:b@c") == "http://127.0.0.1:8080/a@b and a:b@c"


@pytest.mark.parametrize("secret", [SECRET, PEM, "s3cret", "pässwörter", 'quote"back\\slash'])
def test_registered_secrets_are_masked_in_all_forms(stream: io.StringIO, secret: str) -> None:
    """A registered value shows neither as it is nor quoted, escaped, in Base64 or in hexadecimal."""
    log.register_secret(secret)
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
        assert form not in log.mask(f"a {form} b")
    for before in range(4):
        wrapped = base64.b64encode(b"u" * before + data + b"~" * before).decode()
        if len(data) >= 9:
            middle = base64.b64encode(b"\0" * (before % 3) + data).decode()[4:-4]
            assert middle not in log.mask(wrapped)
    logger.info("a %s", secret, extra={"f": {secret: data.hex()}})
    for form in forms:
        assert form not in stream.getvalue()
    for line in secret.splitlines():
        if not line.startswith("-----"):
            assert line not in log.mask(f"first {line} last")


def test_short_values_mask_nothing() -> None:
    """A value of a few characters would blacken each line."""
    log.register_secret("a")
    log.register_secret("")
    assert log.mask("a banana") == "a banana"


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
        log.mask(text)
        assert time.process_time() - before < 1, text[:20]
