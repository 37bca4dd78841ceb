"""One GraphQL request as resolvers see it: who asks, what they may see, and refusals in GitHub's words."""

from __future__ import annotations

from dataclasses import dataclass

from graphql import GraphQLError

from bot.testing.hub.errors import HubError
from bot.testing.hub.hub import Hub
from bot.testing.hub.identity import Caller, bad_credentials, sees
from bot.testing.hub.permissions import FORBIDDEN, METADATA, Need, check_repository, read
from bot.testing.hub.records import Comment, Issue, Repository, Review, ReviewComment, Thread, User

NEEDS: dict[str, Need] = {
    "Repository": METADATA,
    "Issue": read("issues"),
    "IssueComment": read("issues", "pull_requests"),
    "PullRequest": read("pull_requests"),
    "PullRequestReview": read("pull_requests"),
    "PullRequestReviewThread": read("pull_requests"),
    "PullRequestReviewComment": read("pull_requests"),
}
"""What reading each type needs; people and bots need nothing."""

TYPES: dict[type[object], str] = {
    Repository: "Repository",
    Comment: "IssueComment",
    Review: "PullRequestReview",
    Thread: "PullRequestReviewThread",
    ReviewComment: "PullRequestReviewComment",
}
"""Types of records; those that are missing have several."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The context of an execution."""

    hub: Hub
    caller: Caller

    @property
    def user(self) -> User:
        """Whoever acts."""
        if self.caller.user is None:
            raise bad_credentials()
        return self.caller.user

    def repository(self, owner: str, name: str) -> Repository:
        """Return a repository that the caller may see.

        Raises:
            GraphQLError: NOT_FOUND.
        """
        try:
            repository = self.hub.repository(owner, name)
        except HubError:
            repository = None
        if repository is None or not sees(self.hub, self.caller, repository):
            raise refused("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        self.require(repository, METADATA)
        return repository

    def numbered(self, repository: Repository, kind: str, number: int) -> Issue:
        """Return an `Issue` or a `PullRequest` of a repository.

        Raises:
            GraphQLError: NOT_FOUND, also for one of the other kind.
            HubError: 403.
        """
        self.require(repository, NEEDS[kind])
        issue = repository.issues.get(number)
        if issue is None or type_name(issue) != kind:
            article = "an" if kind == "Issue" else "a"
            raise refused("NOT_FOUND", f"Could not resolve to {article} {kind} with the number of {number}.")
        return issue

    def node(self, node_id: str) -> object:
        """Return a record that the caller may read.

        Raises:
            GraphQLError: NOT_FOUND, also for what has no type here.
            HubError: 403.
        """
        record = self.hub.nodes.get(node_id)
        kind = type_name(record)
        repository = repository_of(record)
        hidden = repository is not None and not sees(self.hub, self.caller, repository)
        review = record.review if isinstance(record, ReviewComment) else record
        if isinstance(review, Review):
            hidden = hidden or not review.shown_to(self.caller.user)
        if kind is None or hidden or (isinstance(record, Issue) and node_id != issue_node(record)):
            raise refused("NOT_FOUND", f"Could not resolve to a node with the global id of '{node_id}'.")
        if repository is not None:
            self.require(repository, NEEDS[kind])
        return record

    def require(self, repository: Repository, *needs: Need) -> None:
        """Refuse a caller who has not all of these.

        Raises:
            HubError: 403.
        """
        for need in needs:
            check_repository(self.hub, need, self.caller, repository)


def type_name(record: object) -> str | None:
    """Return the GraphQL type of a record, or None for what is not served."""
    match record:
        case Issue():
            return "PullRequest" if record.pull else "Issue"
        case User():
            return record.type
    return TYPES.get(type(record))


def repository_of(record: object) -> Repository | None:
    """Return where a record is, or None for people."""
    match record:
        case Repository():
            return record
        case Issue():
            return record.repository
        case Thread() | Comment() | Review():
            return record.issue.repository
        case ReviewComment():
            return record.thread.issue.repository
    return None


def issue_node(issue: Issue) -> str:
    """Return the node id of an issue, or that of a pull request."""
    return issue.pull.node_id if issue.pull else issue.node_id


def refused(kind: str, message: str) -> GraphQLError:
    """Return an error with GitHub's `type`, to raise from a resolver."""
    return GraphQLError(message, extensions={"type": kind})


def translated(refusal: HubError, caller: Caller, field: str) -> GraphQLError:
    """Return a refusal of the hub's state or permissions as an error of a field.

    Args:
        refusal: what REST would answer.
        caller: a person is told of by name.
        field: such as `resolveReviewThread`.
    """
    if refusal.status in (401, 403):
        message = FORBIDDEN
        if caller.kind == "person" and caller.user is not None:
            action = field[0].upper() + field[1:]
            message = f"{caller.user.login} does not have the correct permissions to execute `{action}`"
        return refused("FORBIDDEN", message)
    first = refusal.errors[0] if refusal.errors else refusal.message
    said = first if isinstance(first, str) else str(first.get("message", refusal.message))
    return refused("NOT_FOUND" if refusal.status == 404 else "UNPROCESSABLE", said)  # noqa: PLR2004 -- HTTP's status
