"""What all everyday stories share: trees as git holds them, scripts that look at results, and one story told."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.testing.hub.records import Issue
from bot.testing.model.reply import Call, Reply
from bot.testing.model.request import Request, Text, ToolCall, ToolResult
from bot.testing.model.script import Conversation, Script, Step
from tests.e2e.stage import ROOT, Stage, until

Files = dict[str, bytes]
CONFIG = ".github/issuewright.yml"
AT_ONCE = 8
"""Calls of one reply that are run."""
PATIENCE_S = 240.0
"""Seconds that a story may take on a busy machine."""


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a commit."""

    mode: str
    data: bytes


def tree(git_dir: Path, commit: str) -> dict[str, Blob]:
    """Read all files of a commit, byte for byte, by their path."""
    git = ["git", "--git-dir", str(git_dir)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", commit], check=True, capture_output=True).stdout
    rows = [row.split("\t", 1) for row in listed.decode().split("\0") if row]
    names = "".join(f"{facts.split()[2]}\n" for facts, _ in rows).encode()
    out = subprocess.run([*git, "cat-file", "--batch"], input=names, check=True, capture_output=True).stdout
    found: dict[str, Blob] = {}
    at = 0
    for facts, path in rows:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        found[path] = Blob(facts.split()[0], out[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
    return found


def results(request: Request, tool: str = "") -> list[tuple[Mapping[str, object], ToolResult]]:
    """Return what calls gave since the conversation began, of one tool where one is named, with their arguments.

    Calls that were not executed are left out: a model has to make them again.
    """
    parts = [part for message in request.messages for part in message.parts]
    asked = {part.id: part.arguments for part in parts if isinstance(part, ToolCall)}
    return [
        (asked[part.call_id], part)
        for part in parts
        if isinstance(part, ToolResult) and tool in ("", part.name) and not part.text.startswith("Not executed")
    ]


def at(request: Request, tool: str, key: str = "path") -> dict[str, ToolResult]:
    """Return the last result of a tool by one of its arguments, which is empty where it was not given."""
    return {str(asked.get(key, "")): result for asked, result in results(request, tool)}


def say(text: str, *made: Call) -> Reply:
    """Reply with words and calls."""
    return Reply([Text(text), *made])


def run(command: str, **more: object) -> Call:
    """Call `run`."""
    return Call("run", {"command": command, **more})


def plan(*steps: str, done: int) -> Call:
    """Call `update_plan`: so many of these steps are done."""
    return Call("update_plan", {"items": [{"text": text, "done": at < done} for at, text in enumerate(steps)]})


def story(name: str, *turns: Step) -> Script:
    """Make a script that answers whatever is asked first."""
    return Script([Conversation(name, turns)], name=name)


@dataclass(frozen=True, slots=True)
class Told:
    """How a story on the local GitHub ended."""

    stage: Stage
    issue: Issue
    pull: Issue
    body: str
    """Of the pull request."""
    before: Mapping[str, Blob]
    after: Mapping[str, Blob]

    @property
    def changed(self) -> set[str]:
        """Paths of which the bytes or the mode are others than before."""
        return {path for path in {*self.before, *self.after} if self.before.get(path) != self.after.get(path)}


@contextmanager
def told(
    folder: Path,
    script: Script,
    files: Mapping[str, bytes],
    issue: tuple[str, str],
    *,
    executable: Sequence[str] = (),
    **environment: str,
) -> Iterator[Told]:
    """Let Maria label an issue, and wait for the pull request.

    Args:
        folder: for everything.
        script: what the model does.
        files: of the repository.
        issue: its title and its text.
        executable: paths with that bit.
        environment: more of the server's.
    """
    with Stage(folder, script, files).open() as stage:
        if executable:
            main = stage.branches()["main"]
            stage.hub.write_commit(
                stage.repository,
                {path: files[path] for path in executable},
                message="May be run",
                by=stage.maria,
                parent=main,
                ref="main",
                executable=frozenset(executable),
            )
        with stage.serving(**environment):
            opened = stage.labelled(*issue)
            ended = ends(stage, opened)
        assert stage.model.problems == [], stage.model.problems
        assert ended.startswith("**Done**"), f"{ended}\n{stage.log()}"
        (pull,) = stage.pulls()
        assert pull.pull is not None
        before, after = (tree(stage.repository.path, ref) for ref in ("main", pull.pull.head_ref))
        yield Told(stage, opened, pull, pull.body or "", before, after)


def ends(stage: Stage, issue: Issue) -> str:
    """Wait until the progress comment shows an end, and return it."""

    def ended() -> str | None:
        shown = [body for body in stage.bot_comments(issue.number) if ":progress." in body]
        return next((b for b in shown if b.startswith(("**Done", "**Failed", "**Stopped", "**Budget"))), None)

    return until(ended, f"the end; problems: {stage.model.problems}; the server said: {stage.log()}", PATIENCE_S)


def checked(body: str, name: str) -> tuple[str, str]:
    """Return the exit codes of a check before and after, as the pull request's evidence has them."""
    row = next(line for line in body.splitlines() if line.startswith(f"| {name} |"))
    _, before, after = (cell.strip() for cell in row.split("|")[2:5])
    return before, after


def at_terminal(folder: Path, script: Script, files: Mapping[str, bytes], issue: tuple[str, str]) -> dict[str, Blob]:
    """Do the same with `issuewright run` on a clone; returns the tree of the branch that it leaves there."""
    with Stage(folder, script, files, webhook=False).open() as stage:
        clone, text = folder / "clone", folder / "issue.md"
        subprocess.run(["git", "clone", "--quiet", str(stage.repository.path), str(clone)], check=True)
        text.write_text(f"# {issue[0]}\n\n{issue[1]}\n")
        options = ["--repo", str(clone), "--issue", str(text), "--approve", "all"]
        done = subprocess.run(
            [sys.executable, "-m", "bot", "run", *options],
            cwd=ROOT,
            env=stage.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert stage.model.problems == [], stage.model.problems
        assert done.returncode == 0, done.stdout + done.stderr
        git = ["git", "-C", str(clone)]
        named = [*git, "for-each-ref", "--format=%(refname:short)", "refs/heads/agent/"]
        (branch,) = subprocess.run(named, check=True, capture_output=True, text=True).stdout.split()
        assert f"`{branch}`" in done.stderr
        dirty = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True, text=True).stdout
        assert dirty == ""
        return tree(clone / ".git", branch)
