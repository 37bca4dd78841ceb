"""A repository's file is read without trust, and each mistake is named with its place."""

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import RepositoryConfigError
from bot.settings.reading import packed
from bot.settings.repository import RepositorySettings, parse_repository


def refusal(text: bytes | str) -> str:
    """Parse what must be refused, and give the message."""
    with pytest.raises(RepositoryConfigError) as caught:
        parse_repository(text)
    return str(caught.value)


def test_example() -> None:
    """The example names every key and is accepted."""
    text = packed("issuewright.example.yml").read_bytes()
    settings = parse_repository(text)
    assert settings.model_fields_set == set(RepositorySettings.model_fields)
    assert settings.limits.model_fields_set == set(type(settings.limits).model_fields)
    assert settings.setup.model_fields_set == set(type(settings.setup).model_fields)
    assert settings.checks[0].run == "python -m pytest -q"


def test_least() -> None:
    """`version: 1` is enough."""
    assert parse_repository("version: 1") == RepositorySettings(version=1)
    assert parse_repository(b"\xef\xbb\xbfversion: 1\r\n") == RepositorySettings(version=1)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", None),
        ("setup: true", None),
        ("setup: {}", None),
        ("setup: {network: []}", None),
        ("setup: false", ()),
        ("setup: []", ()),
        ("setup: [npm ci, make]", ("npm ci", "make")),
        ("setup: {run: [npm ci]}", ("npm ci",)),
    ],
)
def test_the_short_forms_of_a_set_up(text: str, commands: tuple[str, ...] | None) -> None:
    """A list stands for its commands and `false` for none; everything else finds them out."""
    assert parse_repository(f"version: 1\n{text}").setup.run == commands


@pytest.mark.parametrize("mode", ["off", "'off'", "false", "read", "write"])
def test_a_memory_bank_may_be_switched_off(mode: str) -> None:
    """What YAML takes for `false` is the word that was meant."""
    memory = parse_repository(f"version: 1\nmemory: {mode}").memory
    assert memory == ("off" if mode == "false" else mode.strip("'"))


@pytest.mark.parametrize("folder", ["memory-bank", "docs/ai/notes", ".clinerules/memory-bank", "a.b_c"])
def test_a_memory_banks_folder_is_a_plain_path(folder: str) -> None:
    """A folder below the top one, hidden or not."""
    assert parse_repository(f"version: 1\nmemory_folder: {folder}").memory_folder == folder


@pytest.mark.parametrize(
    "folder", ["''", ".", "..", "../x", "/etc", "a/", "a//b", "a/../b", "a/./b", "'a b'", "a`b", "'*'"]
)
def test_no_other_folder_is_a_memory_bank(folder: str) -> None:
    """Nothing leaves the repository, names all of it, or could be read as Markdown or a pattern."""
    assert "`memory_folder`" in refusal(f"version: 1\nmemory_folder: {folder}")


