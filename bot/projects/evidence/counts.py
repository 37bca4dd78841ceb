"""How many tests a command ran, as its own output says; never a guess.

The output is that of the repository's code, so it shows what was said, not what was done: `touched` says whether a
change alters who says it. A further runner is a row of `_RUNNERS`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal["tests", "packages"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a runner counted."""

    runner: str
    collected: int | None
    """Found and not left out by an option; None where the output does not tell."""
    passed: int | None
    """None where the output does not tell, as with subtests of one test that fail."""
    failed: int = 0
    skipped: int = 0
    """With those that were expected to fail, or are still to be written."""
    errors: int = 0
    """What could not be run: fixtures, files that cannot be imported, packages that cannot be built."""
    unit: Unit = "tests"


@dataclass(frozen=True, slots=True)
class _Runner:
    """One program that runs tests."""

    command: str
    """Regular expression of commands that call it by its name."""
    read: Callable[[str], list[Counts]]
    """Takes an output without escapes and gives the counts of each part that it sums up."""
    whole: bool = False
    """Whether the sums come in parts, each of which counts, instead of one at the end."""


_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\r(?=\n)")
_GAP = re.compile(r"^\[… [\d,.]+ \w+ left out …\]$", re.MULTILINE)
"""What the sandbox writes where it left something out."""
_SEVERAL = re.compile(r"[;&|\n]")
_INSTALLS = re.compile(r"\b(?:install|add|sync)\b")
_WORD = re.compile(r"\b(\d+) ([a-z]+)")
_MOST_DIGITS = 9
_FAILURES = "it ended with 0, and printed a sum with failures"
_SUMS = "it printed more sums than its command names calls"
_LONG = "it printed more than is read here"


def counts(output: str, command: str, exit_code: int | None = None) -> Counts | None:
    """Read how many tests were run; None where the output does not say it beyond doubt. See `counted`."""
    return counted(output, command, exit_code)[0]


def counted(output: str, command: str, exit_code: int | None = None) -> tuple[Counts | None, str]:
    """Read how many tests were run, or say what is wrong with what the output says of that.

    Args:
        output: what the command printed; the middle may be left out.
        command: the shell command; where it names no runner, any that fits the output counts.
        exit_code: how it ended; None where that is not known, or it did not end.

    Returns:
        The counts, None where the output does not say them beyond doubt; and why they are not to be believed, empty
        where nothing speaks against them.
    """
    text = _ESCAPES.sub("", output)
    named = [runner for runner in _RUNNERS if re.search(runner.command, command)]
    found = [(runner, parts) for runner in named or _RUNNERS if (parts := runner.read(text))]
    failures = any(part.failed or part.errors for _, parts in found for part in parts)
    if exit_code == 0 and failures:
        return None, _FAILURES
    return (_sum(found[0][1]), "") if (why := _doubt(text, command, named, found)) is None else (None, why)


def _doubt(
    text: str, command: str, named: Sequence[_Runner], found: Sequence[tuple[_Runner, list[Counts]]]
) -> str | None:
    """Say why sums are not to be believed, which may be in no words; None where nothing speaks against them."""
    if not found:
        return _LONG if _GAP.search(text) else ""
    if any(not runner.whole and len(parts) > _calls(runner, command) for runner, parts in found):
        # A call sums up once; whatever else is printed, by a test or at the process's end, may as well be the last.
        return _SUMS
    if len(found) > 1:
        return "" if named else _SUMS
    runner, parts = found[0]
    is_all = bool(named) and not runner.whole and len(parts) == _calls(runner, command)
    if not is_all and _GAP.search(text):
        return _LONG
    # Behind a failure its test's own output is printed, which may hold sums of other things.
    is_nested = len(parts) > 1 and not runner.whole and any(part.failed or part.errors for part in parts)
    return "" if is_nested else None


def _calls(runner: _Runner, command: str) -> int:
    """Count how often a command calls a runner, by its name; what calls it otherwise is taken to do so once."""
    parts = [part for part in _SEVERAL.split(command) if re.search(runner.command, part)]
    return max(1, sum(not _INSTALLS.search(part) for part in parts))


def _sum(parts: Sequence[Counts]) -> Counts:
    first = parts[0]
    return Counts(
        first.runner,
        _total([part.collected for part in parts]),
        _total([part.passed for part in parts]),
        sum(part.failed for part in parts),
        sum(part.skipped for part in parts),
        sum(part.errors for part in parts),
        first.unit,
    )


