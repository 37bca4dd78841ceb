"""Secrets are found in every form in which they travel, and what only looks a little like one is left alone."""

import base64
import json
import random
import time
import urllib.parse
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import known, redaction
from bot.redaction import leaks, leaks_in_names, mask, mask_known, mask_tokens, masked, register_secret

KEY = "Qk3zX9rT7vLm2bWc8dYp4sHj6nFg1aUe5oIt"
ODD = "p4ss/w0rd+with&odd=chars?and-more~of.them"
BODY = base64.b64encode(random.Random(7).randbytes(1190)).decode()
PEM = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n".format(
    "\n".join(BODY[at : at + 64] for at in range(0, len(BODY), 64))
)
HEAD = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9"


def new_token(seed: int) -> str:
    """Make an installation token of the new kind: about 520 characters."""
    chance = random.Random(seed)
    parts = [base64.urlsafe_b64encode(chance.randbytes(size)).decode().rstrip("=") for size in (90, 256)]
    return f"ghs_1234567_{HEAD}.{'.'.join(parts)}"


def groups(size: int, between: str) -> Callable[[str], str]:
    """Split a text into groups."""
    return lambda text: between.join(text[at : at + size] for at in range(0, len(text), size))


FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind one byte": lambda text: base64.b64encode(b"u" + text.encode() + b"~").decode(),
    "base64 behind two bytes": lambda text: base64.b64encode(b"u:" + text.encode() + b"~~").decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex in capitals": lambda text: text.encode().hex().upper(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "quoted": lambda text: urllib.parse.quote(text, safe=""),
    "json": json.dumps,
    "json twice": lambda text: json.dumps(json.dumps(text)),
    "reversed": lambda text: text[::-1],
    "spaced": " ".join,
    "in lines": groups(7, "\n"),
    "in lines of JSON": groups(9, "\\n"),
    "in texts of code": groups(10, '" +\n    "'),
    "in colours": groups(6, "\x1b[31;1m"),
    "in a diff": groups(12, "\n+"),
}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Leave no secret behind."""
    yield
    redaction.forget_secrets()


def longest_left(form: str, shown: str) -> int:
    """Length of the longest part of a form that is still there, white space and punctuation apart."""

    def bare(text: str) -> str:
        return "".join(char for char in text if char.isascii() and char.isalnum())

    left, letters = bare(shown), bare(form)
    return max(
        (end - start for start in range(len(letters)) for end in range(start, len(letters) + 1)
         if end - start <= 24 and letters[start:end] in left),
        default=0,
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [KEY, ODD, new_token(1), PEM], ids=["key", "odd", "token", "pem"])
def test_every_form_of_a_value_is_found(secret: str, form: str) -> None:
    """A known value is masked in each form; what is left of it are a few characters that mix with their neighbours."""
    register_secret(secret)
    sent = FORMS[form](secret)
    for text in (sent, f"before {sent} after", f"Ünï {sent}\n" * 3):
        shown = mask_known(text)
        assert redaction.MASK in shown
        assert longest_left(sent[:600] if secret != PEM else sent[40:600], shown) < 12, shown


@pytest.mark.parametrize("secret", ["s3cret", "hunter2!", "pässwörter", "a.b-c_d+e/f", "t0p-S3cret-12"])
def test_short_values_are_found_as_they_are_and_encoded(secret: str) -> None:
    """A password of a few characters is masked raw, quoted, in hexadecimal and in Base64."""
    register_secret(secret)
    for name in ("raw", "quoted", "hex", "hex in capitals", "base64", "json", "reversed"):
        sent = FORMS[name](secret)
        if len(sent) >= 8 or name in {"raw", "quoted", "reversed"}:
            assert sent.strip('"=') not in mask(f"a {sent} b"), name


@given(st.text(min_size=20, max_size=60), st.text(max_size=40), st.text(max_size=40))
def test_whatever_the_value_it_is_not_there_afterwards(secret: str, before: str, after: str) -> None:
    """Raw values go, whatever their characters; the text around them stays."""
    redaction.forget_secrets()
    register_secret(secret)
    shown = mask_known(f"{before}|{secret}|{after}")
    assert secret.strip() not in shown
    redaction.forget_secrets()


@pytest.mark.parametrize("cut", [slice(7, None), slice(None, -9), slice(4, -4)])
@pytest.mark.parametrize("secret", [KEY, new_token(2)], ids=["key", "token"])
def test_a_part_of_a_value_is_found(secret: str, cut: slice) -> None:
    """Cutting off some characters, as a limit of a text does, hides nothing."""
    register_secret(secret)
    assert mask_known(f"about: {secret[cut]}.").startswith("about: ***")


def test_the_beginning_that_all_keys_share_is_no_secret() -> None:
    """Keys of a kind begin alike: what another one has in common with ours stays."""
    first = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"
    register_secret(f"-----BEGIN PRIVATE KEY-----\n{first}C7ourkey\n{BODY}\n-----END PRIVATE KEY-----")
    register_secret(new_token(3), passing=True)
    theirs = f"{first}Dother {HEAD} ghs_1234567_"
    assert mask_known(theirs) == theirs


def test_of_a_url_the_password_is_the_secret() -> None:
    """The rest of it stands in every manual."""
    register_secret("postgresql://issuewright:c0rrect%2Fhorse-battery@db.example.org:5432/issuewright")
    manual = "postgresql://issuewright@db.example.org:5432/issuewright"
    assert mask(manual) == manual
    assert mask("c0rrect/horse-battery") == mask("c0rrect%2Fhorse-battery") == "***"


def test_only_the_newest_passing_values_are_kept() -> None:
    """Tokens of an hour do not fill the memory; what does not pass is kept for good."""
    register_secret(KEY)
    tokens = [new_token(seed) for seed in range(known.KEEP + 20)]
    for token in tokens:
        register_secret(token, passing=True)
    parts = [token.split(".")[2] for token in tokens]
    assert mask_known(parts[19]) == parts[19]
    assert all(mask_known(part) == "***" for part in (*parts[20:25], parts[-1], KEY))
    held = redaction._known
    before = len(held._windows), len(held._short), len(held._literal)
    for seed in range(1000, 1030):
        register_secret(new_token(seed), passing=True)
    assert (len(held._windows), len(held._short), len(held._literal)) == pytest.approx(before, rel=0.02)


def test_bytes_and_lone_surrogates_are_no_problem() -> None:
    """Text of any kind is masked and otherwise stays what it is."""
    register_secret(KEY.encode())
    assert mask(f"\ud800 {KEY} \udfff\0") == "\ud800 *** \udfff\0"
    assert redaction.holds_secret(f"x{KEY}".encode("utf-16"))
    assert not redaction.holds_secret(b"\0\xff" * 100)


TOKENS = [
    "ghs_" + "a1B2" * 9,
    new_token(4),
    *(f"gh{kind}_" + "Z9" * 18 for kind in "opur"),
    "github_pat_11ABCDEFG0abcdefghijkl_" + "x1" * 29 + "x",
    "sk-ant-api03-" + "Ab-_" * 23 + "AA",
    "sk-proj-" + "a1" * 30,
    new_token(5).split("_", 2)[2],
    "AKIA" + "ABCD2345" * 2,
    "AIza" + "Sy1" * 11 + "ab",
    "xoxb-123456789012-abcdefABCDEF",
    "npm_" + "aB1" * 12,
    "pypi-AgE" + "aB1-_" * 20,
    PEM.strip(),
    PEM.strip().replace("\n", "\\n"),
    "".join(f"{number}: {line}\n" for number, line in enumerate(PEM.splitlines())).strip(),
]


@pytest.mark.parametrize("token", TOKENS, ids=range(len(TOKENS)))
@pytest.mark.parametrize("around", ["{}", "token={}&x=1", "'{}'", "({})", "a {}, b.", "It is {}.", '{{"k": "{}"}}'])
def test_tokens_are_masked_whole(token: str, around: str) -> None:
    """What says itself that it is a token is masked to its last character, and no more than that."""
    assert mask(around.format(token)).replace("0: ***", "***") == around.format("***")
    assert mask_tokens(around.format(token)).count("***") == 1


@pytest.mark.parametrize(
    "text",
    [
        "A basic understanding of Basic authentication and bearer authentication",
        "Bearer authentication-with-a-long-name",
        "feature/task-force-of-the-whole-town and disk-usage-report-generator-for-all",
        "keys begin with `sk-ant-` or `ghp_`; PEM with `-----BEGIN PRIVATE KEY-----`, said the manual. And more.",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQ\n-----END CERTIFICATE-----",
        "http://127.0.0.1:8080/a@b and a:b@c, see https://example.org/@user:x",
        "0123456789abcdef0123456789abcdef01234567",
        "npm_config_registry=x GHP_TOKEN gho_st AKIAshort xoxo-",
        "sha256=6f1e0c3a4b5d2e7f8091a2b3c4d5e6f7",
    ],
)
def test_what_is_no_token_stays(text: str) -> None:
    """Prose, branch names, hashes and certificates stay as they are."""
    assert mask(text) == text


def test_places_of_passwords() -> None:
    """What stands where passwords stand is masked whatever it looks like; a command's output keeps it."""
    assert mask("https://x-access-token:abc@github.com/a") == "https://x-access-token:***@github.com/a"
    assert mask("postgresql://me:pw@db/x") == "postgresql://me:***@db/x"
    assert mask("Authorization: Bearer abcdefgh12345678") == "Authorization: Bearer ***"
    assert mask("AUTHORIZATION: basic " + base64.b64encode(b"me:pw word").decode()) == "AUTHORIZATION: basic ***"
    assert mask_tokens("postgresql://me:pw@db/x") == "postgresql://me:pw@db/x"


