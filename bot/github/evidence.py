"""What shows that a change works, as people read it: what the harness ran and saw, and no word of a model."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bot.domain.events import Verdict
from bot.github import pieces, text
from bot.github.base import CheckConclusion, CheckRun

CHECK_NAME = "issuewright/evidence"
"""Of our check run."""
LEFT_OUT = "the last checks were without it"
"""Why a check has no end after the work, where people took it away meanwhile."""
_CELL_LIMIT = 200
_OUTPUT_LIMIT = 3_000
_FINDINGS = 20
_LOGS = 12
_BLOCK_LIMIT = 16_000
"""Characters of the hidden block; beyond it there is none, since what is cut cannot be read."""
_BLOCK = re.compile(r"<!-- issuewright:evidence:v1 (\{[^\n>]{0,16000}\}) -->")
_POWERS = {letter: f"\\u{ord(letter):04x}" for letter in "<>&@#/\u2028\u2029"}
"""Written as escapes of JSON: so nothing within ends the comment, calls a person or closes an issue."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tests a command ran, as its own output says."""

    unit: str
    """What is counted, as `tests`."""
    collected: int | None = None
    passed: int | None = None
    failed: int | None = None
    """With those that could not be run."""
    skipped: int | None = None

    def __str__(self) -> str:
        """Name what there is; how many were found only where that is not what the others come to."""
        known = ((self.passed, "passed"), (self.failed, "failed"), (self.skipped, "skipped"))
        parts = [f"{number} {word}" for number, word in known if number or (number == 0 and word == "passed")]
        if self.collected is not None and self.collected != sum(number or 0 for number, _ in known):
            parts.append(f"{self.collected} found")
        return f"{', '.join(parts) or '0 found'}{'' if self.unit == 'tests' else f' {self.unit}'}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One time that the harness ran a check."""

    exit_code: int | None
    """None where it ran out of time."""
    seconds: float
    tree: str = ""
    """Of the files it ran on; empty where an earlier version recorded it."""
    tests: Counted | None = None
    """None where the output does not say."""
    output: str = ""
    """Head and tail of what it printed."""
    remark: str = ""
    """Why what it printed of tests is not counted; empty where nothing speaks against that."""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check, before and after the work; None where it did not run."""

    name: str
    command: str
    before: CheckResult | None = None
    after: CheckResult | None = None
    skipped: str = ""
    """Why it was not run where it might have been."""
    base: CheckResult | None = None
    """After the work, with the base's files that define it."""
    proof: CheckResult | None = None
    """On the old code, with the work's tests."""
    found: bool = False
    """Whether it was found in the project's files, and the repository's file names none."""


@dataclass(frozen=True, slots=True)
class SetupRow:
    """How the project was set up: before the work, or again for the checks after it."""

    names: str
    """The ecosystems, as `python, node`; may be empty."""
    command: str
    """What was run; where it failed, the command that did. Empty where there was nothing to run."""
    exit_code: int | None
    """None where it ran out of time."""
    seconds: float
    cached: bool = False
    output: str = ""
    """Head and tail of what the command that failed printed."""
    remark: str = ""
    """What could not be set up, as sentences."""
    changed: Sequence[str] = ()
    """Files that the work changed, so that the project was set up again; empty before the work."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A place where the work changes what a check means."""

    path: str
    line: int | None
    words: str
    """One sentence; what it quotes of the files is anybody's."""
    apart: bool = False
    """Whether it is about checks that were not run here."""


@dataclass(frozen=True, slots=True)
class ProofRow:
    """What the work's tests say of the old code."""

    verdict: Verdict
    check: str = ""
    reason: str = ""
    """Why they were not run."""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """All that shows whether a change works."""

    setup: Sequence[SetupRow] = ()
    """The one before the work, and the last one for its checks where the work changed what is set up."""
    checks: Sequence[CheckRow] = ()
    findings: Sequence[FindingRow] = ()
    restored: Sequence[str] = ()
    """Files that were as the base has them where a check ran with the base's definition."""
    tests: Sequence[str] = ()
    """The work's new and changed tests, as `path::name`."""
    proof: ProofRow | None = None
    base: str = ""
    """The commit that the work began on."""
    head: str = ""
    """The commit that holds it."""
    tree: str = ""
    """The head's tree, where the last checks ran on exactly that; else empty."""
    alone: bool = False
    """Whether the head was checked by itself: there is no work to compare, and each check ran once, as `after`."""


