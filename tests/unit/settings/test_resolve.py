"""Operator, repository and command together: lower levels can only tighten."""

import fnmatch
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.command import Fix
from bot.domain.task import PlanAs
from bot.errors import RepositoryConfigError
from bot.settings.catalogue import default_model
from bot.settings.record import settings_from_data, settings_to_data
from bot.settings.repository import Check, RepositoryLimits, RepositorySettings, Setup, parse_repository
from bot.settings.resolve import RunMemory, resolve
from bot.settings.server import LimitsSection, ModelsSection, PullSection, SandboxSection, ServerSettings

MODELS = st.sampled_from(["anthropic:claude-sonnet-4-5", "anthropic:claude-opus-5", "openai:x", "ollama:qwen"])
PATTERNS = st.lists(st.sampled_from(["anthropic:*", "openai:x", "ollama:*", "*:claude-*"]), max_size=2).map(tuple)
TURNS = st.integers(1, 200)
TOKENS = st.integers(1000, 10_000_000)
NAMES = st.sampled_from(["python", "node", "mirror.example", "*.example"])
AMOUNT = st.floats(0.01, 500)
READY = st.sampled_from(["auto", "never"])


@st.composite
def servers(draw: st.DrawFn) -> ServerSettings:
    """Make any operator's settings."""
    limits = LimitsSection(
        turns=draw(TURNS), tokens=draw(TOKENS), usd=draw(AMOUNT), minutes=draw(AMOUNT), command_s=draw(TURNS)
    )
    models = ModelsSection(act=draw(MODELS), plan=draw(st.none() | MODELS), allowed=draw(PATTERNS))
    mode = draw(st.sampled_from(["auto", "plan", "act"]))
    pull = PullSection(draft=draw(st.booleans()), ready=draw(READY))
    return ServerSettings(limits=limits, models=models, mode=mode, pull=pull)


@st.composite
def repositories(draw: st.DrawFn) -> RepositorySettings:
    """Make any repository's settings."""

    def maybe(strategy: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | strategy)

    limits = RepositoryLimits(turns=maybe(TURNS), tokens=maybe(TOKENS), usd=maybe(AMOUNT), minutes=maybe(AMOUNT))
    setup = Setup(run=maybe(st.lists(st.just("make"), max_size=2)), timeout_s=draw(st.integers(1, 86_400)))
    checks = (Check(name="t", run="true", timeout_s=draw(st.integers(1, 86_400))),)
    return RepositorySettings(
        version=1,
        enabled=draw(st.booleans()),
        model=maybe(MODELS),
        mode=maybe(st.sampled_from(["auto", "plan", "act"])),
        limits=limits,
        setup=setup,
        checks=checks,
        memory=draw(st.sampled_from(["off", "read", "write"])),
        memory_folder=draw(st.sampled_from(["memory-bank", "docs/notes"])),
        parallel_commands=maybe(st.booleans()),
        plan_as=maybe(st.sampled_from(["comment", "pull"])),
        draft=maybe(st.booleans()),
        ready=maybe(READY),
    )


COMMANDS = st.none() | st.builds(Fix, st.just(""), st.none() | MODELS)


@given(servers(), st.none() | repositories(), COMMANDS)
def test_never_looser_than_the_operator(
    server: ServerSettings, repository: RepositorySettings | None, command: Fix | None
) -> None:
    """Whatever a repository and a command say, no limit is above the operator's, nor a model outside of their list."""
    run = resolve(server, repository, command)
    for key in LimitsSection.model_fields.keys() - {"budget_usd"}:
        value, ceiling = getattr(run.limits, key), getattr(server.limits, key)
        assert value <= ceiling
        asked = getattr(repository.limits, key, None) if repository else None
        assert value == (min(asked, ceiling) if asked is not None else ceiling)
    allowed = (server.models.act, server.models.plan or "", *server.models.allowed)
    assert any(fnmatch.fnmatchcase(run.model, pattern) for pattern in allowed)
    assert run.draft >= server.pull.draft
    assert (run.ready == "never") == ("never" in {server.pull.ready, repository.ready if repository else None})
    assert all(check.timeout_s <= max(1, server.limits.minutes * 60) for check in run.checks)


@given(servers(), repositories(), COMMANDS)
def test_what_is_not_applied_is_said(
    server: ServerSettings, repository: RepositorySettings, command: Fix | None
) -> None:
    """Each wish is applied or named among the ignored, and the origin of each value is known."""
    run = resolve(server, repository, command)
    ignored = "\n".join(run.ignored)
    for key in ("turns", "tokens", "usd", "minutes"):
        wish = getattr(repository.limits, key)
        applied = wish is None or getattr(run.limits, key) == wish
        assert applied != (f"`limits.{key}:" in ignored)
    assert ("`ready: auto`" in ignored) == (repository.ready == "auto" and server.pull.ready == "never")
    assert ("`draft: false`" in ignored) == (repository.draft is False and server.pull.draft)
    last_wish = (command.model if command else None) or repository.model
    if last_wish and run.model != last_wish:
        assert f"`model: {last_wish}`" in ignored
    shown = run.shown()
    assert set(run.origins) == (set(shown) | {"enabled", "label", "command"}) - {"origins", "ignored"}


