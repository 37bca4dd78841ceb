"""Plan and Act: how a run goes about its task, and when its plan waits."""

import pytest

from bot.agent.modes import ACT, ASK, PLAN, mode_of, why_wait
from bot.domain.proposal import Proposal
from bot.domain.protected import is_protected
from bot.domain.task import Mode
from bot.tools.standard import standard_tools


@pytest.mark.parametrize(
    ("configured", "commanded", "goes_on", "mode"),
    [
        ("auto", False, False, "auto"),
        ("auto", True, False, "act"),
        ("auto", True, True, "act"),
        ("plan", False, False, "plan"),
        ("plan", True, False, "plan"),
        ("plan", True, True, "act"),
        ("act", False, False, "act"),
    ],
)
def test_mode(configured: Mode, mode: Mode, *, commanded: bool, goes_on: bool) -> None:
    """A command acts at once but under `plan`; a plan that was put to the people is carried out by a command."""
    assert mode_of(configured, commanded=commanded, goes_on=goes_on) == mode


def test_tools_of_each_phase() -> None:
    """A plan has what reads and its own end; the work has all but that."""
    tools = standard_tools()
    planning, working = ({tool.spec.name for tool in phase.of(tools)} for phase in (PLAN, ACT))
    assert planning == {"ci_logs", "ci_status", "list", "propose_plan", "read", "search"}
    assert working == {tool.spec.name for tool in tools} - {"propose_plan", "answer_thread"}
    assert all(tool.reads_only for tool in PLAN.of(tools))
    assert {tool.spec.name for tool in ASK.of(tools)} == {"ci_logs", "ci_status", "finish", "list", "read", "search"}


def test_only_a_review_has_threads_to_answer() -> None:
    """Else the tool would be paid for in each task."""
    tools = standard_tools()
    reviewed = {tool.spec.name for tool in ACT.of(tools, reviewed=True)}
    assert reviewed == {tool.spec.name for tool in tools} - {"propose_plan"}


@pytest.mark.parametrize(
    ("proposal", "waits"),
    [
        (Proposal("p", ("a.py",), 30), ""),
        (Proposal("p", ("a.py",), 31), "31 turns"),
        (Proposal("p"), "neither what it changes nor how long"),
        (Proposal("p", ("a.py", "x/AGENTS.md"), 3), "`x/AGENTS.md`"),
        (Proposal("p", ("a.py",), 3, ("Which?",)), "asks a question"),
    ],
)
def test_why_a_plan_waits(proposal: Proposal, waits: str) -> None:
    """Under `auto` only for a reason; under `plan` always, under whatever reason."""
    told = why_wait("auto", proposal, 60)
    assert waits in told
    assert bool(told) == bool(waits)
    assert why_wait("plan", proposal, 60)


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".GITHUB/issuewright.yml",
        "./.github/x",
        "CODEOWNERS",
        "docs/CODEOWNERS",
        "AGENTS.md",
        "deep/down/agents.md",
        "CLAUDE.md",
        ".clinerules/style.md",
        "pkg/.cursor/rules/a.mdc",
        "/.github/x",
        "././.github/x",
        ".//.github/x",
        "../.github/x",
        "src/../.github/x",
        "`CLAUDE.md`",
        '"CLAUDE.md"',
        "CLAUDE.md (new)",
        "`CLAUDE.md (new)`",
        "`CLAUDE.md` (a new file)",
        ".github",
        ".github/",
        "AGENTS.md/",
        ".github\\workflows\\x",
        "\u200bAGENTS.md",
        "AGENTS\u200d.md\ufeff",
    ],
)
def test_protected(path: str) -> None:
    """Workflows, owners and what agents are told, wherever they lie and however they are written."""
    assert is_protected(path)


@pytest.mark.parametrize(
    "path", ["github/x.py", "docs/owners.md", "MYAGENTS.md", "src/.githubx", "README.md", "", ".", "x/.github/y"]
)
def test_not_protected(path: str) -> None:
    """All else."""
    assert not is_protected(path)
