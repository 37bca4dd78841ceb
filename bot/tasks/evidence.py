"""What the work does to the checks that judge it, and what its tests say of the old code; no model takes part.

Steps of a run that is done with its work, and only where there are checks; each leaves the tree as it found it.
"""

import asyncio
import logging
import posixpath
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from stat import S_ISLNK
from typing import cast

from bot.domain.events import DefinitionsChanged, Notice, ProofRun, Verdict
from bot.errors import BotError, Cancelled, WorkspaceError
from bot.projects.evidence.called import leads, told
from bot.projects.evidence.changes import APART, Change, Finding, text_of
from bot.projects.evidence.definitions import defines
from bot.projects.evidence.languages import RUST, language_of
from bot.projects.evidence.touched import TEST_FOLDERS, changed_tests, first, new_tests, touched, unread
from bot.tasks.checks import Checker
from bot.tasks.engines.base import Json
from bot.tasks.opening import Prepared
from bot.tasks.scene import Scene
from bot.tasks.standing import stand
from bot.workspace.base import Workspace

log = logging.getLogger(__name__)

FILES = 400
"""Of a change that are read; those that may say something of checks come first."""
BYTES = 16 << 20
"""Of these files together, before and after."""
_LOOKED_UP = 100
"""Paths that commands may lead to."""
_ROUNDS = 3
"""Of files that name further files."""
_ELSEWHERE = {*APART, "unread"}
"""Kinds of findings that change nothing of what the harness itself runs."""
_WEIGHTS = ("ignored failure", "skip", "removed", "assertions", "threshold", "script", "configuration", "unread")
"""Kinds of findings, those first that matter most; all others come behind them."""
_TESTS = re.compile(r"test|spec", re.IGNORECASE)
_MOST = 100
"""Findings and tests that are kept; more nobody reads."""
_EARLY = "the work ended early"
_CHECKOUT = "the work lies in a person's own checkout"


@dataclass(frozen=True, slots=True)
class Compared:
    """What comes of comparing the work with what it began on, as recorded."""

    base: str
    """The commit that the task's work began on."""
    restored: Sequence[str]
    """Files that the base's definition of the checks is made of."""
    proof: Sequence[str]
    """Files that go on the old code; empty where none do."""
    why: str
    """Why none do."""


class Proof:
    """Judges the work of one run."""

    def __init__(self, scene: Scene, prepared: Prepared, checker: Checker, *, against: str = "") -> None:
        """Take what is judged.

        Args:
            scene: the run.
            prepared: what it began on.
            checker: ran its checks.
            against: what the work is compared with; empty for what the task's first run began on.
        """
        self._scene = scene
        self._against = against
        self._prepared = prepared
        self._checker = checker
        self._done = False

    async def whole(self) -> None:
        """Compare, run the checks as the base defines them, and the work's tests on the old code.

        Raises:
            Cancelled: a person stopped the run.
        """
        async with self._telling("check/proof/broken") as todo:
            if todo:
                compared = await self._compare(complete=True)
                await _with_bases_definition(self._scene, self._checker, compared)
                await _on_old_code(self._scene, self._checker, compared)

    async def early(self) -> None:
        """Compare work that ended early, on which no check is run any more."""
        async with self._telling("check/definitions/broken") as todo:
            if todo:
                await self._compare(complete=False)

    @asynccontextmanager
    async def _telling(self, key: str) -> AsyncIterator[bool]:
        """Say whether there is something to judge; what goes wrong with that takes nothing from the work."""
        changed = (self._scene.lease.commit or self._prepared.base) != self._prepared.base
        try:
            yield changed and bool(self._checker.evidence.checks) and not self._done
        except Cancelled:
            raise
        except BotError as error:
            log.warning("evidence.broken", extra={"run": self._scene.run.id, "error": str(error)})
            await self._scene.recorder.note(key, Notice(f"The evidence is not complete: {error}"))

    async def _compare(self, *, complete: bool) -> Compared:
        self._done = True
        scene, checker, prepared = self._scene, self._checker, self._prepared
        name = "check/definitions" if complete else "check/definitions/early"

        async def action() -> Json:
            workspace = (await scene.lease.opened()).workspace
            commit = scene.lease.commit or prepared.base
            base = self._against or await _first_base(scene, workspace, prepared)
            paths = await workspace.changed_paths(base, commit)
            texts = await _texts(workspace, base, [check.run for check in checker.evidence.checks])
            changed, _ = await workspace.changes(base, commit)
            by_weight = first(paths, {one.path for one in changed if not one.before}, texts)
            links = {one.path for one in changed if S_ISLNK(one.after)}
            changes = await _read(workspace, base, commit, by_weight[:FILES], links)
            findings = [*unread(by_weight, len(changes)), *await asyncio.to_thread(touched, changes, texts)]
            tests = await asyncio.to_thread(lambda: [*new_tests(changes), *changed_tests(changes)])
            # A person's own checkout is never put back to an earlier state.
            not_run = (_CHECKOUT if prepared.theirs else "") if complete else _EARLY
            proof, why = ((), not_run) if not_run else _proof(paths, changes, tests)
            restored = [] if not_run else _restored(paths, findings)
            rows = [{**asdict(one), "path": _told(one.path), "words": _told(one.words)} for one in _first(findings)]
            fact = DefinitionsChanged(rows, [*map(_told, restored)], [*map(_told, tests[:_MOST])], complete)
            await scene.recorder.note(name, fact)
            if not complete and checker.stood != scene.lease.commit:
                await checker.say_skipped("after", name, checker.skipped or _EARLY)
            return {"base": base, "restored": restored, "proof": [*proof], "why": why}

        value = cast("dict[str, object]", await scene.steps.do(name, action))
        restored, proof = (cast("list[str]", value[key]) for key in ("restored", "proof"))
        return Compared(str(value["base"]), restored, proof, str(value["why"]))


