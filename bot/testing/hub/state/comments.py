"""Comments of conversations, and reactions to issues and comments."""

from __future__ import annotations

from collections.abc import Sequence

from bot.testing.hub.core import locked
from bot.testing.hub.errors import invalid, not_found
from bot.testing.hub.records import Comment, Issue, Reaction, Repository, ReviewComment, User
from bot.testing.hub.shapes.common import CONTENTS, Json
from bot.testing.hub.shapes.issues import comment_json, issue_json
from bot.testing.hub.state.issues import Issues

LONGEST_BODY = 65_536
"""Characters of a comment (GitHub: "body is too long (maximum is 65536 characters)")."""


class Comments(Issues):
    """Comments and reactions."""

    @locked
    def comment(self, issue: Issue, by: User, body: str) -> Comment:
        """Comment on an issue or pull request.

        Raises:
            HubError: 422 when the text is empty or too long.
        """
        check_body(body)
        number, node = self.new_ids("IC")
        now = self.now()
        comment = Comment(number, node, issue, by, body, now, now)
        issue.comments.append(comment)
        self.nodes[node] = comment
        self.record(issue, "commented", by, comment=comment)
        self._announce_comment(comment, "created", by)
        return comment

    @locked
    def edit_comment(self, comment: Comment, by: User, body: str) -> Comment:
        """Change the text of a comment."""
        check_body(body)
        old, comment.body, comment.updated_at = comment.body, body, self.now()
        if old != body:
            self._announce_comment(comment, "edited", by, {"changes": {"body": {"from": old}}})
        return comment

    @locked
    def delete_comment(self, comment: Comment, by: User) -> None:
        """Remove a comment from the conversation and its history."""
        comment.issue.comments.remove(comment)
        comment.issue.timeline[:] = [event for event in comment.issue.timeline if event.comment is not comment]
        del self.nodes[comment.node_id]
        self._announce_comment(comment, "deleted", by)

    @locked
    def find_comment(self, repository: Repository, number: int) -> Comment:
        """Return a comment by id.

        Raises:
            HubError: 404 when the repository has none of that id.
        """
        for issue in repository.issues.values():
            for comment in issue.comments:
                if comment.id == number:
                    return comment
        raise not_found()

    @locked
    def minimize(self, comment: Comment | ReviewComment, reason: str | None) -> None:
        """Hide a comment as `outdated`, `resolved`, `spam`, `off-topic`, ...; None shows it again."""
        comment.minimized_reason = reason

    @locked
    def react(self, target: Issue | Comment | ReviewComment, by: User, content: str) -> tuple[Reaction, bool]:
        """React and tell whether the reaction is new; the same one twice is one.

        Raises:
            HubError: 422 for a content that GitHub does not know.
        """
        if content not in CONTENTS:
            raise invalid("Reaction", "content")
        for known in target.reactions:
            if known.user is by and known.content == content:
                return known, False
        number, node = self.new_ids("REA")
        reaction = Reaction(number, node, by, content, self.now())
        target.reactions.append(reaction)
        return reaction, True

    @locked
    def unreact(self, target: Issue | Comment | ReviewComment, reaction_id: int) -> None:
        """Take a reaction back.

        Raises:
            HubError: 404 when the target has none of that id.
        """
        target.reactions.remove(find_reaction(target.reactions, reaction_id))

    def _announce_comment(self, comment: Comment, action: str, by: User, fields: Json | None = None) -> None:
        payload: Json = {
            "action": action,
            "issue": issue_json(self, comment.issue),
            "comment": comment_json(self, comment),
            **(fields or {}),
        }
        self.emit(comment.issue.repository, "issue_comment", by, payload)


def check_body(body: str) -> None:
    """Refuse an empty or too long comment.

    Raises:
        HubError: 422.
    """
    if not body.strip():
        raise invalid("IssueComment", "body", message="body can't be blank")
    if len(body) > LONGEST_BODY:
        raise invalid("IssueComment", "body", message=f"body is too long (maximum is {LONGEST_BODY} characters)")


def find_reaction(reactions: Sequence[Reaction], reaction_id: int) -> Reaction:
    """Return a reaction by id.

    Raises:
        HubError: 404 when there is none.
    """
    for reaction in reactions:
        if reaction.id == reaction_id:
            return reaction
    raise not_found()
