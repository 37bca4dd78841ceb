"""What the gates on single actions are set up with, read from `config/policy.yaml`: for which calls people are asked.

Here is the form of the file only; `bot.agent.policy` says what a rule fits.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from bot.errors import OperatorError
from bot.settings.problems import Key, dotted, explain, quoted
from bot.settings.reading import packed, read_document
from bot.settings.section import Section

Verdict = Literal["allow", "ask", "deny"]
COMMAND_TOOL = "run"
"""The tool whose calls are shell commands."""


def _pattern(text: str) -> str:
    """Check a pattern: between slashes a regular expression, else a glob."""
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        try:
            re.compile(text[1:-1])
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
    return text


def _alternatives(value: object) -> object:
    """Take a single text for a list of one."""
    return value if isinstance(value, list | tuple) else [value]


Text = Annotated[str, Field(min_length=1, max_length=1000)]
Patterns = Annotated[tuple[Annotated[Text, AfterValidator(_pattern)], ...], BeforeValidator(_alternatives)]
"""Globs, or regular expressions between slashes; one may stand without its list."""
Names = Annotated[tuple[Text, ...], BeforeValidator(_alternatives), Field(min_length=1, max_length=200)]


class Rule(Section):
    """Which calls it is about, and what becomes of them; everything that it says has to fit."""

    tool: Names = Field(description="Names of tools.")
    command: tuple[Patterns, ...] = Field(
        (), max_length=20, description="First words of a simple command; each a text or a list of what it may be."
    )
    options: Patterns | None = Field(
        None, description="The only options that the command may have behind those words. `null` is any."
    )
    having: Patterns | None = Field(None, description="One of the words behind them is one of these.")
    operands: int | None = Field(None, ge=0, description="Words that are no options, at most. `null` is any number.")
    inside: bool = Field(False, description="No word of it can lead out of the work tree.")  # noqa: FBT003 - a default
    at_top: bool = Field(False, description="The shell stands at the top of the work tree.")  # noqa: FBT003 - a default
    path: Patterns = Field(
        (),
        description="Paths of the work tree, one of which the call touches: as an argument, as a word of `command`, or "
        "as a file that a command without `command` writes to by `>`.",
    )
    protected: bool = Field(False, description="As `path`, of all protected files.")  # noqa: FBT003 - a default
    exact: bool = Field(
        False,  # noqa: FBT003 - a default
        description="Only the very call can be approved, and no pattern of `approve always` lifts it; so it always is "
        "with `protected`.",
    )
    verdict: Verdict = Field(description="`allow`, `ask` a person, or `deny`.")
    why: str = Field(min_length=1, max_length=300, description="The reason, for people and for the model.")
    match: tuple[Text, ...] = Field((), description="Commands, or paths for other tools, that it fits.")
    not_match: tuple[Text, ...] = Field((), description="Commands or paths that it does not fit.")

    @model_validator(mode="after")
    def _about_commands(self) -> "Rule":
        placed = self.inside or self.at_top
        narrowed = self.command or self.options is not None or self.having or self.operands is not None or placed
        if narrowed and self.tool != (COMMAND_TOOL,):
            msg = f"only a rule about `{COMMAND_TOOL}` alone can say what its commands are like"
            raise ValueError(msg)
        return self


class Policy(Section):
    """All rules of one way to work; the strictest of those that fit decides."""

    otherwise: Verdict = Field(description="What becomes of a call, or a simple command, that no rule fits.")
    unread: Verdict = Field(description="What becomes, at least, of a command that is not wholly understood.")
    rules: tuple[Rule, ...] = Field((), max_length=1000, description="In any order.")


def _glob(text: str) -> str:
    """Refuse a regular expression: whoever may write to a repository could write one that takes for ever."""
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        msg = "may not be a regular expression here: write a glob"
        raise ValueError(msg)
    return text


Globs = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_glob)], ...],
    BeforeValidator(_alternatives),
    Field(max_length=20),
]


class RepositoryRule(Section):
    """A rule of a repository's own, which can only tighten."""

    tool: Names = Field(description="Names of tools, one or a list; `run` runs commands.")
    command: tuple[Globs, ...] = Field(
        (), max_length=10, description="First words of a command, as globs, each one or a list of what it may be."
    )
    having: Globs | None = Field(None, description="One of the words behind them is one of these globs.")
    path: Globs = Field(
        (), description="Globs of paths, one of which the call touches: as an argument, or as a word of a command."
    )
    verdict: Literal["ask", "deny"] = Field(description="`ask` people, or `deny`.")
    why: str = Field(min_length=1, max_length=300, description="The reason, for people and for the model.")

    @model_validator(mode="after")
    def _is_rule(self) -> "RepositoryRule":
        self.rule()
        return self

    def rule(self) -> Rule:
        """Return it as policies have it."""
        return Rule.model_validate(self.model_dump())


