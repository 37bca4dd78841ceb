import os
import time
from pathlib import Path

import pytest

from bot.workspace import files
from bot.workspace.record import settled, stamp_of


def test_links_are_never_opened(tmp_path: Path) -> None:
    """A link that was swapped in after a look is opened neither as a folder nor as a file."""
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "file").symlink_to("/etc/passwd")
    with files.opened_root(tmp_path) as root:
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"), files.opened(root, b"folder"):
            pass
        with pytest.raises(OSError, match="Too many levels"), files.readable(root, b"file", None):
            pass
        files.make_folder(root, b"folder", None)
        files.write_file(root, b"file", 0o100644, [b"x"], None)
    assert not (tmp_path / "folder").is_symlink()
    assert (tmp_path / "file").read_text() == "x"


def test_fresh_time_stamps_are_not_trusted(tmp_path: Path) -> None:
    """A file that changed within the clock's tick is read again next time."""
    path = tmp_path / "file"
    path.write_text("x")
    status = os.stat(path)  # noqa: PTH116 the seam of the functions
    assert settled(status, status.st_ctime_ns + 1_000_000) is None
    assert settled(status, time.time_ns() + 1_000_000_000) == stamp_of(status)
