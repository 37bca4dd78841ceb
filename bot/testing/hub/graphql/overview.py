"""What GitHub's own command line asks for to show a pull request, its conversation and its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.testing.hub.graphql.asking import Ask
from bot.testing.hub.graphql.paging import Item, Page, page
from bot.testing.hub.graphql.resolver import Resolver, of
from bot.testing.hub.permissions import read
from bot.testing.hub.records import CheckRun, Comment, CommitStatus, Issue, Repository, Review, ReviewComment, User
from bot.testing.hub.shapes.checks import suite_id
from bot.testing.hub.shapes.common import CONTENTS, optional_stamp, stamp
from bot.testing.hub.shapes.issues import html_url
from bot.testing.hub.shapes.pulls import pull_of

REACTIONS = dict(
    zip(
        CONTENTS,
        ("THUMBS_UP", "THUMBS_DOWN", "LAUGH", "CONFUSED", "HEART", "HOORAY", "EYES", "ROCKET"),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class OneCommit:
    """A commit of a repository.

    Args:
        id: its place among those of a pull request; 0 where it is asked for alone.
        sha: its name.
        repository: which has it.
    """

    id: int
    sha: str
    repository: Repository


def author(said: Issue | Comment | ReviewComment | Review) -> User | None:
    """REST names a deleted account `ghost`, GraphQL none."""
    return None if said.user.deleted else said.user


def did_author(said: Comment | ReviewComment | Review, ask: Ask, _: Mapping[str, Any]) -> bool:
    """Tell whether the caller said it."""
    return said.user is ask.user


def _changes(issue: Issue, ask: Ask) -> tuple[int, int]:
    pull, git = pull_of(issue), ask.hub.git(issue.repository)
    base = git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
    changes = git.diff(base, pull.head_sha)
    return sum(change.additions for change in changes), sum(change.deletions for change in changes)


def _mergeable(issue: Issue, ask: Ask, _: Mapping[str, Any]) -> str:
    pull = pull_of(issue)
    if pull.merged_at is not None:
        return "UNKNOWN"
    clean = ask.hub.git(issue.repository).merges_cleanly(pull.base_sha, pull.head_sha)
    return "MERGEABLE" if clean else "CONFLICTING"


def _commits(issue: Issue, ask: Ask, args: Mapping[str, Any]) -> Page:
    pull = pull_of(issue)
    listed = ask.hub.git(issue.repository).commits(f"{pull.base_sha}..{pull.head_sha}")
    found = [OneCommit(place, one.sha, issue.repository) for place, one in enumerate(listed, 1)]
    last = args.get("last")
    if args.get("first") is None and last is None:
        # Their number alone may be asked for without bounds.
        return Page((), len(found), more=False)
    return page("commits", found, args) if last is None else Page(found[-last:] if last else (), len(found), more=False)


def _rollup(commit: OneCommit, ask: Ask, _: Mapping[str, Any]) -> list[CheckRun | CommitStatus] | None:
    ask.require(commit.repository, read("checks"), read("statuses"))
    runs = [run for run in commit.repository.check_runs if run.head_sha == commit.sha]
    newest = {(suite_id(run), run.name): run for run in runs}.values()
    return [*newest, *ask.hub.statuses_of(commit.repository, commit.sha)] or None


def _reactions(said: Issue | Comment | Review) -> list[tuple[str, int]]:
    """GitHub lists all kinds, also those that nobody gave."""
    given = [] if isinstance(said, Review) else [one.content for one in said.reactions]
    return [(name, given.count(content)) for content, name in REACTIONS.items()]


def _url(issue: Issue, ask: Ask, _: Mapping[str, Any]) -> str:
    return html_url(ask.hub, issue)


def _comment_url(comment: Comment, ask: Ask, _: Mapping[str, Any]) -> str:
    return f"{html_url(ask.hub, comment.issue)}#issuecomment-{comment.id}"


def _association(said: Comment | Review, ask: Ask, _: Mapping[str, Any]) -> str:
    return ask.hub.association(said.issue.repository, said.user)


def _check_url(run: CheckRun, ask: Ask, _: Mapping[str, Any]) -> str:
    job = f"actions/runs/{run.workflow_run.id}/job" if run.workflow_run else "runs"
    return run.details_url or f"{ask.hub.base_url}/{run.repository.full_name}/{job}/{run.id}"


def _paged(name: str, items: Sequence[Item], args: Mapping[str, Any]) -> Page:
    return page(name, sorted(items, key=lambda item: item.id), args)


CONNECTION: dict[str, Resolver] = {
    "nodes": of(lambda page: page.nodes),
    "pageInfo": of(lambda page: page),
    "totalCount": of(lambda page: page.total),
}
REACTED: dict[str, Resolver] = {"reactionGroups": of(_reactions)}
IN_CONVERSATION: dict[str, Resolver] = {**REACTED, "authorAssociation": _association, "viewerDidAuthor": did_author}
NOTHING = of(lambda _: None)
"""Reads what no record here is: teams, milestones and the old projects."""

PULL_REQUEST: dict[str, Resolver] = {
    **REACTED,
    "url": _url,
    "author": of(author),
    "createdAt": of(lambda issue: stamp(issue.created_at)),
    "maintainerCanModify": of(lambda issue: pull_of(issue).head_repository is not issue.repository),
    "mergeable": _mergeable,
    "additions": lambda issue, ask, _: _changes(issue, ask)[0],
    "deletions": lambda issue, ask, _: _changes(issue, ask)[1],
    "commits": _commits,
    "headRepository": of(lambda issue: pull_of(issue).head_repository),
    "headRepositoryOwner": of(lambda issue: pull_of(issue).head_repository.owner),
    "isCrossRepository": of(lambda issue: pull_of(issue).head_repository is not issue.repository),
    "reviewRequests": lambda issue, _, args: _paged("reviewRequests", pull_of(issue).requested_reviewers, args),
    "assignees": lambda issue, _, args: _paged("assignees", issue.assignees, args),
    "labels": lambda issue, _, args: _paged("labels", issue.labels, args),
    "projectCards": lambda _, __, args: page("projectCards", (), args),
    "milestone": NOTHING,
    "comments": lambda issue, _, args: page("comments", issue.comments, args),
}
ISSUE_COMMENT: dict[str, Resolver] = {
    **IN_CONVERSATION,
    "includesCreatedEdit": of(lambda comment: comment.updated_at != comment.created_at),
    "url": _comment_url,
}
FIELDS: dict[str, dict[str, Resolver]] = {
    "Commit": {"oid": of(lambda commit: commit.sha), "statusCheckRollup": _rollup},
    "PullRequestCommitConnection": CONNECTION,
    "PullRequestCommit": {"commit": of(lambda commit: commit)},
    "StatusCheckRollup": {
        "contexts": lambda checks, _, args: _paged("contexts", checks, args),
    },
    "StatusCheckRollupContextConnection": CONNECTION,
    "StatusContext": {
        "context": of(lambda status: status.context),
        "state": of(lambda status: status.state.upper()),
        "targetUrl": of(lambda status: status.target_url),
        "createdAt": of(lambda status: stamp(status.created_at)),
        "isRequired": of(lambda _: False),
    },
    "CheckRun": {
        "name": of(lambda run: run.name),
        "checkSuite": of(lambda run: run),
        "status": of(lambda run: run.status.upper()),
        "conclusion": of(lambda run: run.conclusion and run.conclusion.upper()),
        "startedAt": of(lambda run: stamp(run.started_at)),
        "completedAt": of(lambda run: optional_stamp(run.completed_at)),
        "detailsUrl": _check_url,
        "isRequired": of(lambda _: False),
    },
    "CheckSuite": {"workflowRun": of(lambda run: run.workflow_run)},
    "WorkflowRun": {"workflow": of(lambda run: run)},
    "Workflow": {"name": of(lambda run: run.name)},
    "ReviewRequestConnection": CONNECTION,
    "ReviewRequest": {"requestedReviewer": of(lambda user: user)},
    "UserConnection": CONNECTION,
    "IssueCommentConnection": CONNECTION,
    "LabelConnection": CONNECTION,
    "Label": {
        "id": of(lambda label: label.node_id),
        "name": of(lambda label: label.name),
        "description": of(lambda label: label.description),
        "color": of(lambda label: label.color),
    },
    "ReactionGroup": {"content": of(lambda group: group[0]), "users": of(lambda group: group[1])},
    "ReactingUserConnection": {"totalCount": of(lambda number: number)},
    "Team": dict.fromkeys(("organization", "name", "slug"), NOTHING),
    "Milestone": dict.fromkeys(("number", "title", "description", "dueOn"), NOTHING),
    "ProjectCardConnection": CONNECTION,
    "ProjectCard": dict.fromkeys(("project", "column"), NOTHING),
    "Project": {"name": NOTHING},
    "ProjectColumn": {"name": NOTHING},
}
"""By type and field."""
