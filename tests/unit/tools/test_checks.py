"""Checks of the repository, or those that its files tell of, are run one after the other."""

import json
import os
import re
from collections.abc import Sequence

import pytest

from bot.settings.repository import Check
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.checks import NONE, Checks, find_in
from bot.tools.toolset import StandardToolset
from tests.unit.tools.calls import Put, Use, tree

OWN = (
    Check(name="greeting", run="echo checked >seen; test -f a.txt", timeout_s=60),
    Check(name="tests", run="echo out; echo err >&2; exit 3", timeout_s=60),
)
MAKEFILE = b"test:\n\t@echo tested >made\nlint:\n\t@echo linted; false\n"


async def run(context: ToolContext, own: Sequence[Check], *names: str, longest_s: int = 60) -> ToolOutput:
    """Call the tool of a repository that names checks."""
    toolset = StandardToolset([Checks(own, longest_s)], context)
    return await toolset.call(1, 0, "checks", json.dumps({"names": names}))


async def test_all_are_run_and_a_failing_one_is_a_result(context: ToolContext, put: Put) -> None:
    """Each has its row, and what it printed; the exit code is that of the first that failed."""
    await put("a.txt", b"")
    output = await run(context, OWN)
    assert output.text == (
        "exit code | seconds | check\n"
        "0 | 0 | greeting: `echo checked >seen; test -f a.txt`\n"
        "3 | 0 | tests: `echo out; echo err >&2; exit 3`\n"
        "\ntests:\nout\nerr"
    )
    assert (output.is_error, output.exit_code, output.changed) == (False, 3, None)
    assert output.command == "; ".join(check.run for check in OWN)
    assert output.summary == "1 of 2 passed"
    assert "seen" in tree(context)


async def test_own_checks_replace_those_that_files_tell_of(context: ToolContext, put: Put) -> None:
    """Where the repository names checks, nothing else is looked for."""
    await put("Makefile", MAKEFILE)
    assert "make" not in (await run(context, OWN)).text


async def test_found_checks_are_those_of_the_tree_as_it_is(use: Use, put: Put, context: ToolContext) -> None:
    """A file that was only made now leads to its checks, and an ignored one to none."""
    assert await use("checks") == ToolOutput(NONE, "none known")
    await put("Makefile", MAKEFILE)
    output = await use("checks")
    assert re.findall(r"^(\d+) \| \d+ \| (.*)$", output.text, re.MULTILINE) == [
        ("2", "make lint: `make lint`"), ("0", "make test: `make test`"),
    ]  # fmt: skip
    assert "\nmake lint:\nlinted\n" in output.text
    assert tree(context)["made"][0] == b"tested\n"
    await put(".gitignore", b"Makefile\n")
    assert (await use("checks")).text == NONE


async def test_some_are_chosen_by_name_or_kind(use: Use, put: Put, context: ToolContext) -> None:
    """A name or a kind chooses, in the order of the checks; what there is not is said, and nothing is run."""
    await put("Makefile", MAKEFILE)
    assert (await use("checks", names=["tests"])).command == "make test"
    assert (await use("checks", names=["make lint"])).command == "make lint"
    assert (await use("checks", names=["tests", "lint"])).command == "make lint; make test"
    assert (await run(context, OWN, "tests")).exit_code == 3
    output = await use("checks", names=["tests", "speed"])
    assert (output.text, output.is_error) == (
        "unknown_check: 'speed'; there are make lint (lint), make test (tests)", True,
    )  # fmt: skip
    assert (await use("checks", names="tests")).malformed


async def test_time_and_output_are_limited(context: ToolContext) -> None:
    """A check that takes too long is ended; the ends of long outputs are shown, and of those that passed little."""
    own = (
        Check(name="slow", run="sleep 60", timeout_s=50),
        Check(name="loud", run="seq 100000; exit 1", timeout_s=60),
        Check(name="well", run="seq 1000", timeout_s=60),
    )
    output = await run(context, own, longest_s=1)
    assert "none, out of time after 1 s | 1 | slow: `sleep 60`\n" in output.text
    loud, _, well = output.text.partition("\nloud:\n")[2].partition("\nwell:\n")
    assert (loud[:4], loud.rstrip()[-7:], "left out" in loud) == ("1\n2\n", "\n100000", True)
    assert 7_000 < len(loud) < 8_200
    assert (well[:4], well[-5:], len(well) < 350) == ("1\n2\n", "\n1000", True)
    assert output.exit_code is None


async def test_a_check_that_reached_nothing_is_told_why(context: ToolContext) -> None:
    """The hint is that of `run`, and only where a check failed."""
    own = [Check(name="fetch", run="echo getaddrinfo; false", timeout_s=60)]
    assert "commands here have no network" in (await run(context, own)).text
    own = [Check(name="fetch", run="echo getaddrinfo", timeout_s=60), Check(name="other", run="false", timeout_s=60)]
    assert "network" not in (await run(context, own)).text


async def test_a_check_that_deletes_files_is_told_so(context: ToolContext, put: Put) -> None:
    """The same holds as for other commands."""
    for name in "abcdef":
        await put(name, b"")
    output = await run(context, [Check(name="clean", run="rm a b c", timeout_s=60)])
    assert output.is_error
    assert "needs_agreement: 3 of 6 files are gone" in output.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files that others cannot read")
async def test_what_cannot_be_read_tells_nothing(put: Put, context: ToolContext) -> None:
    """A file without permissions, and a link that leads out, are passed over."""
    await put("package.json", b'{"scripts": {"lint": "x"}}', "000")
    await context.sandbox.run("ln -s /etc/passwd go.mod; printf 'check:\\n' >Makefile", timeout_s=5)
    assert [check.name for check in await find_in(context.sandbox)] == ["make check"]
