"""Judge a call of a tool before it is done: allow it, ask a person, or deny it. Pure; the sandbox is the boundary."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from bot.agent.shell import Script, parse
from bot.agent.wrappers import Command, Word, past_options_of_git
from bot.domain.protected import is_protected
from bot.domain.request import paths_of
from bot.sandbox.base import Level
from bot.settings.policy import COMMAND_TOOL, Policy, Rule, Verdict, load_policies

_ORDER: Sequence[Verdict] = ("allow", "ask", "deny")
_LEVELS: Sequence[Level] = ("bubblewrap", "landlock", "none")
"""The strongest first."""
_NOWHERE = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
"""What may be written to by a command that changes nothing."""
_HERE = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)(?=/|$)")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a call would be done."""

    level: Level = "bubblewrap"
    """Of the sandbox."""
    minimum: Level = "landlock"
    """What the operator asks for at least."""
    root: str = ""
    """Where commands find the work tree; paths below it are inside. Empty where that is not known."""

    @property
    def contained(self) -> bool:
        """Whether the sandbox is as strong as the operator asks for."""
        return _LEVELS.index(self.level) <= _LEVELS.index(self.minimum)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of a call."""

    verdict: Verdict
    why: str = ""
    """For people and for the model; empty where nothing is to say."""
    rule: str = ""
    """The rule that decided, as `strict[12]`, or `strict.otherwise`; empty where the policy has no part in it."""


def load(own: Path | None = None) -> Mapping[str, Policy]:
    """Read all policies by their names, the operator's own file in front, and check the examples of their rules.

    Raises:
        OperatorError: with `file:line:column`.
    """
    return load_policies(fits, own)


def strictest(judgements: Iterable[Judgement]) -> Judgement:
    """Return the first of the strictest; of none, that the call is allowed."""
    return max(judgements, key=lambda one: _ORDER.index(one.verdict), default=Judgement("allow"))


def judge(
    policies: Mapping[str, Policy],
    name: str,
    arguments: Mapping[str, object],
    surroundings: Surroundings | None = None,
) -> Judgement:
    """Judge one call by all of these policies: the strictest verdict counts, so that one more only tightens.

    Args:
        policies: by their names, which stand in the judgement.
        name: of the tool.
        arguments: of the call, as the model gave them; what is no text where one belongs is the tool's to refuse.
        surroundings: where it would be done.
    """
    place = surroundings or Surroundings()
    script = parse(_text(arguments.get("command"))) if name == COMMAND_TOOL else None
    found = [_judge(title, policy, (name, arguments, script), place) for title, policy in policies.items()]
    if name == COMMAND_TOOL and arguments.get("requires_approval") is True:
        found.append(Judgement("ask", "the model asks for a person's agreement"))
    return strictest(found)


_Call = tuple[str, Mapping[str, object], Script | None]


def _judge(title: str, policy: Policy, call: _Call, place: Surroundings) -> Judgement:
    name, arguments, script = call
    rules = [(f"{title}[{index}]", rule) for index, rule in enumerate(policy.rules) if name in rule.tool]
    if script is None:
        paths = tuple(paths_of(arguments))
        return _decided(title, policy, [one for one in rules if _fits_paths(one[1], paths)])
    # What is allowed only because a sandbox holds it, is not where none does.
    loose = [] if place.contained else [Judgement("ask", "the sandbox is too weak to hold it", f"{title}.otherwise")]
    found: list[Judgement] = []
    at = ""
    for command in script.commands:
        matching = [one for one in rules if _fits_command(one[1], command, at, place.root)]
        judgement = _decided(title, policy, matching)
        found.append(judgement if matching else strictest([judgement, *loose]))
        at = _moved(at, command, place.root)
    if script.unread:
        found.append(Judgement(policy.unread, f"it has {script.unread}, which is not understood", f"{title}.unread"))
        found += loose
    return strictest(found)


def _decided(title: str, policy: Policy, matching: Sequence[tuple[str, Rule]]) -> Judgement:
    if not matching:
        why = "" if policy.otherwise == "allow" else "no rule allows it"
        return Judgement(policy.otherwise, why, f"{title}.otherwise")
    return strictest(Judgement(rule.verdict, rule.why, where) for where, rule in matching)


def fits(rule: Rule, example: str) -> bool:
    """Say whether a rule fits an example: a command for `run`, a path for other tools.

    One that allows has to fit all of a command, any other some of it.
    """
    if COMMAND_TOOL not in rule.tool:
        return _fits_paths(rule, (example,))
    script = parse(example)
    found: list[bool] = []
    at = ""
    for command in script.commands:
        found.append(_fits_command(rule, command, at, ""))
        at = _moved(at, command, "")
    if rule.verdict == "allow":
        return script.unread is None and bool(found) and all(found)
    return any(found)


def _fits_paths(rule: Rule, paths: Sequence[str]) -> bool:
    """Whether a call touches one of the rule's paths, or, where it allows, nothing else."""
    if not (rule.path or rule.protected):
        return True
    touched = [_touches(rule, path) for path in paths]
    return any(touched) and (rule.verdict != "allow" or all(touched))


def _touches(rule: Rule, path: str) -> bool:
    # Where it does not allow, a folder counts as what is in it.
    meant = [path.casefold()] if rule.verdict == "allow" else [path.casefold(), f"{path.casefold()}/"]
    return (rule.protected and is_protected(path)) or any(
        fnmatchcase(one, written)
        for pattern in map(str.casefold, rule.path)
        for written in (pattern, pattern.removeprefix("**/"))
        for one in meant
    )


