"""Pull requests: opening, redrafting and retargeting them."""

from __future__ import annotations

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, invalid
from bot.testing.hub.records import Issue, Pull, Repository, User
from bot.testing.hub.shapes.common import Json, user_json
from bot.testing.hub.shapes.pulls import pull_json, pull_of
from bot.testing.hub.state.comments import Comments


class Pulls(Comments):
    """Pull requests, which are issues with a `pull`."""

    @locked
    def open_pull(  # noqa: PLR0913 -- each is a field of the request
        self,
        repository: Repository,
        by: User,
        title: str,
        *,
        head: str,
        base: str | None = None,
        body: str | None = None,
        draft: bool = False,
    ) -> Issue:
        """Open a pull request.

        Args:
            repository: where it is opened.
            by: its author.
            title: not empty.
            head: `branch`, or `owner:branch` for a fork of that owner.
            base: branch; None is the default branch.
            body: its description.
            draft: not yet ready for review.

        Raises:
            HubError: 422 for an unknown branch, no commits between the two, a second one for the same branches, and a
                draft where there are none.
        """
        base = base or repository.default_branch
        source, branch = self.head_of(repository, head)
        head_sha = self.git(source).refs(f"refs/heads/{branch}").get(f"refs/heads/{branch}")
        base_sha = self.git(repository).refs(f"refs/heads/{base}").get(f"refs/heads/{base}")
        if base_sha is None:
            raise invalid("PullRequest", "base")
        if head_sha is None:
            raise invalid("PullRequest", "head")
        for issue in repository.issues.values():
            if issue.state == "open" and issue.pull and _same(issue.pull, source, branch, base):
                label = f"{source.owner.login}:{branch}"
                raise invalid("PullRequest", "head", message=f"A pull request already exists for {label}.")
        if draft and not repository.drafts:
            raise HubError(422, "Draft pull requests are not supported in this repository.")
        if source is not repository:
            self.git(repository).fetch(source.path, head_sha, "refs/pull/incoming/head")
        if self.git(repository).count(base_sha, head_sha) == 0:
            raise invalid("PullRequest", "head", message=f"No commits between {base} and {branch}")
        issue = self.new_issue(repository, by, title, body)
        number, node = self.new_ids("PR")
        issue.pull = Pull(number, node, source, branch, head_sha, base, base_sha, draft)
        self.nodes[node] = issue
        self.git(repository).set_ref(f"refs/pull/{issue.number}/head", head_sha)
        self.git(repository).set_ref("refs/pull/incoming/head", None)
        self.announce(issue, "opened", by)
        return issue

    def head_of(self, repository: Repository, head: str) -> tuple[Repository, str]:
        """Return repository and branch that `branch` or `owner:branch` names.

        Raises:
            HubError: 422 when that owner has no fork of the repository.
        """
        owner, colon, branch = head.partition(":")
        if not colon:
            return repository, head
        for candidate in (repository, *self.repositories.values()):
            kin = candidate is repository or repository in (candidate.parent, candidate)
            if kin and candidate.owner.login.lower() == owner.lower():
                return candidate, branch
        raise invalid("PullRequest", "head")

    @locked
    def set_draft(self, issue: Issue, by: User, draft: bool) -> None:  # noqa: FBT001 -- the state itself
        """Convert to a draft or mark as ready for review."""
        pull = pull_of(issue)
        if pull.draft is not draft:
            pull.draft = draft
            self.record(issue, "convert_to_draft" if draft else "ready_for_review", by)
            self.announce(issue, "converted_to_draft" if draft else "ready_for_review", by)

    @locked
    def retarget(self, issue: Issue, by: User, base: str) -> None:
        """Change the base branch.

        Raises:
            HubError: 422 when there is no such branch.
        """
        pull = pull_of(issue)
        sha = self.git(issue.repository).refs(f"refs/heads/{base}").get(f"refs/heads/{base}")
        if sha is None:
            raise invalid("PullRequest", "base")
        if base != pull.base_ref:
            changes: Json = {"base": {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}}
            pull.base_ref, pull.base_sha = base, sha
            self.touch(issue)
            self.announce(issue, "edited", by, {"changes": changes})

    @locked
    def request_review(self, issue: Issue, by: User, reviewers: list[User]) -> None:
        """Ask people for a review; the author cannot be asked.

        Raises:
            HubError: 422 when the author is among them or somebody is no collaborator.
        """
        pull = pull_of(issue)
        if issue.user in reviewers:
            raise HubError(422, "Review cannot be requested from pull request author.")
        for user in reviewers:
            if self.association(issue.repository, user) not in ("OWNER", "COLLABORATOR"):
                raise HubError(
                    422,
                    "Reviews may only be requested from collaborators. One or more of the users or teams you specified "
                    f"is not a collaborator of the {issue.repository.full_name} repository.",
                )
        for user in reviewers:
            if user not in pull.requested_reviewers:
                pull.requested_reviewers.append(user)
                self.record(issue, "review_requested", by, reviewer=user)
                self.announce(issue, "review_requested", by, {"requested_reviewer": user_json(self, user)})

    def announce_sync(self, issue: Issue, by: User, before: str) -> None:
        """Send `pull_request` `synchronize`: new commits came to the head branch."""
        payload: Json = {
            "action": "synchronize",
            "number": issue.number,
            "before": before,
            "after": pull_of(issue).head_sha,
            "pull_request": pull_json(self, issue),
        }
        self.emit(issue.repository, "pull_request", by, payload)


def _same(pull: Pull, source: Repository, branch: str, base: str) -> bool:
    return pull.head_repository is source and (pull.head_ref, pull.base_ref) == (branch, base)
