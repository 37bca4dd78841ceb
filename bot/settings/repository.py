"""What a repository says of itself in `.github/issuewright.yml`: it can only tighten what the operator allows."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationError

from bot.domain.task import Mode, PlanAs, Ready
from bot.errors import RepositoryConfigError
from bot.settings.policy import RepositoryRule
from bot.settings.problems import explain
from bot.settings.reading import read_document
from bot.settings.section import ModelName, Section, Texts

PATH = ".github/issuewright.yml"
"""Where the file stands, on the default branch."""


class Check(Section):
    """A command that tells whether the repository is well."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,59}$",
        description="Name for people, at most 60 letters, digits and `. _ : / + -`.",
    )
    run: str = Field(min_length=1, max_length=4000, description="Shell command, run in the repository's top directory.")
    timeout_s: int = Field(600, ge=1, le=86_400, description="Seconds it may take; never more than the run's minutes.")


def _at_length(value: object) -> object:
    """Take a list of commands, or `false`, for the group of settings that it is short for."""
    if isinstance(value, bool):
        return {} if value else {"run": []}
    return {"run": value} if isinstance(value, list) else value


MemoryMode = Literal["off", "read", "write"]
MEMORY_FOLDER = "memory-bank"


class Setup(Section):
    """What is done once before the work."""

    run: tuple[Annotated[str, StringConstraints(min_length=1, max_length=4000)], ...] | None = Field(
        None,
        max_length=20,
        description="Shell commands that install what the project needs; the list may stand at `setup` itself. `null` "
        "finds them out from the project's files, `[]` or `setup: false` installs nothing. What they make is kept until"
        " they, a project file or a file that they name changes; where the work changes one, they run again before the "
        "checks. What has to last belongs into `$ISSUEWRIGHT_SHARED` or into ignored files of the tree.",
    )
    network: Texts | None = Field(
        None, description="Of the operator's `sandbox.setup_network`, what they may reach. `null` is all of it."
    )
    timeout_s: int = Field(
        1800, ge=1, le=86_400, description="Seconds they may take together; never more than the run's minutes."
    )


class RepositoryLimits(Section):
    """Lower limits than the operator's; higher ones change nothing."""

    turns: int | None = Field(None, ge=1, description="Model replies in one run.")
    tokens: int | None = Field(None, ge=1000, description="Tokens in one run, input and output.")
    usd: float | None = Field(None, gt=0, allow_inf_nan=False, description="US dollars in one run.")
    minutes: float | None = Field(None, gt=0, allow_inf_nan=False, description="Minutes of wall clock in one run.")


def _unswitched(value: object) -> object:
    """Take YAML's `off`, which is a way to write `false`, for the word."""
    return "off" if value is False else value


def _distinct(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    names = [check.name for check in checks]
    if len(set(names)) < len(names):
        msg = "two checks have the same name"
        raise ValueError(msg)
    return checks


class RepositorySettings(Section):
    """All that a repository may say."""

    version: Literal[1] = Field(description="Version of this format, 1.")
    enabled: bool = Field(True, description="Whether we work here at all.")  # noqa: FBT003 - a field's default
    model: ModelName | None = Field(
        None, description="The model that does the work, `provider:name`, among those that the operator allows."
    )
    mode: Mode | None = Field(
        None,
        description="`plan` lets people decide about a plan first, `auto` only where it has to; see the server's.",
    )
    plan_as: PlanAs | None = Field(
        None,
        description="`comment` or `pull`: how a plan that waits is put to people. `null` is what the operator says.",
    )
    policy: Literal["strict"] | None = Field(
        None, description="`strict` asks people about each call that does more than read, whatever the operator says."
    )
    rules: tuple[RepositoryRule, ...] = Field(
        (), max_length=50, description="Calls that people are asked about here, or that are denied, at most 50 rules."
    )
    require_approvals: int | None = Field(
        None,
        ge=1,
        le=10,
        description="How many people have to approve such a call; fewer than the operator says change nothing.",
    )
    limits: RepositoryLimits = RepositoryLimits()
    network: Texts | None = Field(
        None,
        description="Of the operator's `sandbox.network`, what the model's commands may reach. `null` is all of it.",
    )
    parallel_commands: bool | None = Field(
        None,
        description="Whether commands of one reply of the model run side by side, where the operator's "
        "`sandbox.parallel_commands` lets them. `null` is what the operator says; `false` is for projects whose "
        "commands get in each other's way.",
    )
    setup: Annotated[Setup, BeforeValidator(_at_length)] = Setup()
    checks: Annotated[tuple[Check, ...], AfterValidator(_distinct)] = Field(
        (),
        max_length=20,
        description="Commands that are run before and after the work, in this order, at most 20. Where there are none, "
        "the tests are run that the project's files tell of.",
    )
    draft: bool | None = Field(None, description="`true` opens pull requests as drafts where the operator does not.")
    ready: Ready | None = Field(
        None, description="`never` leaves it to people to mark our pull requests ready for review, whatever is green."
    )
    memory: Annotated[MemoryMode, BeforeValidator(_unswitched)] = Field(
        "read",
        description="`read` tells the model what the Markdown files of the memory bank say on the base branch, `off` "
        "does not. Only with `write` do changes below its folder get into a pull request.",
    )
    memory_folder: str = Field(
        MEMORY_FOLDER,
        pattern=r"^\.?[A-Za-z0-9_][A-Za-z0-9_.-]*(/\.?[A-Za-z0-9_][A-Za-z0-9_.-]*)*$",
        max_length=200,
        description="Folder of the memory bank, a plain path below the repository's top directory.",
    )


def parse_repository(text: bytes | str, path: str = PATH) -> RepositorySettings:
    """Read the file; `path` names it in messages.

    Raises:
        RepositoryConfigError: with `path:line:column`, key, problem and what was probably meant, as Markdown.
    """

    def refuse(problem: str) -> RepositoryConfigError:
        return RepositoryConfigError(f"`{path}` cannot be used:\n\n- {problem}")

    document = read_document(text, path, refuse)
    try:
        return RepositorySettings.model_validate(document.values)
    except ValidationError as error:
        lines = explain(error, RepositorySettings, document.where)
        raise refuse("\n- ".join(lines)) from None
