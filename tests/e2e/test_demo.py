"""The demo: the first thing that a newcomer runs, as root and as anybody."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.testing.model.spoken import NATIVE, SPELLINGS
from bot.testing.model.wires import WIRES
from tests.e2e.stage import ROOT

pytestmark = pytest.mark.e2e

BUDGET_S = 60
NOBODY = 65_534
ROOT_UID = 0
DIALECTS = (NATIVE, *SPELLINGS)


def demo(folder: Path, *options: str, uid: int | None = None) -> "subprocess.CompletedProcess[str]":
    """Play the demo in an empty folder with nothing but a path in the environment."""
    home = folder / "home"
    home.mkdir()
    if uid is not None:
        os.chown(home, uid, uid)
    # The project may lie where others may not go, so they get their own copy.
    shutil.copytree(ROOT / "bot", folder / "code" / "bot", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config", folder / "code" / "config")
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bot", "demo", "--no-stay", *options],
        cwd=home,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(folder / "code"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
        capture_output=True,
        text=True,
        timeout=BUDGET_S * 1.5,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - begun < BUDGET_S
    return done


def test_the_story_is_told(folder: Path) -> None:
    """The demo says what is scripted, tells the story to its end and names the pages."""
    told = demo(folder).stderr
    assert "The model is SCRIPTED" in told
    assert "No account, no key" in told
    assert "Complete: issue" in told
    assert "pull request with 2 commits" in told
    # The project's own test prints one before the work, which is shown with its check; none is of ours.
    assert not re.search(r"Traceback[\s\S]{0,400}?/bot/", told)


def test_json_is_one_object_a_line(folder: Path) -> None:
    """With `--json` standard output holds events and nothing else."""
    lines = [json.loads(line) for line in demo(folder, "--json").stdout.splitlines()]
    ends = [line for line in lines if line["kind"] == "run.finished"]
    assert [end["outcome"] for end in ends] == ["done", "done"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("wire", WIRES)
def test_the_story_is_told_over_each_wire_in_each_spelling(folder: Path, wire: str, dialect: str) -> None:
    """The same turns, tools and commits, whatever the model speaks; the scripted one notes what it did not expect."""
    done = demo(folder, "--json", "--wire", wire, "--dialect", dialect)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["outcome"] for line in lines if line["kind"] == "run.finished"] == ["done", "done"]
    assert [line["calls"] for line in lines if line["kind"] == "model.replied"] == [2, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1]
    # Looks of one reply go side by side, and are told as they end.
    told = [line for line in lines if line["kind"] == "tool.finished"]
    tools = [
        line["name"] for line in sorted(told, key=lambda line: (line["task"], line["run"], line["turn"], line["index"]))
    ]
    first = ["list", "search", "read", "read", "propose_plan", "read", "read", "run", "edit", "run", "finish"]
    assert tools == [*first, "read", "edit", "edit", "run", "finish"]


@pytest.mark.skipif(os.geteuid() != ROOT_UID, reason="only root can become somebody else")
def test_an_ordinary_user_can_play_it(folder: Path) -> None:
    """It needs no rights: as an unprivileged user it ends just the same."""
    probe = subprocess.run([sys.executable, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], check=False, cwd="/")
    if probe.returncode != 0:
        pytest.skip("this interpreter lies where only root may go")
    assert "Complete: issue" in demo(folder, uid=NOBODY).stderr
