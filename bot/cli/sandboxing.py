"""What people are told about the missing sandbox, where it is asked for, and what we keep from the model's commands."""

import sys

from bot.errors import OperatorError
from bot.settings.server import ServerSettings

NO_SANDBOX = (
    "there is no sandbox yet: the model's commands run under a user id of their own, but can read what that user can "
    "and reach the network. Add `--unsafe-no-sandbox` only for repositories and issues that you trust"
)


def require(settings: ServerSettings) -> None:
    """Refuse to run the model's commands without a sandbox where nobody said so; else hide from them."""
    if not settings.sandbox.unsafe_no_sandbox:
        raise OperatorError(NO_SANDBOX)
    hide()


def hide() -> None:
    """Close this process to others of its own uid: the environment it was started with holds secrets.

    Taking a variable out of the environment does not take it out of `/proc/PID/environ`, and where the server is not
    root the model's commands have its uid.
    """
    from bot.sandbox.helper.kernel import SET_DUMPABLE, prctl

    if sys.platform == "linux":
        prctl(SET_DUMPABLE, 0)
