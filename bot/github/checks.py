"""Check runs, commit statuses and logs of GitHub Actions, as one installation sees them."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import httpx

from bot.domain.ci import CiCheck, CiState
from bot.domain.refs import Actor, RepositoryRef
from bot.errors import Forbidden, GitHubError, NotFound
from bot.github import payloads, text
from bot.github.auth import Credentials
from bot.github.base import CheckRun
from bot.github.calls import Caller, part, read, root
from bot.github.job_log import download
from bot.github.pieces import shorten
from bot.github.transport import LastingKit, Query

CHECK_PERMISSIONS: Mapping[str, str] = {"checks": "write", "metadata": "read"}
"""What showing a check needs; a token of its own, so that an App without it can do all the rest."""
CI_PERMISSIONS: Mapping[str, str] = {"actions": "read", "checks": "read", "metadata": "read", "statuses": "read"}
"""What reading the checks of others, and the logs of jobs, needs."""
OUTPUT_LIMIT = 65_000
"""Characters of a check's summary, and of its text; GitHub takes 65,535."""
TITLE_LIMIT = 250
_NOTE_CHARS = 200
_PAGE = 100
_MOST_PAGES = 20
"""Beyond 2,000 checks of one commit nobody reads them."""
_ACTIONS = "github-actions"
_JOB = re.compile(r"/actions/runs/[0-9]+/jobs?/([0-9]{1,19})(?:[/?#]|\Z)")
_STATES: Mapping[str, CiState] = {
    "queued": "queued",
    "waiting": "queued",
    "requested": "queued",
    "pending": "queued",
    "in_progress": "in_progress",
    "success": "success",
    "failure": "failure",
    "startup_failure": "failure",
    "neutral": "neutral",
    "skipped": "skipped",
    "cancelled": "cancelled",
    "timed_out": "timed_out",
    "stale": "cancelled",
    "action_required": "action_required",
}
"""Of check runs; GitHub calls stale what has not ended within 14 days."""
_OF_STATUS: Mapping[str, CiState] = {"success": "success", "pending": "in_progress"}
"""Of commit statuses, which also know `error` and `failure`."""


