import asyncio
import subprocess
from pathlib import Path

import pytest

from bot.workspace import askpass
from tests.unit.workspace.helpers import tokens

ORIGIN = "https://github.com/acme/web.git"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Password for 'https://x-access-token@github.com': ", "t0ken"),
        ("Username for 'https://github.com': ", "x-access-token"),
        ("Password for 'https://x-access-token@evil.example': ", None),
        ("Password for 'http://x-access-token@github.com': ", None),
        ("Password for 'https://x-access-token@github.com:8443': ", None),
        ("Are you sure?", None),
    ],
)
async def test_answers(tmp_path: Path, question: str, answer: str | None) -> None:
    """Only questions about the origin's own host are answered; the script holds no secret."""
    script = askpass.install(tmp_path / "git")
    assert script.stat().st_mode & 0o777 == 0o700
    async with askpass.answering(script, ORIGIN, tokens("t0ken")) as channel:
        done = await asyncio.to_thread(
            subprocess.run,
            [str(script), question],
            env={"PATH": "/usr/bin:/bin", **channel.env},
            pass_fds=channel.fds,
            capture_output=True,
            check=False,
        )
    assert "t0ken" not in script.read_text()
    if answer is None:
        assert done.returncode == 1
        assert done.stdout == b""
    else:
        assert done.stdout.decode() == f"{answer}\n"