def test_origins() -> None:
    """Who decided is known: default, operator, repository or command."""
    server = ServerSettings(
        limits=LimitsSection(turns=50), models=ModelsSection(allowed=("openai:*",)), pull=PullSection(draft=False)
    )
    repository = RepositorySettings(version=1, model="openai:a", limits=RepositoryLimits(usd=1, turns=90), draft=True)
    run = resolve(server, repository, Fix("", "openai:b"))
    assert run.model == "openai:b"
    assert run.origins["model"] == "command"
    assert run.origins["limits.turns"] == "operator"
    assert run.origins["limits.usd"] == "repository"
    assert run.origins["limits.minutes"] == "default"
    assert run.origins["draft"] == "repository"
    assert run.ignored == ("`limits.turns: 90` in `.github/issuewright.yml` was not applied: the operator allows 50.",)


def test_the_network_is_narrowed_and_never_widened() -> None:
    """A repository chooses among what the operator allows; more is named as not applied."""
    server = ServerSettings(sandbox=SandboxSection(network=("python", "mirror.example"), setup_network=("node", "go")))
    asked = RepositorySettings(
        version=1, network=("mirror.example", "evil`.example"), setup=Setup(run=("npm ci",), network=("python", "node"))
    )
    run = resolve(server, asked)
    assert (run.network, run.setup.network) == (("mirror.example",), ("node",))
    assert run.ignored == (
        "`network: evil.example` in `.github/issuewright.yml` was not applied: the operator does not allow it.",
        "`setup.network: python` in `.github/issuewright.yml` was not applied: the operator does not allow it.",
    )
    assert {key: run.origins[key] for key in ("network", "setup.network", "setup.run", "setup.timeout_s")} == {
        "network": "repository",
        "setup.network": "repository",
        "setup.run": "repository",
        "setup.timeout_s": "default",
    }
    assert resolve(server, RepositorySettings(version=1, network=())).network == ()


@given(st.lists(NAMES).map(tuple), st.none() | st.lists(NAMES).map(tuple))
def test_no_network_but_the_operators(allowed: tuple[str, ...], asked: tuple[str, ...] | None) -> None:
    """Whatever is asked, what applies is a part of what the operator named."""
    server = ServerSettings(sandbox=SandboxSection(network=allowed, setup_network=allowed))
    run = resolve(server, RepositorySettings(version=1, network=asked, setup=Setup(network=asked)))
    for applied in (run.network, run.setup.network):
        assert set(applied) == (set(allowed) if asked is None else set(allowed) & set(asked))


def test_a_set_up_is_never_longer_than_the_run() -> None:
    """The run's minutes bound the seconds of its set-up."""
    server = ServerSettings(limits=LimitsSection(minutes=1))
    assert resolve(server, RepositorySettings(version=1, setup=Setup(timeout_s=900))).setup.timeout_s == 60
    assert resolve(ServerSettings(), None).setup.run is None


@given(servers(), st.none() | repositories())
def test_what_applied_survives_its_record(server: ServerSettings, repository: RepositorySettings | None) -> None:
    """A run that is taken up again has the settings that it began with."""
    run = resolve(server, repository)
    assert settings_from_data(json.loads(json.dumps(settings_to_data(run)))) == run


def test_a_record_without_a_memory_is_an_earlier_versions() -> None:
    """A run that began before memory banks were known reads the usual one and leaves it alone."""
    data = settings_to_data(resolve(ServerSettings(), None))
    del data["memory"]
    assert settings_from_data(data).memory == RunMemory("read", "memory-bank")


def test_without_a_list_only_the_operators_model_counts() -> None:
    """An empty `models.allowed` leaves the operator's own choice."""
    run = resolve(ServerSettings(), RepositorySettings(version=1, model="openai:a"), Fix("", "openai:b"))
    assert run.model == ServerSettings().models.act
    assert run.origins["model"] == "default"
    assert len(run.ignored) == 2


def test_no_file_and_no_command() -> None:
    """A repository without a file gets what the operator says."""
    run = resolve(ServerSettings(), None)
    assert run.enabled
    assert run.checks == ()
    assert set(run.origins.values()) == {"default"}
    assert (run.label, run.command) == ("agent", "/agent")


STRICTNESS = ["act", "auto", "plan"]


@given(servers(), st.none() | repositories())
def test_a_repository_only_asks_its_people_more(server: ServerSettings, repository: RepositorySettings | None) -> None:
    """The mode is the stricter of the two; a wish for less is said not to be applied."""
    found = resolve(server, repository)
    asked = repository.mode if repository and repository.mode else server.mode
    assert found.mode == max(asked, server.mode, key=STRICTNESS.index)
    assert any(f"`mode: {asked}`" in one for one in found.ignored) == (found.mode != asked)


