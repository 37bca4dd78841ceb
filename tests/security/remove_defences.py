"""Takes one defence away at a time, in a copy of the checkout, and looks whether a test turns red.

python -m tests.security.remove_defences [word]

Prints a table; ends with 1 where a test stays green without its defence, or where a defence is not found. As root it
takes all of them away; the uid drop is nothing that an ordinary user has.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECURITY = "tests/security"
LEVELS = "bubblewrap,landlock"
"""A level that is left unusable without its defence is an error, and no skip."""
FAILED = 1
"""What pytest answers where tests failed; anything else is no verdict."""


@dataclass(frozen=True, slots=True)
class Defence:
    """One defence, and the test that notices when it is gone."""

    name: str
    path: str
    there: str
    """Stands just once in the file."""
    instead: str
    test: str
    root: bool = False
    """Whether only root has it."""


HELPER = "bot/sandbox/helper"
VERSION = f"{SECURITY}/test_levels.py::test_versions_of_landlock[7]"
DEFENCES = (
    Defence(
        "a flag of the git runner", "bot/workspace/git.py", '    "core.fsmonitor=false",\n', "",
        f"{SECURITY}/test_git.py::test_persons_own_repository",
    ),
    Defence(
        "the filter of system calls", f"{HELPER}/main.py", '    if not settings["seccomp"]:\n', "    if True:\n",
        VERSION,
    ),
    Defence(
        "openat2's RESOLVE_BENEATH", f"{HELPER}/kernel.py", "BENEATH | NO_MAGICLINKS |", "0 |",
        f"{SECURITY}/test_paths.py::test_refused_spellings",
    ),
    Defence(
        "the redactor", "bot/redaction.py", "    return _without(text, weak=False)\n", "    return text\n",
        f"{SECURITY}/test_secrets.py::test_nothing_reaches_the_model",
    ),
    Defence(
        "the uid drop", "bot/sandbox/channel.py", "user=identity.uid if identity.own else None", "user=None",
        f"{SECURITY}/test_sandbox.py::test_privileges", root=True,
    ),
    Defence(
        "the proxy's address check", "bot/sandbox/egress/proxy.py", "if not acceptable(address)]", "if False]",
        f"{SECURITY}/test_egress.py::test_private_answer[127.0.0.1]",
    ),
    Defence(
        "the network namespace", "bot/sandbox/bubblewrap.py", '"--unshare-net", ', "",
        f"{SECURITY}/test_way_out.py::test_tricks[bubblewrap]",
    ),
    Defence(
        "the read-only /dev", "bot/sandbox/bubblewrap.py", '    yield from ("--remount-ro", "/dev")\n', "",
        f"{SECURITY}/test_sandbox.py::test_devices[bubblewrap]",
    ),
    Defence(
        "Landlock", f"{HELPER}/landlock.py", "        syscall(RESTRICT, ruleset, 0)\n    finally",
        "        pass\n    finally",
        f"{SECURITY}/test_sandbox.py::test_write_outside[landlock]",
    ),
    Defence(
        "the fence around the helper", f"{HELPER}/children.py", "        climb(fence)\n", "",
        f"{SECURITY}/test_way_out.py::test_helper[landlock-ordinary]",
    ),
    Defence(
        "datagrams of pairs", f"{HELPER}/seccomp.py", "(_EQUAL, 1, 0, _PACKETS), (_RETURN, 0, 0, _EPERM)]",
        "(_EQUAL, 1, 0, _PACKETS), (_EQUAL, 0, 0, 0)]", VERSION,
    ),
    Defence(
        "truncation before version 3", f"{HELPER}/main.py", "truncates=truncates)", "truncates=True)",
        f"{SECURITY}/test_levels.py::test_versions_of_landlock[2]",
    ),
    Defence(
        "limits of other processes", f"{HELPER}/seccomp.py",
        '"prlimit64": (302, 261, 0, -1), "setpriority": (141, 140, 1, 0), ', "",
        VERSION,
    ),
    Defence(
        "the doorkeeper's comparison", f"{HELPER}/network.py", "if asked != self._proxy:", "if False:",
        f"{SECURITY}/test_sandbox.py::test_refused_address[landlock]",
    ),
    Defence(
        "shared memory in the watch", f"{HELPER}/watch.py", "_shared_memory() - self._shared", "0",
        f"{SECURITY}/test_sandbox.py::test_hungry[bubblewrap-file in memory]",
    ),
    Defence(
        "the end of survivors", f"{HELPER}/children.py", "        tell(sorted(stopped), signal.SIGKILL)\n", "",
        f"{SECURITY}/test_sandbox.py::test_survivors_as_ordinary[landlock-return]",
    ),
)  # fmt: skip


def copy(target: Path) -> None:
    """Copy what is, or would be, in the repository."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    subprocess.run(["chmod", "-R", "go+rX", str(target)], check=True)


def judge(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests in the copy, up to the first that fails; the answer of pytest, and its last line."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", "-m", "", *tests], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "REQUIRE_SANDBOX": LEVELS},
        stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return done.returncode, (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]


@contextmanager
def without(folder: Path, defence: Defence) -> Iterator[bool]:
    """Take a defence out of the copy for a while; whether it was found."""
    path = folder / defence.path
    text = path.read_text("utf-8")
    found = text.count(defence.there) == 1
    if found:
        path.write_text(text.replace(defence.there, defence.instead), "utf-8")
    try:
        yield found
    finally:
        path.write_text(text, "utf-8")


def verdict(folder: Path, defence: Defence) -> tuple[bool, str]:
    """Whether a test turns red without the defence, and what was seen."""
    with without(folder, defence) as found:
        if not found:
            return False, f"its text does not stand just once in {defence.path}"
        code, said = judge(folder, [defence.test])
    words = {0: "GREEN", FAILED: "red"}.get(code, f"no verdict ({code})")
    return code == FAILED, f"{words}: {re.sub(' in .*', '', said)}"


def main() -> None:
    """Take the defences away, and print the table."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [one for one in DEFENCES if word in one.name and (os.geteuid() == 0 or not one.root)]
    folder = Path(tempfile.mkdtemp(prefix="iw-defences-", dir="/tmp"))
    folder.chmod(0o755)
    failed = 0
    try:
        copy(folder)
        code, said = judge(folder, sorted({one.test for one in chosen}))
        sys.stdout.write(f"with all of them: {said}\n")
        failed += code != 0
        for one in chosen:
            begun = time.monotonic()
            red, seen = verdict(folder, one)
            failed += not red
            test = one.test.removeprefix(f"{SECURITY}/")
            sys.stdout.write(f"{one.name:30} {test:75} {seen} ({time.monotonic() - begun:.1f} s)\n")
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
