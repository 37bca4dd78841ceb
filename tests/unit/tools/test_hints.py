"""A command that could not reach or install something is told what is behind it."""

import pytest

from bot.tools.base import FileLedger, ToolContext
from bot.tools.hints import hint
from bot.tools.run import Run
from tests.unit.tools.calls import Use


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: No matching distribution found for flask",
        "curl: (6) Could not resolve host: example.org",
        "curl: (56) Received HTTP code 403 from proxy after CONNECT",
        "npm error code ENOTCACHED",
        "npm error code EAI_AGAIN",
        "dial tcp: lookup proxy.example.org: no such host",
        "OSError: [Errno 101] Network is unreachable",
        "error: failed to get `serde`: --offline was specified",
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
    ],
)
def test_who_reached_nothing_hears_of_the_setting(said: str) -> None:
    """Programs name the symptom; the note says what may be reached, and which settings say so."""
    assert "commands here have no network." in hint(said, ())
    told = hint(said, ("python", "example.com"))
    assert "commands here reach only this: python, example.com." in told
    assert "`sandbox.network` and the repository's `network`" in told


@pytest.mark.parametrize(
    "said", ["", "ModuleNotFoundError: No module named 'a'", "FileNotFoundError: 'a'", "rm: 'a': Permission denied"]
)
def test_other_failures_stay_as_they_are(said: str) -> None:
    """Where nothing points to a network, nothing is said of it."""
    assert hint(said, ()) == ""


@pytest.mark.parametrize(
    "said",
    [
        "OSError: [Errno 30] Read-only file system: '/srv/state/content/venv/lib/python3.11/site-packages/x.py'",
        "OSError: [Errno 13] Permission denied: '/srv/state/content/venv/lib/python3.11/site-packages/x.py'",
    ],
)
def test_who_cannot_write_to_the_environment_hears_of_another(said: str) -> None:
    """What was set up stays as it is; the note has the command that works."""
    assert "python3 -m venv ~/venv && ~/venv/bin/pip install" in hint(said, ("python",))
    assert "network" not in hint(said, ("python",))


async def test_a_command_hears_of_what_it_may_reach(use: Use, context: ToolContext) -> None:
    """Also behind a pipe, which hides the exit code; one that went well hears nothing."""
    failed = "echo 'curl: (6) Could not resolve host: a.b' >&2; exit 6"
    assert "have no network" in (await use("run", command=failed)).text
    assert "have no network" in (await use("run", command=f"({failed}) 2>&1 | tail -1")).text
    assert (await use("run", command="echo no such host")).text == "exit code: 0\nstdout:\nno such host"
    some = await Run(network=["a.example"]).call({"command": failed}, ToolContext(context.sandbox, FileLedger()))
    assert "reach only this: a.example." in some.text
    assert (some.exit_code, some.is_error) == (6, False)
