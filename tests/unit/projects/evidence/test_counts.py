"""How many tests were run is read from what the runners print, and only where they say it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.projects.evidence.counts import Counts, counted, counts

OUTPUTS = Path(__file__).parents[3] / "cases" / "outputs"
READ = {
    "cargo-failed": Counts("cargo", 4, 2, 1, 1),
    "cargo-stopped": Counts("cargo", 3, 1, 1, 1),
    "go-failed": Counts("go", 3, 1, 1, 0, 1, "packages"),
    "go-failed-verbose": Counts("go", 4, 2, 1, 1, 1),
    "go-ok": Counts("go", 1, 1, unit="packages"),
    "go-ok-verbose": Counts("go", 2, 1, 0, 1),
    "go-panic-verbose": Counts("go", 2, 1, 1),
    "jest": Counts("jest", 4, 1, 1, 2, 1),
    "mocha": Counts("mocha", 4, 1, 1, 2),
    "mocha-ok": Counts("mocha", 1, 1),
    "node-spec": Counts("node", 4, 1, 1, 2),
    "node-tap": Counts("node", 4, 1, 1, 2),
    "pytest-deselected": Counts("pytest", 1, 1),
    "pytest-deselected-quiet": Counts("pytest", 1, 1),
    "pytest-failed": Counts("pytest", 7, 3, 1, 2, 2),
    # An error beside a test that passed, and one instead of a test, look the same.
    "pytest-failed-quiet": Counts("pytest", None, 3, 1, 2, 2),
    "pytest-import": Counts("pytest", 0, 0, errors=1),
    "pytest-none": Counts("pytest", 0, 0),
    "pytest-says-nothing": None,
    # Two of three subtests fail, which are one test.
    "unittest-failed": Counts("unittest", 6, 1, 3, 2, 1),
    "unittest-import": Counts("unittest", 1, 0, errors=1),
    "unittest-none": Counts("unittest", 0, 0),
    "unittest-ok": Counts("unittest", 3, 1, 0, 2),
    "vitest": Counts("vitest", 4, 1, 1, 2),
}
"""Recorded from the programs themselves."""


@pytest.mark.parametrize("name", READ)
def test_recorded_outputs_are_read(name: str) -> None:
    """Each runner's own output is understood, whatever command it came from."""
    output = (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")
    assert counts(output, "make test") == READ[name]


def test_every_recorded_output_is_in_the_table() -> None:
    """No file of outputs is forgotten."""
    assert {path.stem for path in OUTPUTS.iterdir()} == set(READ)


DJANGO = """\
Found 3 test(s).
Creating test database for alias 'default'...
System check identified no issues (0 silenced).
..s
----------------------------------------------------------------------
Ran 3 tests in 0.035s

OK (skipped=1)
Destroying test database for alias 'default'...
"""
MAVEN = """\
[INFO] Running small.ATest
[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1, Time elapsed: 0.05 s <<< FAILURE! -- in small.ATest
[INFO] Running small.BTest
[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.002 s -- in small.BTest
[INFO]
[INFO] Results:
[INFO]
[ERROR] Failures:
[ERROR]   ATest.bad:3 expected: <1> but was: <2>
[INFO]
[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1
[INFO]
"""
GRADLE = """\
> Task :test FAILED

SmallTest > bad() FAILED
    org.opentest4j.AssertionFailedError at SmallTest.java:9

4 tests completed, 1 failed, 1 skipped
"""


@pytest.mark.parametrize(
    ("output", "command", "expected"),
    [
        (DJANGO, "python3 manage.py test", Counts("django", 3, 2, 0, 1)),
        (MAVEN, "mvn --batch-mode test", Counts("maven", 5, 2, 1, 1, 1)),
        (MAVEN + MAVEN, "sh ./mvnw test", Counts("maven", 10, 4, 2, 2, 2)),
        ("2 passed in 0.50s", "pip install mocha; pytest", Counts("pytest", 2, 2)),
        (GRADLE, "sh ./gradlew test", Counts("gradle", 4, 2, 1, 1)),
        ("Ran 2 tests in 0.1s\n\nFAILED (failures=1)\n", "python3 -m unittest", Counts("unittest", 2, None, 1)),
        ("2 passed, 1 xfailed, 3 warnings in 61.50s (0:01:01)", "pytest -q", Counts("pytest", 3, 2, 0, 1)),
        ("\x1b[32m\x1b[1m2 passed\x1b[0m\x1b[32m in 0.50s\x1b[0m", "pytest -q", Counts("pytest", 2, 2)),
        # A suite of which all is skipped was not run.
        (
            "Test Suites: 1 skipped, 1 passed, 1 of 2 total\nTests:       1 skipped, 2 passed, 3 total\n",
            "npx jest", Counts("jest", 3, 2, 0, 1),
        ),
        (
            " Test Files  1 passed (1)\n      Tests  1 passed | 1 expected fail (2)\n",
            "npx vitest run", Counts("vitest", 2, 1, 0, 1),
        ),
        ("Test Files  no tests\n     Tests  no tests\n", "npx vitest run", Counts("vitest", 0, 0)),
        ('  1 passing (3ms)\n  1 failing\n\n  1) "before each" hook for "a"', "mocha", Counts("mocha", None, 1, 1)),
    ],
)  # fmt: skip
def test_documented_outputs_are_read(output: str, command: str, expected: Counts) -> None:
    """Runners that are not installed here are read as their documentation shows them."""
    assert counts(output, command) == expected


@pytest.mark.parametrize(
    ("output", "command"),
    [
        ("", "true"),
        ("All tests pass!", "npm run test"),
        ("42 tests, all passed", "make test"),
        ("Found 2 errors in 1 file (checked 9 source files)", "mypy"),
        ("All checks passed!", "ruff check ."),
        ("BUILD SUCCESSFUL in 3s", "gradle test"),
        # What another runner is said to have run is not what this command ran.
        ("5 passed in 0.10s", "cargo test"),
        # Two runners: neither is the one that counts.
        ("5 passed in 0.10s\n  1 passing (2ms)\n", "make test"),
        ("5 passed in 0.10s\n  1 passing (2ms)\n", "pytest && mocha"),
        # A sum that is lost cannot be added.
        ("ok  \ta\t0.003s\n[… 4,000 characters left out …]\nok  \tz\t0.003s\n", "go test ./..."),
        ("1 passed in 0.10s\n[… 4,000 characters left out …]\n2 passed in 0.10s\n", "make test"),
        # The first sum may be what a failing test printed.
        ("9 passed in 0.10s\n1 failed in 0.10s\n", "make test"),
    ],
)
def test_what_is_not_said_is_not_guessed(output: str, command: str) -> None:
    """There are no counts where the output leaves a doubt."""
    assert counts(output, command) is None


def test_one_call_sums_up_once() -> None:
    """A gap leaves no doubt where the command is one call of a runner and one sum is there."""
    output = "9 dots\n[… 4,000 characters left out …]\n1 failed, 2 passed in 0.10s\n"
    for command in ("python3 -m pytest -q", "cd small && pytest -q", "pip install mocha; pytest | tee log"):
        assert counts(output, command, 1) == Counts("pytest", 3, 2, 1)
    assert counts(output, "pytest a; pytest b", 1) is None


def test_several_calls_are_added() -> None:
    """A command that runs one runner twice has run all of it."""
    assert counts("2 passed in 0.10s\n3 passed in 0.10s\n", "pytest a && pytest b", 0) == Counts("pytest", 5, 5)


GAP = "[… 4,000 characters left out …]\n"
SPOOFED = "1 failed in 0.10s\n500 passed in 0.10s\n"
MORE = "it printed more sums than its command names calls"
LONG = "it printed more than is read here"
HIDDEN = "it ended with 0, and printed a sum with failures"


@pytest.mark.parametrize(
    ("output", "command", "exit_code", "why"),
    [
        # What a handler of the process's end printed behind the runner's own sum, and left with 0.
        (SPOOFED, "python -m pytest -q", 0, HIDDEN),
        (SPOOFED, "make test", 0, HIDDEN),
        ("1 failed, 2 passed in 0.10s\n", "pytest || true", 0, HIDDEN),
        ("1 passed in 0.10s\n500 passed in 0.10s\n", "python -m pytest -q", 0, MORE),
        ("1 passed in 0.10s\n500 passed in 0.10s\n", "make test", 0, MORE),
        ("500 passed in 0.10s\n500 passed in 0.10s\n", "pip install pytest; pytest", 0, MORE),
        ("1 passed in 0.1s\n2 passed in 0.1s\n500 passed in 0.1s\n", "pytest a; pytest b", 0, MORE),
        ("1 passed in 0.10s\n  500 passing (3ms)\n", "make test", 0, MORE),
        (SPOOFED, "python -m pytest -q", 1, MORE),
        ("ok  \ta\t0.003s\nFAIL\tb\t0.003s\n", "go test ./...", 0, HIDDEN),
        ("5 passed in 0.10s\n", "true", 0, ""),
        ("5 passed in 0.10s\n", "pytest", 0, ""),
        ("1 failed, 2 passed in 0.10s\n", "pytest", 1, ""),
        ("hello\n", "pytest", 0, ""),
        # Each of two runners sums up once: nothing contradicts anything.
        ("5 passed in 0.10s\n  1 passing (2ms)\n", "pytest && mocha", 0, ""),
        ("5 passed in 0.10s\n5 passed in 0.10s\n  1 passing (2ms)\n", "pytest && mocha", 0, MORE),
        (f"ok  \ta\t0.003s\n{GAP}ok  \tz\t0.003s\n", "go test ./...", 0, LONG),
        (f"hello\n{GAP}bye\n", "make test", 0, LONG),
    ],
)
def test_what_contradicts_itself_is_not_counted(output: str, command: str, exit_code: int, why: str) -> None:
    """Beside an end that a sum gives the lie, or another sum, there is no count, and it is said why."""
    found, said = counted(output, command, exit_code)
    assert said == why
    assert found is None or not why


@pytest.mark.parametrize(
    ("output", "command"),
    [
        ("{1} passed in 0.10s\n", "pytest"),
        ("Ran 1 test in 0.10s\n\nFAILED ({a})\n", "python -m unittest"),
        (" Test Files  1 passed\n      Tests  1 {1}\n", "vitest"),
    ],
)
def test_no_sum_keeps_it(output: str, command: str) -> None:
    """What a test prints as a sum may be as long as all that is read; where that is quadratic, this never ends."""
    counts(output.replace("{1}", "1" * 190_000).replace("{a}", "a" * 190_000), command)


@given(st.text() | st.lists(st.sampled_from([*READ, "=", "[… 1 lines left out …]"])).map("\n".join), st.text())
def test_no_text_brings_it_down(output: str, command: str) -> None:
    """Whatever is printed, there are counts or none."""
    counts(output, command)


@given(st.lists(st.sampled_from(sorted(path.read_text(encoding="utf-8") for path in OUTPUTS.iterdir())), max_size=3))
def test_no_mixture_of_outputs_brings_it_down(outputs: list[str]) -> None:
    """Nor do the outputs of several runners, whose counts are never negative."""
    found = counts("\n".join(outputs), "make test")
    if found is not None:
        assert min(found.collected or 0, found.passed or 0, found.failed, found.skipped, found.errors) >= 0
