"""The tools that every mode starts from."""

from bot.tools.base import Tool
from bot.tools.delete import Delete
from bot.tools.edit import Edit
from bot.tools.finish import Finish
from bot.tools.list import List
from bot.tools.read import Read
from bot.tools.run import Run
from bot.tools.search import Search
from bot.tools.write import Write


def standard_tools() -> list[Tool]:
    """Make one of each."""
    return [Delete(), Edit(), Finish(), List(), Read(), Run(), Search(), Write()]
