"""A person who works with `issuewright run` in a repository of their own; and the command as a process that dies.

As a program it is `issuewright run` of which the process ends itself at a chosen step: see `tests/e2e/worker.py`.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.cli.run import work
from bot.cli.unfinished import NEWEST
from bot.testing.model.script import Script
from bot.testing.model.server import ScriptedModel
from tests.e2e.stage import ROOT, until
from tests.e2e.worker import deadly

PERSON = 1777
"""No uid that another test gives to a work tree: all processes of such a one are ended after each command."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who works in a checkout; as root they are another user, as on any machine."""

    folder: Path
    model: ScriptedModel

    @property
    def repo(self) -> Path:
        """Their checkout."""
        return self.folder / "mine"

    def git(self, *args: str) -> str:
        """Ask their repository."""
        command = ["git", "-c", "safe.directory=*", "-c", "user.name=Maria", "-c", "user.email=maria@example.org"]
        done = subprocess.run([*command, "-C", str(self.repo), *args], check=True, capture_output=True, text=True)
        self.own()
        return done.stdout.strip()

    def own(self) -> None:
        """Let all that lies here belong to them."""
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, PERSON, PERSON, follow_symlinks=False)

    def command(self, *options: str, kill_at: str = "") -> list[str]:
        """Return the command line; with `kill_at` of the program that dies."""
        prefix = ["setpriv", f"--reuid={PERSON}", f"--regid={PERSON}", "--clear-groups"] if os.geteuid() == 0 else []
        program = ["tests.e2e.terminal"] if kill_at else ["bot", "run"]
        state = ["--state", str(self.folder / "state")]
        return [*prefix, sys.executable, "-m", *program, "--repo", str(self.repo), *state, *options]

    def environment(self, **more: str) -> Mapping[str, str]:
        """What their shell has set."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "TERM": "dumb",
            "ANTHROPIC_API_KEY": "scripted-key-that-is-long-enough",
            "ISSUEWRIGHT_ANTHROPIC__BASE_URL": self.model.url,
            **more,
        }

    def begin(self, *options: str) -> Sequence[str]:
        """Return the options that begin the usual task."""
        return ["--task", "The greeting is wrong", "--model", f"anthropic:{self.model.model_id}", *options]

    def deadly(self, kill_at: str, kills: int = 1) -> Mapping[str, str]:
        """Return an environment in which the program dies at a step of a first run, for the so-manieth time."""
        return self.environment(KILL_AT=kill_at, KILLED=str(self.folder / "killed"), KILLS=str(kills))

    def run(self, *options: str, kill_at: str = "", kills: int = 1) -> "Done":
        """Run the command to its end, or to its death."""
        done = subprocess.run(
            self.command(*options, kill_at=kill_at),
            capture_output=True,
            text=True,
            cwd="/",
            env=self.deadly(kill_at, kills),
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def running(self, *options: str, kill_at: str = "") -> "Iterator[Running]":
        """Run the command at a real terminal, in a session and a foreground process group of its own."""
        keyboard, terminal = os.openpty()
        process = subprocess.Popen(
            ["setsid", "--ctty", *self.command(*options, kill_at=kill_at)],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd="/",
            env=self.deadly(kill_at),
        )
        os.close(terminal)
        running = Running(process, keyboard, bytearray())
        try:
            yield running
        finally:
            process.kill()
            process.wait()
            os.close(keyboard)

    def turns(self) -> list[tuple[str, int]]:
        """The model's requests: conversation and turn."""
        return [(one.conversation, one.turn) for one in self.model.requests if one.path == "/v1/messages"]

    def fingerprint(self) -> dict[str, str]:
        """Hash all that a person has here: files, HEAD, index, stash, refs; but for our branch and its objects."""
        return {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.repo.rglob("*"))
            if path.is_file()
            and not (name := path.relative_to(self.repo).as_posix()).startswith(
                (".git/objects/", ".git/refs/heads/agent/")
            )
        }

    def branch(self) -> str:
        """The one branch of ours."""
        (branch,) = self.git("branch", "--format=%(refname:short)", "--list", "agent/*").splitlines()
        return branch


@dataclass(frozen=True, slots=True)
class Done:
    """How a process ended; the exit code is negative where a signal ended it."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Running:
    """A process at a terminal."""

    process: "subprocess.Popen[bytes]"
    keyboard: int
    seen: bytearray

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self.keyboard, keys)

    def shows(self, text: str) -> str:
        """Wait until the terminal shows a text, and return all that it showed."""
        os.set_blocking(self.keyboard, False)

        def look() -> str | None:
            self._read()
            shown = self.seen.decode(errors="replace")
            return shown if text in shown else None

        try:
            return until(look, repr(text), 30)
        except AssertionError as error:
            raise AssertionError(f"{error}; shown:\n{self.seen.decode(errors='replace')}") from error

    def ends(self) -> int:
        """Wait for the end and return the exit code."""

        def over() -> bool | None:
            self._read()
            return True if self.process.poll() is not None else None

        until(over, f"the end; shown:\n{self.seen.decode(errors='replace')}", 30)
        self._read()
        return self.process.returncode

    def kill(self) -> None:
        """Kill the command."""
        self.process.kill()
        self.process.wait(20)

    def _read(self) -> None:
        os.set_blocking(self.keyboard, False)
        try:
            while data := os.read(self.keyboard, 65536):
                self.seen.extend(data)
        except (BlockingIOError, OSError):
            return


@contextmanager
def person_with(folder: Path, script: Script, files: Mapping[str, bytes | str]) -> Iterator[Person]:
    """Give a person a checkout with something uncommitted, staged and stashed, and a scripted model."""
    made = folder / "mine"
    made.mkdir()
    for name, text in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(text.encode() if isinstance(text, str) else text)
    served = ScriptedModel(script)
    served.start()
    person = Person(folder, served)
    try:
        person.git("init", "-qb", "main")
        person.git("config", "user.name", "Maria")
        person.git("config", "user.email", "maria@example.org")
        person.git("add", ".")
        person.git("commit", "-qm", "first")
        yield person
    finally:
        served.stop()


def main() -> int:
    """Run the command until it is told to die."""
    parser = argparse.ArgumentParser()
    for name in ("repo", "state"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--resume", nargs="?", const=NEWEST)
    for name in ("task", "model"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--approve", default="edits")
    options = vars(parser.parse_args())
    return work(**options, issue=None, mode="act", config=None, as_json=False, around=deadly)


if __name__ == "__main__":
    sys.exit(main())
