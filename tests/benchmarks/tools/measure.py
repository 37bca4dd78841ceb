"""What the tools of a model take on a repository of many files: each call as a model makes it, in a real sandbox.

python -m tests.benchmarks.tools.measure [files] [runs]

Started as root, the tools act as uid 61098. A patch goes over 200 files.
"""

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.sandbox.base import Place
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset

FILES = 30_000
RUNS = 5
UID = 61098
FOLDER_FILES = 100
PATCHED = 200
CALLS: Sequence[tuple[str, str, Mapping[str, object]]] = (
    ("list everything", "list", {}),
    ("list *.py", "list", {"pattern": "*.py"}),
    ("list one folder", "list", {"pattern": "part7/**"}),
    ("search a rare word", "search", {"pattern": "rare_word_1234"}),
    ("search a word of every file", "search", {"pattern": "common_word"}),
    ("search in one folder", "search", {"pattern": "common_word", "glob": "part7/**"}),
    ("search by an expression", "search", {"pattern": r"def \w+_(12|13)\b.*:$"}),
    ("read a file", "read", {"path": "part7/module_700.py"}),
    ("run true", "run", {"command": "true"}),
)


def fill(tree: Path, files: int) -> None:
    """Write modules of 40 lines, half of them Python."""
    for number in range(files):
        folder = tree / f"part{number // FOLDER_FILES}"
        folder.mkdir(exist_ok=True)
        word = "rare_word_1234" if number % 10_000 == 1234 else "common_word"
        lines = "".join(f"    value_{line} = {number} + {line}\n" for line in range(38))
        name = f"module_{number}.{'js' if number % 2 else 'py'}"
        (folder / name).write_text(f"def {word}_{number}():\n{lines}    return value_3\n")


def patch(old: int, new: int) -> str:
    """Make a patch over many files, which changes one number in each."""
    rows = [
        f"*** Update File: part{number // FOLDER_FILES}/module_{number}.{'js' if number % 2 else 'py'}\n@@\n"
        f"-    value_7 = {number} + {old}\n+    value_7 = {number} + {new}\n"
        for number in range(PATCHED)
    ]
    return "*** Begin Patch\n" + "".join(rows) + "*** End Patch"


async def measure(tree: Path, files: int, runs: int) -> None:
    """Call each tool several times, and print the median and the longest."""
    fill(tree, files)
    uid = UID if os.geteuid() == 0 else None
    if uid is not None:
        for place, folders, names in os.walk(tree):
            for name in (".", *folders, *names):
                os.chown(Path(place, name), uid, uid, follow_symlinks=False)
    sandbox = ProcessSandbox(Place(tree, uid=uid), Bubblewrap())
    await sandbox.start()
    toolset = StandardToolset(standard_tools(), ToolContext(sandbox, FileLedger()))
    try:
        for name, tool, arguments in CALLS:
            await time_calls(toolset, name, tool, [arguments] * runs)
        patches = [{"patch": patch(7 + at, 8 + at)} for at in range(runs)]
        await time_calls(toolset, f"patch {PATCHED} files", "apply_patch", patches)
    finally:
        await sandbox.close()


async def time_calls(toolset: StandardToolset, name: str, tool: str, calls: Sequence[Mapping[str, object]]) -> None:
    """Make calls one after the other; an error ends the measurement."""
    times, text = [], ""
    for arguments in calls:
        begun = time.perf_counter()
        output = await toolset.call(1, 0, tool, json.dumps(arguments))
        times.append(1000 * (time.perf_counter() - begun))
        text = output.text
        if output.is_error:
            sys.exit(f"{name}: {text[:500]}")
    sys.stdout.write(
        f"{name}: first {times[0]:.0f} ms, median {statistics.median(times):.0f}, longest {max(times):.0f}; "
        f"{len(text)} characters\n"
    )


def main() -> None:
    """Measure and print."""
    base = Path(tempfile.mkdtemp(prefix="iw-measure-", dir="/tmp"))
    base.chmod(0o755)
    try:
        files, runs = (*map(int, sys.argv[1:]), *(FILES, RUNS)[len(sys.argv) - 1 :])
        asyncio.run(measure(base, files, runs))
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