BOMB = "version: 1\na: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1:1: `version`: is missing"),
        ("version: 2", ":1:1: `version`: input should be 1"),
        ("version: 1\nlimits:\n  turn: 5", ":3:3: `limits.turn`: no such key; did you mean `turns`?"),
        ("version: 1\nchecks:\n  - name: a\n    runs: b", ":4:5: `checks[0].runs`: no such key; did you mean `run`?"),
        ("version: 1\nchecks:\n  - name: a", ":3:5: `checks[0].run`: is missing"),
        ("version: 1\nchecks:\n  - {name: 'a`@b', run: b}", ":3:6: `checks[0].name`: "),
        (
            "version: 1\nchecks:\n- {name: a, run: b}\n- {name: a, run: c}",
            ":2:1: `checks`: two checks have the same name",
        ),
        ("version: 1\nlimits: {usd: .nan}", "`limits.usd`: "),
        ("version: 1\nlimits: {usd: .inf}", "`limits.usd`: "),
        ("version: 1\nlimits: {turns: -1}", "`limits.turns`: "),
        ("version: 1\nmemory: on", ":2:1: `memory`: "),
        ("version: 1\nsandbox: none", ":2:1: `sandbox`: no such key"),
        ("version: 1\nallowed_bots: '*'", ":2:1: `allowed_bots`: no such key"),
        ("version: 1\nsetup: npm ci", "`setup`: is a group of settings, not a value"),
        ("version: 1\nsetup:\n  runs: [a]", ":3:3: `setup.runs`: no such key; did you mean `run`?"),
        ("version: 1\nsetup:\n- a: b", ":2:1: `setup.run[0]`: input should be a valid string"),
        ("version: 1\nsetup: ['']", "`setup.run[0]`: "),
        ("version: 1\nsetup: {timeout_s: 0}", ":2:9: `setup.timeout_s`: "),
        (BOMB, ":2:4: anchors and aliases are not supported"),
        ("version: !!python/object:os.system 1", ":1:10: the tag `tag:yaml.org,2002:python/object:os.system`"),
        ("version: !x 1", ":1:10: the tag `!x` is not supported"),
        ("version: !!int x", ":1:10: `x` is no int"),
        ("version: 1\nversion: 1", ":2:1: the key `version` stands here twice"),
        ("version: 1\n? [a]\n: b", ":2:3: a key must be plain text"),
        ("version: 1\n\tlimits: 1", ":2:"),
        ("version: 1\nlimits:\n\tturns: 1", ":3:1: a tab cannot indent in YAML"),
        ("- 1", ":1:1: must be a mapping"),
        ("just text", ":1:1: must be a mapping"),
        ("version: 1\n---\nversion: 1", "cannot be read as YAML"),
        (b"version: 1\n\xff", ":2:1: is not UTF-8"),
        (b"version: 1\n\x00", "cannot be read as YAML"),
        ("#" * 70_000, ":1:1: is larger than 64 KiB"),
        ("a: " + "[" * 30_000, "has more than 20 levels"),
        ("version: 1\na: " + "[" * 25 + "]" * 25, ":2:23: has more than 20 levels"),
        ("version: 1\nx: " + "9" * 20_000, "`"),
    ],
)
def test_mistakes(text: bytes | str, expected: str) -> None:
    """A mistake is told with file, line, column, key and what was meant, within a moment."""
    before = time.process_time()
    message = refusal(text)
    assert time.process_time() - before < 1
    assert message.startswith("`.github/issuewright.yml` cannot be used:\n\n- .github/issuewright.yml:")
    assert expected in message
    assert len(message) < 1000


def test_a_message_cannot_be_used_to_write_markdown() -> None:
    """A key of the file stays inside its code span."""
    message = refusal('version: 1\n"a`\\n\\n# @everyone ": 1')
    assert message.count("`") % 2 == 0
    assert "\n# " not in message


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    """Whatever the bytes, there are settings or a clear error."""
    with contextlib.suppress(RepositoryConfigError):
        parse_repository(data)


@given(st.text(alphabet="version: 1\n-[]{}&*!|>'\"#?,abcx\t%@`", max_size=80))
def test_any_yaml(text: str) -> None:
    """Whatever the YAML, there are settings or a clear error."""
    with contextlib.suppress(RepositoryConfigError):
        parse_repository(text)


def test_dates_and_words_stay_text() -> None:
    """A date or a word that YAML would change stays what was written, where text is asked."""
    settings = parse_repository("version: 1\nchecks:\n- {name: 2026-01-01, run: 'yes'}")
    assert (settings.checks[0].name, settings.checks[0].run) == ("2026-01-01", "yes")


def test_reads_no_file(tmp_path: Path) -> None:
    """The path is a name for messages and is not opened."""
    with pytest.raises(RepositoryConfigError, match="nowhere"):
        parse_repository("x", str(tmp_path / "nowhere"))
