"""From a delivery's bytes to a trigger: signature, decoding, and what the body means."""

import hmac
from collections.abc import Collection, Sequence

from bot.domain.refs import ThreadRef
from bot.domain.trigger import Closed, Commented, Labelled, Trigger, TriggerContext, Unlabelled
from bot.github.payloads import BadPayload, Issue, Payload, PullRequest, parse, to_actor, to_repository

__all__ = ["BadPayload", "decode", "is_authentic", "to_trigger"]


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


def to_trigger(
    event: str, payload: Payload, *, own_app_id: int | None = None, own_user_ids: Collection[int] = ()
) -> Trigger | None:
    """Say what happened; None for everything that starts or ends nothing.

    Args:
        event: the value of `X-GitHub-Event`; it is not signed, and a body under another's name gives None.
        payload: the decoded body.
        own_app_id: our App; what it wrote itself or on anybody's behalf is no trigger.
        own_user_ids: our bot accounts, for the same reason.
    """
    subject = payload.pull_request if event == "pull_request" else payload.issue
    context = _context(payload, subject)
    if context is None or (payload.sender is not None and payload.sender.id in own_user_ids):
        return None
    match event, payload.action:
        case "issue_comment", "created":
            return _commented(context, payload, own_app_id, own_user_ids)
        case "issues" | "pull_request", "closed":
            return Closed(context)
        case "issues" | "pull_request", "labeled" | "unlabeled" if payload.label and payload.label.name:
            made = Labelled if payload.action == "labeled" else Unlabelled
            return made(context, payload.label.name)
    return None


def _context(payload: Payload, subject: Issue | PullRequest | None) -> TriggerContext | None:
    repository = to_repository(payload.repository)
    if repository is None or subject is None or subject.number is None:
        return None
    is_pull = isinstance(subject, PullRequest) or subject.pull_request is not None
    return TriggerContext(
        event_key=_key(payload, subject, repository.id),
        installation_id=payload.installation.id if payload.installation else None,
        actor=to_actor(payload.sender),
        thread=ThreadRef(repository, subject.number, "pull" if is_pull else "issue"),
        title=subject.title or "",
        body=subject.body or "",
        author=to_actor(subject.user),
    )


def _key(payload: Payload, subject: Issue | PullRequest, repository_id: int) -> str:
    """Name the happening by the signed body alone: the delivery id is in a header that nobody signed."""
    if payload.comment is not None:
        return f"comment:{repository_id}:{payload.comment.id}"
    if payload.action == "closed":
        return f"closed:{repository_id}:{subject.number}:{subject.closed_at or subject.updated_at or ''}"
    # Adding the label again later is another happening: the thread's `updated_at` has moved on.
    label = payload.label
    name = "" if label is None else (label.name or "") if label.id is None else str(label.id)
    return f"label:{repository_id}:{subject.number}:{payload.action}:{subject.updated_at or ''}:{name}"


def _commented(
    context: TriggerContext, payload: Payload, own_app_id: int | None, own_user_ids: Collection[int]
) -> Commented | None:
    comment = payload.comment
    if comment is None or comment.id is None:
        return None
    app = comment.performed_via_github_app
    if app is not None and own_app_id is not None and app.id == own_app_id:
        return None
    if comment.user is not None and comment.user.id in own_user_ids:
        return None
    return Commented(context, comment.id, comment.body or "", via_app=app is not None)
