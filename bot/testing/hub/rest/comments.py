"""Comments of conversations, and reactions to whatever takes them."""

from __future__ import annotations

from collections.abc import Callable

from bot.testing.hub.permissions import read, write
from bot.testing.hub.records import Comment, Issue, ReviewComment
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.issues import EITHER, ISSUES
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.common import reaction_json
from bot.testing.hub.shapes.issues import comment_json
from bot.testing.hub.state.comments import find_reaction

Target = Callable[[Call], Issue | Comment | ReviewComment]


def list_comments(call: Call) -> Answer:
    """List the comments of an issue, oldest first."""
    since = call.query.get("since", "")
    comments = [c for c in call.issue().comments if c.updated_at.isoformat() >= since.replace("Z", "+00:00")]
    return call.paged(comments, lambda comment: comment_json(call.hub, comment))


def create_comment(call: Call) -> Answer:
    """Comment."""
    comment = call.hub.comment(call.issue(), call.user, Body(call.raw).text("body"))
    return Answer(comment_json(call.hub, comment), 201)


def _comment(call: Call) -> Comment:
    return call.hub.find_comment(call.repository, call.number("comment_id"))


def _review_comment(call: Call) -> ReviewComment:
    return call.hub.find_review_comment(call.repository, call.number("comment_id"))


def _issue(call: Call) -> Issue:
    return call.issue()


def get_comment(call: Call) -> Answer:
    """Return a comment."""
    return Answer(comment_json(call.hub, _comment(call)))


def patch_comment(call: Call) -> Answer:
    """Change a comment."""
    comment = _comment(call)
    call.require_author_or(comment.user, "write")
    call.hub.edit_comment(comment, call.user, Body(call.raw).text("body"))
    return Answer(comment_json(call.hub, comment))


def delete_comment(call: Call) -> Answer:
    """Remove a comment."""
    comment = _comment(call)
    call.require_author_or(comment.user, "write")
    call.hub.delete_comment(comment, call.user)
    return Answer(status=204)


def _list(target: Target) -> Callable[[Call], Answer]:
    def handler(call: Call) -> Answer:
        wanted = call.query.get("content")
        reactions = [r for r in target(call).reactions if wanted in (None, r.content)]
        return call.paged(reactions, lambda reaction: reaction_json(call.hub, reaction))

    return handler


def _create(target: Target) -> Callable[[Call], Answer]:
    def handler(call: Call) -> Answer:
        reaction, new = call.hub.react(target(call), call.user, Body(call.raw).text("content"))
        return Answer(reaction_json(call.hub, reaction), 201 if new else 200)

    return handler


def _delete(target: Target) -> Callable[[Call], Answer]:
    def handler(call: Call) -> Answer:
        thing, number = target(call), call.number("reaction_id")
        call.require_author_or(find_reaction(thing.reactions, number).user, "admin")
        call.hub.unreact(thing, number)
        return Answer(status=204)

    return handler


def _reactions(path: str, permission: str, target: Target) -> list[Route]:
    return [
        Route("GET", f"{path}/reactions", read(permission), _list(target)),
        Route("POST", f"{path}/reactions", write(permission, role="read"), _create(target)),
        Route("DELETE", f"{path}/reactions/{{reaction_id}}", write(permission, role="read"), _delete(target)),
    ]


ONE = f"{ISSUES}/comments/{{comment_id}}"
ROUTES = [
    Route("GET", f"{ISSUES}/{{issue_number}}/comments", read(*EITHER), list_comments),
    Route("POST", f"{ISSUES}/{{issue_number}}/comments", write(*EITHER, role="read"), create_comment),
    Route("GET", ONE, read(*EITHER), get_comment),
    Route("PATCH", ONE, write(*EITHER, role="read"), patch_comment),
    Route("DELETE", ONE, write(*EITHER, role="read"), delete_comment),
    *_reactions(f"{ISSUES}/{{issue_number}}", "issues", _issue),
    *_reactions(ONE, "issues", _comment),
    *_reactions("/repos/{owner}/{repo}/pulls/comments/{comment_id}", "pull_requests", _review_comment),
]
"""Routes of comments and reactions."""
