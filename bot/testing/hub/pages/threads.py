"""Pages of issues, pull requests and check runs."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from bot.testing.hub.errors import not_found
from bot.testing.hub.git.history import Commit
from bot.testing.hub.pages.conversation import entries, opening, shown
from bot.testing.hub.pages.diff import diff_of
from bot.testing.hub.pages.site import HEADERS, Site, label_classes, redirect
from bot.testing.hub.records import CheckRun, Issue, Pull, Repository
from bot.testing.hub.shapes.checks import suite_id

WORDS = {
    "success": "success",
    "neutral": "neutral",
    "skipped": "skipped",
    "failure": "failure",
    "error": "failure",
    "timed_out": "failure",
    "cancelled": "neutral",
    "action_required": "failure",
    "stale": "neutral",
}
"""Conclusions and states by the colour they have; anything else is still going on."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check run or commit status in a list."""

    name: str
    by: str
    state: str
    kind: str
    note: str
    link: str | None


def issue(site: Site, request: Request) -> Response:
    """Show an issue; a pull request is shown at its own address."""
    found = site.hub.issue(site.repository(request), request.path_params["number"])
    if found.pull is not None:
        return redirect(site.issue_url(found))
    return site.page("issue.html", **_common(site, found), tab="issues")


def pull(site: Site, request: Request) -> Response:
    """Show the conversation of a pull request."""
    found = site.hub.issue(site.repository(request), request.path_params["number"])
    if found.pull is None:
        return redirect(site.issue_url(found))
    checks = checks_of(site, found.repository, found.pull.head_sha)
    return site.page("pull.html", **_pull(site, found), part="conversation", checks=checks)


def pull_commits(site: Site, request: Request) -> Response:
    """List the commits of a pull request."""
    return site.page("pull_commits.html", **_pull(site, _asked(site, request)), part="commits")


def pull_files(site: Site, request: Request) -> Response:
    """Show the diff of a pull request with the threads on its files."""
    found = _asked(site, request)
    values = _pull(site, found)
    threads = [shown(site, thread) for thread in _half(found).threads if thread.shown_to(None)]
    return site.page("pull_files.html", **values, part="files", threads=threads)


def pull_text(site: Site, request: Request) -> Response:
    """Return the diff of a pull request as text."""
    found = _asked(site, request)
    pull = _half(found)
    text = site.hub.git(found.repository).run(
        "diff", "--no-ext-diff", "--no-textconv", _fork_point(site, found, pull), pull.head_sha
    )
    return Response(text, headers=HEADERS, media_type="text/plain")


def run(site: Site, request: Request) -> Response:
    """Show a check run."""
    repository = site.repository(request)
    found = site.hub.find_check_run(repository, request.path_params["number"])
    return site.page(
        "run.html",
        repository=repository,
        root=site.url(repository),
        run=found,
        check=_run(site, found),
        summary=site.text(repository, found.summary),
        text=site.text(repository, found.text),
    )


def checks_of(site: Site, repository: Repository, sha: str) -> list[Check]:
    """Return the newest check runs of each suite and the statuses of a commit, by name."""
    newest = {(suite_id(run), run.name): run for run in repository.check_runs if run.head_sha == sha}
    runs = [_run(site, run) for run in newest.values()]
    for status in site.hub.statuses_of(repository, sha):
        kind = WORDS.get(status.state, "pending")
        link = status.target_url if (status.target_url or "").startswith(("http://", "https://")) else None
        note = status.description or ""
        runs.append(Check(status.context, status.creator.login, status.state, kind, note, link))
    return sorted(runs, key=lambda check: check.name)


def _run(site: Site, run: CheckRun) -> Check:
    state = run.conclusion or run.status
    link = f"{site.url(run.repository)}/runs/{run.id}"
    return Check(run.name, run.app.name, state.replace("_", " "), WORDS.get(state, "pending"), run.title or "", link)


def _common(site: Site, issue: Issue) -> dict[str, object]:
    still = [one for one in issue.repository.issues.values() if one.state == "open"]
    pulls = sum(one.pull is not None for one in still)
    told = entries(site, issue)
    labels = [*issue.labels, *(entry.label for entry in told if entry.label)]
    return {
        "repository": issue.repository,
        "root": site.url(issue.repository),
        "counts": (len(still) - pulls, pulls),
        "issue": issue,
        "url": site.issue_url(issue),
        "badge": badge(issue),
        "opening": opening(site, issue),
        "entries": told,
        "colours": label_classes(labels),
    }


def _pull(site: Site, issue: Issue) -> dict[str, object]:
    pull, git = _half(issue), site.hub.git(issue.repository)
    commits: list[Commit] = git.commits(f"{pull.base_sha}..{pull.head_sha}")
    diff = diff_of(git.diff(_fork_point(site, issue, pull), pull.head_sha))
    return {**_common(site, issue), "tab": "pulls", "pull": pull, "commits": commits, "diff": diff}


def _asked(site: Site, request: Request) -> Issue:
    return site.hub.issue(site.repository(request), request.path_params["number"])


def _half(issue: Issue) -> Pull:
    if issue.pull is None:
        raise not_found()
    return issue.pull


def _fork_point(site: Site, issue: Issue, pull: Pull) -> str:
    return site.hub.git(issue.repository).merge_base(pull.base_sha, pull.head_sha) or pull.base_sha


def badge(issue: Issue) -> str:
    """Return the state as one word: `open`, `closed`, `draft` or `merged`."""
    if issue.pull is not None and issue.pull.merged_at is not None:
        return "merged"
    if issue.state == "open" and issue.pull is not None and issue.pull.draft:
        return "draft"
    return issue.state
