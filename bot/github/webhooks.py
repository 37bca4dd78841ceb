"""From a delivery's bytes to a trigger: signature, decoding, and what the body means."""

import hashlib
import hmac
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from bot.domain.refs import ThreadRef
from bot.domain.trigger import (
    Closed,
    Commented,
    Edited,
    Labelled,
    Pushed,
    ReviewDismissed,
    Reviewed,
    ReviewState,
    ThreadCommented,
    Trigger,
    TriggerContext,
    Unlabelled,
)
from bot.github.ci_events import EVENTS as CI_EVENTS
from bot.github.ci_events import ci_finished
from bot.github.payloads import (
    BadPayload,
    Comment,
    Issue,
    Payload,
    PullRequest,
    Review,
    parse,
    to_actor,
    to_repository,
)

__all__ = ["BadPayload", "decode", "is_authentic", "to_trigger"]

_ON_PULLS = frozenset({"pull_request", "pull_request_review", "pull_request_review_comment"})
_SUBMITTED: dict[str, ReviewState] = {
    "approved": "APPROVED",
    "changes_requested": "CHANGES_REQUESTED",
    "commented": "COMMENTED",
}


def is_authentic(body: bytes, header: bytes | None, secrets: Sequence[bytes]) -> bool:
    """Tell whether GitHub signed these raw bytes with one of our secrets.

    Args:
        body: exactly as received.
        header: the value of `X-Hub-Signature-256`; its SHA-1 sibling does not count.
        secrets: one, or two while the secret is being replaced; empty ones never match.

    Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    """
    if header is None:
        return False
    # Bytes, since comparing text raises TypeError on a non-ASCII header; all secrets, so that time tells nothing.
    matches = [
        hmac.compare_digest(b"sha256=" + hmac.digest(secret, body, "sha256").hex().encode(), header)
        for secret in secrets
        if secret
    ]
    return any(matches)


def decode(body: bytes) -> Payload:
    """Decode a webhook body; what we do not read is skipped.

    Raises:
        BadPayload: bad JSON or UTF-8, nesting beyond the stack, or a field we read has another type.
    """
    return parse(body, Payload)


def to_trigger(  # noqa: PLR0911 - one for each kind of event
    event: str, payload: Payload, *, own_app_id: int | None = None, own_user_ids: Collection[int] = ()
) -> Trigger | None:
    """Say what happened; None for everything that starts or ends nothing.

    Args:
        event: the value of `X-GitHub-Event`; it is not signed, and a body under another's name gives None.
        payload: the decoded body.
        own_app_id: our App; what it wrote itself or on anybody's behalf is no trigger.
        own_user_ids: our bot accounts, for the same reason.
    """
    if event in CI_EVENTS:
        return ci_finished(event, payload, own_app_id=own_app_id)
    subject = payload.pull_request if event in _ON_PULLS else payload.issue
    context = _context(event, payload, subject)
    if context is None or (payload.sender is not None and payload.sender.id in own_user_ids):
        return None
    match event, payload.action:
        case "issues" | "pull_request", "closed":
            return Closed(context, _moment(subject.closed_at if subject else None))
        case "issues" | "pull_request", "labeled" | "unlabeled" if payload.label and payload.label.name:
            made = Unlabelled if payload.action == "unlabeled" else Labelled
            return made(context, payload.label.name, _moment(subject.updated_at if subject else None))
        case "pull_request", "synchronize" if sha := _head(payload):
            return Pushed(context, sha, payload.before or "")
        case "pull_request_review", "dismissed" if payload.review and payload.review.id is not None:
            return ReviewDismissed(context, payload.review.id)
        case "issue_comment" | "pull_request_review_comment", "edited":
            return _edited(event, context, payload, own_app_id)
    return _said(event, context, payload, lambda said: _is_foreign(said, own_app_id, own_user_ids))


def _context(event: str, payload: Payload, subject: Issue | PullRequest | None) -> TriggerContext | None:
    repository = to_repository(payload.repository)
    if repository is None or subject is None or subject.number is None:
        return None
    is_pull = isinstance(subject, PullRequest) or subject.pull_request is not None
    return TriggerContext(
        event_key=_key(event, payload, subject, repository.id),
        installation_id=payload.installation.id if payload.installation else None,
        actor=to_actor(payload.sender),
        thread=ThreadRef(repository, subject.number, "pull" if is_pull else "issue"),
        title=subject.title or "",
        body=subject.body or "",
        author=to_actor(subject.user),
    )


