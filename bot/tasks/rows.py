"""Facts of checks and set-ups as the rows in which people see them."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.events import CheckFinished, CheckSkipped, CommitMade, DefinitionsChanged, ProofRun, SetupFinished
from bot.github.evidence import LEFT_OUT, CheckResult, CheckRow, Counted, EvidenceView, FindingRow, ProofRow, SetupRow
from bot.projects.evidence.changes import APART

CheckFact = CheckFinished | CheckSkipped


def check_rows(facts: Sequence[CheckFact]) -> list[CheckRow]:
    """Put each check's state before the work and behind it side by side; nothing that another command gave."""
    rows: dict[str, CheckRow] = {}
    last: set[str] = set()
    phase = ""
    for fact in facts:
        if fact.phase == "after":
            last = last if phase == "after" and fact.name not in last else set()
            last.add(fact.name)
        phase = fact.phase
        row = rows.get(fact.name)
        if row is None or row.command != fact.command:
            row = CheckRow(fact.name, fact.command)
        row = replace(row, found=fact.found)
        rows[fact.name] = _skipped(row, fact) if isinstance(fact, CheckSkipped) else _ran(row, fact, worked=bool(last))
    # What only an earlier attempt measured is not what the last one is like.
    return [
        replace(row, after=None, skipped=LEFT_OUT) if last and row.after and row.name not in last else row
        for row in rows.values()
    ]


def _skipped(row: CheckRow, fact: CheckSkipped) -> CheckRow:
    return replace(row, after=None if fact.phase == "after" else row.after, skipped=fact.reason)


def _ran(row: CheckRow, fact: CheckFinished, *, worked: bool) -> CheckRow:
    tests = Counted(fact.unit, fact.collected, fact.passed, fact.failed, fact.skipped) if fact.unit else None
    result = CheckResult(fact.exit_code, fact.seconds, fact.tree, tests, fact.output, fact.remark)
    match fact.phase:
        case "before":
            # Over several runs the first state and the last are what a reviewer compares: a further run begins on work.
            return row if worked else replace(row, before=row.before or result)
        case "after" | "head":
            return replace(row, after=result)
        case "base":
            return replace(row, base=result)
        case "proof":
            return replace(row, proof=result)


def setup_row(fact: SetupFinished) -> SetupRow:
    """Say how a set-up went."""
    return SetupRow(
        fact.names, fact.command, fact.exit_code, fact.seconds, fact.cached, fact.output, fact.remark, fact.changed
    )


def evidence_view(
    *,
    setup: Sequence[SetupRow],
    checks: Sequence[CheckFact],
    definitions: DefinitionsChanged | None,
    proof: ProofRun | None,
    base: str,
    commit: CommitMade | None,
) -> EvidenceView:
    """Gather what shows whether a change works."""
    after = [fact for fact in checks if isinstance(fact, CheckFinished) and fact.phase == "after"]
    # They ran on the commit's very files, before it was made or in a run that changed nothing more, or on others.
    ran_on = {
        fact.tree for fact in after[-1:] if commit is not None and fact.commit in {commit.same_tree_as, commit.sha}
    }
    return EvidenceView(
        setup=setup,
        checks=check_rows(checks),
        findings=[_finding(one) for one in definitions.findings] if definitions else (),
        restored=definitions.restored if definitions else (),
        tests=definitions.tests if definitions else (),
        proof=ProofRow(proof.verdict, proof.check, proof.reason) if proof else None,
        base=base,
        head=commit.sha if commit else "",
        tree="".join(ran_on),
    )


def head_view(setup: Sequence[SetupRow], checks: Sequence[CheckFact], head: str) -> EvidenceView:
    """Gather how a commit stands by itself."""
    trees = {fact.tree for fact in checks if isinstance(fact, CheckFinished) and fact.commit == head}
    return EvidenceView(setup, check_rows(checks), head=head, tree="".join(trees), alone=True)


def _finding(data: object) -> FindingRow:
    one = data if isinstance(data, dict) else {}
    line = one.get("line")
    path, words, apart = str(one.get("path", "")), str(one.get("words", "")), str(one.get("kind", "")) in APART
    return FindingRow(path, line if isinstance(line, int) else None, words, apart=apart)
