"""The operator's settings come in layers, and each mistake is named with its place."""

import base64
import os
import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.errors import OperatorError
from bot.settings.document import server_yaml, written
from bot.settings.load import config_path, load_server, secret_values, take_secrets
from bot.settings.problems import secret_keys
from bot.settings.reading import packed
from bot.settings.server import GitHubSection, ServerSettings

ROOT = Path(__file__).parents[3]
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\n"

OWN_STATE = Path("/var/lib/issuewright" if os.geteuid() == 0 else "/h/.local/state/issuewright")
"""Root's is elsewhere: its home is closed to the users to whom work trees belong."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a small file of settings."""
    path = tmp_path / "server.yaml"
    path.write_text("limits:\n  turns: 50\n  usd: 1.5\nlabel: robot\n")
    return path


def refusal(path: Path, environ: dict[str, str] | None = None, overrides: dict[str, object] | None = None) -> str:
    """Load what must be refused, and give the message."""
    with pytest.raises(OperatorError) as caught:
        load_server(path, environ or {}, overrides)
    return str(caught.value)


def test_packed_file_changes_nothing() -> None:
    """The packed file holds every key with its default."""
    assert load_server(None, {"HOME": "/h"}) == ServerSettings(state_dir=OWN_STATE)
    assert packed("server.yaml") == ROOT / "config" / "server.yaml"


def test_packed_file_names_every_key() -> None:
    """No key is missing from the packed file, secrets included."""

    def names(model: type) -> set[str]:
        return set(model.model_fields)  # type: ignore[attr-defined]

    text = server_yaml()
    for name in names(ServerSettings):
        assert re.search(rf"^(# )?{name}:", text, re.MULTILINE), name
    for name in names(GitHubSection):
        assert re.search(rf"^  (# )?{name}:", text, re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(written()))
def test_written_files_are_up_to_date(name: str) -> None:
    """Page and files say what the fields say; `bot/settings/document.py` tells how to write them anew."""
    assert (ROOT / name).read_text(encoding="utf-8") == written()[name]


def test_every_field_says_what_it_means() -> None:
    """No setting is without a description."""
    page = written()["docs/configuration.md"]
    assert not re.search(r"\|[ ]*\|", page)


def test_layers(file: Path) -> None:
    """Default < file < environment < flag."""
    environ = {"ISSUEWRIGHT_LIMITS__USD": "3", "ISSUEWRIGHT_LABEL": "env", "ISSUEWRIGHT_PORT": "90", "HOME": "/h"}
    settings = load_server(file, environ, {"port": 91, "limits.minutes": 5, "host": None})
    assert settings.limits.turns == 50
    assert settings.limits.usd == 3
    assert settings.limits.minutes == 5
    assert settings.limits.tokens == 2_000_000
    assert (settings.label, settings.port, settings.host) == ("env", 91, "127.0.0.1")


def test_the_file_comes_from_flag_then_environment_then_package(file: Path) -> None:
    """A file in the working directory is not looked for."""
    assert config_path(file, {"ISSUEWRIGHT_CONFIG": "/x"}) == file
    assert config_path(None, {"ISSUEWRIGHT_CONFIG": "/x"}) == Path("/x")
    assert config_path(None, {}) == packed("server.yaml")


def test_state_dir_follows_xdg(file: Path) -> None:
    """`$XDG_STATE_HOME` counts where nothing else is said."""
    assert load_server(file, {"XDG_STATE_HOME": "/s"}).state_dir == Path("/s/issuewright")
    assert load_server(file, {"HOME": "/h"}).state_dir == OWN_STATE
    assert load_server(file, {"XDG_STATE_HOME": "/s", "ISSUEWRIGHT_STATE_DIR": "/d"}).state_dir == Path("/d")