def repository_policy(rules: Sequence[RepositoryRule]) -> Policy:
    """Return the policy that is only these rules."""
    return Policy(otherwise="allow", unread="allow", rules=tuple(one.rule() for one in rules))


def file_of(policy: str) -> Path | None:
    """Return the operator's own file, where `policy` is the path of one and not the name of a policy."""
    return None if re.fullmatch(NAME, policy) else Path(policy)


NAME = r"[a-z][a-z0-9-]*"
PolicyName = Annotated[str, Field(pattern=f"^{NAME}$", max_length=50)]


class _File(Section):
    version: Literal[1] = Field(description="Version of this format, 1.")
    policies: dict[PolicyName, Policy] = Field(description="Each policy by its name.")


Fits = Callable[[Rule, str], bool]
"""Says whether a rule fits an example."""


def load_policies(fits: Fits, own: Path | None = None) -> Mapping[str, Policy]:
    """Read the packed policies, and the operator's instead of those with the same names.

    Raises:
        OperatorError: with `file:line:column`; also where an example of a rule shows that it means something else, or
            where the operator's file has a policy of another name.
    """
    found = _read(packed("policy.yaml"), fits)
    if own is None:
        return found
    theirs = _read(own, fits)
    if unknown := [name for name in theirs if name not in found]:
        # What its rules forbid would be allowed.
        what = f"nothing would choose it; its name has to be one of {', '.join(f'`{name}`' for name in found)}"
        raise OperatorError(f"{own}: `policies.{unknown[0]}`: {what}")
    return {**found, **theirs}


def _read(path: Path, fits: Fits) -> Mapping[str, Policy]:
    try:
        text = path.expanduser().read_bytes()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_policies(text, str(path), fits)


def parse_policies(text: bytes | str, name: str, fits: Fits) -> Mapping[str, Policy]:
    """Read one file of policies; `name` stands in messages.

    Raises:
        OperatorError: as `load_policies`.
    """
    document = read_document(text, name, OperatorError)
    try:
        file = _File.model_validate(document.values)
    except ValidationError as error:
        raise OperatorError("\n".join(explain(error, _File, document.where))) from None
    if wrong := _wrong_examples(file, fits, document.where):
        raise OperatorError("\n".join(wrong))
    return file.policies


def _wrong_examples(file: _File, fits: Fits, where: Callable[[Key], str]) -> list[str]:
    wrong = []
    for name, policy in file.policies.items():
        for index, rule in enumerate(policy.rules):
            for field, examples, expected in (("match", rule.match, True), ("not_match", rule.not_match, False)):
                for place, example in enumerate(examples):
                    if fits(rule, example) is not expected:
                        key: Key = ("policies", name, "rules", index, field, place)
                        said = "fits" if not expected else "does not fit"
                        wrong.append(f"{where(key)}: `{dotted(key)}`: the rule {said} {quoted(example)}")
    return wrong
