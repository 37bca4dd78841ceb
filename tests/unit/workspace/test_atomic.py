import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.workspace import askpass, atomic
from bot.workspace.git import Git

AT_ONCE = 16


def together(action: Callable[[], object]) -> list[BaseException]:
    """Do the same in many threads at the same moment, and return what went wrong."""
    wrong: list[BaseException] = []
    barrier = threading.Barrier(AT_ONCE)

    def one() -> None:
        barrier.wait()
        try:
            action()
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    threads = [threading.Thread(target=one) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_replaces_whole_with_the_mode_and_leaves_nothing_beside(tmp_path: Path) -> None:
    """The file holds the last bytes, has the mode that was asked for, and is alone in its folder."""
    path = tmp_path / "file"
    atomic.replace(path, b"first")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    atomic.replace(path, b"second", 0o700)
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("again", range(10))
def test_tasks_that_start_together_share_the_first_files_of_a_state_folder(tmp_path: Path, again: int) -> None:
    """Threads have one process id: none of them takes another's half-made file away."""
    assert again >= 0
    state = tmp_path / "git"
    assert together(lambda: askpass.install(state)) == []
    assert together(Git(tmp_path / "other")._trusting) == []
