"""What commands see of git: a repository that only the harness writes, so that `git log`, `diff` and `blame` work.

Nothing is ever read back from it; it is made anew whenever a work tree is opened.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bot.workspace import files
from bot.workspace.objects import ATTRIBUTES

_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tlogAllRefUpdates = false\n[gc]\n\tauto = 0\n"
NAME = b".git"


def build(folder: Path, objects: Sequence[Path], branch: str, commit: str, *, shared: bool) -> Sequence[Path]:
    """Make the repository and return everything that commands must be able to read.

    Args:
        folder: where; what is there is removed first.
        objects: the object folders that hold the commit.
        branch: the branch that HEAD names.
        commit: where it stands.
        shared: whether commands act as the server's own user, who may read the object folders where they are; otherwise
            each object file gets a second name here.

    Raises:
        OSError: a second name could not be made, as on another file system.
    """
    if folder.exists():
        shutil.rmtree(folder)
    for name in ("objects/info", "objects/pack", f"refs/heads/{branch}/.."):
        (folder / os.path.normpath(name)).mkdir(parents=True, exist_ok=True)
    (folder / "info").mkdir()
    (folder / "info" / "attributes").write_bytes(ATTRIBUTES)
    (folder / "config").write_bytes(_CONFIG)
    (folder / "HEAD").write_bytes(b"ref: refs/heads/" + os.fsencode(branch) + b"\n")
    (folder / "refs" / "heads" / branch).write_bytes(commit.encode() + b"\n")
    if shared:
        (folder / "objects" / "info" / "alternates").write_bytes(b"".join(os.fsencode(one) + b"\n" for one in objects))
        return [folder, *objects]
    for one in objects:
        _link(one, folder / "objects")
    # Whatever the umask was: another user reads it.
    for inner, _, _ in os.walk(folder):
        Path(inner).chmod(0o755)
    for name in ("config", "HEAD", "info/attributes", f"refs/heads/{branch}"):
        (folder / name).chmod(0o644)
    return [folder]


def _link(source: Path, target: Path) -> None:
    """Give each pack and each loose object a second name."""
    for inner in source.iterdir():
        if inner.name == "pack" or len(inner.name) == 2:  # noqa: PLR2004 - the first byte of an id
            place = target / inner.name
            place.mkdir(exist_ok=True)
            for file in inner.iterdir():
                if not file.name.startswith("tmp_"):
                    file.chmod(0o444)
                    # What a task made itself may have come with a fetch too: under its id lies the same.
                    with suppress(FileExistsError):
                        (place / file.name).hardlink_to(file)


def point(root: int, view: Path, owner: int | None) -> None:
    """Put the file into a work tree that leads git to the view.

    Args:
        root: the open work tree.
        view: the repository.
        owner: the uid of the tree's files; None where that is the server's own.
    """
    if NAME in files.names_in(root):
        files.remove(root, NAME)
    fd = os.open(NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=root)
    try:
        os.write(fd, b"gitdir: " + os.fsencode(view) + b"\n")
        if owner is not None:
            os.fchown(fd, owner, owner)
    finally:
        os.close(fd)
