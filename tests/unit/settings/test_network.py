"""How the server reaches the network: proxies with and without a login, and what other programs' variables say."""

from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.settings.load import load_server, secret_values, take_secrets
from bot.settings.server import NetworkSection, ServerSettings

API = "https://api.github.com/x"


def network(environ: dict[str, str]) -> NetworkSection:
    """Load the group from an environment."""
    return load_server(None, {"HOME": "/h", **environ}).network


def test_a_login_goes_into_the_url_quoted(tmp_path: Path) -> None:
    """User and password come from a secret of their own, by variable or file; the URL in the file holds none."""
    url = {"ISSUEWRIGHT_NETWORK__HTTPS_PROXY": "http://proxy.corp.test:3128"}
    login = "DOMAIN\\svc:p@ss:w/rd %"
    quoted = "http://DOMAIN%5Csvc:p%40ss%3Aw%2Frd%20%25@proxy.corp.test:3128"
    given = network(url | {"ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN": login})
    assert given.proxy_for(API) == quoted
    (tmp_path / "login").write_text(f"{login}\n")
    file = {"ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN_FILE": str(tmp_path / "login")}
    assert network(url | file).proxy_for(API) == quoted
    assert network(url).proxy_for(API) == "http://proxy.corp.test:3128"
    assert network({}).proxy_for(API) is None
    assert "ss:w" not in f"{given!r}"
    values = secret_values(ServerSettings(network=given))
    assert values == (login, "p@ss:w/rd %")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ISSUEWRIGHT_NETWORK__HTTPS_PROXY", "http://me:hunter2@proxy", "must not hold a user name or password"),
        ("ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN", "hunter2", "must be of the form user:password"),
        ("HTTPS_PROXY", "socks5://me:hunter2@proxy", "must be a URL that begins with https:// or http://"),
        ("https_proxy", "http://hunter2@proxy", "must be of the form user:password"),
    ],
)
def test_mistakes_name_the_variable_and_no_value(name: str, value: str, words: str) -> None:
    """A mistake is told with the variable in which it is."""
    with pytest.raises(OperatorError, match=words) as caught:
        network({name: value})
    assert str(caught.value).startswith(name.upper())
    assert "hunter2" not in str(caught.value)


def test_usual_variables_count_where_nobody_said_anything(tmp_path: Path) -> None:
    """Proxy, exceptions and certificates are those of other programs, with small letters first, as curl has it."""
    usual = {
        "HTTPS_PROXY": "http://other:1",
        "https_proxy": "me:p%40ss@proxy.corp.test:3128",
        "NO_PROXY": "corp.test, .example.org",
        "SSL_CERT_FILE": "/etc/corp.pem",
    }
    found = network(usual)
    assert found.proxy_for(API) == "http://me:p%40ss@proxy.corp.test:3128"
    assert found.no_proxy == ("corp.test", ".example.org")
    assert found.ca_bundle == Path("/etc/corp.pem")
    path = tmp_path / "s.yaml"
    path.write_text("network:\n  https_proxy: http://ours:2\n  no_proxy: []\n  ca_bundle: /ours.pem\n")
    ours = load_server(path, {"HOME": "/h", **usual}).network
    assert (ours.proxy_for(API), ours.no_proxy, ours.ca_bundle) == ("http://ours:2", (), Path("/ours.pem"))
    login = network(usual | {"ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN": "you:pw"})
    assert login.proxy_for(API) == "http://you:pw@proxy.corp.test:3128"
    assert network({"HTTPS_PROXY": "", "NO_PROXY": ""}) == NetworkSection()


def test_a_login_does_not_stay_in_the_environment() -> None:
    """A proxy's variable goes where it holds a login, since every process we start would inherit it."""
    environ = {"HTTPS_PROXY": "http://me:pw@p", "all_proxy": "http://me:pw@p", "http_proxy": "http://p", "PATH": "/bin"}
    take_secrets(environ)
    assert environ == {"http_proxy": "http://p", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("entries", "direct", "through"),
    [
        ("corp.test", ["corp.test", "git.corp.test"], ["notcorp.test", "corp.test.org"]),
        (".corp.test", ["corp.test", "git.corp.test"], ["xcorp.test"]),
        ("*.corp.test", ["git.corp.test"], ["xcorp.test"]),
        ("GIT.corp.test:443", ["git.corp.test"], ["corp.test"]),
        ("*", ["api.github.com"], []),
        ("", [], ["api.github.com"]),
    ],
)
def test_exceptions(entries: str, direct: list[str], through: list[str]) -> None:
    """An entry names a host and all below it; this machine is never asked for through a proxy."""
    found = network({"HTTPS_PROXY": "http://p:1", "NO_PROXY": entries})
    assert [host for host in direct if found.proxy_for(f"https://{host}/x")] == []
    assert [host for host in through if not found.proxy_for(f"https://{host}/x")] == []
    assert [host for host in ("127.0.0.1", "localhost", "[::1]") if found.proxy_for(f"http://{host}:9/")] == []
