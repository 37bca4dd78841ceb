"""Put operator, repository and command together; a lower level can only tighten."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeVar

from bot.domain.command import Fix
from bot.domain.task import Mode, PlanAs, Ready
from bot.settings.policy import RepositoryRule
from bot.settings.repository import MEMORY_FOLDER, PATH, Check, MemoryMode, RepositorySettings
from bot.settings.server import LimitsSection, SandboxSection, ServerSettings

Number = TypeVar("Number", int, float)
_STRICTNESS: tuple[Mode, ...] = ("act", "auto", "plan")
Origin = Literal["default", "operator", "repository", "command"]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use."""

    turns: int
    """Model replies."""
    tokens: int
    """Input and output, cached ones included."""
    usd: float
    minutes: float
    """Minutes of wall clock."""
    command_s: int
    """Seconds of one command of the model."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """How the project is set up before the work."""

    run: tuple[str, ...] | None
    """Commands that the repository names; None finds them out."""
    network: tuple[str, ...]
    """Hosts and presets that they may reach."""
    timeout_s: int
    """For all of them together."""


@dataclass(frozen=True, slots=True)
class RunMemory:
    """What applies to the notes that a repository keeps for who works on it."""

    mode: MemoryMode = "read"
    folder: str = MEMORY_FOLDER
    """Below the repository's top directory."""


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Which calls people are asked about."""

    names: tuple[str, ...] = ("default",)
    """Policies of the operator; the strictest verdict counts."""
    rules: tuple[RepositoryRule, ...] = ()
    """The repository's own."""
    approvals: int = 1
    """People who have to approve."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """All that applies to one run."""

    enabled: bool
    """Whether we work in this repository at all."""
    model: str
    """`provider:name`."""
    planner: str
    """The model that plans, `provider:name`."""
    mode: Mode
    limits: RunLimits
    network: tuple[str, ...]
    """Hosts and presets that the model's commands may reach."""
    setup: RunSetup
    checks: tuple[Check, ...]
    """In the order in which they are run."""
    draft: bool
    """Whether the pull request opens as a draft."""
    label: str
    command: str
    """The word with which a comment speaks to us, with its slash."""
    memory: RunMemory = RunMemory()
    policy: RunPolicy = RunPolicy()
    plan_as: PlanAs = "comment"
    """How a plan that waits is put to people."""
    ready: Ready = "auto"
    """Whether the pull request is marked ready for review when all checks are green."""
    parallel_commands: bool = False
    """Whether commands of one reply of the model run side by side."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Who decided each of the above; limits as `limits.turns`."""
    ignored: tuple[str, ...] = ()
    """Sentences, as Markdown, about what was asked for and not applied."""

    def shown(self) -> dict[str, object]:
        """Return what applied as plain JSON values, for the run's record and the pull request."""
        return {
            "mode": self.mode,
            "plan_as": self.plan_as,
            "model": self.model,
            "planner": self.planner,
            "limits.turns": self.limits.turns,
            "limits.tokens": self.limits.tokens,
            "limits.usd": self.limits.usd,
            "limits.minutes": self.limits.minutes,
            "limits.command_s": self.limits.command_s,
            "network": list(self.network),
            "policy": [*self.policy.names, *([f"{len(self.policy.rules)} rules"] if self.policy.rules else [])],
            "require_approvals": self.policy.approvals,
            "parallel_commands": self.parallel_commands,
            "setup.run": "detected" if self.setup.run is None else list(self.setup.run),
            "setup.network": list(self.setup.network),
            "setup.timeout_s": self.setup.timeout_s,
            "checks": [check.name for check in self.checks],
            "draft": self.draft,
            "ready": self.ready,
            "memory": self.memory.mode,
            "memory_folder": self.memory.folder,
            "origins": dict(self.origins),
            "ignored": list(self.ignored),
        }


class _Ledger:
    """Notes who decided what, and what was not applied."""

    def __init__(self) -> None:
        self.origins: dict[str, Origin] = {}
        self.ignored: list[str] = []

    def operator(self, key: str, value: object, default: object) -> None:
        self.origins[key] = "default" if value == default else "operator"

    def refuse(self, what: str, source: str, why: str) -> None:
        self.ignored.append(f"`{what}` in {source} was not applied: {why}")


