"""Who holds a lock is alive, and a process that ended, however it ended, is not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot.tasks.liveness import Liveness

HOLD = """
import sys, pathlib
from bot.tasks.liveness import Liveness
alive = Liveness(pathlib.Path(sys.argv[1]))
alive.hold("other")
print("held", flush=True)
sys.stdin.read()
"""


def test_who_never_held_is_dead(tmp_path: Path) -> None:
    """An executor without a lock is dead."""
    assert Liveness(tmp_path / "executors").is_dead("nobody")


def test_who_holds_is_alive_until_the_release(tmp_path: Path) -> None:
    """A held lock is life; giving it back is death and leaves no file."""
    one, other = Liveness(tmp_path), Liveness(tmp_path)
    one.hold("one")
    assert not other.is_dead("one")
    assert not one.is_dead("one")
    one.release()
    one.release()
    assert other.is_dead("one")
    assert list(tmp_path.iterdir()) == []


def test_looking_does_not_take_the_lock(tmp_path: Path) -> None:
    """Whoever looks at a dead executor does not make it look alive to others."""
    (tmp_path / "gone.lock").touch()
    alive = Liveness(tmp_path)
    assert [alive.is_dead("gone") for _ in range(3)] == [True] * 3


def test_the_same_name_cannot_be_held_twice(tmp_path: Path) -> None:
    """Two processes of one name are a fault that is seen at once."""
    Liveness.hold(one := Liveness(tmp_path), "one")
    two = Liveness(tmp_path)
    with pytest.raises(BlockingIOError):
        two.hold("one")
    two._held.close()  # type: ignore[union-attr]
    one.release()


def test_a_killed_process_is_dead_at_once(tmp_path: Path) -> None:
    """The kernel gives the lock of a killed process back."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert not Liveness(tmp_path).is_dead("other")
        os.kill(child.pid, signal.SIGKILL)
        child.wait(10)
        assert Liveness(tmp_path).is_dead("other")
