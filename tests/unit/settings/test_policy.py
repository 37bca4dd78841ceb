"""The file of policies: its form, and the examples that its rules are checked with."""

from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.settings.policy import Rule, load_policies, parse_policies

HEAD = "version: 1\npolicies:\n  own:\n    otherwise: allow\n    unread: ask\n    rules:\n"


def anything(rule: Rule, example: str) -> bool:
    """Fit what holds the rule's reason."""
    return rule.why in example


def refused(rule: str) -> str:
    """Say why a file with this rule cannot be used."""
    with pytest.raises(OperatorError) as caught:
        parse_policies(f"{HEAD}      - {rule}\n", "policy.yaml", anything)
    return str(caught.value)


def test_a_rule_is_read() -> None:
    """Single texts stand for lists of one, words have alternatives."""
    rule = "{tool: run, command: [git, [log, show]], options: -p, verdict: deny, why: never, match: [it is never]}"
    (read,) = parse_policies(f"{HEAD}      - {rule}\n", "policy.yaml", anything)["own"].rules
    assert read.tool == ("run",)
    assert read.command == (("git",), ("log", "show"))
    assert read.options == ("-p",)
    assert (read.verdict, read.why) == ("deny", "never")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{tool: run, verdict: maybe, why: x}", "policy.yaml:7:21: `policies.own.rules[0].verdict`: input should be"),
        ("{tool: run, verdict: ask}", "policy.yaml:7:9: `policies.own.rules[0].why`: is missing"),
        ("{tool: run, verdict: ask, why: x, wrods: [a]}", "`policies.own.rules[0].wrods`: no such key"),
        ("{tool: run, command: ['/(/'], verdict: ask, why: x}", "is no regular expression"),
        ("{tool: [run, write], command: [a], verdict: ask, why: x}", "only a rule about `run` alone"),
        ("{tool: write, inside: true, verdict: ask, why: x}", "only a rule about `run` alone"),
        (
            "{tool: run, verdict: ask, why: x, match: [xy, yy]}",
            "policy.yaml:7:55: `policies.own.rules[0].match[1]`: the rule does not fit `yy`",
        ),
        (
            "{tool: run, verdict: ask, why: x, not_match: [xy]}",
            "policy.yaml:7:55: `policies.own.rules[0].not_match[0]`: the rule fits `xy`",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(rule: str, said: str) -> None:
    """Line, column and key, also for an example that shows that a rule means something else."""
    assert said in refused(rule)


def test_an_own_file_stands_before_ours(tmp_path: Path) -> None:
    """A policy of the same name is replaced whole, the others stay; one of another name would never count."""
    own = tmp_path / "policy.yaml"
    own.write_text(HEAD.replace("own:", "strict:").replace("    rules:\n", ""), encoding="utf-8")
    found = load_policies(lambda rule, example: example in rule.match, own)
    assert set(found) == {"default", "strict"}
    assert found["strict"].rules == ()
    own.write_text(HEAD.replace("    rules:\n", ""), encoding="utf-8")
    with pytest.raises(
        OperatorError, match=r"policy.yaml: `policies.own`: nothing would choose it.*`default`, `strict`"
    ):
        load_policies(lambda rule, example: example in rule.match, own)
    with pytest.raises(OperatorError, match="cannot be read"):
        load_policies(lambda rule, example: example in rule.match, tmp_path / "none.yaml")
