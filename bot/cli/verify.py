"""`issuewright verify`: runs what a pull request says was run, and compares; needs read access and nothing of ours."""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, Field, ValidationError

from bot import bootstrap, log
from bot.cli.sandboxing import tell
from bot.cli.screen import Screen, harmless
from bot.domain.refs import RepositoryRef
from bot.errors import NotFound, OperatorError, RepositoryConfigError, WorkspaceError
from bot.github.base import GitHub, Pull
from bot.github.evidence import CheckResult, CheckRow, EvidenceView, read_block, table
from bot.log import inert_json
from bot.settings.load import environment
from bot.settings.repository import PATH, Check, RepositorySettings, parse_repository
from bot.settings.resolve import resolve
from bot.settings.server import ServerSettings
from bot.store.base import NewRequest
from bot.tasks.checks import Checker, Evidence
from bot.tasks.engines.base import ABI, Action, Json
from bot.tasks.environment import ProjectSetup
from bot.tasks.lease import Lease
from bot.tasks.on_terminal import TerminalPublisher
from bot.tasks.opening import Prepared
from bot.tasks.recorder import Recorder
from bot.tasks.scene import Scene
from bot.tasks.standing import stand
from bot.tasks.steps import Steps
from bot.tools.checks import find_in
from bot.workspace.base import Identity, Origin, Workspace

MOST_CHECKS = 50
_SHORT = re.compile(r"(?P<owner>[\w.-]{1,100})/(?P<name>[\w.-]{1,100})#(?P<number>[1-9]\d{0,8})")
_URL = re.compile(
    r"https?://[^/\s]+/(?P<owner>[\w.-]{1,100})/(?P<name>[\w.-]{1,100})/pull/(?P<number>[1-9]\d{0,8})(?:[/?#].*)?"
)
_SAME = "All is as recorded. What else stands in the pull request's text was not read: this table counts"
_DIFFERS = "That is not what the pull request says"
_Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class _Tests(BaseModel):
    """How many tests ran."""

    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None


class _Result(BaseModel):
    """How a check ended."""

    exit: int | None
    tests: _Tests | None = None
    tree: str = Field("", max_length=64)
    """Of the files it ran on; empty where that is not told, and not compared by itself."""

    def __str__(self) -> str:
        """Name what is compared; how long it took is nobody's claim."""
        ended = "out of time" if self.exit is None else f"exit {self.exit}"
        one = self.tests
        return ended if one is None else f"{ended} ({one.passed} passed, {one.failed} failed, {one.skipped} skipped)"


class _Row(BaseModel):
    """A check."""

    name: str
    command: str
    before: _Result | None = None
    after: _Result | None = None
    found: bool = False
    """Whether no file of the repository names it as a check."""

    def check(self, named: Collection[Check]) -> Check:
        """Say what is to be run, for as long as the repository gives it."""
        made = Check(name=self.name, run=self.command)
        longest = [one.timeout_s for one in named if (one.name, one.run) == (made.name, made.run)]
        return made.model_copy(update={"timeout_s": max(longest, default=made.timeout_s)})


class _Claim(BaseModel):
    """What a pull request says was run; anybody may have written it."""

    base: _Commit
    head: _Commit
    tree: str = Field("", max_length=64)
    """The head's, where the checks ran on that; else empty."""
    checks: list[_Row] = Field(min_length=1, max_length=MOST_CHECKS)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the claim is held against."""

    rows: Sequence[CheckRow]
    tree: str
    """The head's."""
    follows: bool
    """Whether the head holds all that the base does, and more."""
    files: Sequence[Collection[Check]]
    """What the repository's file names: at the base, and on the branches that it is read from now."""
    found: Collection[str]
    """Commands that the project's files tell of, at the base and at the head."""


def _claimed(claim: _Claim, named: Sequence[Collection[Check]]) -> list[Check]:
    return [row.check([one for checks in named for one in checks]) for row in claim.checks]


