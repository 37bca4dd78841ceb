"""`issuewright models`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.settings.catalogue import load_catalogue

CONFIG = """\
models:
  act: openai-chat:our-llama
  fallback: [anthropic:claude-haiku-5-5]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The operator's file."""
    path = tmp_path / "server.yaml"
    path.write_text(CONFIG)
    return path


def show(config: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own: it takes the log and the environment over."""
    command = [sys.executable, "-m", "bot", "models", "--config", str(config), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})


def test_each_model_has_a_row(config: Path) -> None:
    """Those in use come first; what is not known is said so."""
    done = show(config)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Model", "Window", "Reply", "In", "$", "Out", "$", *lines[0].split()[7:]]
    assert lines[1].split() == ["openai-chat:our-llama", *["unknown"] * 4, "native", *["unknown"] * 3, "work"]
    assert lines[2].split()[0] == "anthropic:claude-haiku-5-5"
    assert lines[2].split()[-1] == "fallback"
    named = [line.split()[0] for line in lines if line]
    assert all(named.count(name) == 1 for name in load_catalogue().names)
    assert "128,000 tokens are assumed" in lines[-1]


def test_json_has_null_for_what_is_not_known(config: Path) -> None:
    """One object a line."""
    rows = [json.loads(line) for line in show(config, "--json").stdout.splitlines()]
    assert rows[0]["name"] == "openai-chat:our-llama"
    assert rows[0]["window"] is rows[0]["output"] is rows[0]["input_usd"] is rows[0]["output_usd"] is None
    assert rows[0]["used_for"] == "work"
    known = next(row for row in rows if row["name"] == "anthropic:claude-sonnet-4-5")
    assert (known["window"], known["output"], known["input_usd"], known["output_usd"]) == (200_000, 64_000, 3.0, 15.0)


def test_a_broken_catalogue_is_told_with_its_place(tmp_path: Path) -> None:
    """As any other file of settings."""
    own = tmp_path / "ours.yaml"
    own.write_text("version: 1\nmodels:\n  - {name: 'a:b', output: lots}\n")
    config = tmp_path / "server.yaml"
    config.write_text(f"models:\n  catalogue: {own}\n")
    done = show(config)
    assert (done.returncode, done.stdout) == (4, "")
    assert "ours.yaml:3:19: `models[0].output`: input should be a valid integer" in done.stderr
