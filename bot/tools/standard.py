"""All tools; each mode chooses from them."""

from collections.abc import Sequence

from bot.settings.repository import Check
from bot.tools.answer_thread import AnswerThread
from bot.tools.apply_patch import ApplyPatch
from bot.tools.ask_person import AskPerson
from bot.tools.base import Tool
from bot.tools.checks import Checks
from bot.tools.ci_logs import CiLogs
from bot.tools.ci_status import CiStatus
from bot.tools.delete import Delete
from bot.tools.edit import Edit
from bot.tools.finish import Finish
from bot.tools.list import List
from bot.tools.move import Move
from bot.tools.propose_plan import ProposePlan
from bot.tools.read import Read
from bot.tools.run import LONGEST_S, Run
from bot.tools.search import Search
from bot.tools.update_plan import UpdatePlan
from bot.tools.write import Write


def standard_tools(
    *, command_s: int = LONGEST_S, checks: Sequence[Check] = (), network: Sequence[str] = ()
) -> list[Tool]:
    """Make one of each.

    Args:
        command_s: how many seconds one command may take.
        checks: of the repository; none where they are told from its files.
        network: hosts and presets that commands may reach.
    """
    return [
        AnswerThread(),
        ApplyPatch(),
        AskPerson(),
        Checks(checks, command_s, network),
        CiLogs(),
        CiStatus(),
        Delete(),
        Edit(),
        Finish(),
        List(),
        Move(),
        ProposePlan(),
        Read(),
        Run(command_s, network),
        Search(),
        UpdatePlan(),
        Write(),
    ]
