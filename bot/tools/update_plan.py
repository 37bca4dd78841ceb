"""`update_plan`: the model's to-do list, for people to follow."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from bot.domain.messages import ToolSpec
from bot.domain.plan import PlanItem, check_boxes
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput

_MOST = 30
_CHARS = 200


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _Item(Arguments):
    text: Annotated[str, AfterValidator(_one_line), Field(min_length=1, max_length=_CHARS)]
    done: bool = False


class _Arguments(Arguments):
    items: list[_Item] = Field(max_length=_MOST)


class UpdatePlan:
    """Keeps the whole list anew at each call; nothing is merged."""

    spec: ToolSpec = specify(
        "update_plan",
        "Show people your to-do list: all steps in order, with what is done. For work of several steps only.",
        _Arguments,
    )
    reads_only: bool = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Take the list over."""
        plan = tuple(PlanItem(item.text, item.done) for item in parse(_Arguments, arguments).items)
        done = sum(item.done for item in plan)
        return ToolOutput(check_boxes(plan) or "(no plan)", f"{done} of {len(plan)} done", plan=plan)
