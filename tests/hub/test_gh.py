"""What GitHub's own command line shows of a review here, where it is installed; it reaches the hub by a Unix socket."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn

from bot.testing.hub.graphql.app import routes
from bot.testing.hub.hub import Hub
from bot.testing.hub.records import Issue, Token
from bot.testing.hub.server import create_app
from bot.testing.hub.state.reviews import LineComment

pytestmark = pytest.mark.e2e

THREADS = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 10) { nodes { isResolved isOutdated path line comments(first: 10) {
      nodes { author { login } body } } } } } } }"""


@contextmanager
def listening(hub: Hub, path: Path) -> Iterator[None]:
    """Serve a hub on a Unix socket, where the program speaks plain HTTP to whatever host it means."""
    config = uvicorn.Config(create_app(hub, extra_routes=routes(hub)), uds=str(path), log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join()


@dataclass
class Desk:
    """A person with the program, before a pull request in review."""

    program: str
    folder: Path
    token: Token
    pull: Issue
    hub: Hub

    def gh(self, *arguments: str, code: int = 0) -> str:
        """Run a command and return what it prints; it has to end with a code."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GH_CONFIG_DIR": str(self.folder / "gh"),
            "GH_TOKEN": self.token.value,
            "GH_NO_UPDATE_NOTIFIER": "1",
            "NO_COLOR": "1",
        }
        done = subprocess.run(
            [self.program, *arguments], env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        return done.stdout


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has a hundred characters at most."""
    with tempfile.TemporaryDirectory(prefix="gh-", dir="/tmp") as made:
        yield Path(made)


@pytest.fixture
def desk(place: Path) -> Iterator[Desk]:
    """A draft of ours with a thread, an answer in it and a comment."""
    program = shutil.which("gh")
    if program is None:
        if os.environ.get("REQUIRE_GH") == "1":
            pytest.fail("gh is not installed, and REQUIRE_GH=1")
        pytest.skip("gh is not installed")
    hub = Hub(place / "hub")
    with listening(hub, place / "hub.sock"):
        ada = hub.create_user("ada")
        repository = hub.create_repository(ada, "engine", files={"a.txt": "one\ntwo\n"})
        app = hub.create_app(ada, "Issuewright")
        hub.install(app, [repository.id])
        hub.commit_files(repository, app.bot, "agent/1", {"a.txt": "one\n2\n"})
        pull = hub.open_pull(repository, app.bot, "Fix", head="agent/1", draft=True)
        hub.review(pull, ada, "CHANGES_REQUESTED", "No", [LineComment("a.txt", 2, "Why?")])
        assert pull.pull is not None
        pending = hub.start_review(pull, app.bot, "One thread")
        hub.reply(pull.pull.threads[0], app.bot, "Because", pending)
        hub.submit_review(pending, "COMMENTED")
        (place / "gh").mkdir()
        (place / "gh" / "config.yml").write_text(f"http_unix_socket: {place / 'hub.sock'}\n")
        yield Desk(program, place, hub.create_user_token(ada), pull, hub)
    hub.close()


def test_reviews_and_threads_are_shown(desk: Desk) -> None:
    """Over REST and GraphQL, as a person would look them up."""
    listed = desk.gh("api", "repos/ada/engine/pulls/1/reviews", "--jq", ".[] | [.user.login, .state, .body] | @tsv")
    assert listed == "ada\tCHANGES_REQUESTED\tNo\nissuewright[bot]\tCOMMENTED\tOne thread\n"
    lines = desk.gh("api", "repos/ada/engine/pulls/1/comments", "--jq", ".[] | [.path, .line, .body] | @tsv")
    assert lines == "a.txt\t2\tWhy?\na.txt\t2\tBecause\n"
    asked = ("-F", "owner=ada", "-F", "name=engine", "-F", "number=1", "-f", f"query={THREADS}")
    (thread,) = json.loads(desk.gh("api", "graphql", *asked, "--jq", "[.data[].pullRequest.reviewThreads.nodes[]]"))
    assert (thread["isResolved"], thread["isOutdated"], thread["path"], thread["line"]) == (False, False, "a.txt", 2)
    said = [(comment["author"]["login"], comment["body"]) for comment in thread["comments"]["nodes"]]
    assert said == [("ada", "Why?"), ("issuewright", "Because")]


def test_a_person_reviews_and_ends_the_draft(desk: Desk) -> None:
    """By the program's own commands."""
    desk.gh("pr", "review", "1", "--approve", "--body", "Good now", "--repo", "ada/engine")
    desk.gh("pr", "ready", "1", "--repo", "ada/engine")
    assert desk.pull.pull is not None
    last = desk.pull.pull.reviews[-1]
    assert (last.user.login, last.state, last.body) == ("ada", "APPROVED", "Good now")
    assert not desk.pull.pull.draft


def test_the_conversation_is_shown(desk: Desk) -> None:
    """The pull request with its reviewers, and all that was said, as a person reads it there."""
    desk.hub.comment(desk.pull, desk.pull.repository.owner, "Look at `a.txt`")
    shown = desk.gh("pr", "view", "1", "--repo", "ada/engine")
    fields = dict(line.split("\t", 1) for line in shown.splitlines() if "\t" in line)
    wanted = {"title:": "Fix", "state:": "DRAFT", "author:": "issuewright", "additions:": "1", "deletions:": "1"}
    assert {name: fields[name] for name in wanted} == wanted
    assert "ada (Changes requested)" in fields["reviewers:"]
    said = desk.gh("pr", "view", "1", "--comments", "--repo", "ada/engine").split("--\n")
    heads = [head.split() for head in said[:-1:2]]
    told = [(head[1], head[-1], text.strip()) for head, text in zip(heads, said[1::2], strict=True)]
    # What is of one second has no order.
    assert sorted(told) == [
        ("ada", "none", "Look at `a.txt`"),
        ("ada", "requested", "No"),
        ("issuewright", "commented", "One thread"),
    ]


def test_checks_are_shown(desk: Desk) -> None:
    """Jobs, checks of other Apps and commit statuses of the head; while one fails the program says so by its code."""
    hub, repository = desk.hub, desk.pull.repository
    assert desk.pull.pull is not None
    sha = desk.pull.pull.head_sha
    (job,) = hub.run_workflow(repository, repository.owner, sha, ["test"]).jobs
    hub.finish_job(job, "failure", "red")
    lint = hub.create_app(repository.owner, "Lint Co")
    hub.create_check_run(repository, lint, "style", sha, {"conclusion": "success"})
    hub.create_check_run(repository, lint, "slow", sha, {"status": "in_progress"})
    hub.set_status(repository, repository.owner, sha, "success", context="deploy", target_url="https://d.example/1")
    listed = desk.gh("pr", "checks", "1", "--repo", "ada/engine", code=1)
    rows = {name: (how, url) for name, how, _, url in (line.split("\t") for line in listed.splitlines())}
    assert {name: how for name, (how, _) in rows.items()} == {
        "test": "fail",
        "style": "pass",
        "slow": "pending",
        "deploy": "pass",
    }
    assert rows["test"][1].endswith(f"/job/{job.id}")
    assert rows["deploy"][1] == "https://d.example/1"