async def _first_base(scene: Scene, workspace: Workspace, prepared: Prepared) -> str:
    """Return what the task's first run began on, where that is still at hand: what all its commits change is judged."""
    first = stand(await scene.desk.store.events(scene.task.id), None).base or prepared.base
    try:
        await workspace.tree_of(first)
    except WorkspaceError:
        return prepared.base
    return first


async def _texts(workspace: Workspace, base: str, commands: Sequence[str]) -> list[str]:
    """Return the commands of the checks, and the text of what they call as the base has it."""
    texts = [*commands]
    fresh = [(command, "") for command in commands]
    seen: set[str] = set()
    for _ in range(_ROUNDS):
        paths = dict.fromkeys(path for text, folder in fresh for path in leads(text, folder) if path not in seen)
        fresh = []
        for path in [*paths][: _LOOKED_UP - len(seen)]:
            seen.add(path)
            if data := await workspace.read_at(base, path):
                text = await asyncio.to_thread(told, path, text_of(data), texts)
                fresh.append((text, posixpath.dirname(path)))
        texts += [text for text, _ in fresh]
    return texts


async def _read(
    workspace: Workspace, base: str, commit: str, paths: Sequence[str], links: Collection[str]
) -> list[Change]:
    """Read files in their order, up to a bound of all together: the more there is, the longer it takes to compare."""
    changes: list[Change] = []
    left = BYTES
    for path in paths:
        before, after = await workspace.read_at(base, path), await workspace.read_at(commit, path)
        left -= len(before or b"") + len(after or b"")
        if left < 0 and changes:
            break
        changes.append(Change(path, before, after, path in links))
    return changes


def _first(findings: Sequence[Finding]) -> list[Finding]:
    """Put what matters most first, keep so many, and say how many there are behind them."""
    found = sorted(findings, key=lambda one: _WEIGHTS.index(one.kind) if one.kind in _WEIGHTS else len(_WEIGHTS))
    if len(found) <= _MOST:
        return found
    left = found[_MOST - 1 :]
    return [*found[: _MOST - 1], Finding(left[0].path, None, "unread", f"{len(left)} more places are not told here.")]


def _told(text: str) -> str:
    """Show what is no text in the name of a file, so that it looks like no other name."""
    return text.encode(errors="backslashreplace").decode()


