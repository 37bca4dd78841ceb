"""The checks, run by the harness: evidence that no model wrote."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bot.domain.events import CheckFinished, CheckPhase, CheckSkipped
from bot.projects.checks import FoundCheck
from bot.projects.evidence.counts import Counts, counted
from bot.redaction import mask_tokens
from bot.sandbox.output import clip
from bot.settings.repository import Check
from bot.settings.resolve import RunSettings
from bot.tasks.engines.base import Json
from bot.tasks.scene import Scene

OUTPUT_CHARS = 4_000
"""Of a check's output that is kept; its head and its tail."""
COUNTED_CHARS = 200_000
"""Of it that is read for counts: some runners sum up in parts, each of which counts."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check gave."""

    name: str
    command: str
    exit_code: int | None
    output: str
    collected: int | None = None
    """Tests that it found; None where its output does not say."""

    @property
    def passed(self) -> bool:
        """Whether it ended with 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows that the work is well."""

    checks: Sequence[Check] = ()
    found: bool = False
    """Whether they were found in the project's files, and the repository's file names none."""


def evidence_of(settings: RunSettings, found: Sequence[FoundCheck]) -> Evidence:
    """Choose what is run: the repository's own checks, else the tests that its files tell of.

    Builds, linters and types that were found are left to the model: before and after each task they cost more than they
    tell.
    """
    if settings.checks:
        return Evidence(settings.checks)
    longest_s = max(1, int(settings.limits.minutes * 60))
    made = [Check(name=one.name, run=one.command) for one in found if one.kind == "tests"]
    return Evidence(
        [one.model_copy(update={"timeout_s": min(one.timeout_s, longest_s)}) for one in made], found=bool(made)
    )


class Checker:
    """Runs the checks of one run, each as a step, on a tree that it leaves as it found it."""

    def __init__(self, scene: Scene, evidence: Evidence) -> None:
        """Take what a run's checks are."""
        self._scene = scene
        self.evidence = evidence
        self.skipped = ""
        """Why none was run the last time; empty where they were."""
        self.before: Sequence[CheckResult] = ()
        self.after: Sequence[CheckResult] = ()
        """The last results behind the work."""
        self.stood: str | None = None
        """The commit they are of."""

    async def all(self, phase: CheckPhase, attempt: int = 1, *, skipped: str = "") -> list[CheckResult]:
        """Run all checks in their order.

        Args:
            phase: before the first edit, after the model is done, or on a branch as it stands.
            attempt: 1 for the first time in this phase.
            skipped: why none of them is run, as `the set-up failed`; empty where they are.
        """
        self.skipped = skipped
        if skipped:
            await self._skip(phase, "check/before" if phase == "before" else f"check/{phase}/{attempt}", skipped)
            results = []
        else:
            indices = range(len(self.evidence.checks))
            results = [await self.one(phase, f"check/{phase}/{attempt}/{index}", index) for index in indices]
        if phase == "before":
            self.before = results
        else:
            self.after, self.stood = results, self._scene.lease.commit
        return results

    def broken(self) -> list[CheckResult]:
        """Return what fails after the work and is the model's to mend.

        Nobody said that a check which was found has to pass: only what passed before counts.
        """
        failed = [check for check in self.after if not check.passed]
        well = {check.name for check in self.before if check.passed}
        return [check for check in failed if check.name in well] if self.evidence.found else failed

    async def say_skipped(self, phase: CheckPhase, key: str, reason: str) -> None:
        """Record of each check that it is not run; for an action of a step."""
        for index, check in enumerate(self.evidence.checks):
            fact = CheckSkipped(check.name, check.run, reason, phase, self.evidence.found)
            await self._scene.recorder.note(f"{key}/skipped/{index}", fact)

    async def _skip(self, phase: CheckPhase, name: str, reason: str) -> None:
        async def action() -> Json:
            await self.say_skipped(phase, name, reason)
            return None

        if self.evidence.checks:
            await self._scene.steps.do(f"{name}/skipped", action)

    async def one(self, phase: CheckPhase, name: str, index: int) -> CheckResult:
        """Run one check on the work as it stands, as a step."""

        async def action() -> Json:
            return await self.run(phase, name, index)

        value = cast("dict[str, object]", await self._scene.steps.do(name, action, stoppable=True))
        check = self.evidence.checks[index]
        return CheckResult(
            check.name,
            check.run,
            cast("int | None", value["exit_code"]),
            str(value["output"]),
            # An earlier version kept none.
            cast("int | None", value.get("collected")),
        )

    async def run(self, phase: CheckPhase, key: str, index: int, commit: str | None = None) -> dict[str, Any]:
        """Run one check and record the result; for an action of a step.

        The first of each phase finds the commit's files and what set-up made, as after a fresh clone; those behind it
        also find what it left, as a build.

        Args:
            phase: what it is to show.
            key: of the fact.
            index: of the check.
            commit: what it is run on; None is the work.
        """
        check = self.evidence.checks[index]
        if not index or phase == "proof":
            await self._scene.lease.renew()
        live = await self._scene.lease.live()
        work = cast("str", self._scene.lease.commit)
        try:
            if commit is not None:
                await live.workspace.restore(commit)
            outcome = await live.sandbox.run(check.run, timeout_s=check.timeout_s, output_chars=COUNTED_CHARS)
        finally:
            # A check writes reports and caches; the work is what stood before it.
            await live.workspace.restore(work)
        streams = [part for part in (outcome.stdout.strip(), outcome.stderr.strip()) if part]
        # What was ended in the middle has said nothing of the rest.
        said = "" if outcome.timed_out else "\n".join(streams)
        tests, remark = await asyncio.to_thread(counted, said, check.run, outcome.exit_code)
        output = "\n".join(clip(mask_tokens(part), OUTPUT_CHARS) for part in streams)
        ran_on = commit or work
        fact = CheckFinished(
            phase,
            check.name,
            check.run,
            outcome.exit_code,
            round(outcome.seconds, 2),
            output,
            ran_on,
            await live.workspace.tree_of(ran_on),
            found=self.evidence.found,
            remark=remark,
            **_counted(tests),
        )
        await self._scene.recorder.note(key, fact)
        return {"exit_code": outcome.exit_code, "output": output, **_counted(tests)}


def _counted(found: Counts | None) -> dict[str, Any]:
    """Return what a fact says of the tests; empty where the output says nothing."""
    if found is None:
        return {}
    failed = found.failed + found.errors
    return {
        "unit": found.unit,
        "collected": found.collected,
        "passed": found.passed,
        "failed": failed,
        "skipped": found.skipped,
    }


def feedback(failed: Sequence[CheckResult], *, anew: bool = False) -> str:
    """Tell the model which checks fail, in the harness's words.

    Args:
        failed: the results.
        anew: whether the project was set up again from changed files.
    """
    where = ", in an environment set up from your changed files, which your commands have now too" if anew else ""
    shown = "\n\n".join(
        f"`{check.command}` "
        + (f"ended with exit code {check.exit_code}" if check.exit_code is not None else "ran out of time")
        + f":\n{check.output}"
        for check in failed
    )
    return (
        f"The harness ran the checks after `finish`{where}, on the files that git does not ignore, and these fail:\n\n"
        f"{shown}\n\n"
        "Mend the cause and call `finish` again. If a failure has nothing to do with the task, say so in the summary."
    )
