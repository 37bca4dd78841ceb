"""What people are told about the sandbox, where one is chosen."""

import asyncio
from collections.abc import Callable

from bot import bootstrap
from bot.sandbox.choose import Chosen
from bot.settings.server import ServerSettings


def sheltered(settings: ServerSettings, say: Callable[[str], None]) -> Chosen:
    """Choose what shuts commands in, and say what it is and what it lacks."""
    bootstrap.warm(settings)
    chosen = asyncio.run(bootstrap.choose_sandbox(settings))
    tell(chosen, say)
    return chosen


def tell(chosen: Chosen, say: Callable[[str], None]) -> None:
    """Say which level was chosen, why no stronger one, and what would give one."""
    say(f"Sandbox: {chosen.told}")
    for line in chosen.missing:
        say(f"  {line}")
    if chosen.remedy:
        say(f"  for a stronger one: {chosen.remedy}")
