"""A worker that dies before, in or behind a set-up: the next one has the whole environment, and never half of one."""

import os
import signal
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Turn
from tests.e2e.everyday.telling import checked, run, story
from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage, until
from tests.e2e.test_killed_worker import one_of_everything

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
CONFIG = """\
version: 1
setup:
- mkdir -p node_modules && echo half >node_modules/half && echo half >"$ISSUEWRIGHT_SHARED/half"
- sleep {seconds}
- echo ready >"$ISSUEWRIGHT_SHARED/ready"
checks:
- name: greeting
  run: sh check.sh
"""
CHECK = 'cat "$ISSUEWRIGHT_SHARED/ready" node_modules/half >/dev/null || exit 9; grep -q Hello greet.txt\n'


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in a place that a sandbox leaves visible."""
    place = "/srv" if os.access("/srv", os.W_OK) else Path.home()
    with tempfile.TemporaryDirectory(prefix="stage-", dir=place, ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


def stage(folder: Path, seconds: float) -> Stage:
    """The greeting's repository with a set-up that takes some time."""
    config = CONFIG.format(seconds=seconds)
    return Stage(folder, GREETING, {**FILES, ".github/issuewright.yml": config, "check.sh": CHECK})


def whole(place: Stage, kill_at: str) -> None:
    """One environment, sealed, and one of everything that people see."""
    one_of_everything(place, kill_at)
    [sealed] = (place.folder / "state" / "environments").glob("*/*/sealed")
    assert (sealed.parent / "content" / "ready").read_text() == "ready\n"
    # What an earlier life left in the tree is no reason to leave it out.
    with tarfile.open(sealed.parent / "content" / "tree.tar") as tar:
        assert "./node_modules/half" in tar.getnames()
    [pull] = place.pulls()
    assert "**Set-up**" in (pull.body or "")


@pytest.mark.parametrize(
    "kill_at", ["environment:before", "environment:inside", "check/before/1/0:before", "tool/2/0:before"]
)
def test_a_worker_killed_around_the_set_up(folder: Path, kill_at: str) -> None:
    """The step is recorded or made again; what was set up is given to the next worker's commands too."""
    environment = {"KILL_AT": kill_at, "KILLED": str(folder / "killed"), "STEPS": str(folder / "steps")}
    with stage(folder, 0).open() as place:
        with place.serving(**environment) as first:
            issue = place.labelled()
            until(first.poll, f"death at {kill_at}; {place.log()}")
            assert first.returncode == -signal.SIGKILL, place.log()
        with place.serving(**environment):
            place.story_ends(issue.number)
            until(lambda: True if "close" in (folder / "steps").read_text().split() else None, "the last step", 20)
        whole(place, kill_at)


def test_a_worker_killed_in_the_middle_of_a_set_up(folder: Path) -> None:
    """Half of an environment counts for nothing: the next worker makes it anew, in a clean tree."""
    steps = {"STEPS": str(folder / "steps")}
    with stage(folder, 3).open() as place:
        with place.serving(**steps) as first:
            issue = place.labelled()
            halves = (folder / "state" / "environments").glob
            until(lambda: True if list(halves("*/*/content/half")) else None, f"half of it; {place.log()}")
            first.send_signal(signal.SIGKILL)
            first.wait(10)
        assert list(halves("*/*/sealed")) == []
        with place.serving(**steps):
            place.story_ends(issue.number)
            until(lambda: True if "close" in (folder / "steps").read_text().split() else None, "the last step", 20)
        whole(place, "")


ASKS = story(
    "asks",
    Turn("I look.", calls=[Call("read", {"path": "deps.txt"})]),
    Turn("I ask for another one.", calls=[Call("write", {"path": "deps.txt", "content": "two\n"})]),
    Turn(
        "I use it.",
        calls=[Call("write", {"path": "use.txt", "content": "two\n"}), run("touch node_modules/mine; sh check.sh")],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "It uses two."})]),
)
WANTED: dict[str, bytes | str] = {
    ".github/issuewright.yml": CONFIG.partition("setup:")[0]
    + "setup:\n- mkdir -p node_modules && cp deps.txt node_modules/$(cat deps.txt)\n"
    + "checks:\n- name: used\n  run: sh check.sh\n",
    "deps.txt": "one\n",
    "check.sh": 'test "$(ls node_modules)" = "$(cat use.txt)"\n',
}


@pytest.mark.parametrize(
    "kill_at", ["environment/after/1:before", "environment/after/1:inside", "check/after/1/0:before"]
)
def test_a_worker_killed_around_the_set_up_of_what_the_work_asks_for(folder: Path, kill_at: str) -> None:
    """The check finds that alone, and nothing of the first set-up or of the model's; new files are still there."""
    environment = {"KILL_AT": kill_at, "KILLED": str(folder / "killed"), "STEPS": str(folder / "steps")}
    with Stage(folder, ASKS, WANTED).open() as place:
        with place.serving(**environment) as first:
            issue = place.labelled()
            until(first.poll, f"death at {kill_at}; {place.log()}")
            assert first.returncode == -signal.SIGKILL, place.log()
        with place.serving(**environment):
            assert place.story_ends(issue.number).startswith("**Done**"), place.log()
        assert place.model.problems == []
        [pull] = place.pulls()
        body = pull.body or ""
        assert checked(body, "used") == ("1", "0")
        assert "**Set-up again**, since the work changed `deps.txt`" in body
        assert len(list((folder / "state" / "environments").glob("*/*/sealed"))) == 2