def test_making_settings_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `load` reads the environment."""
    monkeypatch.setenv("ISSUEWRIGHT_PORT", "1")
    monkeypatch.setenv("ISSUEWRIGHT_LIMITS__TURNS", "1")
    assert ServerSettings() == ServerSettings(port=8080)
    assert load_server(None, {}).port == 8080


def test_settings_are_frozen(file: Path) -> None:
    """Nobody changes settings in place."""
    settings = load_server(file, {})
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        settings.limits.turns = 1  # type: ignore[misc]


def test_lists_in_the_environment() -> None:
    """A list is separated by commas or is JSON."""
    for text in ("a/*, b/c", '["a/*", "b/c"]', "a/*,b/c,"):
        assert load_server(None, {"ISSUEWRIGHT_REPOSITORIES": text}).repositories == ("a/*", "b/c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limits:\n  turn: 5\n", ":2:3: `limits.turn`: no such key; did you mean `turns`?"),
        ("limits:\n  turns: x\n", ":2:3: `limits.turns`: input should be a valid integer"),
        ("limit:\n  turns: 5\n", ":1:1: `limit`: no such key; did you mean `limits`?"),
        ("limits: 5\n", ":1:1: `limits`: is a group of settings, not a value"),
        ("repositories: [a/b, c]\n", ":1:1: `repositories`: `c` is not of the form owner/name"),
        ("repositories: [a/b, {}]\n", ":1:21: `repositories[1]`: input should be a valid string"),
        ("command: agent\n", ":1:1: `command`: "),
        ("port: 8080\nport: 8081\n", ":2:1: the key `port` stands here twice"),
        ("github:\n  api_url: ftp://x\n", ":2:3: `github.api_url`: must be a URL"),
        ("github:\n  web_url: https://a:b@x\n", ":2:3: `github.web_url`: must not hold a user name or password"),
        ("- a\n", ":1:1: must be a mapping"),
        ("a: [\n", "cannot be read as YAML"),
        ("limits:\n\tturns: 5\n", ":2:1: a tab cannot indent in YAML"),
        ("github:\n  webhook_secret: hunter2\n", ":2:3: `github.webhook_secret` is a secret and may not stand here"),
        ("database_url: postgresql://u:p@h/d\n", ":1:1: `database_url` is a secret and may not stand here"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, expected: str) -> None:
    """A mistake is told with file, line, column, key and what was meant, never with a secret's value."""
    path = tmp_path / "s.yaml"
    path.write_text(text)
    message = refusal(path)
    assert expected in message
    assert message.startswith(str(path))
    assert "hunter2" not in message
    assert "u:p" not in message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Nobody has to start five times to find five mistakes."""
    path = tmp_path / "s.yaml"
    path.write_text("limits:\n  turns: 0\nport: 99999\n")
    assert len(refusal(path, {"ISSUEWRIGHT_WORKER__TASKS": "0"}).splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ISSUEWRIGHT_LIMITS__TURN", "3", "did you mean `turns`?"),
        ("ISSUEWRIGHT_LIMITS__TURNS", "many", "input should be a valid integer"),
        ("ISSUEWRIGHT_LIMIT__TURNS", "3", "did you mean `limits`?"),
        ("ISSUEWRIGHT_QQ", "3", "known here: "),
        ("ISSUEWRIGHT_LIMITS", "{}", "is a group of settings"),
        ("ISSUEWRIGHT_PORT", "tcp://10.0.0.1:80", "enableServiceLinks"),
        ("ISSUEWRIGHT_REPOSITORIES", '["a', "valid tuple"),
        ("ISSUEWRIGHT_GITHUB__PRIVATE_KEY", "hunter2", "must be a private key in PEM form"),
    ],
)
def test_mistakes_in_the_environment(file: Path, name: str, value: str, expected: str) -> None:
    """A mistake in a variable is told with the variable's name."""
    message = refusal(file, {name: value})
    assert message.startswith(f"{name}: ")
    assert expected in message
    assert "hunter2" not in message


def test_variables_of_kubernetes_are_let_be(file: Path) -> None:
    """A service of our name makes variables that begin like ours."""
    load_server(file, {"ISSUEWRIGHT_SERVICE_HOST": "10.0.0.1", "ISSUEWRIGHT_PORT_8080_TCP": "tcp://10.0.0.1:8080"})


def test_mistakes_in_flags(file: Path) -> None:
    """A mistake in a flag is told as such, and a secret cannot be one."""
    assert refusal(file, {}, {"limits.turns": 0}).startswith("a flag: `limits.turns`: ")
    assert "cannot be a flag" in refusal(file, {}, {"github.webhook_secret": "x"})


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    assert "nope.yaml: cannot be read: No such file" in refusal(tmp_path / "nope.yaml")