def resolve(
    server: ServerSettings,
    repository: RepositorySettings | None,
    command: Fix | None = None,
    *,
    usd: float | None = None,
) -> RunSettings:
    """Say what applies to a run.

    Args:
        server: the operator's settings, the ceiling for everything.
        repository: None where the repository has no file.
        command: what the person asked; None for a label.
        usd: the budget that a person gave this run, in US dollars; None where nobody did.
    """
    asked = repository or RepositorySettings(version=1)
    defaults = ServerSettings()
    ledger = _Ledger()
    for key in ("label", "command"):
        ledger.operator(key, getattr(server, key), getattr(defaults, key))
    ledger.origins["enabled"] = "default" if asked.enabled else "repository"
    limits = _budget(usd, _limits(server.limits, asked, ledger), server.limits.budget_usd, ledger)
    ledger.origins["setup.run"] = "repository" if asked.setup.run is not None else "default"
    ledger.origins["checks"] = "repository" if asked.checks else "default"
    memory = RunMemory(asked.memory, asked.memory_folder)
    ledger.origins["memory"] = "default" if memory.mode == RunMemory().mode else "repository"
    ledger.origins["memory_folder"] = "default" if memory.folder == RunMemory().folder else "repository"
    model = _model(server, asked, command, ledger)
    return RunSettings(
        enabled=asked.enabled,
        model=model,
        planner=_planner(server, model, ledger),
        mode=_mode(server, asked, ledger),
        limits=limits,
        network=_network("network", server.sandbox.network, asked.network, ledger),
        setup=RunSetup(
            asked.setup.run,
            _network("setup.network", server.sandbox.setup_network, asked.setup.network, ledger),
            _timeout(asked, limits.minutes, ledger),
        ),
        checks=_checks(asked.checks, limits.minutes),
        draft=_draft(server, asked, ledger),
        ready=_ready(server, asked, ledger),
        label=server.label,
        command=server.command,
        memory=memory,
        policy=_policy(server, asked, ledger),
        plan_as=_plan_as(server, asked, ledger),
        parallel_commands=_parallel(server, asked, ledger),
        origins=MappingProxyType(ledger.origins),
        ignored=tuple(ledger.ignored),
    )


def _limits(ceiling: LimitsSection, asked: RepositorySettings, ledger: _Ledger) -> RunLimits:
    defaults = LimitsSection()
    for key in (name for name in LimitsSection.model_fields if name != "budget_usd"):
        ledger.operator(f"limits.{key}", getattr(ceiling, key), getattr(defaults, key))

    def lower(key: str, operator: Number, repository: Number | None) -> Number:
        if repository is None or repository == operator:
            return operator
        if repository > operator:
            why = f"the operator allows {operator:g}."
            ledger.refuse(f"limits.{key}: {repository:g}", f"`{PATH}`", why)
            return operator
        ledger.origins[f"limits.{key}"] = "repository"
        return repository

    return RunLimits(
        turns=lower("turns", ceiling.turns, asked.limits.turns),
        tokens=lower("tokens", ceiling.tokens, asked.limits.tokens),
        usd=lower("usd", ceiling.usd, asked.limits.usd),
        minutes=lower("minutes", ceiling.minutes, asked.limits.minutes),
        command_s=ceiling.command_s,
    )


def _budget(usd: float | None, limits: RunLimits, most: float, ledger: _Ledger) -> RunLimits:
    """Take a person's budget in place of the usual one, up to what the operator allows."""
    if usd is None:
        return limits
    if usd > most:
        ledger.refuse(f"budget {usd:g}", "the command", f"the operator allows {most:g}.")
    ledger.origins["limits.usd"] = "command"
    return replace(limits, usd=min(usd, most))


def _model(server: ServerSettings, asked: RepositorySettings, command: Fix | None, ledger: _Ledger) -> str:
    model = server.models.act
    ledger.operator("model", model, ServerSettings().models.act)
    wishes: tuple[tuple[Origin, str | None, str], ...] = (
        ("repository", asked.model, f"`{PATH}`"),
        ("command", command.model if command else None, "the command"),
    )
    for origin, wish, source in wishes:
        if wish is None or wish == model:
            continue
        if server.models.permits(wish):
            model = wish
            ledger.origins["model"] = origin
        else:
            ledger.refuse(f"model: {_shown(wish)}", source, "the operator does not allow this model.")
    return model


def _planner(server: ServerSettings, model: str, ledger: _Ledger) -> str:
    """Choose who plans: whom a person or the repository chose for the work, else whom the operator names."""
    origin = ledger.origins["model"]
    if origin == "command" or (origin == "repository" and server.models.plan is None):
        ledger.origins["planner"] = origin
        return model
    ledger.origins["planner"] = "default" if server.models.plan is None else "operator"
    return server.models.planner