def test_who_plans() -> None:
    """The operator's planner; who is chosen for the work alone plans too where the operator names none."""
    default = resolve(ServerSettings(), None)
    assert default.planner == default_model("plan") != default.model
    chosen = ServerSettings(models=ModelsSection(act="openai:x", allowed=("ollama:*",)))
    assert resolve(chosen, None).planner == "openai:x"
    named = ServerSettings(models=ModelsSection(act="openai:x", plan="openai:head", allowed=("ollama:*",)))
    wish = RepositorySettings(version=1, model="ollama:q")
    assert [resolve(server, None).planner for server in (chosen, named)] == ["openai:x", "openai:head"]
    assert [resolve(server, wish).planner for server in (chosen, named)] == ["ollama:q", "openai:head"]
    assert resolve(named, wish, Fix("", "openai:x")).planner == "openai:x"
    assert resolve(named, None, Fix("", "ollama:z")).planner == "ollama:z"


@pytest.mark.parametrize(
    ("operator", "repository", "applied", "origin"),
    [
        (False, None, False, "default"),
        (True, None, True, "operator"),
        (True, True, True, "operator"),
        (True, False, False, "repository"),
        (False, False, False, "default"),
        (False, True, False, "default"),
    ],
)
def test_a_repository_can_only_switch_side_by_side_off(
    *, operator: bool, repository: bool | None, applied: bool, origin: str
) -> None:
    """What it may not switch on is told."""
    server = ServerSettings(sandbox=SandboxSection(parallel_commands=operator))
    run = resolve(server, RepositorySettings(version=1, parallel_commands=repository))
    assert (run.parallel_commands, run.origins["parallel_commands"]) == (applied, origin)
    assert run.shown()["parallel_commands"] is applied
    assert bool(run.ignored) == (repository is True and not operator)
    assert settings_from_data(json.loads(json.dumps(settings_to_data(run)))) == run


def test_a_record_without_side_by_side_is_an_earlier_versions() -> None:
    """A run that began before runs its commands one after the other."""
    data = settings_to_data(resolve(ServerSettings(), None))
    del data["parallel_commands"]
    assert settings_from_data(data).parallel_commands is False


@pytest.mark.parametrize(
    ("operator", "repository", "names"),
    [
        ("default", None, ("default",)),
        ("default", "strict", ("default", "strict")),
        ("strict", None, ("default", "strict")),
        ("strict", "strict", ("default", "strict")),
        ("./own.yaml", "strict", ("default", "strict")),
    ],
)
def test_a_repository_only_adds_to_the_policy(operator: str, repository: str | None, names: tuple[str, ...]) -> None:
    """Its rules and its wish stand beside what the operator has, and survive the record."""
    rule = {"tool": "run", "command": ["make", ["a", "b*"]], "verdict": "ask", "why": "it deploys"}
    kept = RepositorySettings.model_validate(
        {"version": 1, "policy": repository, "rules": [rule], "require_approvals": 2}
    )
    run = resolve(ServerSettings(policy=operator, require_approvals=3), kept)
    assert run.policy.names == names
    assert [one.rule().command for one in run.policy.rules] == [(("make",), ("a", "b*"))]
    assert run.policy.approvals == 3
    assert resolve(ServerSettings(), kept).policy.approvals == 2
    assert settings_from_data(json.loads(json.dumps(settings_to_data(run)))) == run


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{tool: run, command: [a], verdict: allow, why: x}", "`rules[0].verdict`: input should be 'ask' or 'deny'"),
        ("{tool: run, command: ['/a+/'], verdict: ask, why: x}", "may not be a regular expression here: write a glob"),
        ("{tool: read, path: '/(a+)+/', verdict: deny, why: x}", "may not be a regular expression here: write a glob"),
        ("{tool: read, command: [a], verdict: deny, why: x}", "only a rule about `run` alone"),
    ],
)
def test_a_repositorys_rules_only_tighten(rule: str, said: str) -> None:
    """Nothing that allows, and no regular expressions, which could take for ever."""
    with pytest.raises(RepositoryConfigError) as caught:
        parse_repository(f"version: 1\nrules:\n  - {rule}\n")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("operator", "repository", "applied", "origin"),
    [
        ("comment", None, "comment", "default"),
        ("pull", None, "pull", "operator"),
        ("comment", "pull", "pull", "repository"),
        ("pull", "comment", "comment", "repository"),
    ],
)
def test_a_repository_chooses_how_plans_are_put(
    operator: PlanAs, repository: PlanAs | None, applied: PlanAs, origin: str
) -> None:
    """Either way people decide alike, so nothing is loosened."""
    run = resolve(ServerSettings(plan_as=operator), RepositorySettings(version=1, plan_as=repository))
    assert (run.plan_as, run.origins["plan_as"], run.ignored) == (applied, origin, ())
    assert settings_from_data(json.loads(json.dumps(settings_to_data(run)))) == run
    earlier = settings_to_data(run)
    del earlier["plan_as"]
    assert settings_from_data(earlier).plan_as == "comment"