def test_masking_values() -> None:
    """Lists, mappings and objects come out as JSON with masked texts; masking again changes nothing."""
    register_secret(KEY)
    value = {"a": [KEY, 1, None, True, 2.5], KEY: (f"x{KEY}y",), "o": ValueError(KEY)}
    once = masked(value)
    assert once == {"a": ["***", 1, None, True, 2.5], "***": ["x***y"], "o": "***"}
    assert masked(once) == once


@pytest.mark.parametrize("word", ["postgres", "s3cret", "changeme"])
def test_a_password_that_is_a_word_stops_nobody(word: str) -> None:
    """It is masked where people read, and left alone in files, for the model and in changes."""
    register_secret(f"postgresql://me:{word}@db/x")
    assert mask(f"it is {word}") == "it is ***"
    assert mask_known(f"it is {word}") == mask_tokens(f"it is {word}") == f"it is {word}"
    assert leaks(hunk("compose.yaml", f"+image: {word}"))[0] == []


def test_too_short_values_mask_nothing() -> None:
    """A value of a few characters would blacken each line."""
    for value in ("a", "", "  ", "abc"):
        register_secret(value)
    assert mask("a banana abc") == "a banana abc"


HOSTILE = [
    "://" * 340_000,
    "-----BEGIN A PRIVATE KEY-----" * 36_000,
    "-----BEGIN PRIVATE KEY-----Proc-Type: " * 25_000,
    "x-access-token:" * 70_000,
    "eyJ" * 340_000,
    f"{HEAD}." * 27_000,
    "ghs_" * 260_000,
    "\\n" * 500_000,
    "\x1b[1;" * 200_000,
    "Bearer " * 150_000,
    "sk-a-" * 200_000,
    "a" * 1_048_576,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_masking_is_fast(text: str) -> None:
    """A mebibyte takes a fraction of a second, whatever is in it and however many tokens are known."""
    for seed in range(40):
        register_secret(new_token(seed), passing=True)
    register_secret(PEM)
    before = time.process_time()
    mask(text)
    assert time.process_time() - before < 1


def hunk(path: str, *lines: str, start: int = 1) -> str:
    """Write a file of a diff with one hunk."""
    old = sum(not line.startswith("+") for line in lines)
    new = sum(not line.startswith("-") for line in lines)
    body = "\n".join(lines)
    head = f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}"
    return f"{head}\n@@ -{start},{old} +{start},{new} @@ def x():\n{body}\n"


