"""Chooses what shuts commands in on this machine: the strongest level that withstands its self-test."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.errors import OperatorError
from bot.sandbox.base import Level
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.confinement import Confinement
from bot.sandbox.landlock import Landlock
from bot.sandbox.selftest.run import attacked
from bot.sandbox.unconfined import Unconfined

log = logging.getLogger(__name__)

LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock", "none")
"""The strongest first."""
_KNOWN: tuple[Confinement, ...] = (Bubblewrap(), Landlock())
_REMEDIES = {
    "bubblewrap": "install `bubblewrap` and let ordinary users make namespaces (docs/security.md says how)",
    "landlock": "use Linux 5.13 or later with `landlock` in its `lsm=` list",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen, and why not something stronger."""

    confinement: Confinement
    shell: bool
    """Whether commands may be run at all; file tools always work."""
    missing: tuple[str, ...]
    """What people have to know: what a stronger level fails on here, and what this one lacks."""
    remedy: str
    """What would give a stronger level; empty at the strongest."""

    @property
    def level(self) -> Level:
        """Its name."""
        return self.confinement.level

    @property
    def told(self) -> str:
        """One line for people: the level, or that commands do not run."""
        return self.level if self.shell else f"{self.level}, so no commands are run"


async def choose(
    kind: Literal["auto"] | Level,
    minimum: Level,
    *,
    uid: int | None,
    allowed_none: bool,
    levels: Sequence[Confinement] = _KNOWN,
) -> Chosen:
    """Try the levels.

    Args:
        kind: the level to use, or `auto` for the strongest.
        minimum: below it no command is run.
        uid: a free uid for the attacker of the self-test where the server is root.
        allowed_none: whether the environment agrees that there may be no sandbox.
        levels: what is tried, the strongest first.

    Raises:
        OperatorError: the named level cannot be used here, or `none` was asked for in one place only.
    """
    if kind == "none":
        return _none(allowed=allowed_none)
    failed: list[str] = []
    for confinement in levels:
        if kind not in {"auto", confinement.level}:
            continue
        verdict = await attacked(confinement, uid)
        log.info("sandbox.tested", extra={"kind": confinement.level, "usable": verdict.usable, "why": verdict.reason})
        if verdict.usable:
            remedy = _REMEDIES["bubblewrap"] if confinement.level != "bubblewrap" else ""
            shell = LEVELS.index(confinement.level) <= LEVELS.index(minimum)
            return Chosen(confinement, shell, (*failed, *verdict.missing), remedy)
        failed.append(f"{confinement.level}: {verdict.reason}")
    if kind != "auto":
        raise OperatorError(f"`sandbox.kind: {kind}` cannot be used here: {failed[0]}. Remedy: {_REMEDIES[kind]}")
    return Chosen(Unconfined(), shell=False, missing=tuple(failed), remedy=_remedies(failed))


def _remedies(failed: Sequence[str]) -> str:
    return " or ".join(_REMEDIES[line.partition(":")[0]] for line in failed)


def _none(*, allowed: bool) -> Chosen:
    if not allowed:
        raise OperatorError(
            "`sandbox.kind: none` runs the model's commands with nothing between them and this machine. Where you "
            "want that, as on a machine to throw away, say it in the environment too: `ISSUEWRIGHT_NO_SANDBOX=accepted`"
        )
    return Chosen(Unconfined(), True, ("nothing shuts commands in",), "set `sandbox.kind: auto`")  # noqa: FBT003
