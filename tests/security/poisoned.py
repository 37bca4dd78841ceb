"""Makes the repositories and work trees of `corpus/repositories.txt`, and sees what they make others do."""

import atexit
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from tests.unit.workspace.helpers import git, publish, seed

CORPUS = Path(__file__).with_name("corpus")
OWNER = 1500
"""The uid of a workspace that a test makes by itself, where we are root."""
FILES: dict[str, str | bytes] = {
    "README.md": "# Web\n",
    "src/app.py": "print('a')\n",
    "src/lib/util.py": "X = 1\n",
    ".gitignore": "build/\n*.log\n",
}
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_CONFIG_KEY_1": "init.defaultBranch",
    "GIT_CONFIG_VALUE_1": "main",
    "GIT_TERMINAL_PROMPT": "0",
}
WORDS = r"""
set -eu
repo() {
  rm -rf "${1:-.}/.git"
  git init -q "${1:-.}"; git -C "${1:-.}" add -A; git -C "${1:-.}" commit -q --allow-empty -m start
}
hook() { mkdir -p .git/hooks; cp "$EVIL" ".git/hooks/$1"; }
attr() { printf '%s\n' "$@" >>.gitattributes; }
remote() { git config remote.origin.url "$1"; git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'; }
keep() { git add -A; git commit -q --allow-empty -m kept; }
blob() { printf '%b' "$1" | git hash-object -w --stdin; }
row() { printf '%s ' "$1"; printf '%b' "$2"; printf '\0'; printf "$(sed 's/../\\x&/g' <<<"$3")"; }
tree() {
  while [ "$#" -gt 0 ]; do row "$1" "$2" "$3"; shift 3; done | git hash-object -t tree -w --literally --stdin
}
top() { git update-ref refs/heads/main "$(git commit-tree -m top -p HEAD "$1")"; }
nest() { local made=$1 count; for count in $(seq "$2"); do made=$(tree 40000 "$3" "$made"); done; echo "$made"; }
bomb() {
  local made=$2 mode=$1 rows count number
  for count in $(seq "$3"); do
    rows=(); for number in $(seq 10 "$4"); do rows+=("$mode" "n$number" "$made"); done
    made=$(tree "${rows[@]}"); mode=40000
  done
  echo "$made"
}
"""
"""The words that the snippets of the corpus may use, besides those of a shell."""
CONTROL = r"""
exec </dev/null >/dev/null 2>&1
trap 'for mark in "$MARKS"/*; do [ ! -e "$mark" ] || exit 0; done' DEBUG
git() { timeout 5 git "$@"; }
echo careless >>README.md
git status; git diff; git add -A; git commit -m one; git diff HEAD~1; git log -p -1
git status; git fetch origin; git push origin main:side
git checkout -b side; echo side >>src/app.py; git commit -am two
git checkout main; echo main >>src/app.py; git commit -am three
git merge --no-edit -X ours side; git commit --amend; git commit --amend --no-edit
git submodule update --init; git gc --auto; git checkout -f HEAD -- .; git stash -u; git stash pop
"""
"""What a program would do that trusts the work tree."""


@dataclass(frozen=True)
class Case:
    """One line of the corpus."""

    name: str
    kind: str
    """What happens to the careless, or what has to happen to us; see the top of the corpus."""
    snippet: str

    @property
    def detail(self) -> str:
        """What the kind says after its colon: part of the reason of a refusal, or a path."""
        return self.kind.partition(":")[2].replace("_", " ")


def cases(*kinds: str) -> Sequence[ParameterSet]:
    """Read the corpus: the cases of these kinds, as a test's parameters."""
    found = []
    for line in (CORPUS / "repositories.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            case = Case(*line.split(None, 2))
            if case.kind.partition(":")[0] in kinds:
                found.append(pytest.param(case, id=case.name))
    return found


class Listener(ThreadingHTTPServer):
    """A host that nobody has any reason to call; it asks for a password, to see who is asked for one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Unauthorised)
        self.calls: list[str] = []

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def process_request(self, request: object, client_address: object) -> None:
        """Count before anything is said."""
        self.calls.append(str(client_address))
        super().process_request(request, client_address)  # type: ignore[arg-type]


class _Unauthorised(BaseHTTPRequestHandler):
    timeout = 5

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 the server's name for it


@contextmanager
def listening(server: ThreadingHTTPServer) -> Iterator[None]:
    """Serve while the block runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True)
