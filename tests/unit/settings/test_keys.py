"""Keys of models in the settings: given, in a file, or printed by a command; one of them at a time."""

from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.settings.load import load_server, take_secrets
from bot.settings.server import ServerSettings

COMMAND = "ISSUEWRIGHT_OPENAI__API_KEY_COMMAND"


def load(tmp_path: Path, text: str, environ: dict[str, str]) -> ServerSettings:
    """Load a file and an environment."""
    file = tmp_path / "server.yaml"
    file.write_text(text)
    return load_server(file, environ)


@pytest.mark.parametrize("value", ["['vault', 'read', 'a b']", "\"vault read 'a b'\"", "vault read 'a b'"])
def test_a_command_is_a_list_or_a_line(tmp_path: Path, value: str) -> None:
    """A line is quoted as for a shell, which never sees it."""
    settings = load(tmp_path, f"openai:\n  api_key_command: {value}\n", {})
    assert settings.openai.api_key_command == ("vault", "read", "a b")
    assert settings.openai.has_key


@pytest.mark.parametrize("value", ["vault read 'a b'", '["vault", "read", "a b"]'])
def test_a_command_in_the_environment(tmp_path: Path, value: str) -> None:
    """A line or JSON; no comma parts its words."""
    assert load(tmp_path, "", {COMMAND: value}).openai.api_key_command == ("vault", "read", "a b")
    assert load(tmp_path, "", {COMMAND: "echo a,b"}).openai.api_key_command == ("echo", "a,b")


def test_a_line_that_no_shell_would_take(tmp_path: Path) -> None:
    """A quotation mark that nothing closes."""
    with pytest.raises(OperatorError, match=rf"{COMMAND}: `openai.api_key_command`: no closing quotation"):
        load(tmp_path, "", {COMMAND: "echo 'a"})


@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        ("", {COMMAND: "true", "ISSUEWRIGHT_OPENAI__API_KEY": "k"}, "`openai.api_key` and `openai.api_key_command`"),
        ("openai:\n  api_key_file: /nowhere\n  api_key_command: [x]\n", {}, "_file` and `openai.api_key_command`"),
        ("", {COMMAND: "true", "ISSUEWRIGHT_OPENAI__API_KEY_FILE": "/x"}, "_file` and `openai.api_key_command`"),
    ],
)
def test_two_ways_to_one_key_are_a_mistake(tmp_path: Path, text: str, environ: dict[str, str], said: str) -> None:
    """At the same level nobody can know which one was meant."""
    with pytest.raises(OperatorError) as caught:
        load(tmp_path, text, environ)
    assert f"{said} are both set; keep one" in str(caught.value)


def test_a_higher_level_replaces_them_all(tmp_path: Path) -> None:
    """The way that it names is the one that counts, the vendor's own variable included."""
    command, file = "openai:\n  api_key_command: [x]\n", "openai:\n  api_key_file: /nowhere\n"
    for environ in ({"ISSUEWRIGHT_OPENAI__API_KEY": "k"}, {"OPENAI_API_KEY": "k"}):
        section = load(tmp_path, command, environ).openai
        assert (section.api_key_command, section.api_key is not None) == ((), True)
    section = load(tmp_path, file, {COMMAND: "true", "OPENAI_API_KEY": "k"}).openai
    assert (section.api_key_command, section.api_key, section.api_key_file) == (("true",), None, None)


def test_the_token_of_bedrock_has_a_usual_variable(tmp_path: Path) -> None:
    """It is taken and does not stay where processes inherit it."""
    environ = {
        "AWS_BEARER_TOKEN_BEDROCK": "the-token",
        "ISSUEWRIGHT_BEDROCK__SECRET_ACCESS_KEY": "x",
        "AWS_PROFILE": "p",
    }
    token = load(tmp_path, "", environ).bedrock.api_key
    assert token is not None
    assert token.get_secret_value() == "the-token"
    take_secrets(environ)
    assert environ == {"AWS_PROFILE": "p"}


@pytest.mark.parametrize("text", ["bedrock:\n  region: evil.example/\n", "vertex:\n  region: a.b\n"])
def test_a_region_is_no_address(tmp_path: Path, text: str) -> None:
    """It becomes part of a host's name."""
    with pytest.raises(OperatorError, match="region`: string should match pattern"):
        load(tmp_path, text, {})
