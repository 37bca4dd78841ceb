"""`ci_logs`: what a job of GitHub Actions printed."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from bot.domain.messages import ToolSpec
from bot.errors import GitHubError, ToolError
from bot.redaction import mask_tokens
from bot.tools.arguments import Arguments, Words, parse, specify
from bot.tools.base import Ci, ToolContext, ToolOutput
from bot.tools.ci_excerpt import excerpt, line
from bot.tools.ci_status import DATA, named, reachable

NAME = "ci_logs"
_MOST_LINES = 2000
_MOST_CHARS = 40_000


def _text(value: object) -> object:
    """Take a job's number as it is written elsewhere: as a number."""
    return str(value) if type(value) is int else value


class _Arguments(Arguments):
    job: Annotated[Words, BeforeValidator(_text)] = Field(description="Name or number.")
    offset: int = Field(default=0, ge=0, description="First line; 0 shows what failed.")


class CiLogs:
    """Shows the failed steps first, and then whatever is asked for."""

    spec: ToolSpec = specify(NAME, "Read the log of a job of GitHub Actions.", _Arguments)
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Show what failed, or at most 2,000 lines and 40,000 characters from a line on."""
        asked = parse(_Arguments, arguments)
        ci = reachable(context)
        try:
            job = int(asked.job) if asked.job.isascii() and asked.job.isdecimal() else await _job(ci, asked.job)
            log = await ci.log(job)
        except GitHubError as error:
            raise ToolError(f"ci_unavailable: {error}") from error
        # Of the whole log, since a key may begin before the part that is shown; on a thread, since it may be long.
        lines = (await asyncio.to_thread(mask_tokens, log)).split("\n")
        if asked.offset > len(lines):
            raise ToolError(f"bad_arguments: offset {asked.offset} is beyond the last line, {len(lines)}")
        shown = _from(lines, asked.offset) if asked.offset else _failures(lines)
        return ToolOutput("\n".join([f"{len(lines)} lines of job {job}. {DATA}", *shown]), asked.job)


async def _job(ci: Ci, name: str) -> int:
    """Find a job by its name: a failed one first, and then the newest."""
    checks = await ci.status(ci.head)
    jobs = [check for check in checks if check.job_id is not None]
    found = [check for check in jobs if check.name == name]
    if not found and (others := [check for check in checks if check.name == name]):
        where = f" People see more at {others[0].url}" if others[0].url else ""
        raise ToolError(f"no_log: {name!r} is no job of GitHub Actions, so its log is not to be had.{where}")
    best = max(found, key=lambda check: (check.is_red, check.job_id or 0), default=None)
    if best is None or best.job_id is None:
        raise ToolError(f"not_found: there is no job {name!r} on {ci.head[:12]}; the jobs are {named(jobs)}")
    return best.job_id


def _failures(lines: Sequence[str]) -> list[str]:
    shown = excerpt(lines)
    return [*shown, "[use offset=N to read on from line N]"]


def _from(lines: Sequence[str], offset: int) -> list[str]:
    """Take lines until one of the limits is reached; the first is always there."""
    shown: list[str] = []
    room = _MOST_CHARS
    for text in lines[offset - 1 : offset - 1 + _MOST_LINES]:
        cut = line(text)
        room -= len(cut) + 1
        if room < 0 and shown:
            break
        shown.append(cut)
    last = offset + len(shown) - 1
    more = [f"[use offset={last + 1} to go on]"] if last < len(lines) else []
    return [f"[lines {offset} to {last}]", *shown, *more]