def verify(reference: str, *, config: Path | None, as_json: bool) -> int:
    """Run the recorded checks again; returns 0 where all is as recorded, 1 where not."""
    repository, number = _parse(reference)
    environ = environment()
    # Commands must not inherit it.
    token = environ.pop("GITHUB_TOKEN", None)
    with tempfile.TemporaryDirectory(prefix="issuewright-verify-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)
        settings = bootstrap.load(config, {"state_dir": str(folder / "state")}, quiet=True)
        # A server on this machine, and one run at the terminal, give out the uids before these.
        place = settings.workspace
        beside = place.model_copy(update={"first_uid": place.first_uid + 2 * place.uids})
        settings = settings.model_copy(update={"workspace": beside})
        if not token:
            raise OperatorError("set `GITHUB_TOKEN` to a token that may read the repository")
        log.register_secret(token)
        return asyncio.run(_Verifier(settings, Screen(as_json=as_json), folder).verify(token, repository, number))


def _parse(reference: str) -> tuple[RepositoryRef, int]:
    found = _SHORT.fullmatch(reference) or _URL.fullmatch(reference)
    if found is None:
        raise typer.BadParameter(f"{reference!r} names no pull request: write its URL, or owner/name#number")
    # The number of the repository is not known, and nothing that is read here needs it.
    return RepositoryRef(0, f"{found['owner']}/{found['name']}"), int(found["number"])


class _Verifier:
    """One call of the command."""

    def __init__(self, settings: ServerSettings, screen: Screen, folder: Path) -> None:
        self._settings = settings
        self._screen = screen
        self._folder = folder

    async def verify(self, token: str, repository: RepositoryRef, number: int) -> int:
        """Read the claim, run it, and say what came of it."""
        app = bootstrap.make_app(self._settings, token=token)
        try:
            github = app.installation(None)
            pull = await _pull(github, repository, number)
            claim = _claim(pull)
            self._screen.say(f"The pull request says that these ran on {claim.base[:8]} and on {claim.head[:8]}:")
            for row in claim.checks:
                self._screen.say(f"  {row.name}: {row.command}")
            seen = await self._run(github, repository, pull, claim)
        finally:
            await app.close()
        differences = [*_differences(claim, seen)]
        if self._screen.as_json:
            told = {"base": claim.base, "head": claim.head, "differences": differences}
            sys.stdout.write(inert_json(json.dumps({**told, "checks": [asdict(row) for row in seen.rows]})) + "\n")
        else:
            sys.stdout.write(harmless(table(EvidenceView(checks=seen.rows))) + "\n")
            for difference in differences:
                self._screen.say(difference, "red")
            self._screen.say(_DIFFERS if differences else _SAME)
        return 1 if differences else 0

    async def _run(self, github: GitHub, repository: RepositoryRef, pull: Pull, claim: _Claim) -> _Seen:
        bootstrap.warm(self._settings)
        chosen = await bootstrap.choose_sandbox(self._settings)
        tell(chosen, self._screen.say)
        stores = bootstrap.open_stores(self._settings)
        try:
            accepted = await stores.tasks.accept(_request(repository, pull), bootstrap.now())
            task, run = accepted.task, accepted.run
            publisher = await self._publisher(github, repository)
            desk = bootstrap.make_desk(self._settings, stores.tasks, publisher, chosen)
            if not desk.shelter.shell or desk.shelter.level == "none":
                raise OperatorError("nothing here can shut commands in, so none of them is run")
            steps = Steps(_step, stores.tasks, asyncio.Event())
            scene = Scene(desk, task, run, steps, Recorder(desk, run), Lease(desk, task))
            now = [await github.read_file(repository, PATH, ref) for ref in ("HEAD", pull.base_branch)]
            try:
                seen = await self._checked(scene, claim, now)
            finally:
                await scene.lease.close()
                await desk.workspaces.forget(task.id)
            return replace(seen, rows=stand(await stores.tasks.events(task.id), None).check_rows())
        finally:
            await stores.close()

    async def _checked(self, scene: Scene, claim: _Claim, now: Sequence[bytes | None]) -> _Seen:
        """Set the project up and run the checks, before the work and after it, as a run does.

        Args:
            scene: a run of its own.
            claim: what is to be run.
            now: the repository's file as it stands on branches.
        """
        lease = scene.lease
        lease.commit = claim.head
        workspace = (await lease.opened()).workspace
        lease.commit = claim.base
        await workspace.restore(claim.base)
        text = await workspace.read_at(claim.base, PATH)
        kept = parse_repository(text) if text is not None else RepositorySettings(version=1)
        settings = resolve(self._settings, kept)
        files = [settings.checks, *(self._named(text) for text in now)]
        prepared = Prepared(claim.base, claim.head, "", (), 0, ())
        setup, checker = ProjectSetup(scene, settings, prepared), Checker(scene, Evidence(_claimed(claim, files)))
        first = await setup.first()
        found = {one.command for one in await find_in((await lease.live()).sandbox)}
        await checker.all("before", skipped="the set-up failed" if first.failed else "")
        lease.commit = claim.head
        await workspace.restore(claim.head)
        again = await setup.again(1, wanted=True)
        found |= {one.command for one in await find_in((await lease.live()).sandbox)}
        await checker.all("after", skipped="the set-up failed" if again.failed else "")
        return _Seen((), await workspace.tree_of(claim.head), await _follows(workspace, claim), files, found)

    def _named(self, text: bytes | None) -> Sequence[Check]:
        """Say which checks the repository's file names; what is broken names none."""
        try:
            return resolve(self._settings, parse_repository(text)).checks if text is not None else ()
        except RepositoryConfigError:
            return ()

    async def _publisher(self, github: GitHub, repository: RepositoryRef) -> TerminalPublisher:
        async def token() -> str | None:
            return await github.git_token(repository)

        async def deliver(_work: Workspace, _commit: str, _branch: str, _expected: str | None) -> bool:
            return False

        async def prompt(_question: str) -> str | None:
            return None

        return TerminalPublisher(
            self._folder,
            self._settings,
            author=Identity("nobody", "nobody@issuewright.invalid"),
            origin=Origin("verified", await github.clone_url(repository), token),
            deliver=deliver,
            prompt=prompt,
        )


async def _pull(github: GitHub, repository: RepositoryRef, number: int) -> Pull:
    try:
        return await github.pull(repository, number)
    except NotFound as error:
        raise OperatorError(f"{repository.full_name}#{number} is no pull request that the token may read") from error


async def _step(name: str, action: Action) -> Json:  # noqa: ARG001 - as engines take it
    """Make a step without a record: who verifies begins anew."""
    return await action()


def _request(repository: RepositoryRef, pull: Pull) -> NewRequest:
    task_id = bootstrap.new_id()
    return NewRequest(
        task_id=task_id,
        event_key=f"verify:{task_id}",
        repository=repository,
        number=pull.number,
        kind="pull",
        title=pull.title,
        body="",
        requester="",
        requester_id=0,
        request="",
        model=None,
        comment_id=None,
        installation_id=None,
        branch=pull.head_branch,
        base_branch=pull.base_branch,
        pull_number=pull.number,
        abi=ABI,
    )


def _claim(pull: Pull) -> _Claim:
    """Read what is to be run.

    Raises:
        OperatorError: there is no evidence, it cannot be read, or it is of another head.
    """
    block = read_block(pull.body)
    if block is None:
        raise OperatorError(f"pull request #{pull.number} holds no evidence")
    try:
        claim = _Claim.model_validate(block)
        names = [row.check(()).name for row in claim.checks]
    except ValidationError as error:
        raise OperatorError(f"the evidence of pull request #{pull.number} cannot be read") from error
    if len({*names}) < len(names):
        raise OperatorError(f"the evidence of pull request #{pull.number} names a check twice")
    if claim.head != pull.head_sha:
        told = f"the evidence is of {claim.head[:8]}, and the branch stands at {pull.head_sha[:8]} by now"
        raise OperatorError(told)
    return claim


async def _follows(workspace: Workspace, claim: _Claim) -> bool:
    """Say whether the head was made from the base, and is another commit."""
    if claim.head == claim.base:
        return False
    try:
        return (await workspace.merge(claim.head, claim.base)).there
    except WorkspaceError:
        return False


def _differences(claim: _Claim, seen: _Seen) -> Iterator[str]:
    """Say where what was seen is not what was recorded, and where what was recorded is not what had to be."""
    if not seen.follows:
        yield f"{claim.head[:8]} was not made from {claim.base[:8]}, which is said to be there before it"
    yield from _misnamed(claim, seen)
    rows = {row.name: row for row in seen.rows}
    for said in claim.checks:
        row = rows.get(said.name, CheckRow(said.name, said.command))
        for when, recorded, now in (("before", said.before, row.before), ("after", said.after, row.after)):
            if (was := str(recorded or "not run")) != (found := str(_result(now) or "not run")):
                where = _elsewhere(recorded, now)
                yield f"{said.name} {when} the work: recorded {was}{where}, seen {found}"
        if claim.tree and said.after is not None and said.after.tree not in {"", claim.tree}:
            yield f"{said.name} after the work: recorded on the tree {said.after.tree[:8]}, not {claim.tree[:8]}"
    if claim.tree and claim.tree != seen.tree:
        yield f"the tree of {claim.head[:8]} is {seen.tree[:8]}, and not {claim.tree[:8]}"


def _elsewhere(recorded: _Result | None, now: CheckResult | None) -> str:
    if recorded is None or now is None or recorded.tree in {"", now.tree}:
        return ""
    return f" on other files ({recorded.tree[:8]})"


def _misnamed(claim: _Claim, seen: _Seen) -> Iterator[str]:
    """Say which checks are none of the repository's, and which of those that it has all the time are left out."""
    named = {(one.name, one.run) for checks in seen.files for one in checks}
    for said in claim.checks:
        if (said.name, said.command) not in named and not (said.found and said.command in seen.found):
            yield f"{said.name}: nothing in the repository names `{said.command}` as a check"
    claimed = {(said.name, said.command) for said in claim.checks}
    then, *now = [{(one.name, one.run) for one in checks} for checks in seen.files]
    # A branch without such a file takes no check away.
    always = then.intersection(*filter(None, now)) if any(now) else set()
    for name, command in sorted(always - claimed):
        yield f"{name}: the repository names `{command}` as a check, and nothing is recorded of it"


def _result(result: CheckResult | None) -> _Result | None:
    if result is None:
        return None
    tests = result.tests
    return _Result(
        exit=result.exit_code,
        tests=_Tests(passed=tests.passed, failed=tests.failed, skipped=tests.skipped) if tests else None,
    )