def test_secrets_from_files(tmp_path: Path, file: Path) -> None:
    """A secret may stand in a file of its own, that YAML or the environment names."""
    (tmp_path / "hook").write_text("s3cret\n")
    (tmp_path / "pem").write_text(PEM)
    file.write_text(f"github:\n  webhook_secret_file: {tmp_path / 'hook'}\n")
    settings = load_server(file, {"ISSUEWRIGHT_GITHUB__PRIVATE_KEY_FILE": str(tmp_path / "pem")})
    assert settings.github.webhook_secrets == (b"s3cret",)
    assert settings.github.private_key is not None
    assert settings.github.private_key.get_secret_value() == PEM


def test_a_higher_level_replaces_a_secret_file(tmp_path: Path, file: Path) -> None:
    """A variable wins over the file that YAML names, and on the same level both are too many."""
    file.write_text("github:\n  webhook_secret_file: /nowhere\n")
    settings = load_server(file, {"ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET": "s3cret"})
    assert settings.github.webhook_secrets == (b"s3cret",)
    both = {"ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET": "a", "ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET_FILE": "/b"}
    assert "are both set; keep one" in refusal(file, both)
    assert ":2:3: /nowhere cannot be read" in refusal(file)
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in refusal(file, {"ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET_FILE": str(tmp_path / "empty")})


def test_private_key_forms() -> None:
    """Line ends may be written as backslash and n, and the whole as Base64."""
    for text in (PEM, PEM.replace("\n", "\\n"), base64.b64encode(PEM.encode()).decode()):
        section = GitHubSection(private_key=SecretStr(text))
        assert section.private_key is not None
        assert section.private_key.get_secret_value() == PEM


def test_usual_key_of_anthropic(file: Path) -> None:
    """`ANTHROPIC_API_KEY` serves where ours is not set."""
    both = {"ANTHROPIC_API_KEY": "sk-ant-a", "ISSUEWRIGHT_ANTHROPIC__API_KEY": "sk-ant-b"}
    for environ, expected in ((both, "sk-ant-b"), ({"ANTHROPIC_API_KEY": "sk-ant-a"}, "sk-ant-a")):
        key = load_server(file, environ).anthropic.api_key
        assert key is not None
        assert key.get_secret_value() == expected


def test_lists_come_from_the_environment_too(file: Path) -> None:
    """A list is separated by commas, of texts and of paths."""
    environ = {
        "ISSUEWRIGHT_SANDBOX__PATHS": "/opt/node, /opt/rust",
        "ISSUEWRIGHT_SANDBOX__NETWORK": "python,example.com",
    }
    sandbox = load_server(file, environ).sandbox
    assert sandbox.paths == (Path("/opt/node"), Path("/opt/rust"))
    assert sandbox.network == ("python", "example.com")


def test_secrets_do_not_show(file: Path) -> None:
    """No representation of the settings holds a secret, by reflection over all of them."""
    environ = {}
    for number, key in enumerate(secret_keys(ServerSettings)):
        value = PEM.replace("MIIEow", "hunter") if key[-1] == "private_key" else f"hunter{number}:hunter"
        environ["ISSUEWRIGHT_" + "__".join(key).upper()] = value
    settings = load_server(file, environ)
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert "hunter" not in shown
    # The proxy's password is one by itself.
    assert len(secret_values(settings)) == len(environ) + 1 == 15
    environ |= {"ANTHROPIC_API_KEY": "hunter", "PATH": "/bin"}
    take_secrets(environ)
    assert environ == {"PATH": "/bin"}


def test_covers() -> None:
    """Patterns cover whole names, each part by itself, without regard to case."""
    settings = ServerSettings(repositories=("acme/*", "Other/One"))
    assert settings.covers("acme/x")
    assert settings.covers("ACME/y")
    assert settings.covers("other/one")
    assert not settings.covers("other/one-more")
    assert not settings.covers("xacme/x")
    assert ServerSettings().covers("any/thing")


def test_web_url() -> None:
    """Where GitHub's pages are follows from where its API is."""
    assert GitHubSection().web == "https://github.com"
    assert GitHubSection(api_url="https://git.acme.test/api/v3").web == "https://git.acme.test"
    assert GitHubSection(api_url="https://api.acme.ghe.com").web == "https://acme.ghe.com"
    assert GitHubSection(api_url="http://127.0.0.1:9").web == "http://127.0.0.1:9"
    assert GitHubSection(web_url="https://w.test").web == "https://w.test"
