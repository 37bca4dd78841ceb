"""The tools that every mode starts from."""

from bot.tools.apply_patch import ApplyPatch
from bot.tools.base import Tool
from bot.tools.delete import Delete
from bot.tools.edit import Edit
from bot.tools.finish import Finish
from bot.tools.list import List
from bot.tools.move import Move
from bot.tools.read import Read
from bot.tools.run import LONGEST_S, Run
from bot.tools.search import Search
from bot.tools.update_plan import UpdatePlan
from bot.tools.write import Write


def standard_tools(*, command_s: int = LONGEST_S) -> list[Tool]:
    """Make one of each; `command_s` is how many seconds one command may take."""
    return [
        ApplyPatch(),
        Delete(),
        Edit(),
        Finish(),
        List(),
        Move(),
        Read(),
        Run(command_s),
        Search(),
        UpdatePlan(),
        Write(),
    ]
