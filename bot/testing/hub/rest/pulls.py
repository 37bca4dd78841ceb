"""Pull requests: listing, opening, changing, their files, commits and reviewers."""

from __future__ import annotations

from bot.testing.hub.errors import HubError, invalid
from bot.testing.hub.git.history import Commit
from bot.testing.hub.permissions import read, write
from bot.testing.hub.records import Issue
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.pulls import pull_json, pull_of, pull_simple_json
from bot.testing.hub.shapes.repositories import change_json, commit_json


def list_pulls(call: Call) -> Answer:
    """List pull requests, newest first, by state, `head` (`owner:branch`) and `base`."""
    state, head, base = call.query.get("state", "open"), call.query.get("head"), call.query.get("base")
    found = [
        issue
        for issue in call.repository.issues.values()
        if issue.pull and state in ("all", issue.state) and base in (None, issue.pull.base_ref) and _heads(issue, head)
    ]
    found.sort(key=lambda issue: issue.number, reverse=call.query.get("direction", "desc") == "desc")
    return call.paged(found, lambda issue: pull_simple_json(call.hub, issue))


def _heads(issue: Issue, head: str | None) -> bool:
    """GitHub ignores a filter without an owner."""
    if head is None or ":" not in head:
        return True
    pull = pull_of(issue)
    owner, _, branch = head.partition(":")
    return (pull.head_repository.owner.login.lower(), pull.head_ref) == (owner.lower(), branch)


def create_pull(call: Call) -> Answer:
    """Open a pull request."""
    body = Body(call.raw)
    title, head, base = body.text("title"), body.text("head"), body.text("base")
    source, _ = call.hub.head_of(call.repository, head)
    call.require_author_or(source.owner, "write")
    issue = call.hub.open_pull(
        call.repository,
        call.user,
        title,
        head=head,
        base=base,
        body=body.optional_text("body"),
        draft=body.flag("draft"),
    )
    return Answer(pull_json(call.hub, issue), 201)


def get_pull(call: Call) -> Answer:
    """Return a pull request, or its diff when that media type is asked for."""
    issue = call.pull()
    if "diff" in call.accept:
        pull = pull_of(issue)
        base = call.git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
        text = call.git.run("diff", "--no-ext-diff", "--no-textconv", base, pull.head_sha)
        return Answer(text, headers={"Content-Type": "application/vnd.github.v3.diff; charset=utf-8"})
    return Answer(pull_json(call.hub, issue))


def patch_pull(call: Call) -> Answer:
    """Change title, body, state or base; `draft` is not read, as on GitHub."""
    issue, body = call.pull(), Body(call.raw)
    call.require_author_or(issue.user, "write")
    state = body.optional_text("state")
    if state not in (None, "open", "closed"):
        raise invalid("PullRequest", "state")
    call.hub.edit_issue(issue, call.user, title=body.optional_text("title"), body=body.optional_text("body"))
    base = body.optional_text("base")
    if base is not None:
        call.hub.retarget(issue, call.user, base)
    if state == "closed":
        call.hub.close_issue(issue, call.user)
    elif state == "open":
        call.hub.reopen_issue(issue, call.user)
    return Answer(pull_json(call.hub, issue))


def files(call: Call) -> Answer:
    """List the changed files."""
    pull = pull_of(call.pull())
    base = call.git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
    changes = call.git.diff(base, pull.head_sha)
    return call.paged(changes, lambda change: change_json(call.hub, call.repository, change, pull.head_sha))


def commits(call: Call) -> Answer:
    """List the commits, oldest first."""
    pull = pull_of(call.pull())

    def shape(commit: Commit) -> object:
        return commit_json(call.hub, call.repository, commit)

    return call.paged(call.git.commits(f"{pull.base_sha}..{pull.head_sha}"), shape)


def request_reviewers(call: Call) -> Answer:
    """Ask people for a review."""
    issue, body = call.pull(), Body(call.raw)
    names = body.texts("reviewers")
    if not names and not body.texts("team_reviewers"):
        raise HubError(422, 'Invalid request.\n\nNo subschema in "anyOf" matched.')
    call.hub.request_review(issue, call.user, [call.hub.user(name) for name in names])
    return Answer(pull_simple_json(call.hub, issue), 201)


PULLS = "/repos/{owner}/{repo}/pulls"
ONE = f"{PULLS}/{{pull_number}}"
PERMISSION = "pull_requests"
ROUTES = [
    Route("GET", PULLS, read(PERMISSION), list_pulls),
    Route("POST", PULLS, write(PERMISSION, role="read"), create_pull),
    Route("GET", ONE, read(PERMISSION), get_pull),
    Route("PATCH", ONE, write(PERMISSION, role="read"), patch_pull),
    Route("GET", f"{ONE}/files", read(PERMISSION), files),
    Route("GET", f"{ONE}/commits", read(PERMISSION), commits),
    Route("POST", f"{ONE}/requested_reviewers", write(PERMISSION, role="triage"), request_reviewers),
]
"""Routes of pull requests."""
