"""Plan, Act and Ask: what each may use, how it is told to work, and when a plan waits for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.agent.prompts import render
from bot.domain.proposal import Proposal
from bot.domain.protected import is_protected
from bot.domain.task import Mode
from bot.tools.answer_thread import NAME as ANSWER_THREAD
from bot.tools.base import Tool

PROPOSE = "propose_plan"
FINISH = "finish"
OF_WORK = {FINISH, "ask_person", "update_plan"}
"""Change nothing and still have no place in a plan, which has questions and steps of its own."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One way of going about a task."""

    name: str
    """`plan`, `act` or `ask`; also the prompt's."""
    ending: str
    """The tool that ends it."""

    @property
    def system(self) -> str:
        """The system prompt: the same bytes for every task, so that providers can cache it."""
        return render(self.name)

    @property
    def nudge(self) -> str:
        """What a reply without a call is answered with."""
        return f"Your last reply called no tool. Go on with the task, or call `{self.ending}` if you are done."

    def of(self, tools: Sequence[Tool], *, reviewed: bool = False) -> list[Tool]:
        """Choose the tools that are offered: but for the work none that changes anything, nor what belongs to it.

        Args:
            tools: all of them.
            reviewed: whether there are threads of a review to answer.
        """
        if self is ACT:
            left_out = {PROPOSE} if reviewed else {PROPOSE, ANSWER_THREAD}
            return [tool for tool in tools if tool.spec.name not in left_out]
        left_out = {*OF_WORK, PROPOSE, ANSWER_THREAD} - {self.ending}
        return [tool for tool in tools if tool.reads_only and tool.spec.name not in left_out]


PLAN = Phase("plan", PROPOSE)
ACT = Phase("act", FINISH)
ASK = Phase("ask", FINISH)
"""A question of a person is answered; nothing is changed."""


def mode_of(configured: Mode, *, commanded: bool, goes_on: bool) -> Mode:
    """Say how a run goes about its task.

    Args:
        configured: what operator and repository say.
        commanded: whether a person asked for the work in so many words, and not by a label.
        goes_on: whether people ask to go on with a plan that they read, or with work that had begun.
    """
    if goes_on or (commanded and configured == "auto"):
        return "act"
    return configured


def why_wait(mode: Mode, proposal: Proposal, turns: int) -> str:
    """Say as a sentence why a plan waits for people; empty where the work begins at once.

    Args:
        mode: of the run.
        proposal: the plan.
        turns: that the run may take.
    """
    if mode == "plan":
        return "Work begins when somebody says so."
    if proposal.turns is None:
        return "The plan says neither what it changes nor how long it takes."
    if proposal.questions:
        return "The plan asks a question."
    touched = [path for path in proposal.files if is_protected(path)]
    if touched:
        return f"The plan changes `{touched[0]}`, which decides what others may do."
    if proposal.turns * 2 > turns:
        return f"The plan expects to take {proposal.turns} turns, more than half of the {turns} that there are."
    return ""
