"""Two releases of a real project: fetched with pip, read, and the edits that lead from one to the other."""

import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath

OLDEST = "(3, 9)"
"""The interpreter must be at least this new: pytest asks for it."""
UNREACHABLE = ("connection broken", "(from versions: none)", "Read timed out")
"""What pip says where no index answers; a release that is missing from an index names the versions there are."""


Files = dict[str, bytes | str]
"""Path below the project's folder to content."""


class IndexUnreachable(Exception):  # noqa: N818 - the test decides whether it is an error
    """No package index answers; holds what pip said."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One place of a file: the lines there, and the lines of the next release."""

    path: str
    old: str
    new: str


def make_environment(folder: Path) -> Path:
    """Make a virtual environment with pip in it, and return its interpreter.

    Whom the work tree belongs to must be able to start it; for root's server that is another uid, so the base is an
    interpreter whose folders are open to all.
    """
    bases = [
        Path(getattr(sys, "_base_executable", sys.executable)),
        Path("/usr/bin/python3"),
        Path("/usr/local/bin/python3"),
    ]
    base = next((path for path in bases if _serves(path)), None)
    assert base is not None, f"none of {[str(path) for path in bases]} can be run by other uids; install `python3-venv`"
    _output([str(base), "-m", "venv", str(folder)])
    return folder / "bin" / "python"


def _serves(path: Path) -> bool:
    if not path.exists():
        return False
    real = path.resolve()
    if os.geteuid() == 0 and not all(folder.stat().st_mode & 0o001 for folder in (real, *real.parents)):
        return False
    probe = f"import ensurepip, sys, venv; sys.exit(sys.version_info < {OLDEST})"
    return subprocess.run([real, "-c", probe], capture_output=True, check=False).returncode == 0


def install(python: Path, *requirements: str) -> None:
    """Install packages into the interpreter's environment, and let every uid read it.

    Raises:
        IndexUnreachable: no package index answers.
    """
    _pip(python, "install", *requirements)
    _output(["chmod", "-R", "a+rX", str(python.parents[1])])


def download(python: Path, name: str, version: str, sha256: str, folder: Path) -> Files:
    """Fetch a source archive whose digest is known, and read it; nothing is unpacked onto the disk.

    Raises:
        IndexUnreachable: no package index answers.
    """
    wanted = folder / f"{name}-{version}.txt"
    wanted.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
    _pip(python, "download", "--no-deps", "--no-binary", name, "--dest", str(folder), "--requirement", str(wanted))
    return files_of(folder / f"{name}-{version}.tar.gz")


def files_of(archive: Path) -> Files:
    """Read the regular files of a source archive; the paths are relative to its one folder."""
    files: Files = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            content = opened.extractfile(member) if member.isreg() else None
            if content is not None:
                files[PurePosixPath(*PurePosixPath(member.name).parts[1:]).as_posix()] = content.read()
    assert not [path for path in files if path.startswith("/") or ".." in PurePosixPath(path).parts]
    return files


def _pip(python: Path, *arguments: str) -> None:
    try:
        _output([str(python), "-m", "pip", "--retries", "1", "--disable-pip-version-check", *arguments])
    except AssertionError as error:
        if any(sign in str(error) for sign in UNREACHABLE):
            raise IndexUnreachable(str(error)) from None
        raise


def _output(command: list[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"`{shlex.join(command)}` ended with {done.returncode}:\n{done.stdout[-4000:]}"
    return done.stdout


def different(before: Mapping[str, bytes | str], after: Mapping[str, bytes | str], *, under: str) -> set[str]:
    """Name the files below a folder that are not the same, or are only on one side."""
    return {path for path in {*before, *after} if path.startswith(under) and before.get(path) != after.get(path)}


def replacements(path: str, before: str, after: str) -> list[Replacement]:
    """Turn the difference of two texts into replacements, each with as few lines around it as make it unique."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for around in range(len(old) + 1):
        groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(around)
        spans = [(group[0][1], group[-1][2], group[0][3], group[-1][4]) for group in groups]
        made = [Replacement(path, "".join(old[a:b]), "".join(new[c:d])) for a, b, c, d in spans]
        if all(one.old and before.count(one.old) == 1 for one in made):
            return made
    raise AssertionError(f"{path}: no text around the difference is unique")
