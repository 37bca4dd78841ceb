"""What a sandbox adds to a command: `true` at each level against a plain process, in turn in the same run.

python -m tests.benchmarks.sandbox.measure [runs]

Started as root, commands run as uid 61099. A level that cannot be used here is left out.
"""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from bot.errors import SandboxError
from bot.sandbox.base import Place
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.confinement import Confinement
from bot.sandbox.landlock import Landlock
from bot.sandbox.process import ProcessSandbox
from bot.sandbox.unconfined import Unconfined

LEVELS: tuple[Confinement, ...] = (Bubblewrap(), Landlock(), Unconfined())
RUNS = 200
UID = 61099


async def plain() -> None:
    """Run a command as Python does."""
    process = await asyncio.create_subprocess_exec("/bin/bash", "-c", "true", stdin=subprocess.DEVNULL)
    await process.wait()


def inside(sandbox: ProcessSandbox) -> Callable[[], Awaitable[object]]:
    """Run the same command there."""
    return lambda: sandbox.run("true", timeout_s=10)


async def compare(ways: dict[str, Callable[[], Awaitable[object]]], runs: int) -> dict[str, list[float]]:
    """Take turns; milliseconds of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            begun = time.perf_counter()
            await way()
            times[name].append(1000 * (time.perf_counter() - begun))
    return times


async def measure(base: Path, runs: int) -> None:
    """Start a sandbox at each level, and print what each costs."""
    ways: dict[str, Callable[[], Awaitable[object]]] = {"plain": plain}
    async with AsyncExitStack() as stack:
        for number, level in enumerate(LEVELS):
            tree = base / level.level
            tree.mkdir()
            # Each has a uid of its own: whoever has it is ended with each command.
            uid = UID - number if os.geteuid() == 0 else None
            if uid is not None:
                os.chown(tree, uid, uid)
            sandbox = ProcessSandbox(Place(tree, uid=uid), level)
            stack.push_async_callback(sandbox.close)
            begun = time.perf_counter()
            try:
                await sandbox.start()
            except SandboxError as error:
                sys.stdout.write(f"{level.level}: {error}\n")
                continue
            sys.stdout.write(f"{level.level}: started in {1000 * (time.perf_counter() - begun):.0f} ms\n")
            ways[level.level] = inside(sandbox)
        times = await compare(ways, runs)
    base_ms = statistics.median(times["plain"])
    for name, found in times.items():
        quantiles = statistics.quantiles(found, n=20)
        middle = statistics.median(found)
        sys.stdout.write(
            f"{name}: median {middle:.2f} ms, p95 {quantiles[18]:.2f}, least {min(found):.2f}; "
            f"{middle - base_ms:+.2f} ms against plain ({runs} runs)\n"
        )


def main() -> None:
    """Measure and print."""
    base = Path(tempfile.mkdtemp(prefix="iw-measure-", dir="/tmp"))
    base.chmod(0o755)
    try:
        asyncio.run(measure(base, int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