def _total(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _number(text: str | None) -> int:
    """Read a number that stands there or does not; what nobody counts to is cut."""
    return int(text[:_MOST_DIGITS]) if text else 0


def _words(text: str) -> dict[str, int]:
    """Read `1 failed, 2 passed` whatever stands between."""
    return {word: _number(number) for number, word in _WORD.findall(text)}


_PYTEST_WORD = (
    r"\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun"
    r"|subtests (?:passed|failed|skipped))"
)
_PYTEST = re.compile(
    rf"^(?:=+ )?({_PYTEST_WORD}(?:, {_PYTEST_WORD})*|no tests ran) in \d+\.\d+s(?: \([\d:]+\))?(?: =+)?$", re.MULTILINE
)
_PYTEST_FOUND = re.compile(
    r"^collected (\d+) items?(?: / \d+ errors?)?(?: / (\d+) deselected)?(?: / .*)?$", re.MULTILINE
)


def _pytest(text: str) -> list[Counts]:
    found = _PYTEST_FOUND.findall(text)
    sums = _PYTEST.findall(text)
    collected = _number(found[0][0]) - _number(found[0][1]) if len(found) == len(sums) == 1 else None
    return [_of_pytest(said, collected) for said in sums]


def _of_pytest(said: str, collected: int | None) -> Counts:
    number = _words(re.sub(r"\b\d+ subtests \w+", "", said)).get
    errors = number("errors", 0) + number("error", 0)
    passed = number("passed", 0) + number("xpassed", 0)
    failed, skipped = number("failed", 0), number("skipped", 0) + number("xfailed", 0)
    if collected is None and not errors:
        # An error may stand beside a test that passed, for one, or for a whole file.
        collected = passed + failed + skipped
    return Counts("pytest", collected, passed, failed, skipped, errors)


_UNITTEST = re.compile(
    r"^Ran (\d+) tests? in \d+\.\d+s\n\n(?:OK|FAILED|NO TESTS RAN)(?: \(([^()\n]*)\))?$", re.MULTILINE
)
_UNITTEST_BAD = re.compile(r"^={70}\n(?:FAIL|ERROR): (\w+) \(([\w.<>]*)\)", re.MULTILINE)
_DJANGO = re.compile(r"^Found \d+ test\(s\)\.$", re.MULTILINE)


def _unittest(text: str) -> list[Counts]:
    runner = "django" if _DJANGO.search(text) else "unittest"
    sums = _UNITTEST.findall(text)
    bad = _UNITTEST_BAD.findall(text) if len(sums) == 1 else []
    return [_of_unittest(runner, _number(ran), said, bad) for ran, said in sums]


def _of_unittest(runner: str, ran: int, said: str, bad: Sequence[tuple[str, str]]) -> Counts:
    number = {name.strip(): _number(value) for name, value in re.findall(r"(?<![a-z ])([a-z ]+)=(\d+)", said)}.get
    failed, errors = number("failures", 0), number("errors", 0)
    unexpected = number("unexpected successes", 0)
    skipped = number("skipped", 0) + number("expected failures", 0)
    # Each subtest that fails is counted, and so are set-ups of classes; only the heads tell which tests these were.
    told = len(bad) == failed + errors
    tests = {head for head in bad if not head[0].startswith(("setUp", "tearDown"))}
    passed = ran - len(tests) - unexpected - skipped
    return Counts(runner, ran, passed if told and passed >= 0 else None, failed + unexpected, skipped, errors)


_JEST = re.compile(
    r"^Test Suites: (?P<suites>(?:\d+ \w+, )*(?:\d+ of )?\d+ total)\n"
    r"Tests: +(?P<tests>(?:\d+ \w+, )*\d+ total)$",
    re.MULTILINE,
)


def _jest(text: str) -> list[Counts]:
    broken = text.count("● Test suite failed to run")
    return [_of_jest(_words(found["tests"]), _words(found["suites"]), broken) for found in _JEST.finditer(text)]


def _of_jest(tests: dict[str, int], suites: dict[str, int], broken: int) -> Counts:
    skipped = tests.get("skipped", 0) + tests.get("todo", 0)
    errors = min(broken, suites.get("failed", 0))
    return Counts("jest", tests["total"], tests.get("passed", 0), tests.get("failed", 0), skipped, errors)


_BAR = r"\d+ \w+(?: fail)?(?: \| \d+ \w+(?: fail)?)*"
_VITEST = re.compile(
    rf"^ *Test Files  (?:no tests|{_BAR}(?: \(\d+\))?)\n *Tests  (?P<tests>no tests|{_BAR})(?: \((?P<all>\d+)\))?$",
    re.MULTILINE,
)
_VITEST_ERRORS = re.compile(r"^ *Errors  (\d+) errors?$|Failed Suites (\d+)", re.MULTILINE)


def _vitest(text: str) -> list[Counts]:
    errors = sum(_number(one or other) for one, other in _VITEST_ERRORS.findall(text))
    return [_of_vitest(_words(found["tests"]), _number(found["all"]), errors) for found in _VITEST.finditer(text)]


def _of_vitest(number: dict[str, int], collected: int, errors: int) -> Counts:
    skipped = sum(number.get(word, 0) for word in ("skipped", "todo", "expected"))
    return Counts("vitest", collected, number.get("passed", 0), number.get("failed", 0), skipped, errors)


_MOCHA = re.compile(r"^  (\d+) passing \(\d+\w+\)$(?:\n  (\d+) pending$)?(?:\n  (\d+) failing$)?", re.MULTILINE)
_MOCHA_HOOK = re.compile(r'"(?:before|after) (?:all|each)" hook')


def _mocha(text: str) -> list[Counts]:
    # A hook that fails is counted as a test, and those behind it are not.
    told = not _MOCHA_HOOK.search(text)
    sums = [[_number(number) for number in found] for found in _MOCHA.findall(text)]
    return [
        Counts("mocha", passed + pending + failed if told else None, passed, failed, pending)
        for passed, pending, failed in sums
    ]


_NODE = re.compile(
    r"^[ℹ#] tests (\d+)\n(?:[ℹ#] suites \d+\n)?[ℹ#] pass (\d+)\n[ℹ#] fail (\d+)\n[ℹ#] cancelled (\d+)\n"  # noqa: RUF001
    r"[ℹ#] skipped (\d+)\n[ℹ#] todo (\d+)$",  # noqa: RUF001
    re.MULTILINE,
)


def _node(text: str) -> list[Counts]:
    sums = [[_number(number) for number in found] for found in _NODE.findall(text)]
    return [
        Counts("node", tests, passed, failed, skipped + to_do, cancelled)
        for tests, passed, failed, cancelled, skipped, to_do in sums
    ]


_GO_PACKAGE = re.compile(
    r"^(ok|FAIL)[ \t]+\S+[ \t]+(\[(?:build|setup) failed\]|\(cached\)|\d+\.\d+s)([^\n]*)$", re.MULTILINE
)
_GO_RUN = re.compile(r"^=== RUN +[^/\s]+$", re.MULTILINE)
_GO_END = re.compile(r"--- (PASS|FAIL|SKIP): [^/\s]+ \(\d+\.\d+s\)$", re.MULTILINE)
"""Not at the line's begin: a test may have printed there. The names of subtests have a slash."""


def _go(text: str) -> list[Counts]:
    packages = _GO_PACKAGE.findall(text)
    if not packages:
        return []
    broken = sum(took.startswith("[") for _, took, _ in packages)
    run = len(_GO_RUN.findall(text))
    if run:
        ended = _GO_END.findall(text)
        return [Counts("go", run, ended.count("PASS"), ended.count("FAIL"), ended.count("SKIP"), broken)]
    ran = [(how, took) for how, took, rest in packages if "[no tests to run]" not in rest]
    passed = sum(how == "ok" for how, _ in ran)
    return [Counts("go", len(ran), passed, len(ran) - passed - broken, 0, broken, "packages")]


_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; ", re.MULTILINE)


def _cargo(text: str) -> list[Counts]:
    sums = [[_number(number) for number in found] for found in _CARGO.findall(text)]
    return [
        Counts("cargo", passed + failed + ignored + measured, passed + measured, failed, ignored)
        for passed, failed, ignored, measured in sums
    ]


_SUREFIRE = re.compile(
    r"^(?:\[\w+\] +)?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?:, Flakes: \d+)?$", re.MULTILINE
)
"""Of a module; the lines of its classes go on with the time."""


def _surefire(text: str) -> list[Counts]:
    sums = [[_number(number) for number in found] for found in _SUREFIRE.findall(text)]
    return [
        Counts("maven", run, max(0, run - failed - errors - skipped), failed, skipped, errors)
        for run, failed, errors, skipped in sums
    ]


_GRADLE = re.compile(r"^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?$", re.MULTILINE)


def _gradle(text: str) -> list[Counts]:
    sums = [[_number(number) for number in found] for found in _GRADLE.findall(text)]
    return [Counts("gradle", ran, max(0, ran - failed - skipped), failed, skipped) for ran, failed, skipped in sums]


_RUNNERS: Sequence[_Runner] = (
    _Runner(r"\b(pytest|py\.test)\b", _pytest),
    _Runner(r"\bunittest\b|\bmanage\.py test\b", _unittest),
    _Runner(r"\bjest\b", _jest),
    _Runner(r"\bvitest\b", _vitest),
    _Runner(r"\bmocha\b", _mocha),
    _Runner(r"\bnode\b[^;&|\n]* --test\b", _node),
    _Runner(r"\bgo test\b", _go, whole=True),
    _Runner(r"\bcargo test\b", _cargo, whole=True),
    _Runner(r"\bmvnw?\b", _surefire, whole=True),
    _Runner(r"\bgradlew?\b", _gradle, whole=True),
)
