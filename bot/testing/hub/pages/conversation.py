"""What is said and done on an issue or pull request, in order, ready for a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from markupsafe import Markup

from bot.testing.hub.pages.diff import Row, rows_of
from bot.testing.hub.pages.site import Site
from bot.testing.hub.records import Issue, Label, Reaction, ReviewComment, Thread, TimelineEvent, User

CONTEXT_ROWS = 6
"""Rows of the diff above a comment."""

REVIEWED = {
    "APPROVED": "approved these changes",
    "CHANGES_REQUESTED": "requested changes",
    "COMMENTED": "reviewed",
    "DISMISSED": "had a review dismissed",
    "PENDING": "started a review",
}
SENTENCES = {
    "closed": "closed this",
    "reopened": "reopened this",
    "merged": "merged this",
    "convert_to_draft": "marked this as a draft",
    "ready_for_review": "marked this as ready for review",
    "review_dismissed": "dismissed a review",
    "head_ref_force_pushed": "force-pushed the branch",
    "head_ref_deleted": "deleted the branch",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A text somebody wrote."""

    anchor: str
    user: User
    at: datetime
    html: Markup
    role: str = ""
    edited: bool = False
    reactions: Sequence[Reaction] = ()
    hidden: str | None = None
    """Why it is minimised."""
    also: str = ""
    """A second anchor."""


@dataclass(frozen=True, slots=True)
class ShownThread:
    """A review thread with the lines it is about."""

    thread: Thread
    rows: list[Row]
    comments: list[Said]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a comment, a review with its threads, or an event."""

    kind: str
    user: User
    at: datetime
    said: Said | None = None
    sentence: str = ""
    label: Label | None = None
    anchor: str = ""
    threads: list[ShownThread] = field(default_factory=list)
    link: tuple[str, str] | None = None
    """Path and text of what the sentence ends with."""


def opening(site: Site, issue: Issue) -> Said:
    """Return the description."""
    html = site.text(issue.repository, issue.body)
    by = role(site, issue, issue.user)
    return Said(f"issue-{issue.id}", issue.user, issue.created_at, html, by, edited=False, reactions=issue.reactions)


def entries(site: Site, issue: Issue) -> list[Entry]:
    """Return everything after the description, oldest first."""
    return [_entry(site, issue, event) for event in issue.timeline]


def role(site: Site, issue: Issue, user: User) -> str:
    """Return how somebody belongs to the repository, in a word."""
    association = site.hub.association(issue.repository, user)
    return "" if association == "NONE" else association.capitalize()


def _entry(site: Site, issue: Issue, event: TimelineEvent) -> Entry:
    if event.comment is not None:
        comment = event.comment
        said = Said(
            f"issuecomment-{comment.id}",
            comment.user,
            comment.created_at,
            site.text(issue.repository, comment.body),
            role(site, issue, comment.user),
            comment.updated_at != comment.created_at,
            comment.reactions,
            comment.minimized_reason,
        )
        return Entry("comment", comment.user, event.created_at, said)
    if event.review is not None:
        return _review(site, issue, event)
    return _event(site, issue, event)


def _review(site: Site, issue: Issue, event: TimelineEvent) -> Entry:
    review, pull = event.review, issue.pull
    assert review is not None and pull is not None, "only pull requests have reviews"  # noqa: S101, PT018
    anchor = f"pullrequestreview-{review.id}"
    html, at = site.text(issue.repository, review.body), review.submitted_at or event.created_at
    said = Said(f"{anchor}-text", review.user, at, html, role(site, issue, review.user))
    threads = [shown(site, thread) for thread in pull.threads if thread.comments[0].review is review]
    return Entry(
        review.state.lower(),
        review.user,
        at,
        said if review.body.strip() else None,
        REVIEWED[review.state],
        anchor=anchor,
        threads=threads,
    )


def shown(site: Site, thread: Thread) -> ShownThread:
    """Return a review thread with the last lines of its hunk."""
    rows = [row for row in rows_of(thread.comments[0].diff_hunk) if row.kind != "hunk"]
    comments = [_line_comment(site, comment) for comment in thread.shown_to(None)]
    return ShownThread(thread, rows[-CONTEXT_ROWS:], comments)


def _line_comment(site: Site, comment: ReviewComment) -> Said:
    issue = comment.thread.issue
    told = any(event.review is comment.review for event in issue.timeline)
    return Said(
        f"discussion_r{comment.id}",
        comment.user,
        comment.created_at,
        site.text(issue.repository, comment.body),
        role(site, issue, comment.user),
        comment.updated_at != comment.created_at,
        comment.reactions,
        comment.minimized_reason,
        # a single answer is a review of its own, which the timeline does not have
        "" if told else f"pullrequestreview-{comment.review.id}",
    )


def _event(site: Site, issue: Issue, event: TimelineEvent) -> Entry:
    sentence, link = SENTENCES.get(event.event, event.event.replace("_", " ")), None
    if event.label is not None:
        sentence = "added the label" if event.event == "labeled" else "removed the label"
    if event.rename is not None:
        sentence = f"changed the title from “{event.rename[0]}” to “{event.rename[1]}”"
    if event.reviewer is not None:
        sentence = f"requested a review from {event.reviewer.login}"
    if event.event == "closed" and issue.state_reason == "not_planned":
        sentence = "closed this as not planned"
    if event.commit_id is not None:
        sentence += " with commit"
        link = (f"{site.url(issue.repository)}/commit/{event.commit_id}", event.commit_id[:7])
    return Entry("event", event.actor, event.created_at, sentence=sentence, label=event.label, link=link)
