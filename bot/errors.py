"""Every exception that is raised on purpose; the class decides who is told, never the place that catches it.

BotError                            everything we raise on purpose
├── UserError                       its text is Markdown fit to post on the thread
│   ├── CommandError
│   ├── NotAllowed
│   ├── RepositoryConfigError
│   └── TaskRefused
├── RunEnding                       the task's run is about to end: what is asked is done behind it
├── OperatorError                   printed at start (exit 4); at run time logged, health turns red
├── ToolError                       goes back to the model as a failed result; the run goes on
│   └── MalformedCall               the call could not be read: nothing was tried
├── ModelError
│   ├── ModelUnavailable            overloaded, rate limited or unreachable
│   ├── ContextOverflow
│   ├── MalformedReply
│   ├── ModelRefused
│   └── ModelRejected               authentication, quota, a request that the API does not take
├── GitHubError
│   ├── GitHubUnavailable           5xx, dropped connection, timeout
│   ├── RateLimited
│   ├── NotFound
│   ├── Forbidden
│   └── Conflict
├── WorkspaceError
│   ├── CloneFailed
│   ├── RepositoryRefused           empty, too large, or with paths that cannot be checked out
│   └── PushRejected
│       └── BranchMoved             the remote branch stands elsewhere than it has to
└── SandboxError                    the place is broken; a non-zero exit is a result, not an error

Interrupt                           not a BotError: `except BotError` cannot swallow it
├── LimitReached
├── Waits                           people have to decide or answer first
└── Cancelled
"""

from bot.redaction import mask


class BotError(Exception):
    """Everything we raise on purpose."""

    retryable: bool = False
    """Whether the same act may succeed later without anybody changing anything."""

    def __str__(self) -> str:
        """Return the text without secrets: it is shown, posted and stored."""
        return mask(super().__str__())


class UserError(BotError):
    """A person on the thread asked for something that cannot be; the text is Markdown fit to post."""


class CommandError(UserError):
    """A command that cannot be understood."""


class NotAllowed(UserError):
    """A person who may not do this."""


class RepositoryConfigError(UserError):
    """`.github/issuewright.yml` is broken; the text names file, line, column, problem and remedy."""


class TaskRefused(UserError):
    """A task that cannot be done here, as one on a pull request from a fork."""


class RunEnding(BotError):
    """The task's run is about to end, and what is asked can be done behind it."""

    retryable = True


class OperatorError(BotError):
    """Something only the operator can mend: configuration, credentials, a missing program."""


class ToolError(BotError):
    """A tool could not do what the model asked; the text goes back to the model."""


class MalformedCall(ToolError):
    """A tool call that cannot be read: an unknown tool, no JSON, arguments that do not fit the schema."""


class ModelError(BotError):
    """A model did not answer as needed."""


class ModelUnavailable(ModelError):
    """The provider is overloaded, limits our rate, or cannot be reached."""

    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """Seconds the provider asked us to wait; None where it did not say."""


class ContextOverflow(ModelError):
    """The conversation is longer than the model's window; nothing was billed."""


class MalformedReply(ModelError):
    """The reply breaks the protocol."""


class ModelRefused(ModelError):
    """The model declined to answer."""


class ModelRejected(ModelError):
    """The API does not take the request: authentication, balance, an unknown model, a bad request."""


class GitHubError(BotError):
    """GitHub did not do what was asked."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; None where there was no answer."""


class GitHubUnavailable(GitHubError):
    """GitHub answered 5xx, dropped the connection or timed out."""

    retryable = True


class RateLimited(GitHubError):
    """A primary or secondary rate limit."""

    retryable = True

    def __init__(self, message: str, *, retry_after_s: float, status: int | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after_s = retry_after_s
        """Seconds until GitHub will take requests again."""


class NotFound(GitHubError):
    """404 or 410: it does not exist, or our token may not see it."""


class Forbidden(GitHubError):
    """401 or 403 that is no rate limit; the text names the missing permission where GitHub does."""


class Conflict(GitHubError):
    """409 or 422: the state does not allow it, as a pull request that exists already."""


class WorkspaceError(BotError):
    """The working copy could not be made or used."""


class CloneFailed(WorkspaceError):
    """Fetching the repository failed."""

    retryable = True


class RepositoryRefused(WorkspaceError):
    """The repository cannot be worked on: empty, too large, or with paths that cannot be checked out."""


class PushRejected(WorkspaceError):
    """The remote did not take the push."""


class BranchMoved(PushRejected):
    """The remote branch does not stand where it has to: somebody else pushed."""


class SandboxError(BotError):
    """The place where commands run is broken; a non-zero exit is a result, not an error."""


class Interrupt(Exception):
    """Ends a run on purpose; no BotError, so `except BotError` cannot swallow it."""


class LimitReached(Interrupt):
    """A limit of the run is reached; what was done is kept."""

    def __init__(self, what: str, value: float, limit: float, remark: str = "") -> None:
        super().__init__(f"{what}: {_figure(value)} of {_figure(limit)}" + (f" ({remark})" if remark else ""))
        self.what = what
        """`turns`, `tokens`, `usd`, `minutes`, `format_errors` or `repeats`."""
        self.value = value
        self.limit = limit
        self.remark = remark


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - from here on, digits in groups


class Waits(Interrupt):
    """People have to decide or answer something before the run can go on; the text says what, as a sentence."""

    def __init__(self, text: str, seen: int = 0) -> None:
        """Say what is waited for.

        Args:
            text: a sentence.
            seen: the last inbox item that was there when it was put to the people, so that no answer is among these.
        """
        super().__init__(text)
        self.seen = seen


class Cancelled(Interrupt):
    """A person stopped the run, or the process is going down."""
