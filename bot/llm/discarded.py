"""Failures that cost tokens: the usage of replies that were thrown away rides on the error.

`bot.errors` lies below the domain and cannot name `Usage`; whoever counts asks `usage_of`.
"""

from bot.domain.messages import Usage
from bot.errors import MalformedReply, ModelError, ModelRefused, ModelUnavailable


class DroppedReply(ModelUnavailable):
    """A reply broke off, or a later part of it could not be had."""

    def __init__(self, message: str, *, usage: Usage, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.usage = usage
        """What the provider had counted until then."""


class GarbledReply(MalformedReply):
    """A reply broke the protocol after it had begun to cost."""

    def __init__(self, message: str, *, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage
        """What the provider had counted until then."""


class RefusedReply(ModelRefused):
    """The model declined, and the provider counted it."""

    def __init__(self, message: str, *, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage
        """What the provider counted."""


def usage_of(error: ModelError) -> Usage:
    """Return what the failed request is known to have cost."""
    return error.usage if isinstance(error, DroppedReply | GarbledReply | RefusedReply) else Usage()


def with_usage(error: ModelError, usage: Usage) -> ModelError:
    """Return an error of the same kind that carries `usage` on top of its own.

    The new error has the old one's cause and traceback. The same object comes back where there is nothing to carry,
    and for `ContextOverflow` and `ModelRejected`, which nobody retries.
    """
    if usage == Usage():
        return error
    made = _made(error, usage + usage_of(error))
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)


def _made(error: ModelError, total: Usage) -> ModelError:
    if isinstance(error, ModelUnavailable):
        return DroppedReply(str(error), usage=total, retry_after_s=error.retry_after_s)
    if isinstance(error, MalformedReply):
        return GarbledReply(str(error), usage=total)
    if isinstance(error, ModelRefused):
        return RefusedReply(str(error), usage=total)
    return error