def section(view: EvidenceView) -> str:
    """Write the part of a pull request's text below its heading."""
    return "\n\n".join([_said(view), *short(view), *_logs(view)])


def short(view: EvidenceView) -> list[str]:
    """Write the same without what was printed, and without the first sentence; empty where there is nothing."""
    parts = [*map(_setup, view.setup)]
    if view.checks:
        parts.append(table(view))
    parts += _fewer(view)
    if view.findings:
        parts.append(_findings(view))
    if view.proof is not None:
        parts.append(_proof(view.proof, view.tests))
    return parts


def evidence_check(view: EvidenceView, task_id: str) -> CheckRun:
    """Say the same in a check run of the head.

    Args:
        view: with a head.
        task_id: the task's, by which its check run is found again.
    """
    last = [row.after for row in view.checks]
    well = _well(view)
    failed = any(result is not None and result.exit_code != 0 for result in last)
    hidden = any(row.base is not None and row.base.exit_code != 0 for row in view.checks)
    conclusion: CheckConclusion = (
        "failure"
        if failed or hidden
        else "success"
        if last and well == len(last) and not _elsewhere(view)
        else "neutral"
    )
    summary, logs = "\n\n".join([_said(view), *short(view)]), "\n\n".join(_logs(view))
    return CheckRun(CHECK_NAME, view.head, task_id, "completed", conclusion, title(view), summary, logs)


def title(view: EvidenceView) -> str:
    """Say it in one line."""
    if not view.checks:
        return "There are no checks"
    where = ", on other files than this commit's" if _elsewhere(view) else ""
    told = "; this change weakens or redefines its own checks" if not all(one.apart for one in view.findings) else ""
    fewer = ", with fewer tests than before" if _fewer(view) else ""
    return f"{_well(view)} of {len(view.checks)} checks pass{where}{fewer}{told}"


def _fewer(view: EvidenceView) -> list[str]:
    """Say where a check ends well and shows less than before: whatever made it so, the table alone would hide it."""
    both = [(row.name, row.before, row.after) for row in view.checks]
    told = [(name, _lost(before, after)) for name, before, after in both if before and after and after.exit_code == 0]
    return [f"**{text.cell_code(pieces.shorten(name, _CELL_LIMIT))} {lost}.**" for name, lost in told if lost]


def _lost(before: CheckResult, after: CheckResult) -> str:
    had, has = before.tests, after.tests
    if had is None or not (ran := _ran(had)):
        return ""
    if has is None or has.unit != had.unit:
        return f"ends well, but how many tests it ran is not known any more; before it was {ran}"
    return f"ends well, but ran fewer tests than before: {_ran(has)} instead of {ran}" if _ran(has) < ran else ""


def _ran(tests: Counted) -> int:
    return (tests.passed or 0) + (tests.failed or 0)


def _elsewhere(view: EvidenceView) -> bool:
    """Whether the last checks ran on other files than the head's, as where the work was put on a push of others."""
    return not view.alone and not view.tree and any(row.after is not None for row in view.checks)


def _well(view: EvidenceView) -> int:
    return sum(row.after is not None and row.after.exit_code == 0 for row in view.checks)


def table(view: EvidenceView) -> str:
    """Put each check's state before the work and behind it side by side; of a head alone there is one."""
    if view.alone:
        return _state(view)
    rows = [
        "| Check | Command | Exit before | Exit after | Tests before | Tests after | Seconds | Tree |",
        "|---|---|--:|--:|---|---|--:|---|",
    ]
    for check in view.checks:
        name = pieces.cell(check.name, _CELL_LIMIT)
        ends = (_exit(check.before, check.skipped), _exit(check.after, check.skipped))
        rows.append(_row(name + _found(check), check.command, ends, check.before, check.after))
        if view.restored:
            ends = ("", _exit(check.base, check.skipped))
            rows.append(_row(f"{name}, with the base's definition", check.command, ends, None, check.base))
        if check.proof is not None:
            ends = (_exit(check.proof, ""), "")
            rows.append(_row(f"{name}, with the work's tests", check.command, ends, check.proof, None))
    return "\n".join(rows)


