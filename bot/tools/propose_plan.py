"""`propose_plan`: the plan that stands before the work, where the work waits for one."""

import posixpath
from collections.abc import Mapping

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.domain.proposal import Proposal
from bot.errors import ToolError
from bot.tools.arguments import Arguments, Words, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.toolset import fit

_CHARS = 20_000
_MOST = 100
_PATH_CHARS = 4096
_ALL_PATHS = 20_000
"""Characters of all paths: people read every one before they approve the plan."""


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
        files = [_known(path) for path in asked.files if path.strip()]
        if sum(map(len, files)) > _ALL_PATHS:
            raise ToolError("too_long: the paths are too many for people to read; name folders, or plan less")
        proposal = Proposal(fit(asked.plan, _CHARS), files, asked.turns, questions)
        count = len(proposal.files)
        summary = f"a plan for {count} file{'' if count == 1 else 's'}"
        return ToolOutput("The plan was put to the people.", summary, finished=True, proposal=proposal)


def _known(path: str) -> str:
    """Write a path without detours, which would hide from people where it ends.

    Raises:
        ToolError: it leaves the repository, or is longer than Linux takes it.
    """
    made = posixpath.normpath(path.strip().replace("\\", "/"))
    if made == ".." or made.startswith("../"):
        raise ToolError(f"outside: a plan only names paths of the repository: {fit(made, 200)}")
    if len(path) > _PATH_CHARS:
        raise ToolError(f"too_long: a path has at most {_PATH_CHARS} characters: {fit(made, 200)}")
    return made