def test_a_value_in_added_lines_is_named_with_its_place() -> None:
    """File and line of the new file are named, the value is not; what was there before, or goes, does not count."""
    register_secret(KEY)
    diff = hunk("old.py", f" {KEY}", f"-{KEY}", "+fine") + hunk("src/a b.py", " x", "+y", f"+k = '{KEY}'", start=10)
    found, paths = leaks(diff)
    assert [str(leak) for leak in found] == ["`src/a b.py` line 12: a secret of this server"]
    assert found[0].certain
    assert paths == {"old.py", "src/a b.py"}


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"in colours"}))
def test_every_form_of_a_value_is_found_in_a_change(form: str) -> None:
    """Also where it is encoded or spread over lines, with lines in between that were there before."""
    register_secret(ODD)
    lines = [f"+{line}" for line in FORMS[form](ODD).split("\n")]
    found, _ = leaks(hunk("f", " kept", *lines[:1], " kept too", "-gone", *lines[1:]))
    assert [(leak.path, leak.line) for leak in found if leak.certain] == [("f", 2)]


def test_lines_that_look_like_headers_are_lines() -> None:
    """What a file holds is not taken for the diff's own."""
    register_secret(KEY)
    found, paths = leaks(hunk("f.diff", "+++ b/other", "+@@ -1 +1 @@", f"+{KEY}", "\\ No newline at end of file"))
    assert [(leak.path, leak.line) for leak in found] == [("f.diff", 3)]
    assert paths == {"f.diff"}


