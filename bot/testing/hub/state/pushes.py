"""What follows when refs move: push events, heads of pull requests, closed pull requests of deleted branches."""

from __future__ import annotations

import re

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError
from bot.testing.hub.git.history import Commit
from bot.testing.hub.git.objects import Person
from bot.testing.hub.git.plumbing import ZERO
from bot.testing.hub.records import Issue, Repository, User
from bot.testing.hub.shapes.common import Json
from bot.testing.hub.shapes.pulls import pull_of
from bot.testing.hub.state.pulls import Pulls
from bot.testing.hub.state.repositories import Files

CLOSES = re.compile(r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? #(\d+)\b")
"""The words that link an issue (https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue)."""

MOST_COMMITS = 2048
"""Commits that a push event lists at most (https://docs.github.com/webhooks/webhook-events-and-payloads#push)."""


class Pushes(Pulls):
    """Moving refs."""

    @locked
    def commit_files(
        self,
        repository: Repository,
        by: User,
        branch: str,
        files: Files,
        *,
        message: str = "Change files",
        executable: frozenset[str] = frozenset(),
    ) -> str:
        """Commit onto a branch as if pushed, and return the commit's id.

        A branch that does not exist starts at the default branch.
        """
        heads = self.git(repository).refs("refs/heads/")
        parent = heads.get(f"refs/heads/{branch}") or heads.get(f"refs/heads/{repository.default_branch}")
        sha = self.write_commit(repository, files, message=message, by=by, parent=parent, executable=executable)
        self.move_ref(repository, by, f"refs/heads/{branch}", sha)
        return sha

    @locked
    def move_ref(self, repository: Repository, by: User, ref: str, sha: str | None, *, force: bool = False) -> None:
        """Create, move or (None) delete a ref, with all that follows.

        Raises:
            HubError: 422 when it is no fast-forward and `force` is not set, or no such ref is there to delete.
        """
        git = self.git(repository)
        old = git.refs(ref).get(ref)
        if sha is None and old is None:
            raise HubError(422, "Reference does not exist")
        if sha and old and not force and not git.is_ancestor(old, sha):
            raise HubError(422, "Update is not a fast forward")
        git.set_ref(ref, sha)
        self.refs_changed(repository, by)

    @locked
    def merge_pull(self, issue: Issue, by: User) -> str:
        """Merge with a merge commit and return its id; into the default branch, `Closes #1` closes that issue.

        Raises:
            HubError: 405 when it is a draft, closed or in conflict.
        """
        pull, git = pull_of(issue), self.git(issue.repository)
        if issue.state == "closed" or pull.draft or not git.merges_cleanly(pull.base_sha, pull.head_sha):
            raise HubError(405, "Pull Request is not mergeable")
        tree = git.run("merge-tree", "--write-tree", pull.base_sha, pull.head_sha).decode().split()[0]
        message = f"Merge pull request #{issue.number} from {pull.head_repository.owner.login}/{pull.head_ref}"
        person = Person(by.name or by.login, by.email or "", self.now())
        sha = git.write_commit(tree, [pull.base_sha, pull.head_sha], message, person)
        git.set_ref(f"refs/heads/{pull.base_ref}", sha)
        pull.merged_at, pull.merged_by, pull.merge_commit_sha = self.now(), by, sha
        self.record(issue, "merged", by, commit_id=sha)
        self.close_issue(issue, by)
        self.refs_changed(issue.repository, by)
        if pull.base_ref == issue.repository.default_branch:
            for number in sorted({int(found) for found in CLOSES.findall(issue.body or "")}):
                linked = issue.repository.issues.get(number)
                if linked is not None and linked.pull is None:
                    self.close_issue(linked, by)
        return sha

    @locked
    def refs_changed(self, repository: Repository, by: User) -> None:
        """Tell everybody what moved since the last time, in the order of the names."""
        before, after = repository.announced, self.git(repository).refs()
        repository.announced = after
        for ref in sorted({*before, *after}):
            old, new = before.get(ref, ZERO), after.get(ref, ZERO)
            if old != new and not ref.startswith("refs/pull/"):
                repository.pushed_at = self.now()
                self._announce_push(repository, by, ref, old, new)
                if ref.startswith("refs/heads/"):
                    self._follow(repository, by, ref.removeprefix("refs/heads/"), new)

    def _follow(self, repository: Repository, by: User, branch: str, sha: str) -> None:
        for issue in self._open_pulls():
            pull = pull_of(issue)
            if pull.head_repository is repository and pull.head_ref == branch:
                self._move_head(issue, by, sha)
            elif issue.repository is repository and pull.base_ref == branch and sha != ZERO:
                pull.base_sha = sha

    def _open_pulls(self) -> list[Issue]:
        issues = [issue for repository in self.repositories.values() for issue in repository.issues.values()]
        return [issue for issue in issues if issue.pull and issue.state == "open"]

    def _move_head(self, issue: Issue, by: User, sha: str) -> None:
        pull, git = pull_of(issue), self.git(issue.repository)
        if sha == ZERO:
            self.close_issue(issue, by)
            return
        before = pull.head_sha
        git.fetch(pull.head_repository.path, sha, f"refs/pull/{issue.number}/head")
        touched = {change.path for change in git.diff(before, sha)}
        pull.head_sha = sha
        for thread in pull.threads:
            thread.outdated = thread.outdated or thread.path in touched
        self.touch(issue)
        self.announce_sync(issue, by, before)

    def _announce_push(self, repository: Repository, by: User, ref: str, old: str, new: str) -> None:
        git = self.git(repository)
        commits: list[Commit] = []
        if new != ZERO and git.resolve(new):
            commits = git.commits(new if old == ZERO else f"{old}..{new}", limit=MOST_COMMITS if old != ZERO else 1)
        html = f"{self.base_url}/{repository.full_name}"
        listed = [_pushed(self, repository, commit) for commit in commits]
        payload: Json = {
            "ref": ref,
            "before": old,
            "after": new,
            "base_ref": None,
            "created": old == ZERO,
            "deleted": new == ZERO,
            "forced": ZERO not in (old, new) and not git.is_ancestor(old, new),
            "compare": f"{html}/compare/{old[:12]}...{new[:12]}",
            "commits": listed,
            "head_commit": listed[-1] if listed else None,
            "pusher": {"name": by.login, "email": by.email},
        }
        self.emit(repository, "push", by, payload)


def _pushed(hub: Pushes, repository: Repository, commit: Commit) -> Json:
    changes = hub.git(repository).diff(commit.parents[0], commit.sha) if commit.parents else []

    def paths(*statuses: str) -> list[str]:
        return [change.path for change in changes if change.status in statuses]

    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "distinct": True,
        "message": commit.message,
        "timestamp": commit.committer.date.isoformat(),
        "url": f"{hub.base_url}/{repository.full_name}/commit/{commit.sha}",
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
        "added": paths("added", "copied"),
        "removed": paths("removed"),
        "modified": paths("modified", "renamed", "changed"),
    }
