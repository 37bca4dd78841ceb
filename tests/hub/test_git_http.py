"""Git over HTTP with the real git: who may clone and push, and what a push sets off."""

import gzip
import json
import subprocess
from pathlib import Path

import httpx
import pytest

from bot.testing.hub.git.plumbing import ENVIRONMENT
from bot.testing.hub.records import Repository, Token
from tests.hub.world import World

IDENTITY = {
    **ENVIRONMENT,
    "GIT_AUTHOR_NAME": "Bot",
    "GIT_AUTHOR_EMAIL": "bot@example.com",
    "GIT_COMMITTER_NAME": "Bot",
    "GIT_COMMITTER_EMAIL": "bot@example.com",
}


def git(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run git without any credentials or configuration of the machine."""
    return subprocess.run(
        ["git", *args], cwd=cwd, env=IDENTITY, capture_output=True, text=True, check=False, timeout=60
    )


def remote(world: World, token: Token | str | None = None, repository: Repository | None = None) -> str:
    """Return a clone URL with a token in it."""
    value = token.value if isinstance(token, Token) else token
    name = (repository or world.repository).full_name
    host = world.server.url.removeprefix("http://")
    return f"http://x-access-token:{value}@{host}/{name}.git" if value else f"http://{host}/{name}.git"


def mint(world: World, **permissions: str) -> Token:
    """Return an installation token."""
    return world.hub.create_installation_token(world.installation, permissions=permissions or None)


def commit(folder: Path, files: dict[str, str], branch: str) -> str:
    """Commit files on a new branch and return the commit."""
    git("checkout", "-q", "-B", branch, cwd=folder)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git("add", "-A", cwd=folder)
    assert git("commit", "-q", "-m", "Change", cwd=folder).returncode == 0
    return git("rev-parse", "HEAD", cwd=folder).stdout.strip()


@pytest.fixture
def clone(world: World, tmp_path: Path) -> Path:
    """A clone with a token that may write."""
    folder = tmp_path / "clone"
    done = git("clone", "-q", remote(world, mint(world)), str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_a_push_moves_the_branch_and_tells_of_it(world: World, clone: Path) -> None:
    """A new branch is there for REST at once, and `push` names its commit and files."""
    assert (clone / "README.md").read_text() == "# Web\n\nA shop.\n"
    sha = commit(clone, {"new.txt": "hello\n"}, "agent/1-x")
    done = git("push", "-q", "origin", "agent/1-x", cwd=clone)
    assert done.returncode == 0, done.stderr
    assert world.as_bot().get(f"{world.path}/git/ref/heads/agent/1-x").json()["object"]["sha"] == sha
    push = json.loads(world.hub.deliveries("push")[-1].body)
    assert (push["ref"], push["created"], push["after"]) == ("refs/heads/agent/1-x", True, sha)
    assert push["head_commit"]["added"] == ["new.txt"]
    assert (push["pusher"]["name"], push["sender"]["login"]) == ("agent-bot[bot]", "agent-bot[bot]")


def test_a_push_moves_its_pull_request(world: World, clone: Path) -> None:
    """`synchronize` has before and after, `refs/pull/N/head` follows, and git cannot write there."""
    first = commit(clone, {"a.txt": "1\n"}, "fix")
    git("push", "-q", "origin", "fix", cwd=clone)
    issue = world.hub.open_pull(world.repository, world.owner, "Fix", head="fix")
    second = commit(clone, {"a.txt": "2\n"}, "fix")
    assert git("push", "-q", "origin", "fix", cwd=clone).returncode == 0
    sync = json.loads(world.hub.deliveries("pull_request", "synchronize")[0].body)
    assert (sync["before"], sync["after"], sync["pull_request"]["head"]["sha"]) == (first, second, second)
    listed = git("ls-remote", "origin", f"refs/pull/{issue.number}/head", cwd=clone).stdout
    assert listed.split()[0] == second
    assert world.hub.git(world.repository).refs("refs/pull")[f"refs/pull/{issue.number}/head"] == second
    refused = git("push", "-q", "origin", f"fix:refs/pull/{issue.number}/head", cwd=clone)
    assert refused.returncode != 0
    git("push", "-q", "origin", "--delete", "fix", cwd=clone)
    assert issue.state == "closed"


def test_a_token_that_only_reads_cannot_push(world: World, tmp_path: Path) -> None:
    """403 in GitHub's words; cloning works."""
    folder = tmp_path / "read"
    url = remote(world, mint(world, contents="read"))
    assert git("clone", "-q", url, str(folder)).returncode == 0
    commit(folder, {"a": "b"}, "x")
    done = git("push", "origin", "x", cwd=folder)
    assert done.returncode != 0
    assert "Permission to acme/web.git denied to agent-bot[bot]." in done.stderr
    assert "403" in done.stderr


def test_a_private_repository_asks_for_a_token(world: World, tmp_path: Path) -> None:
    """Without one 401, with a wrong one 401, with one that does not reach it 404, with the right one a clone."""
    secret = world.hub.create_repository(world.owner, "secret", files={"a": "b"}, private=True)
    anonymous = git("clone", "-q", remote(world, None, secret), str(tmp_path / "1"))
    assert "could not read Username" in anonymous.stderr
    wrong = git("clone", "-q", remote(world, "ghs_wrong", secret), str(tmp_path / "2"))
    assert "Authentication failed" in wrong.stderr
    foreign = git("clone", "-q", remote(world, mint(world), secret), str(tmp_path / "3"))
    assert "not found" in foreign.stderr
    world.hub.change_repositories(world.installation, world.owner, add=[secret])
    assert git("clone", "-q", remote(world, mint(world), secret), str(tmp_path / "4")).returncode == 0
    no_contents = git("clone", "-q", remote(world, mint(world, issues="write"), secret), str(tmp_path / "5"))
    assert "403" in no_contents.stderr


def test_a_public_repository_is_cloned_by_anybody_and_pushed_by_nobody(world: World, tmp_path: Path) -> None:
    """Reading needs no token, writing does."""
    folder = tmp_path / "public"
    assert git("clone", "-q", "--depth=1", "--filter=blob:none", remote(world), str(folder)).returncode == 0
    commit(folder, {"a": "b"}, "x")
    assert "could not read Username" in git("push", "origin", "x", cwd=folder).stderr


def test_a_token_ends_with_the_hub_s_clock(world: World, clone: Path) -> None:
    """After an hour the same remote is refused."""
    world.repository.private = True  # else git reads without ever showing its token
    assert git("fetch", "-q", cwd=clone).returncode == 0
    world.clock.forward(hours=1)
    assert "Authentication failed" in git("fetch", "-q", cwd=clone).stderr


def test_people_push_by_role(world: World, clone: Path) -> None:
    """Write may, triage may not."""
    commit(clone, {"a": "b"}, "x")
    for login, role, ok in (("wendy", "write", True), ("tom", "triage", False)):
        token = world.hub.create_user_token(world.person(login, role))
        done = git("push", "-q", remote(world, token), f"x:{login}", cwd=clone)
        assert (done.returncode == 0) is ok, done.stderr


def test_workflow_files_need_their_own_permission(world: World, clone: Path) -> None:
    """An App without `workflows` is refused by name; other refs of the same push, people and such an App are not."""
    path = ".github/workflows/ci.yml"
    commit(clone, {"plain": "1"}, "plain")
    commit(clone, {path: "on: push\n"}, "wf")
    done = git("push", "origin", "wf", "plain", cwd=clone)
    words = f"refusing to allow a GitHub App to create or update workflow `{path}` without `workflows` permission"
    assert f"[remote rejected] wf -> wf ({words})" in done.stderr
    heads = world.hub.git(world.repository).refs("refs/heads/")
    assert "refs/heads/plain" in heads
    assert "refs/heads/wf" not in heads
    job = world.hub.create_job_token(world.repository, {"contents": "write"})
    assert words in git("push", remote(world, job), "wf", cwd=clone).stderr
    person = world.hub.create_user_token(world.owner)
    assert git("push", "-q", remote(world, person), "wf:by-person", cwd=clone).returncode == 0
    world.installation.permissions["workflows"] = "write"
    assert git("push", "-q", remote(world, mint(world)), "wf:by-app", cwd=clone).returncode == 0


def test_rest_guards_workflow_files_too(world: World) -> None:
    """A ref to a commit that brings a workflow file is 403 without `workflows`."""
    sha = world.hub.write_commit(
        world.repository,
        {".github/workflows/x.yml": "on: push\n"},
        message="wf",
        by=world.owner,
        parent=world.hub.git(world.repository).resolve("main"),
    )
    answer = world.as_bot().post(f"{world.path}/git/refs", json={"ref": "refs/heads/wf", "sha": sha})
    assert answer.status_code == 403
    assert "workflows=write" in answer.headers["X-Accepted-GitHub-Permissions"]


def test_protocol_two_bearer_tokens_gzip_and_chunks_are_taken(world: World) -> None:
    """What git clients may send: version 2, a Bearer token, a gzip'd and a chunked request body."""
    headers = {"Authorization": f"Bearer {mint(world).value}", "Git-Protocol": "version=2"}
    url = f"{world.server.url}/acme/web.git"
    with httpx.Client(headers=headers, trust_env=False) as client:
        advert = client.get(f"{url}/info/refs", params={"service": "git-upload-pack"})
        assert b"version 2" in advert.content
        assert advert.headers["content-type"] == "application/x-git-upload-pack-advertisement"
        ask = b"0014command=ls-refs\n0001001bref-prefix refs/heads/\n0000"
        kind = {"Content-Type": "application/x-git-upload-pack-request"}
        plain = client.post(f"{url}/git-upload-pack", content=ask, headers=kind)
        assert b"refs/heads/main" in plain.content
        zipped = {**kind, "Content-Encoding": "gzip"}
        assert (
            client.post(f"{url}/git-upload-pack", content=gzip.compress(ask), headers=zipped).content == plain.content
        )
        chunked = client.post(f"{url}/git-upload-pack", content=iter([ask[:10], ask[10:]]), headers=kind)
        assert chunked.content == plain.content
        assert client.get(f"{url}/HEAD").status_code == 404
        jwt = client.get(
            f"{url}/info/refs",
            params={"service": "git-upload-pack"},
            headers={"Authorization": f"Bearer {world.jwt()}"},
        )
        assert jwt.status_code in (200, 401)


def test_a_force_push_is_told_as_forced(world: World, clone: Path) -> None:
    """`forced` is set when history is rewritten."""
    commit(clone, {"a": "1"}, "x")
    git("push", "-q", "origin", "x", cwd=clone)
    git("commit", "-q", "--amend", "-m", "Other", cwd=clone)
    assert git("push", "-q", "origin", "x", cwd=clone).returncode != 0
    assert git("push", "-q", "--force", "origin", "x", cwd=clone).returncode == 0
    assert [json.loads(d.body)["forced"] for d in world.hub.deliveries("push")] == [False, True]