class Checks:
    """What commits are shown with.

    Args:
        caller: makes the calls.
        credentials: of one installation, or a given token.
    """

    def __init__(self, caller: Caller, credentials: Credentials) -> None:
        self._caller = caller
        self._credentials = credentials

    async def put(self, repository: RepositoryRef, check: CheckRun, us: Actor) -> int:
        """Make our check run, or bring the one of this name and external id up to date; returns its id.

        It is looked up first: an earlier life may have made it and ended before it could say so.
        """
        body: dict[str, object] = {
            "status": check.status,
            "output": {
                "title": shorten(check.title, TITLE_LIMIT),
                "summary": text.cut(check.summary, OUTPUT_LIMIT),
                "text": text.cut(check.text, OUTPUT_LIMIT),
            },
        }
        if check.conclusion is not None:
            body["conclusion"] = check.conclusion
        kit = self._kit(repository, CHECK_PERMISSIONS)
        try:
            found = await self._find(kit, repository, check, us)
            if found is None:
                made = {"name": check.name, "head_sha": check.head_sha, "external_id": check.external_id}
                path = f"{root(repository)}/check-runs"
                response = await self._caller.send(kit, "POST", path, json={**made, **body})
            else:
                path = f"{root(repository)}/check-runs/{found}"
                response = await self._caller.send(kit, "PATCH", path, json=body, idempotent=True)
        except Forbidden as error:
            raise _needing(error, "no check can be shown here", CHECK_PERMISSIONS) from error
        run = read(response, payloads.CheckRun)
        if run.id is None:
            raise GitHubError("GitHub sent no id of the check run")
        return run.id

    async def status(self, repository: RepositoryRef, ref: str, us: Actor) -> Sequence[CiCheck]:
        """List check runs and commit statuses of a commit: of a suite's name the newest, by name."""
        kit, commit = self._kit(repository, CI_PERMISSIONS), f"{root(repository)}/commits/{part(ref)}"
        sha, found = "", list[CiCheck]()
        try:
            async for response in self._pages(kit, f"{commit}/status", {}):
                combined = read(response, payloads.CombinedStatus)
                found += [_of_status(status) for status in combined.statuses or ()]
                # The ref may move before the next call; the commit does not.
                sha = combined.sha or sha
            path = f"{root(repository)}/commits/{part(sha or ref)}/check-runs"
            runs: list[payloads.CheckRun] = []
            async for response in self._pages(kit, path, {"filter": "latest"}):
                runs += read(response, payloads.CheckRuns).check_runs or ()
        except Forbidden as error:
            raise _needing(error, "the checks of others cannot be read here", CI_PERMISSIONS) from error
        found += [_of_run(run, us) for run in _newest(runs)]
        return sorted(found, key=lambda check: (check.name, check.app, check.job_id or 0))

    async def log(self, repository: RepositoryRef, job_id: int) -> str:
        """Return the log of a job, without times and colours; of a long one the beginning and the end."""
        kit = self._kit(repository, CI_PERMISSIONS, follow=False)
        path = f"{root(repository)}/actions/jobs/{job_id}/logs"
        try:
            response = await self._caller.send(kit, "GET", path)
            link = response.headers.get("location")
            if not response.is_redirect or not link:
                raise GitHubError(f"GitHub did not say where the log of job {job_id} is", status=response.status_code)
            # GitHub's own link to another host: it holds its own key, and our token must not go there.
            return await download(self._caller.bare(), response.request.url.join(link))
        except Forbidden as error:
            raise _needing(error, "logs of jobs cannot be read here", CI_PERMISSIONS) from error
        except NotFound as error:
            gone = error.status == httpx.codes.GONE
            why = (
                "GitHub has deleted it" if gone else "the job has not ended, is none of this repository, or it is gone"
            )
            raise NotFound(f"there is no log of job {job_id}: {why}", status=error.status) from error

    async def _find(self, kit: LastingKit, repository: RepositoryRef, check: CheckRun, us: Actor) -> int | None:
        path = f"{root(repository)}/commits/{part(check.head_sha)}/check-runs"
        found: list[int] = []
        query = {"check_name": check.name, "filter": "all"}
        async for response in self._pages(kit, path, query):
            found += [
                run.id
                for run in read(response, payloads.CheckRuns).check_runs or ()
                if run.id is not None
                and (run.name, run.external_id) == (check.name, check.external_id)
                and _is_by(run, us)
            ]
        return max(found, default=None)

    def _kit(self, repository: RepositoryRef, permissions: Mapping[str, str], *, follow: bool = True) -> LastingKit:
        return self._caller.kit(self._credentials.auth(repository.id, permissions), follow=follow)

    async def _pages(self, kit: LastingKit, path: str, query: Query) -> AsyncIterator[httpx.Response]:
        for page in range(1, _MOST_PAGES + 1):
            response = await self._caller.send(kit, "GET", path, query={**query, "per_page": _PAGE, "page": page})
            yield response
            if "next" not in response.links:
                return


def _needing(error: Forbidden, what: str, permissions: Mapping[str, str]) -> Forbidden:
    needed = ", ".join(f"`{name}: {level}`" for name, level in permissions.items() if name != "metadata")
    return Forbidden(f"{what}: the App needs the permissions {needed}: {error}", status=error.status)


def _newest(runs: Iterable[payloads.CheckRun]) -> Iterable[payloads.CheckRun]:
    """Keep the newest of each name in a suite.

    Two workflows may have a job of one name, and each is a suite of its own: none of them may hide the other.
    """
    kept: dict[object, payloads.CheckRun] = {}
    for run in sorted(runs, key=lambda run: run.id or 0):
        app, suite = run.app or payloads.App(), run.check_suite or payloads.CheckSuite()
        kept[(run.name, app.slug, suite.id)] = run
    return kept.values()


def _is_by(run: payloads.CheckRun, us: Actor) -> bool:
    return run.app is not None and f"{run.app.slug}[bot]" == us.login


def _of_run(run: payloads.CheckRun, us: Actor) -> CiCheck:
    app = (run.app.slug if run.app else None) or ""
    job = _JOB.search(run.details_url or run.html_url or "") if app == _ACTIONS else None
    state = run.conclusion if run.status == "completed" else run.status
    return CiCheck(
        name=run.name or "",
        app=app,
        # A conclusion that we do not know is none that we may call good.
        state=_STATES.get(state or "", "failure"),
        url=run.html_url or run.details_url or "",
        note=shorten((run.output.title if run.output else None) or "", _NOTE_CHARS),
        job_id=int(job[1]) if job else None,
        # A job of GitHub Actions acts as that App too; what the workflows made is not ours.
        ours=job is None and _is_by(run, us),
    )


def _of_status(status: payloads.Status) -> CiCheck:
    return CiCheck(
        name=status.context or "",
        app="",
        state=_OF_STATUS.get(status.state or "", "failure"),
        url=status.target_url or "",
        note=shorten(status.description or "", _NOTE_CHARS),
    )
