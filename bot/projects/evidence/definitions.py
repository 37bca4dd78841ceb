"""Files that say what a check is: scripts, configuration, CI; a further one is a row of `_DEFINITIONS`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bot.projects.evidence.called import Calls
from bot.projects.evidence.changes import Change, Finding, Kind, shown, text_of
from bot.projects.evidence.languages import language_of
from bot.projects.evidence.parts import (
    Lines,
    Parts,
    Reader,
    beside,
    comes_along,
    entry,
    hooks,
    keys,
    matching,
    runners,
    scripts,
    sections,
    tables,
    targets,
    whole,
)


@dataclass(frozen=True, slots=True)
class _Definition:
    paths: re.Pattern[str]
    kind: Kind
    read: Reader
    what: str
    """What a part is, before its name."""
    new: bool = True
    """Whether it counts where it was not there before."""
    along: Callable[[str, Parts], bool] = lambda _name, _before: False
    """Whether a part of it does all the same, where `new` is false."""


def _named(*names: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|/)(?:{'|'.join(names)})$")


_JS = r"\.(?:[cm]?[jt]s|json|ya?ml)"
_SHELL = r"\.(?:sh|bash|cmd|bat|ps1)"
_CHECK_NAME = r"(?:run[-_]?)?(?:all[-_]?)?(?:tests?|checks?|lint|ci|verify|coverage)(?:[-_]\w+)?"
_CHECKS = "A script that checks"
_CI = "What CI runs"
_DEFINITIONS: Sequence[_Definition] = (
    _Definition(
        re.compile(r"^\.github/issuewright\.yml$"), "configuration", whole,
        "What Issuewright itself checks",
    ),
    _Definition(
        re.compile(
            r"^\.github/(?:workflows|actions)/.*|^\.gitlab-ci\.ya?ml$|^\.(?:circleci|buildkite)/.*|^azure-pipelines[^/]*$"
            r"|^\.?(?:travis|appveyor|drone|cirrus)\.yml$|(?:^|/)Jenkinsfile$|^bitbucket-pipelines\.yml$"
        ),
        "ci", whole, _CI, new=False,
    ),
    _Definition(_named(r"package\.json"), "script", scripts, "The script", new=False, along=comes_along),
    _Definition(_named(r"package\.json"), "configuration", runners, "How tests are run by"),
    _Definition(_named(r"(?:GNU)?[mM]akefile", r"\.?[jJ]ustfile"), "script", targets, "The target", new=False),
    _Definition(
        _named(r"(?:GNU)?[mM]akefile"), "configuration",
        matching(r"^(?:export |override )*(?:\.?SHELL(?:FLAGS)?|(?:GNU)?MAKEFLAGS) ?[:?+!]*="),
        "How make runs all targets", new=False,
    ),
    _Definition(
        re.compile(
            rf"(?:^|/){_CHECK_NAME}{_SHELL}$"
            rf"|^(?:(?:scripts?|tools?|ci|\.ci|bin|dev|hack)/)?{_CHECK_NAME}(?:\.(?:py|[cm]?js|ts|rb|pl))?$"
        ),
        "script", whole, _CHECKS, new=False,
    ),
    _Definition(
        _named(
            r"\.?pytest\.ini", r"tox\.ini", r"\.coveragerc", r"\.flake8", r"\.?mypy\.ini",
            r"\.pylintrc", r"\.cargo/config(?:\.toml)?",
        ),
        "configuration", sections(""), "The section",
    ),
    _Definition(
        _named(r"\.?pytest\.toml", r"tox\.toml"), "configuration",
        tables(r"(?:tool\.)?pytest\b|env(?:_run_base|_pkg_base)?(?:\.|$)"), "The section",
    ),
    _Definition(
        _named(r"setup\.cfg"), "configuration",
        sections(r"(?:tool:)?(?:pytest|coverage|flake8|mypy|pycodestyle|pylint|testenv|tox|nosetests|aliases)\b"),
        "The section",
    ),
    _Definition(
        _named(r"pyproject\.toml"), "configuration",
        tables(
            r"tool\.(?:pytest|coverage|tox|nox|ruff|mypy|pyright|basedpyright|pylint|flake8|poe|taskipy|importlinter"
            r"|(?:pdm|hatch\S*)\.(?:scripts|envs))\b|project\.entry-points\.pytest11"
        ),
        "The section",
    ),
    _Definition(
        _named(r"Cargo\.toml"), "configuration",
        tables(r"(?:test|lints|workspace\.lints|profile\.test)\b"), "The section",
    ),
    _Definition(
        _named(r"Cargo\.toml"), "configuration",
        keys(r"auto(?:tests|benches|examples)|test|doctest|harness|default-members"), "What cargo tests",
    ),
    _Definition(_named(r"setup\.(?:py|cfg)"), "configuration", matching(r"\bpytest11\b"), "What pytest loads"),
    _Definition(_named(r"conftest\.py"), "configuration", hooks, "For all tests"),
    _Definition(
        _named(
            r"noxfile\.py", r"sitecustomize\.py", r"usercustomize\.py", rf"jest\.(?:config|setup){_JS}",
            rf"vitest\.(?:config|workspace){_JS}", rf"\.mocharc(?:{_JS})?", rf"karma\.conf{_JS}",
            rf"(?:playwright|cypress|ava)\.config{_JS}", rf"\.(?:nyc|c8)rc(?:{_JS})?", r"\.?codecov\.ya?ml",
            r"\.?ruff\.toml", rf"\.eslintrc(?:{_JS})?", rf"eslint\.config{_JS}", r"\.eslintignore",
            r"\.golangci\.(?:ya?ml|toml)", r"\.?clippy\.toml", r"biome\.jsonc?", r"pyrightconfig\.json",
            r"\.pre-commit-config\.ya?ml", r"[tT]askfile\.ya?ml", r"\.config/nextest\.toml",
            r"junit-platform\.properties", r"\.mvn/(?:maven\.config|jvm\.config|extensions\.xml)", r"go\.(?:work|env)",
            r"init\.gradle(?:\.kts)?", r"init\.d/[^/]+\.gradle(?:\.kts)?", r"\.rspec", r"bunfig\.toml", r"\.bazelrc",
            r"(?:turbo|nx)\.json",
        ),
        "configuration", whole, "How checks are run",
    ),
    _Definition(
        _named(r"\.npmrc", r"\.yarnrc(?:\.yml)?"), "configuration",
        matching(
            r"^(?:script-?shell|shell|node-options|if-present|yarn-?path|prefix|plugins)\b",
            re.IGNORECASE,
        ),
        "How scripts are run",
    ),
    _Definition(
        _named(r"gradle\.properties"), "configuration",
        matching(r"test|check|skip|ignore|exclude|systemProp|jvmargs|init-?script", re.IGNORECASE), "How tests are run",
    ),
    _Definition(
        _named(rf"vite\.config{_JS}"), "configuration",
        matching(r"\b(?:test|coverage|exclude|include|thresholds?|passWithNoTests|retry)\b\s*:"), "How tests are run",
        new=False,
    ),
    _Definition(
        _named(r"tsconfig[^/]*\.json"), "configuration",
        matching(r'"(?:strict\w*|no[A-Z]\w+|skipLibCheck|exclude|checkJs|allowUn\w+)"'), "How types are checked",
        new=False,
    ),
    _Definition(
        _named(r"pom\.xml", r"(?:build|settings)\.gradle(?:\.kts)?"), "configuration",
        matching(
            r"skipTests|skipITs|test\.skip|[iI]gnoreFailures|testFailureIgnore|surefire|failsafe|<minimum>|useJUnit|xclude(?!\W*(?:group|module)\b)"
            r"|[eE]nabled\s*[=(]\s*false|[iI]ncludeTestsMatching|actions\.clear|<skip>|<testSourceDirectory>|onlyIf|-DskipTests|maven\.test"
        ),
        "How tests are run", new=False,
    ),
    _Definition(
        re.compile(r"_test\.go$"), "configuration", entry(r"func\b.*\bTestMain\b"), "How this package's tests are run",
    ),
    _Definition(
        re.compile(r"_test\.go$"), "skip", matching(r"^//(?:go:build| \+build)"), "When this file's tests are built",
        new=False,
    ),
)  # fmt: skip

_CALLED = _Definition(re.compile(""), "script", whole, "What a check runs")
_MAKEFILE = _Definition(
    _named(r"(?:GNU)?[mM]akefile", r"\.?[jJ]ustfile"),
    "script",
    beside,
    "A file of targets that a check uses",
    new=False,
)

_IGNORES: Sequence[tuple[re.Pattern[str], Kind, str]] = (
    (
        re.compile(
            r"\|\|\s*(?:true|:|exit 0|echo)(?:\W|$)|;\s*(?:true|exit 0)\s*[\"']?$|^exit 0$|\bset \+e\b"
            r"|(?:continue-on-error|allow_failure)\W+true|\bignore_(?:errors|outcome)\s*=\s*true|[iI]gnoreFailures\s*=\s*true"
            r"|testFailureIgnore\W+true|--exit-zero\b|test\.failure\.ignore|--passWithNoTests|passWithNoTests\W+true"
            r"|--suppress-no-test-exit-code|SHELL\s*[:?]?=\s*\S*(?:/true|/echo)\b|MAKEFLAGS\b.*-\w*[ni]"
            r"|^@?-(?:python|py\.?test|npm|npx|yarn|pnpm|go |cargo|mvn|\./|\$)"
        ),
        "ignored failure",
        "lets a check that fails count as one that passes",
    ),
    (
        re.compile(
            r"--ignore(?:-glob)?[= ]|--deselect\b|-[km] ?[\"']?\(?not |testPathIgnorePatterns|modulePathIgnorePatterns"
            r"|-DskipTests|maven\.test\.skip|<skip(?:Tests|ITs)>\s*true|collect_ignore|auto(?:tests|benches)\s*=\s*false"
            r"|(?:^|\s)(?:test|harness)\s*=\s*false|--no-run\b|-run[= ]|--collect-only|--co\b|--list-?tests\b"
        ),
        "skip",
        "leaves tests out",
    ),
)
_TOOLS: Sequence[tuple[re.Pattern[str], frozenset[str]]] = tuple(
    (re.compile(rf"(?:^|[/#]){where}"), frozenset(words.split()))
    for where, words in (
        (r"\.?ruff\.toml|tool\.ruff\b", "ruff pre-commit"),
        (r"\.?mypy\.ini|(?:tool\.)?mypy\b", "mypy dmypy pre-commit"),
        (r"pyrightconfig\.json|tool\.(?:based)?pyright\b", "pyright basedpyright pre-commit"),
        (r"\.pylintrc|(?:tool\.)?pylint\b", "pylint pre-commit"),
        (r"\.flake8|(?:tool\.)?(?:flake8|pycodestyle)\b", "flake8 pycodestyle pre-commit"),
        (r"tool\.importlinter\b", "lint-imports pre-commit"),
        (r"\.pre-commit-config\.ya?ml", "pre-commit prek"),
        (r"\.eslint(?:rc|ignore)|eslint\.config", "eslint xo next pre-commit"),
        (r"biome\.jsonc?", "biome"),
        (r"\.golangci\.", "golangci-lint"),
        (r"\.?clippy\.toml|(?:workspace\.)?lints\b", "clippy"),
        (r"\.?codecov\.ya?ml", "codecov"),
        (r"tsconfig[^/]*\.json", "tsc vue-tsc tsd tstyche"),
    )
)
"""What only certain programs read: a file, or with `#` before it a section."""
_NUMBER = re.compile(
    r"(?P<name>fail[-_]under|min(?:imum)?[-_]coverage|maxfail|branches|functions|lines|statements|minimum"
    r"|max-warnings|reruns|retries|retry)[\"']?\s{0,20}[=: >]\s{0,20}[\"']?(?P<value>\d{1,9}(?:\.\d{1,9})?)"
)
_MORE_IS_WEAKER = frozenset({"max-warnings", "reruns", "retries", "retry"})


def defines(path: str) -> bool:
    """Say whether a file may define checks."""
    return any(definition.paths.search(path) for definition in _DEFINITIONS)


def redefined(change: Change, calls: Calls) -> Iterator[Finding]:
    """Say what a changed file makes of the checks that it defines.

    Args:
        change: the file.
        calls: what the checks call; a file that they call is a definition whatever its name is.
    """
    if change.before == change.after:
        return
    for definition in _definitions(change.path, calls):
        if change.before is None and not definition.new:
            continue
        before, after = definition.read(text_of(change.before)), definition.read(text_of(change.after))
        if change.after is None:
            if any(before.values()):
                is_run = any(_is_run(change.path, definition.what, name, calls) for name in before)
                words = f"The file {shown(change.path)} is gone, which defined checks."
                yield Finding(change.path, None, definition.kind if is_run else "elsewhere", words)
            continue
        for name in [*before, *(name for name in after if name not in before)]:
            if name in before or definition.new or definition.along(name, before):
                is_run = _is_run(change.path, definition.what, name, calls)
                for finding in _part(change.path, definition, name, before, after):
                    yield finding if is_run else replace(finding, kind="elsewhere")


def _is_run(path: str, what: str, name: str, calls: Calls) -> bool:
    """Say whether a command may lead to what reads this part of a file; so it is where nobody knows the commands."""
    if not calls.known or calls.call(path):
        return True
    if what in {_CHECKS, _CI}:
        return False
    programs = [words for where, words in _TOOLS if where.search(f"{path}#{name}")]
    return not programs or any(words & calls.words for words in programs)


def _definitions(path: str, calls: Calls) -> Iterator[_Definition]:
    """Yield what a file defines, whole where the checks call it."""
    language = language_of(path)
    is_test = language is not None and language.run.search(path) is not None
    found = [one for one in _DEFINITIONS if one.paths.search(path) and not (one.what == _CHECKS and is_test)]
    for definition in found:
        is_package = definition.read is scripts
        yield replace(definition, read=partial(scripts, called=calls.scripts)) if is_package else definition
    if calls.call(path) and (not found or _MAKEFILE.paths.search(path)):
        # Of a Makefile any variable, and any target that another one needs, may be what the check comes to.
        yield _MAKEFILE if found else _CALLED


def _part(path: str, definition: _Definition, name: str, before: Parts, after: Parts) -> Iterator[Finding]:
    had, has = before.get(name, ()), after.get(name, ())
    old, new = [text for _, text in had], [text for _, text in has]
    if old == new:
        return
    there, was_there = set(new), set(old)
    gone = [text for text in old if text not in there]
    come = [(number, text) for number, text in has if text not in was_there]
    line = come[0][0] if come else has[0][0] if has else None
    what = f"{definition.what} {shown(name)}" if name else definition.what
    yield Finding(path, line, definition.kind, f"{what} {_difference(gone, [text for _, text in come])}.")
    for pattern, kind, says in _IGNORES:
        found = [(number, text) for number, text in come if pattern.search(text)]
        if found and not any(map(pattern.search, gone)):
            more = f", and so do {len(found) - 1} more lines" if len(found) > 1 else ""
            yield Finding(path, found[0][0], kind, f"{shown(found[0][1])} {says}{more}.")
    yield from _numbers(path, had, has)


def _difference(gone: Sequence[str], come: Sequence[str]) -> str:
    if gone and come:
        more = " (and more)" if len(gone) > 1 or len(come) > 1 else ""
        return f"has changed: {shown(gone[0])} was there, {shown(come[0])} is there now{more}"
    if come:
        return f"has changed: {shown(come[0])} is new{' (and more)' if len(come) > 1 else ''}"
    if gone:
        return f"has changed: {shown(gone[0])} is gone{' (and more)' if len(gone) > 1 else ''}"
    return "has changed: its lines stand in another order, or not as often"


def _numbers(path: str, had: Lines, has: Lines) -> Iterator[Finding]:
    """Compare limits of the same name, each with the one that stood in its place."""
    old, new = _limits(had), _limits(has)
    for name, limits in old.items():
        now = new.get(name, [])
        if not now:
            line = has[0][0] if has else None
            yield Finding(path, line, "threshold", f"The limit {shown(name)}, {limits[0][1]:g} until now, is gone.")
        elif len(now) == len(limits):
            for (_, was), (number, value) in zip(limits, now, strict=True):
                if value > was if name in _MORE_IS_WEAKER else value < was:
                    words = f"The limit {shown(name)} was {was:g} and is {value:g} now."
                    yield Finding(path, number, "threshold", words)


def _limits(lines: Lines) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for number, text in lines:
        for limit in _NUMBER.finditer(text):
            found.setdefault(limit["name"], []).append((number, float(limit["value"])))
    return found