def _key(event: str, payload: Payload, subject: Issue | PullRequest, repository_id: int) -> str:
    """Name the happening by the signed body alone: the delivery id is in a header that nobody signed."""
    if payload.review is not None:
        key = f"review:{repository_id}:{payload.review.id}"
        return f"{key}:dismissed" if payload.action == "dismissed" else key
    if payload.comment is not None:
        kind = "line" if event == "pull_request_review_comment" else "comment"
        key = f"{kind}:{repository_id}:{payload.comment.id}"
        return f"{key}:{_edition(payload.comment)}" if payload.action == "edited" else key
    if payload.action == "closed":
        return f"closed:{repository_id}:{subject.number}:{subject.closed_at or subject.updated_at or ''}"
    if payload.action == "synchronize":
        # A branch may be moved back to where it stood.
        return f"push:{repository_id}:{subject.number}:{subject.updated_at or ''}:{_head(payload)}"
    # Adding the label again later is another happening: the thread's `updated_at` has moved on.
    label = payload.label
    name = "" if label is None else (label.name or "") if label.id is None else str(label.id)
    return f"label:{repository_id}:{subject.number}:{payload.action}:{subject.updated_at or ''}:{name}"


def _head(payload: Payload) -> str:
    """Return the commit that the pull request's branch stands on; empty where the body names none."""
    pull = payload.pull_request
    return (pull.head.sha if pull is not None and pull.head is not None else None) or ""


def _edition(comment: Comment) -> str:
    """Name one state of a text: its time counts seconds, within which it may be changed twice."""
    return f"{comment.updated_at or ''}:{hashlib.sha256((comment.body or '').encode()).hexdigest()[:16]}"


def _said(
    event: str, context: TriggerContext, payload: Payload, is_foreign: Callable[[Comment | Review], bool]
) -> Commented | Reviewed | ThreadCommented | None:
    comment, review = payload.comment, payload.review
    match event, payload.action:
        case "issue_comment", "created" if comment and is_foreign(comment):
            at = _moment(comment.created_at)
            return Commented(context, comment.id or 0, comment.body or "", via_app=_via_app(comment), at=at)
        case "pull_request_review_comment", "created" if comment and is_foreign(comment):
            return _on_line(context, comment, comment.id or 0)
        case "pull_request_review", "submitted" if review and is_foreign(review):
            return _reviewed(context, review, review.id or 0)
    return None


def _is_foreign(said: Comment | Review, own_app_id: int | None, own_user_ids: Collection[int]) -> bool:
    """Tell what others said, and can be named, from what we said ourselves."""
    app, by = said.performed_via_github_app, said.user
    if app is not None and own_app_id is not None and app.id == own_app_id:
        return False
    return said.id is not None and not (by is not None and by.id in own_user_ids)


def _via_app(said: Comment | Review) -> bool:
    return said.performed_via_github_app is not None


def _reviewed(context: TriggerContext, review: Review, review_id: int) -> Reviewed | None:
    state = _SUBMITTED.get((review.state or "").lower())
    if state is None:
        return None
    commit = review.commit_id or None
    at = _moment(review.submitted_at)
    return Reviewed(context, review_id, state, review.body or "", commit, via_app=_via_app(review), at=at)


def _on_line(context: TriggerContext, comment: Comment, comment_id: int) -> ThreadCommented:
    return ThreadCommented(
        context,
        comment_id=comment_id,
        thread_root_id=comment.in_reply_to_id or comment_id,
        review_id=comment.pull_request_review_id,
        text=comment.body or "",
        via_app=_via_app(comment),
        path=comment.path or "",
        line=comment.line,
        # Drafts of a review are said when it is submitted, which is what changes them last.
        at=_moment(comment.updated_at) or _moment(comment.created_at),
    )


def _moment(value: str | None) -> datetime | None:
    """Read one of GitHub's times; None where there is none that says where on earth."""
    try:
        moment = datetime.fromisoformat(value or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _edited(event: str, context: TriggerContext, payload: Payload, own_app_id: int | None) -> Edited | None:
    """Tell an edit, of our own texts too where it was not we who changed them: they are no longer what we said."""
    comment, sender = payload.comment, payload.sender
    if comment is None or comment.id is None:
        return None
    app = comment.performed_via_github_app
    ours = app is not None and own_app_id is not None and app.id == own_app_id
    if ours and sender is not None and comment.user is not None and sender.id == comment.user.id:
        return None
    body = payload.changes.body if payload.changes else None
    on_line = event == "pull_request_review_comment"
    return Edited(context, comment.id, on_line, comment.body or "", body.before if body else None)