class Arena:
    """A folder that other uids may pass through, and what an attack would leave in it."""

    base: Path
    listener: Listener

    @property
    def state(self) -> Path:
        """For the working copies."""
        return self.base / "state"

    @property
    def marks(self) -> list[str]:
        """What the attackers' program left."""
        return sorted(path.name for path in (self.base / "marks").iterdir())

    @property
    def secret(self) -> Path:
        """A file of the server's own."""
        return self.base / "secret.txt"

    @property
    def other(self) -> Path:
        """A repository that nobody should push to."""
        return self.base / "other.git"

    @property
    def damage(self) -> dict[str, object]:
        """All that must not have happened; every value is false where all is well."""
        pushed = git(self.other, "for-each-ref")
        return {"ran": self.marks, "called": self.listener.calls, "pushed elsewhere": pushed}

    def forget_damage(self) -> None:
        """Start to count anew."""
        for path in (self.base / "marks").iterdir():
            path.unlink()
        self.listener.calls.clear()

    def environment(self) -> Mapping[str, str]:
        """What a snippet may name."""
        return {
            **IDENTITY,
            "EVIL": str(self.base / "evil"),
            "MARKS": str(self.base / "marks"),
            "SECRET": str(self.secret),
            "OTHER": str(self.other),
            "HOST": f"127.0.0.1:{self.listener.port}",
        }

    def shell(self, snippet: str, folder: Path, *, check: bool = True) -> str:
        """Run a snippet with the words of the corpus, as this process's own user."""
        home = self.base / "home"
        env = {**self.environment(), "PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            ["bash", "-c", WORDS * check + snippet], cwd=folder, env=env, capture_output=True, timeout=60, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"{snippet}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    async def act(self, root: Path, owner: int | None, snippet: str) -> None:
        """Run a snippet in a work tree as the agent does, through the sandbox, and count from there."""
        sandbox = ProcessSandbox(Place(root, uid=owner, environment=self.environment()))
        try:
            done = await sandbox.run(WORDS + snippet, timeout_s=60)
            assert done.exit_code == 0, done.stderr
        finally:
            await sandbox.close()
        self.forget_damage()


@contextmanager
def arena() -> Iterator[Arena]:
    """Make an arena, removed at the end whatever is in it."""
    # pytest's own folders are closed to other uids.
    base = Path(tempfile.mkdtemp(prefix="iw-security-", dir="/tmp"))
    base.chmod(0o711)
    listener = Listener()
    made = Arena(base, listener)
    (base / "marks").mkdir()
    (base / "marks").chmod(0o777)
    (base / "home").mkdir()
    (base / "evil").write_text(f'#!/bin/sh\n: >"{base}/marks/$(basename "$0")"\nexec timeout 0.3 cat\n')
    (base / "evil").chmod(0o755)
    made.secret.write_text("canary-of-the-server\n")
    made.secret.chmod(0o600)
    shutil.copytree(_made() / "empty", made.other)
    try:
        with listening(listener):
            yield made
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(base)], check=False, capture_output=True)
        shutil.rmtree(base, ignore_errors=True)


def own(target: Path) -> int | None:
    """Give a file, or a folder with all in it, to the workspace's uid and return it; None where we are not root."""
    if os.geteuid() != 0:
        return None
    for path in (target, *(target.rglob("*") if target.is_dir() and not target.is_symlink() else ())):
        os.chown(path, OWNER, OWNER, follow_symlinks=False)
    return OWNER


@cache
def _made() -> Path:
    """Make once what every arena starts from."""
    base = Path(tempfile.mkdtemp(prefix="iw-security-", dir="/tmp"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    seed(base / "source", FILES)
    publish(base / "source", base / "published")
    git(base, "init", "--quiet", "--bare", "empty")
    return base


def source(place: Arena) -> Path:
    """Make the innocent repository that attacks start from."""
    return Path(shutil.copytree(_made() / "source", place.base / "source"))


def published(bare: Path) -> None:
    """Make a bare copy of it that can be pushed to over HTTP."""
    shutil.copytree(_made() / "published", bare)


def size_of(folder: Path) -> int:
    """Add up what a folder takes on disk, in bytes."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
