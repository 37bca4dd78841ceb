"""`issuewright run` tells in one line what is wrong with how it was called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.run import _request, _slug
from bot.errors import OperatorError

ROOT = Path(__file__).parents[3]


def issuewright(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with nothing of ours in its environment."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "ISSUEWRIGHT_STATE_DIR": str(folder / "state"),
        "TERM": "dumb",
    }
    return subprocess.run(
        [sys.executable, "-m", "bot", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--repo", "."], 4, "one of the two"),
        (["--repo", ".", "--issue", "issue.md", "--task", "x"], 4, "one of the two"),
        (["--repo", ".", "--issue", "gone.md"], 4, "gone.md"),
        (["--repo", ".", "--task", "  \n"], 4, "the task is empty"),
        (["--repo", ".", "--task", "x"], 4, "repository"),
        (["--repo", "gone", "--task", "x"], 4, "gone"),
    ],
)
def test_a_wrong_call_is_one_clear_line(tmp_path: Path, arguments: list[str], code: int, text: str) -> None:
    """A wrong call ends with its exit code and one line on standard error, and makes no task."""
    (tmp_path / "issue.md").write_text("# Title\n")
    done = issuewright(tmp_path, "run", *arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("issuewright: ")
    assert text in line
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["run", "--nonsense"], ["run", "--approve", "perhaps"], ["nonsense"]])
def test_usage_is_exit_code_two(tmp_path: Path, arguments: list[str]) -> None:
    """An option, a value or a command that does not exist is a matter of usage."""
    done = issuewright(tmp_path, *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_title_and_body_are_read_from_the_text(tmp_path: Path) -> None:
    """The first line is the title without its hashes; a title that is too long is kept whole below."""
    file = tmp_path / "issue.md"
    file.write_text("\n# Water the roses\n\nThey are dry.\n")
    assert _request(file, None).title == "Water the roses"
    assert _request(file, None).body == "They are dry."
    long = "x" * 200
    assert (len(_request(None, long).title), _request(None, long).body) == (120, long)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are a clear error."""
    file = tmp_path / "issue.md"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match=r"issue\.md"):
        _request(file, None)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Water the roses!", "water-the-roses"),
        ("../../x", "x"),
        ("💐", "task"),
        ("a" * 90, "a" * 40),
        ("--force", "force"),
    ],
)
def test_a_branch_is_named_by_harmless_words(title: str, slug: str) -> None:
    """Only letters, digits and single dashes get into a branch's name."""
    assert _slug(title) == slug


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("antrophic:x", "unknown provider"),
        ("openai-chat:x", "`openai_chat.base_url`"),
        ("openai:x", "`OPENAI_API_KEY`"),
    ],
)
def test_a_model_that_cannot_be_asked_begins_nothing(tmp_path: Path, model: str, said: str) -> None:
    """What it lacks is one line, and no run stays in the queue."""
    for words in (["init", "-q"], ["-c", "user.name=m", "-c", "user.email=m@x", "commit", "-qm", "a", "--allow-empty"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    done = issuewright(tmp_path, "run", "--repo", ".", "--task", "x", "--model", model)
    assert done.returncode == 4, done.stderr
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("issuewright: ")
    assert said in line
    assert not list((tmp_path / "state").rglob("tasks.db"))
