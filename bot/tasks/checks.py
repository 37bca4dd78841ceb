"""The repository's own checks, run by the harness: evidence that no model wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from bot.domain.events import CheckFinished, CheckPhase, CheckSkipped
from bot.redaction import mask_tokens
from bot.settings.repository import Check
from bot.tasks.engines.base import Json
from bot.tasks.scene import Scene

OUTPUT_CHARS = 4_000
"""Of a check's output that is kept; its head and its tail."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check gave."""

    name: str
    command: str
    exit_code: int | None
    output: str

    @property
    def passed(self) -> bool:
        """Whether it ended with 0."""
        return self.exit_code == 0


class Checker:
    """Runs the checks of one run, each as a step, on a tree that it leaves as it found it."""

    def __init__(self, scene: Scene, checks: Sequence[Check]) -> None:
        """Take a run's checks, as the repository names them."""
        self._scene = scene
        self._checks = checks

    async def all(self, phase: CheckPhase, attempt: int = 1, *, skipped: str = "") -> list[CheckResult]:
        """Run all checks in their order.

        Args:
            phase: before the first edit, or after the model is done.
            attempt: 1 for the first time in this phase.
            skipped: why none of them is run, as `the set-up failed`; empty where they are.
        """
        if skipped:
            await self._skip(phase, "check/before" if phase == "before" else f"check/after/{attempt}", skipped)
            return []
        return [await self._one(phase, attempt, index) for index in range(len(self._checks))]

    async def _skip(self, phase: CheckPhase, name: str, reason: str) -> None:
        """Say of each check that it is not run."""

        async def action() -> Json:
            for index, check in enumerate(self._checks):
                fact = CheckSkipped(check.name, check.run, reason, phase)
                await self._scene.recorder.note(f"{name}/skipped/{index}", fact)
            return None

        if self._checks:
            await self._scene.steps.do(f"{name}/skipped", action)

    async def _one(self, phase: CheckPhase, attempt: int, index: int) -> CheckResult:
        check = self._checks[index]
        name = f"check/{phase}/{attempt}/{index}"

        async def action() -> Json:
            live = await self._scene.lease.live()
            commit = cast("str", self._scene.lease.commit)
            try:
                outcome = await live.sandbox.run(check.run, timeout_s=check.timeout_s, output_chars=OUTPUT_CHARS)
            finally:
                # A check writes reports and caches; the work is what stood before it.
                await live.workspace.restore(commit)
            output = mask_tokens("\n".join(part for part in (outcome.stdout.strip(), outcome.stderr.strip()) if part))
            fact = CheckFinished(
                phase, check.name, check.run, outcome.exit_code, round(outcome.seconds, 2), output, commit
            )
            await self._scene.recorder.note(name, fact)
            return {"exit_code": outcome.exit_code, "output": output}

        value = cast("dict[str, object]", await self._scene.steps.do(name, action, stoppable=True))
        return CheckResult(check.name, check.run, cast("int | None", value["exit_code"]), str(value["output"]))


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
        f"The harness ran the checks after `finish`{where}, and these fail:\n\n{shown}\n\n"
        "Mend the cause and call `finish` again. If a failure has nothing to do with the task, say so in the summary."
    )
