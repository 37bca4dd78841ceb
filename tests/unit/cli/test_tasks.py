"""`issuewright tasks`."""

import json
import subprocess
import sys
from pathlib import Path

from bot.domain.events import RunFinished
from bot.store.opening import open_store
from tests.unit.store.made import START as AT
from tests.unit.store.made import request


def show(state: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own: it takes the log and the environment over."""
    command = [sys.executable, "-m", "bot", "tasks", *options]
    environment = {"PATH": "/usr/bin:/bin", "ISSUEWRIGHT_STATE_DIR": str(state)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


async def fill(state: Path) -> None:
    """Keep a task that waits and one that is queued."""
    tasks, deliveries = open_store(state, None, now=lambda: AT)
    try:
        waits = await tasks.accept(request("first", title="Water \x1b[31mthe roses"), AT)
        reason = "The model asks:\nHow wet?"
        fact = RunFinished("waiting", reason, "", turns=1, tokens=10, cost_usd=0.25, seconds=1.0)
        await tasks.record(waits.task.id, 1, "finished", fact, AT)
        await tasks.finish(waits.task.id, 1, "waiting", reason, AT)
        await tasks.accept(request("second", task_id="b" * 32, number=8), AT)
    finally:
        await tasks.close()
        await deliveries.close()


async def test_each_task_has_a_row(tmp_path: Path) -> None:
    """With what it waits for; what others wrote cannot steer the terminal."""
    await fill(tmp_path)
    done = show(tmp_path)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["Task", "Thread", "Pull", "State", "Cost", "Asked", "Title", "Why"]
    assert len(rows) == 2
    assert "\x1b" not in done.stdout
    [waits] = [row for row in rows if " waiting " in row]
    assert "#7" in waits
    assert "≈$0.25" in waits
    assert waits.rstrip().endswith("The model asks: How wet?")


async def test_only_what_waits(tmp_path: Path) -> None:
    """As JSON, one object a line."""
    await fill(tmp_path)
    [row] = [json.loads(line) for line in show(tmp_path, "--waiting", "--json").stdout.splitlines()]
    assert (row["state"], row["number"], row["run"], row["cost_usd"]) == ("waiting", 7, 1, 0.25)
    assert row["reason"] == "The model asks:\nHow wet?"


def test_where_there_are_none(tmp_path: Path) -> None:
    """It is said, and no failure."""
    done = show(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no tasks yet.\n")
