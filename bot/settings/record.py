"""What applied to a run, as plain JSON values and back: a run keeps its settings from its first step to its last."""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, cast

from bot.settings.policy import RepositoryRule
from bot.settings.repository import Check
from bot.settings.resolve import RunLimits, RunMemory, RunPolicy, RunSettings, RunSetup


def settings_to_data(settings: RunSettings) -> dict[str, object]:
    """Turn settings into plain JSON values."""
    return {
        "enabled": settings.enabled,
        "model": settings.model,
        "planner": settings.planner,
        "mode": settings.mode,
        "limits": asdict(settings.limits),
        "network": list(settings.network),
        "policy": {
            "names": list(settings.policy.names),
            "rules": [rule.model_dump(exclude_defaults=True) for rule in settings.policy.rules],
            "approvals": settings.policy.approvals,
        },
        "plan_as": settings.plan_as,
        "parallel_commands": settings.parallel_commands,
        "setup": asdict(settings.setup),
        "checks": [check.model_dump() for check in settings.checks],
        "draft": settings.draft,
        "ready": settings.ready,
        "label": settings.label,
        "command": settings.command,
        "memory": asdict(settings.memory),
        "origins": dict(settings.origins),
        "ignored": list(settings.ignored),
    }


def settings_from_data(data: Mapping[str, object]) -> RunSettings:
    """Turn stored values back into settings."""
    # The values were written by `settings_to_data`.
    kept = cast("dict[str, Any]", data)
    return RunSettings(
        enabled=kept["enabled"],
        model=kept["model"],
        planner=kept["planner"],
        mode=kept["mode"],
        limits=RunLimits(**kept["limits"]),
        network=tuple(kept["network"]),
        setup=_setup(kept["setup"]),
        checks=tuple(Check.model_validate(check) for check in kept["checks"]),
        draft=kept["draft"],
        label=kept["label"],
        command=kept["command"],
        # A run that began with an earlier version kept none.
        memory=RunMemory(**kept.get("memory", {})),
        policy=_policy(kept.get("policy")),
        plan_as=kept.get("plan_as", "comment"),
        ready=kept.get("ready", "auto"),
        parallel_commands=kept.get("parallel_commands", False),
        origins=MappingProxyType(kept["origins"]),
        ignored=tuple(kept["ignored"]),
    )


def _policy(kept: Mapping[str, Any] | None) -> RunPolicy:
    if kept is None:
        return RunPolicy()
    rules = tuple(RepositoryRule.model_validate(rule) for rule in kept["rules"])
    return RunPolicy(tuple(kept["names"]), rules, kept["approvals"])


def _setup(kept: Mapping[str, Any]) -> RunSetup:
    run = kept["run"]
    return RunSetup(None if run is None else tuple(run), tuple(kept["network"]), kept["timeout_s"])