def _mode(server: ServerSettings, asked: RepositorySettings, ledger: _Ledger) -> Mode:
    ledger.operator("mode", server.mode, ServerSettings().mode)
    if asked.mode is None or asked.mode == server.mode:
        return server.mode
    if _STRICTNESS.index(asked.mode) < _STRICTNESS.index(server.mode):
        ledger.refuse(f"mode: {asked.mode}", f"`{PATH}`", f"the operator has `{server.mode}`, which asks people more.")
        return server.mode
    ledger.origins["mode"] = "repository"
    return asked.mode


def _plan_as(server: ServerSettings, asked: RepositorySettings, ledger: _Ledger) -> PlanAs:
    """Take the repository's wish as it is: either way people decide alike."""
    ledger.operator("plan_as", server.plan_as, ServerSettings().plan_as)
    if asked.plan_as is None or asked.plan_as == server.plan_as:
        return server.plan_as
    ledger.origins["plan_as"] = "repository"
    return asked.plan_as


def _network(key: str, allowed: tuple[str, ...], asked: tuple[str, ...] | None, ledger: _Ledger) -> tuple[str, ...]:
    """Leave what the repository asks for and the operator allows, each in the operator's own words."""
    ledger.operator(key, allowed, getattr(SandboxSection(), "setup_network" if key == "setup.network" else key))
    if asked is None:
        return allowed
    for name in asked:
        if name not in allowed:
            ledger.refuse(f"{key}: {_shown(name)}", f"`{PATH}`", "the operator does not allow it.")
    if set(asked) >= set(allowed):
        return allowed
    ledger.origins[key] = "repository"
    return tuple(name for name in allowed if name in asked)


def _policy(server: ServerSettings, asked: RepositorySettings, ledger: _Ledger) -> RunPolicy:
    """Put the repository's rules beside the operator's: the strictest of all counts.

    `default` always stands beside `strict`: what it asks about call by call, no pattern of a person lifts.
    """
    strict = "strict" in {server.policy, asked.policy}
    for key in ("policy", "require_approvals"):
        ledger.operator(key, getattr(server, key), getattr(ServerSettings(), key))
    if (strict and server.policy != "strict") or asked.rules:
        ledger.origins["policy"] = "repository"
    if (asked.require_approvals or 0) > server.require_approvals:
        ledger.origins["require_approvals"] = "repository"
    names = ("default", "strict") if strict else ("default",)
    return RunPolicy(names, asked.rules, max(server.require_approvals, asked.require_approvals or 1))


def _parallel(server: ServerSettings, asked: RepositorySettings, ledger: _Ledger) -> bool:
    allowed = server.sandbox.parallel_commands
    ledger.operator("parallel_commands", allowed, SandboxSection().parallel_commands)
    if asked.parallel_commands is None or asked.parallel_commands == allowed:
        return allowed
    if asked.parallel_commands:
        ledger.refuse("parallel_commands: true", f"`{PATH}`", "the operator does not allow it.")
        return False
    ledger.origins["parallel_commands"] = "repository"
    return False


def _timeout(asked: RepositorySettings, minutes: float, ledger: _Ledger) -> int:
    ledger.origins["setup.timeout_s"] = "repository" if "timeout_s" in asked.setup.model_fields_set else "default"
    return min(asked.setup.timeout_s, max(1, int(minutes * 60)))


def _shown(wish: str) -> str:
    return "".join(char for char in wish if char.isprintable() and char != "`")[:100]


def _checks(checks: tuple[Check, ...], minutes: float) -> tuple[Check, ...]:
    ceiling = max(1, int(minutes * 60))
    return tuple(check.model_copy(update={"timeout_s": min(check.timeout_s, ceiling)}) for check in checks)


def _draft(server: ServerSettings, asked: RepositorySettings, ledger: _Ledger) -> bool:
    draft = server.pull.draft
    ledger.operator("draft", draft, ServerSettings().pull.draft)
    if asked.draft is None or asked.draft == draft:
        return draft
    if not asked.draft:
        ledger.refuse("draft: false", f"`{PATH}`", "the operator opens pull requests as drafts.")
        return True
    ledger.origins["draft"] = "repository"
    return True


def _ready(server: ServerSettings, asked: RepositorySettings, ledger: _Ledger) -> Ready:
    ready = server.pull.ready
    ledger.operator("ready", ready, ServerSettings().pull.ready)
    if asked.ready is None or asked.ready == ready:
        return ready
    if asked.ready == "auto":
        ledger.refuse("ready: auto", f"`{PATH}`", "the operator leaves that to people.")
    else:
        ledger.origins["ready"] = "repository"
    return "never"