def _state(view: EvidenceView) -> str:
    rows = ["| Check | Command | Exit | Tests | Seconds | Tree |", "|---|---|--:|---|--:|---|"]
    for check in view.checks:
        label, exit_code = pieces.cell(check.name, _CELL_LIMIT) + _found(check), _exit(check.after, check.skipped)
        command = pieces.code_cell(check.command, _CELL_LIMIT)
        cells = [label, command, exit_code, _tests(check.after), *_measured(check.after)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def block(view: EvidenceView) -> str:
    """Write what a program reads, hidden from people: the commits, and how each check ended; may be empty."""
    checks = [
        {
            "name": row.name,
            "command": row.command,
            "found": row.found,
            "before": _facts(row.before),
            "after": _facts(row.after),
        }
        for row in view.checks
    ]
    if not checks or not view.head:
        return ""
    data = json.dumps({"base": view.base, "head": view.head, "tree": view.tree, "checks": checks})
    for letter, escape in _POWERS.items():
        data = data.replace(letter, escape)
    return f"<!-- issuewright:evidence:v1 {data} -->" if len(data) <= _BLOCK_LIMIT else ""


def read_block(body: str) -> Mapping[str, object] | None:
    """Read the last such block of a pull request's text; None where there is none.

    Anybody who may edit the text may have written it: it says what to look into, and is no evidence.
    """
    for found in reversed(_BLOCK.findall(body)):
        try:
            data = json.loads(found)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            return data
    return None


def _facts(result: CheckResult | None) -> Mapping[str, object] | None:
    if result is None:
        return None
    counted = asdict(result.tests) if result.tests else None
    return {"exit": result.exit_code, "tests": counted, "tree": result.tree}


def _said(view: EvidenceView) -> str:
    if not view.checks:
        return "This repository names no checks and none was recognised, so nothing shows that the change works."
    if all(check.before is None and check.after is None and check.skipped for check in view.checks):
        return "No check was run, so nothing shows that the change works."
    if view.alone:
        tree = f", whose tree is `{pieces.plain(view.tree[:8])}`" if view.tree else ""
        return f"These checks were run by Issuewright itself on the files of `{pieces.plain(view.head)}`{tree}."
    said = "These checks were run by Issuewright itself, not by the model."
    if view.tree:
        said += f" After the work they ran on the files of `{pieces.plain(view.head[:8])}`,"
        said += f" whose tree is `{pieces.plain(view.tree[:8])}`."
    elif view.head and any(check.after is not None for check in view.checks):
        said += f" **The commit `{pieces.plain(view.head[:8])}` holds other files than those they ran on.**"
    return said


def _row(label: str, command: str, ends: tuple[str, str], before: CheckResult | None, after: CheckResult | None) -> str:
    shown = pieces.code_cell(command, _CELL_LIMIT)
    cells = [label, shown, *ends, _tests(before), _tests(after), *_measured(after or before)]
    return f"| {' | '.join(cells)} |"


def _measured(last: CheckResult | None) -> tuple[str, str]:
    tree = f"`{pieces.plain(last.tree[:8])}`" if last and last.tree else ""
    return f"{last.seconds:.1f}" if last else "", tree


def _found(check: CheckRow) -> str:
    return " (found in the project's files)" if check.found else ""


def _exit(result: CheckResult | None, skipped: str) -> str:
    if result is not None:
        return pieces.exit_code(result.exit_code)
    return f"not run: {text.cell(skipped)}" if skipped else "not run"


def _tests(result: CheckResult | None) -> str:
    if result is None:
        return ""
    if result.tests is not None:
        return pieces.cell(str(result.tests), _CELL_LIMIT)
    return f"not counted: {text.cell(result.remark)}" if result.remark else "not counted"


def _findings(view: EvidenceView) -> str:
    own, apart = ([one for one in view.findings if one.apart is apart] for apart in (False, True))
    told = "**This change weakens or redefines its own checks.** Look at these places before you trust the table:"
    parts = [told, _places(own)] if own else []
    if any(row.base is not None for row in view.checks):
        were = pieces.paths(view.restored)
        parts.append(f"“With the base's definition” is the work, but with {were} as before it.")
    parts += [
        f"**{text.cell_code(row.name)} passes as the work defines it, and does not as it was defined before.**"
        for row in view.checks
        if row.base is not None and row.base.exit_code != 0 and row.after is not None and row.after.exit_code == 0
    ]
    parts += ["It changes checks that were not run here:", _places(apart)] if apart else []
    return "\n\n".join(parts)


def _places(findings: Sequence[FindingRow]) -> str:
    lines = [f"- {_place(one)}: {pieces.cell(one.words, pieces.SENTENCE_LIMIT)}" for one in findings[:_FINDINGS]]
    more = [f"- and {len(findings) - _FINDINGS} more places"] if len(findings) > _FINDINGS else []
    return "\n".join([*lines, *more])


def _place(finding: FindingRow) -> str:
    line = f" line {finding.line}" if finding.line is not None else ""
    return text.cell_code(pieces.shorten(finding.path, _CELL_LIMIT)) + line


def _proof(proof: ProofRow, tests: Sequence[str]) -> str:
    """Say plainly what the work's tests show of the old code."""
    check = text.cell_code(pieces.shorten(proof.check, _CELL_LIMIT))
    names = f" ({pieces.paths(tests)})" if tests else ""
    match proof.verdict:
        case "shown":
            return f"**Red before, green after.** The new or changed tests{names} fail on the old code and pass now."
        case "red":
            return (
                f"**Red before, red after.** {check} fails on the old code with the new or changed tests{names}, and on"
                " the new code."
            )
        case "green":
            return (
                f"**The new or changed tests{names} also pass on the old code**, so they do not show the fault that was"
                " to be mended."
            )
        case "unclear":
            return (
                f"**What the new or changed tests{names} show is unclear.** {check} did not end well on the old code,"
                " but whether that is due to them cannot be told: it failed without them too, or ran out of time."
            )
        case "not run":
            return f"**New tests on the old code**: not run, since {pieces.sentence(proof.reason)}"


def _logs(view: EvidenceView) -> list[str]:
    """Fold away the head and tail of what the last runs printed."""
    ran = [
        (pieces.cell(row.name, _CELL_LIMIT) + what, result.output)
        for row in view.checks
        for what, result in (
            ("" if row.after else ", before the work", row.after or row.before),
            (", with the base's definition", row.base),
            (", with the work's tests on the old code", row.proof),
        )
        if result is not None and result.output.strip()
    ]
    return [pieces.details(f"Log of {name}", text.fence(_ends(output.strip()))) for name, output in ran[:_LOGS]]


def _ends(output: str) -> str:
    if len(output) <= _OUTPUT_LIMIT:
        return output
    half = _OUTPUT_LIMIT // 2
    return f"{output[:half].rstrip()}\n…\n{output[-half:].lstrip()}"


def _setup(row: SetupRow) -> str:
    """Say how the set-up went; what failed is shown with the end of its output."""
    remark = f" {pieces.sentence(row.remark)}" if row.remark else ""
    since = f", since the work changed {pieces.paths(row.changed)}" if row.changed else ""
    what = "Set-up again" if row.changed else "Set-up"
    if row.changed and row.exit_code == 0:
        remark += f" The checks after the work run {'in what that made' if row.command else 'with nothing set up'}."
    if not row.command:
        return f"**{what}**{since}: nothing was run.{remark}"
    command, took = pieces.code_cell(row.command, _CELL_LIMIT), f"{row.seconds:.1f} s"
    if row.exit_code == 0:
        name = f" of {pieces.plain(row.names)}" if row.names else ""
        how = f"{command}, as an earlier task left it" if row.cached else f"{command} in {took}"
        return f"**{what}**{name}{since}: {how}.{remark}"
    ended = "ran out of time" if row.exit_code is None else f"ended with exit code {row.exit_code}"
    failed = f"**{what} failed**{since}: {command} {ended} after {took}.{remark}"
    if not row.output.strip():
        return failed
    shown = text.fence(row.output.strip()[-_OUTPUT_LIMIT:])
    return f"{failed}\n\n{pieces.details('The end of its output', shown)}"
