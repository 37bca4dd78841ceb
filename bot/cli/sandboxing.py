"""What people are told about the missing sandbox, and where it is asked for."""

from bot.errors import OperatorError
from bot.settings.server import ServerSettings

NO_SANDBOX = (
    "there is no sandbox yet: the model's commands run under a user id of their own, but can read what that user can "
    "and reach the network. Add `--unsafe-no-sandbox` only for repositories and issues that you trust"
)


def require(settings: ServerSettings) -> None:
    """Refuse to run the model's commands without a sandbox where nobody said so."""
    if not settings.sandbox.unsafe_no_sandbox:
        raise OperatorError(NO_SANDBOX)
