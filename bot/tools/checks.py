"""`checks`: the repository's own checks, or those that its files tell of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.errors import ToolError
from bot.projects.checks import FoundCheck, find_checks, is_read
from bot.sandbox.base import ExecResult, Sandbox
from bot.sandbox.output import clip
from bot.settings.repository import PATH, Check
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.deletions import begin, complaint
from bot.tools.hints import hint
from bot.tools.run import LONGEST_S

NONE = (
    "no_checks: the repository names none, and its files tell of none. Find out how it is tested, and call `run`. "
    f"People can name some under `checks` in `{PATH}`, each with `name` and `run`."
)
_CHARS = 16_000
"""Of the output of all checks that failed."""
_PASSED_CHARS = 300
"""Of the output of one that passed: how many tests it was, mostly."""
_FILES = 100
_FILE_BYTES = 1 << 20
_ALL = 1 << 20


class _Arguments(Arguments):
    names: list[str] = Field(default=[], max_length=20, description="Names or kinds; empty runs all.")


@dataclass(frozen=True, slots=True)
class _Task:
    """One check that is to run."""

    name: str
    kind: str
    """Empty for the repository's own, which say none."""
    command: str
    timeout_s: int


class Checks:
    """Runs checks one after the other; one that fails is a result like any other."""

    reads_only: bool = False

    def __init__(self, own: Sequence[Check] = (), longest_s: int = LONGEST_S, network: Sequence[str] = ()) -> None:
        """Make one.

        Args:
            own: the repository's; they stand in place of those that its files tell of.
            longest_s: seconds that one check may take.
            network: hosts and presets that commands may reach.
        """
        self._own = own
        self._network = network
        self._longest_s = longest_s
        self.spec: ToolSpec = specify(
            "checks", "Run the repository's checks, of the kinds build, lint, types and tests.", _Arguments
        )

    @property
    def own(self) -> Sequence[Check]:
        """The repository's own, which need no look at its files."""
        return self._own

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Run them, and show how each ended before the output of those that failed."""
        asked = parse(_Arguments, arguments)
        known = await self._known(context.sandbox)
        if not known:
            return ToolOutput(NONE, "none known")
        chosen = _chosen(known, asked.names)
        await begin(context)
        ran = [
            (one, await context.sandbox.run(one.command, timeout_s=one.timeout_s, output_chars=_CHARS))
            for one in chosen
        ]
        too_much = await complaint(context)
        failed = [outcome for _, outcome in ran if outcome.exit_code != 0]
        told = hint("\n".join(map(_printed, failed)), self._network)
        return ToolOutput(
            "\n".join(filter(None, [_text(ran, len(failed)), told, too_much])),
            f"{len(ran) - len(failed)} of {len(ran)} passed",
            changed=None,
            is_error=bool(too_much),
            command="; ".join(one.command for one in chosen),
            exit_code=failed[0].exit_code if failed else 0,
        )

    async def _known(self, sandbox: Sandbox) -> list[_Task]:
        if self._own:
            return [_Task(one.name, "", one.run, min(one.timeout_s, self._longest_s)) for one in self._own]
        found = await find_in(sandbox)
        return [_Task(one.name, one.kind, one.command, self._longest_s) for one in found]


async def find_in(sandbox: Sandbox) -> Sequence[FoundCheck]:
    """Find out the checks of a work tree as it is now; what cannot be read tells of none."""
    try:
        entries, _ = await sandbox.list("**", limit=_ALL)
    except ToolError:
        return []
    paths = [entry.path for entry in entries if entry.kind == "file"]
    files: dict[str, bytes] = {}
    for path in list(filter(is_read, paths))[:_FILES]:
        try:
            files[path] = (await sandbox.open(path, limit_bytes=_FILE_BYTES)).data
        except ToolError:
            continue
    return find_checks(paths, files)


def _chosen(known: Sequence[_Task], names: Sequence[str]) -> Sequence[_Task]:
    """Choose by name or kind, in the order in which they are known.

    Raises:
        ToolError: nothing is called so.
    """
    for name in names:
        if not any(name in {one.name, one.kind} for one in known):
            there = ", ".join(one.name + (f" ({one.kind})" if one.kind else "") for one in known)
            raise ToolError(f"unknown_check: {name[:100]!r}; there are {there}")
    return [one for one in known if not names or {one.name, one.kind} & set(names)]


def _printed(outcome: ExecResult) -> str:
    return "\n".join(filter(None, [outcome.stdout.strip(), outcome.stderr.strip()]))


def _text(ran: Sequence[tuple[_Task, ExecResult]], failed: int) -> str:
    """Show a row for each check, then what each printed."""
    rows = ["exit code | seconds | check"]
    outputs = []
    for one, outcome in ran:
        ended = f"none, out of time after {one.timeout_s} s" if outcome.timed_out else outcome.exit_code
        # Whole seconds, so that the same again looks the same: a model that goes in circles is told so.
        rows.append(f"{ended} | {outcome.seconds:.0f} | {one.name}: `{one.command}`")
        if output := _printed(outcome):
            limit = _PASSED_CHARS if outcome.exit_code == 0 else _CHARS // failed
            outputs.append(f"\n{one.name}:\n{clip(output, limit)}")
    return "\n".join([*rows, *outputs])