def _fits_command(rule: Rule, command: Command, at: str, root: str) -> bool:
    changes = [_here(one.target) for one in command.redirections if one.writes and one.target.text not in _NOWHERE]
    allows = rule.verdict == "allow"
    if not allows:
        # A rule that allows is about what is written; `git -c` makes git run anything.
        command, folder = past_options_of_git(command)
        at = at if folder is None else _below(at, folder.text, root)
        command = replace(command, words=tuple(map(_here, command.words)))
    # What variables and files a command is given can make it do anything: no rule that allows knows of them.
    if allows and (command.assignments or changes):
        return False
    # So can what it reads from: `echo < /dev/tcp/host/80`.
    if allows and not all(_inside(one.target, root) for one in command.redirections):
        return False
    if not _begins(rule.command, command, exact=allows):
        return False
    if rule.at_top and at not in {"", "."}:
        return False
    rest = command.words[len(rule.command) :]
    if not _fits_words(rule, rest) or (rule.inside and not all(_inside(word, root) for word in command.words[1:])):
        return False
    touched = [*changes, *(rest if rule.command else ())]
    return _fits_paths(rule, [path for word in touched for path in _written(word, at, root)])


def _here(word: Word) -> Word:
    """Read where the shell stands, however that is written; what else a variable holds nobody knows."""
    text, found = _HERE.subn(".", word.text.replace('"', "")) if word.kind == "unknown" else ("", 0)
    if not found or set(text) & set("$`{"):
        return word
    return Word(text, "pattern" if set(text) & set("*?[") else "plain")


def _begins(prefix: Sequence[Sequence[str]], command: Command, *, exact: bool) -> bool:
    """Whether a command begins with these words; `/bin/rm` is `rm` only for a rule that does not allow."""
    if len(command.words) < len(prefix):
        return False
    for place, (word, patterns) in enumerate(zip(command.words, prefix, strict=False)):
        text = word.text if exact or place else word.text.rpartition("/")[2]
        if word.kind != "plain" or not _one_of(patterns, text):
            return False
    return True


def _fits_words(rule: Rule, rest: Sequence[Word]) -> bool:
    # A pattern may become the name of a file that looks like an option.
    options = [word for word in rest if word.text.startswith("-") or word.kind == "unknown" or _loose(word)]
    if rule.options is not None and not all(w.kind == "plain" and _one_of(rule.options, w.text) for w in options):
        return False
    if rule.having is not None and not any(_one_of(rule.having, word.text) for word in rest):
        return False
    operands = sum(word not in options for word in rest) if rule.operands is not None else 0
    # How many words a pattern becomes is not known.
    return rule.operands is None or (operands <= rule.operands and all(word.kind == "plain" for word in rest))


def _loose(word: Word) -> bool:
    return word.kind == "pattern" and word.text[:1] in set("*?[")


def _one_of(patterns: Sequence[str], text: str) -> bool:
    return any(
        re.fullmatch(pattern[1:-1], text) is not None
        if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")
        else fnmatchcase(text, pattern)
        for pattern in patterns
    )


def _parts(text: str) -> Iterator[str]:
    """Give what may be a path in a word: the word, or what stands behind an option or `name=`."""
    if not text.startswith("-"):
        yield text
        yield text.partition("=")[2]
    elif text.startswith("--"):
        yield text.partition("=")[2]
    else:  # `-f/etc/passwd` and `-nf/etc/passwd`
        yield text[2:]
        yield text[text.find("/") :] if "/" in text else ""


def _inside(word: Word, root: str) -> bool:
    """Whether a word cannot lead out of the work tree; links in the tree are the sandbox's to hold."""
    return word.kind != "unknown" and all(
        part in _NOWHERE or _under(part, root) is not None or not _leads_out(part, word.kind == "pattern")
        for part in _parts(word.text)
    )


def _leads_out(path: str, pattern: bool) -> bool:  # noqa: FBT001 - a private fact of the word
    steps = path.split("/")
    # `.*` is also the name of the folder above.
    return path.startswith(("/", "~")) or any(
        step == ".." or (pattern and step.startswith(".") and fnmatchcase("..", step)) for step in steps
    )


def _under(path: str, root: str) -> str | None:
    """Return a path of the work tree's own; None for any other, and for one that is not absolute."""
    plain = posixpath.normpath(path)
    if root and (plain == root or plain.startswith(f"{root}/")):
        return posixpath.relpath(plain, root)
    return None


def _written(word: Word, at: str, root: str) -> Iterator[str]:
    """Give the paths that a word may mean, from the top of the tree and from where the shell may stand."""
    for part in _parts(word.text):
        if part and word.kind != "unknown":
            inner = _under(part, root)
            yield inner if inner is not None else posixpath.normpath(part)
            if at:
                yield posixpath.normpath(posixpath.join(at, part))


def _moved(at: str, command: Command, root: str) -> str:
    """Return where the shell may stand after a command, from the top of the tree; branches and groups are not seen."""
    if not command.words or command.words[0].text not in {"cd", "pushd"}:
        return at
    places = [word for word in command.words[1:] if not word.text.startswith("-")]
    return _below(at, places[0].text, root) if len(places) == 1 and places[0].kind == "plain" else at


def _below(at: str, folder: str, root: str) -> str:
    return _under(folder, root) or posixpath.normpath(posixpath.join(at, folder))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