def test_what_only_looks_like_a_secret_is_no_certain_leak() -> None:
    """Tokens of a shape that can be checked are remarked on where they are added; look-alikes are not."""
    good = ["ghp_" + "aB3" * 12, new_token(9), "sk-ant-api03-" + "Ab-_" * 23 + "AA"]
    fake = ["ghp_xxx", "ghp_" + "aB3" * 13, "sk-ant-test", "-----BEGIN PRIVATE KEY-----", "AKIAIOSFODNN7EXAMPLE", HEAD]
    found, _ = leaks(hunk("t.py", *(f"+{token}" for token in [*good, *fake]), f" {good[0]}", f"-{good[0]}"))
    assert [(leak.line, leak.certain) for leak in found] == [(1, False), (2, False), (3, False)]
    der = base64.b64encode(b"\x30\x82" + bytes(200)).decode()
    lines = ["-----BEGIN PRIVATE KEY-----", der[:64], der[64:128], der[128:], "-----END PRIVATE KEY-----"]
    found, _ = leaks(hunk("key.pem", *(f"+{line}" for line in lines)))
    assert [str(leak) for leak in found] == ["`key.pem` line 1: a private key"]
    text = base64.b64encode(b"this is no key at all, " * 9).decode()
    assert leaks(hunk("key.pem", f"+{lines[0]}", f"+{text}", f"+{lines[-1]}"))[0] == []


def test_names_are_looked_at_and_not_told() -> None:
    """A file may be named after a secret."""
    register_secret(KEY)
    (leak,) = leaks_in_names(["a.py", f"keys/{KEY}.txt"])
    assert str(leak) == "`keys/***.txt`: a secret of this server in its name"
