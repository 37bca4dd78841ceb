"""Issues: opening, changing, closing and labelling them; pull requests share all of it."""

from __future__ import annotations

from collections.abc import Sequence

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, invalid, not_found
from bot.testing.hub.records import Issue, Label, Repository, TimelineEvent, User
from bot.testing.hub.shapes.common import Json, label_json
from bot.testing.hub.shapes.issues import issue_json
from bot.testing.hub.shapes.pulls import pull_json
from bot.testing.hub.state.repositories import Repositories


class Issues(Repositories):
    """Issues of repositories."""

    @locked
    def open_issue(
        self, repository: Repository, by: User, title: str, body: str | None = None, labels: Sequence[str] = ()
    ) -> Issue:
        """Open an issue; labels that do not exist are made."""
        if not title.strip():
            raise invalid("Issue", "title", "missing_field")
        issue = self.new_issue(repository, by, title, body)
        self.announce(issue, "opened", by)
        self.add_labels(issue, by, labels)
        return issue

    @locked
    def issue(self, repository: Repository, number: int) -> Issue:
        """Return an issue or pull request by number.

        Raises:
            HubError: 404 when there is none.
        """
        if number not in repository.issues:
            raise not_found()
        return repository.issues[number]

    @locked
    def edit_issue(self, issue: Issue, by: User, *, title: str | None = None, body: str | None = None) -> Issue:
        """Change title or body; None leaves it."""
        changes: Json = {}
        if title is not None and title != issue.title:
            changes["title"] = {"from": issue.title}
            self.record(issue, "renamed", by, rename=(issue.title, title))
            issue.title = title
        if body is not None and body != issue.body:
            changes["body"] = {"from": issue.body or ""}
            issue.body = body
        if changes:
            self.touch(issue)
            self.announce(issue, "edited", by, {"changes": changes})
        return issue

    @locked
    def close_issue(self, issue: Issue, by: User, reason: str = "completed") -> Issue:
        """Close an issue or pull request; closing a closed one does nothing."""
        if issue.state == "open":
            issue.state, issue.state_reason = "closed", None if issue.pull else reason
            issue.closed_at, issue.closed_by = self.now(), by
            self.record(issue, "closed", by)
            self.announce(issue, "closed", by)
        return issue

    @locked
    def reopen_issue(self, issue: Issue, by: User) -> Issue:
        """Open an issue or pull request again; a merged pull request stays closed.

        Raises:
            HubError: 422 for a merged pull request.
        """
        if issue.pull and issue.pull.merged_at:
            raise HubError(422, "Validation Failed", errors=[{"resource": "PullRequest", "code": "invalid"}])
        if issue.state == "closed":
            issue.state, issue.state_reason = "open", None if issue.pull else "reopened"
            issue.closed_at = issue.closed_by = None
            self.record(issue, "reopened", by)
            self.announce(issue, "reopened", by)
        return issue

    @locked
    def add_labels(self, issue: Issue, by: User, names: Sequence[str]) -> list[Label]:
        """Put labels on an issue, making those that do not exist; one event for each that is new on it."""
        for name in names:
            known = issue.repository.labels.get(name.lower())
            label = known or self.create_label(issue.repository, name)
            if label not in issue.labels:
                issue.labels.append(label)
                self.record(issue, "labeled", by, label=label)
                self.announce(issue, "labeled", by, {"label": label_json(self, issue.repository, label)})
        return issue.labels

    def add_label(self, issue: Issue, by: User, name: str) -> None:
        """Put one label on an issue."""
        self.add_labels(issue, by, [name])

    @locked
    def remove_label(self, issue: Issue, by: User, name: str) -> list[Label]:
        """Take a label off an issue.

        Raises:
            HubError: 404 `Label does not exist` when the issue does not have it.
        """
        label = issue.repository.labels.get(name.lower())
        if label is None or label not in issue.labels:
            raise HubError(404, "Label does not exist")
        issue.labels.remove(label)
        self.record(issue, "unlabeled", by, label=label)
        self.announce(issue, "unlabeled", by, {"label": label_json(self, issue.repository, label)})
        return issue.labels

    def new_issue(self, repository: Repository, by: User, title: str, body: str | None) -> Issue:
        """Store an issue under the repository's next number; no event is sent."""
        number, node = self.new_ids("I")
        repository.last_number += 1
        now = self.now()
        issue = Issue(number, node, repository.last_number, repository, by, title, body, now, now)
        repository.issues[issue.number] = issue
        self.nodes[node] = issue
        return issue

    def touch(self, issue: Issue) -> None:
        """Mark an issue as changed now."""
        issue.updated_at = self.now()

    def record(self, issue: Issue, event: str, actor: User, **details: object) -> TimelineEvent:
        """Append to an issue's history; `details` are fields of `TimelineEvent`."""
        number, node = self.new_ids("EV")
        entry = TimelineEvent(number, node, event, actor, self.now())
        for name, value in details.items():
            setattr(entry, name, value)
        issue.timeline.append(entry)
        self.touch(issue)
        return entry

    def announce(self, issue: Issue, action: str, by: User, fields: Json | None = None) -> None:
        """Send `issues` or, for a pull request, `pull_request`."""
        payload: Json = {"action": action, **(fields or {})}
        if issue.pull is None:
            self.emit(issue.repository, "issues", by, {**payload, "issue": issue_json(self, issue)})
            return
        thing: Json = {"number": issue.number, "pull_request": pull_json(self, issue)}
        self.emit(issue.repository, "pull_request", by, {**payload, **thing})