def _restored(paths: Sequence[str], findings: Sequence[Finding]) -> list[str]:
    """Name what has to be as it was for the checks to mean what they meant."""
    found = {finding.path for finding in findings if finding.kind not in _ELSEWHERE}
    if not found:
        return []
    return [path for path in paths if (path in found or defines(path)) and not path.startswith(".github/")]


def _proof(paths: Sequence[str], changes: Sequence[Change], tests: Sequence[str]) -> tuple[Sequence[str], str]:
    """Name the files that go on the old code; else say why none do."""
    if not tests:
        return (), "no test is new, and none has changed"
    holds = {test.partition("::")[0] for test in tests}
    if not all(map(_is_apart, holds)):
        return (), "the tests stand in the same files as the code"
    gone = {change.path for change in changes if change.after is None}
    files = [path for path in paths if path in holds or (TEST_FOLDERS & {*path.split("/")[:-1]} and path not in gone)]
    if len(files) == len(paths):
        return (), "nothing but tests has changed"
    return files, ""


def _is_apart(path: str) -> bool:
    """Whether a file holds tests alone."""
    pure = PurePosixPath(path)
    return language_of(path) is not RUST or bool(TEST_FOLDERS & {*pure.parts[:-1]}) or pure.stem in TEST_FOLDERS


async def _with_bases_definition(scene: Scene, checker: Checker, compared: Compared) -> None:
    """Run each check on the work with the base's files that define it."""
    if checker.skipped or not compared.restored:
        return
    for index in range(len(checker.evidence.checks)):
        name = f"check/base/{index}"

        async def action(name: str = name, index: int = index) -> Json:
            workspace = (await scene.lease.opened()).workspace
            commit = cast("str", scene.lease.commit)
            made = await workspace.mixed(commit, compared.base, compared.restored, scene.run.created_at)
            return await checker.run("base", name, index, made)

        await scene.steps.do(name, action, stoppable=True)


async def _on_old_code(scene: Scene, checker: Checker, compared: Compared) -> None:
    """Run the work's tests on the code that was there before it."""
    indices = _tests_checks(checker)
    why = compared.why or checker.skipped or ("" if indices else "no check is known to run tests")

    async def note(verdict: Verdict, check: str = "", reason: str = "") -> None:
        await scene.recorder.note("check/proof/judged", ProofRun(verdict, check, reason))

    async def action() -> Json:
        if why:
            await note("not run", reason=why)
            return None
        workspace = (await scene.lease.opened()).workspace
        commit = cast("str", scene.lease.commit)
        made = await workspace.mixed(compared.base, commit, compared.proof, scene.run.created_at)
        for at, index in enumerate(indices):
            result = await checker.run("proof", f"check/proof/{at}", index, made)
            name = checker.evidence.checks[index].name
            verdict = await _judged(scene, name, result)
            # One that passes may be another runner's, which the tests are nothing to.
            if verdict != "green" or index == indices[-1]:
                await note(verdict, name)
                break
        return None

    await scene.steps.do("check/proof", action, stoppable=True)


def _tests_checks(checker: Checker) -> list[int]:
    """Choose the checks that may have run the new tests: those that count the most more than before."""
    before = {result.name: result for result in checker.before}
    more: dict[int, int] = {}
    for index, after in enumerate(checker.after):
        had = before.get(after.name)
        if after.collected is not None or _TESTS.search(f"{after.name} {after.command}"):
            more[index] = (after.collected or 0) - ((had.collected if had else 0) or 0)
    return [index for index, count in more.items() if count == max(more.values())]


async def _judged(scene: Scene, name: str, proof: Mapping[str, object]) -> Verdict:
    """Say what the tests' end on the old code means, beside that without them and that on the new code."""
    rows = {row.name: row for row in stand(await scene.desk.store.events(scene.task.id), None).check_rows()}
    before, after = rows[name].before, rows[name].after
    if proof["exit_code"] == 0:
        return "green"
    if proof["exit_code"] is None or before is None or after is None:
        return "unclear"
    if before.exit_code != 0:
        failed, had = proof.get("failed"), before.tests.failed if before.tests else None
        if not isinstance(failed, int) or had is None or failed <= had:
            return "unclear"
    return "shown" if after.exit_code == 0 else "red"
