"""`propose_plan`: the plan that stands before the work, where the work waits for one."""

from collections.abc import Mapping

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.domain.proposal import Proposal
from bot.tools.arguments import Arguments, Words, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.toolset import fit

_CHARS = 20_000
_MOST = 100
_PATH_CHARS = 500


class _Arguments(Arguments):
    plan: Words = Field(max_length=_CHARS, description="Markdown.")
    files: list[str] = Field(max_length=_MOST, description="Paths to be changed.")
    turns: int = Field(ge=1, description="Your estimate of the replies that the work takes.")
    questions: list[str] = Field(default=[], max_length=10, description="Only what you cannot find out or decide.")


class ProposePlan:
    """Ends planning; whether the work begins at once is the harness's to decide."""

    spec: ToolSpec = specify("propose_plan", "End planning: what is to be done, and how it is checked.", _Arguments)
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Hand the plan over."""
        asked = parse(_Arguments, arguments)
        questions = [fit(question, _CHARS) for question in asked.questions if question.strip()]
        files = [fit(path, _PATH_CHARS) for path in asked.files]
        proposal = Proposal(fit(asked.plan, _CHARS), files, asked.turns, questions)
        count = len(proposal.files)
        summary = f"a plan for {count} file{'' if count == 1 else 's'}"
        return ToolOutput("The plan was put to the people.", summary, finished=True, proposal=proposal)
