"""What a run's calls are judged by, and what people are told and asked about one; pure."""

import hashlib
import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import cast

from bot.agent.policy import Judgement, Surroundings, judge
from bot.agent.prompt import fence
from bot.domain.events import ActionRequested
from bot.domain.request import ActionRequest, canonical
from bot.sandbox.base import Level
from bot.settings.policy import COMMAND_TOOL, Policy, Rule, repository_policy
from bot.settings.resolve import RunPolicy

WISH = "requires_approval"
"""An argument with which the model itself wants a person asked; it is fulfilled by that."""
_LINE = 160
"""Characters of a command in one line for people."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What the calls of one run are judged by, the same from its first step to its last."""

    policies: Mapping[str, Policy]
    digest: str
    """SHA-256 of all rules."""
    approvals: int
    """People who have to approve a call."""
    minimum: Level
    """What the operator asks of the sandbox."""
    word: str = "/agent"
    """With which comments speak to us."""

    def to_data(self) -> dict[str, object]:
        """Return plain JSON values."""
        return {**_rules(self.policies), "approvals": self.approvals, "minimum": self.minimum, "word": self.word}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> "Gate":
        """Turn stored values back."""
        kept = cast("dict[str, dict[str, object]]", data["policies"])
        policies = {name: Policy.model_validate(policy) for name, policy in kept.items()}
        approvals, minimum = cast("int", data["approvals"]), cast("Level", data["minimum"])
        return cls(policies, _digest(policies), approvals, minimum, str(data["word"]))

    @classmethod
    def of(cls, known: Mapping[str, Policy], applies: RunPolicy, minimum: Level, word: str) -> "Gate":
        """Choose from the operator's policies those that apply, and put the repository's rules beside them."""
        policies = {name: known[name] for name in applies.names}
        policies |= {"repository": repository_policy(applies.rules)} if applies.rules else {}
        return cls(policies, _digest(policies), applies.approvals, minimum, word)


def _rules(policies: Mapping[str, Policy]) -> dict[str, object]:
    # The examples were checked when the file was read, and change no verdict.
    left_out = {"rules": {"__all__": {"match", "not_match"}}}
    dumped = (
        (name, one.model_dump(mode="json", exclude_defaults=True, exclude=left_out)) for name, one in policies.items()
    )
    return {"policies": dict(dumped)}


def _digest(policies: Mapping[str, Policy]) -> str:
    return hashlib.sha256(canonical(_rules(policies)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that people are asked about."""

    request: ActionRequest
    why: str
    rule: str

    @property
    def shown(self) -> str:
        """Which call it is, in one line for people."""
        return shown(self.request)

    def fact(self) -> ActionRequested:
        """Return it as the stream has it."""
        request = self.request
        return ActionRequested(
            request.hash, request.tool, self.shown, self.why, self.rule, request.asked_at.isoformat()
        )

    def to_data(self) -> dict[str, object]:
        """Return plain JSON values."""
        return {"request": self.request.to_data(), "why": self.why, "rule": self.rule}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> "Asked":
        """Turn stored values back."""
        request = ActionRequest.from_data(cast("dict[str, str]", data["request"]))
        return cls(request, str(data["why"]), str(data["rule"]))


def shown(request: ActionRequest) -> str:
    """Say in one line which call it is: the command, or the tool and its paths."""
    arguments = json.loads(request.arguments)
    if request.tool != COMMAND_TOOL:
        named = [one for key in ("path", "target") if isinstance(one := arguments.get(key), str) and one]
        # What goes down and up again hides where it ends, as does what is cut.
        return " ".join(filter(None, [request.tool, " to ".join(map(posixpath.normpath, named))]))
    text = " ".join(str(arguments.get("command") or "").split())
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"


def always(tool: str, pattern: str) -> Rule:
    """Make the rule that a person's pattern means: first words of a command, or a glob of paths.

    Raises:
        ValueError: with what is wrong with it, as the end of a sentence.
    """
    words = pattern.split()
    if not words or len(pattern) > _LINE:
        raise ValueError(f"it has to have 1 to {_LINE} characters")
    if any(len(word) > 1 and word[0] == word[-1] == "/" for word in words):
        raise ValueError("it may not hold a regular expression")
    if tool == COMMAND_TOOL:
        if set(words[0]) & set("*?["):
            raise ValueError("its first word has to name a program")
        return Rule(tool=(tool,), command=tuple((word,) for word in words), verdict="allow", why="a person allows it")
    if not any(part.strip("*?") for part in PurePosixPath(pattern).parts):
        raise ValueError("it has to name more than every file")
    return Rule(tool=(tool,), path=(pattern,), verdict="allow", why="a person allows it")


def lifts(
    rules: Sequence[Rule],
    tool: str,
    arguments: Mapping[str, object],
    where: Surroundings,
    policies: Mapping[str, Policy] = MappingProxyType({}),
) -> bool:
    """Whether a person's patterns allow all of a call.

    Args:
        rules: what the patterns mean.
        tool: of the call.
        arguments: of the call.
        where: it would be made.
        policies: those that apply: what they ask about call by call, no pattern allows.
    """
    if not any(tool in rule.tool for rule in rules):
        return False
    exact = [rule for policy in policies.values() for rule in policy.rules if rule.exact or rule.protected]
    policy = Policy(otherwise="ask", unread="ask", rules=tuple(rules))
    known = {**arguments, WISH: False}
    if judge({"always": policy}, tool, known, where).verdict != "allow":
        return False
    kept = Policy(otherwise="allow", unread="allow", rules=tuple(rule for rule in exact if rule.verdict != "allow"))
    return judge({"exact": kept}, tool, known, replace(where, level="bubblewrap")).verdict == "allow"


NOBODY = (
    "A person would have to approve this call ({why}), and nobody can be asked at this point. It was not carried out: "
    "go on without it, and say at the end what is left."
)


TOO_MUCH = (
    "A person would have to approve this call ({why}), and it names more files than they could be shown at once. It "
    "was not carried out: make several calls of it."
)


def denied(judgement: Judgement) -> str:
    """Tell the model that a call is not allowed at all."""
    return f"Denied by the policy here: {judgement.why} ({judgement.rule}). It was not carried out."


def waits(asked: Asked) -> str:
    """Tell the model that a call waits."""
    return (
        f"This call waits for a person's approval (hash {asked.request.short}): {asked.why}. It was not carried out; "
        "nothing that depends on it can be done."
    )


def carried_out(task_id: str, asked: Asked, by: str, output: str) -> str:
    """Tell the model what an approved call gave."""
    result = fence(task_id, "result", output)
    return f"{_which(asked)} was approved by {by}. The harness carried it out, once; this is its result:\n{result}"


def refused(task_id: str, asked: Asked, by: str, reason: str) -> str:
    """Tell the model that a person does not allow a call."""
    why = f", who says why:\n{fence(task_id, 'reason', reason)}\n" if reason else ". "
    return f"{_which(asked)} was denied by {by}{why}It was not carried out: find another way, or say what is left."


def void(asked: Asked, why: str) -> str:
    """Tell the model that what was decided about a call does not count."""
    return (
        f"{_which(asked)} was not carried out: {why}. Make it again if you still need it; people are then asked anew."
    )


def lost(asked: Asked) -> str:
    """Tell the model that nobody knows whether an approved call was carried out."""
    return (
        f"{_which(asked)} was approved, and the worker ended in the midst of it: it may have been carried out. It is "
        "not repeated: look what it did, and make it again if it is still needed."
    )


def _which(asked: Asked) -> str:
    return f"The call that waited (hash {asked.request.short}, `{asked.request.tool}`: {asked.shown})"
