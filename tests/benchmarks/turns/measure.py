"""Own time per turn of `issuewright run`: 60 turns against a scripted model that answers at once.

python -m tests.benchmarks.turns.measure

The period from one request's arrival to the next holds everything: the model's server, the SDK, the tool, the record
that is synced, and the checkpoint. Started as root, the command runs as uid 1778.
"""

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bot.testing.model.reply import Call, Pace
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel

ROOT = Path(__file__).parents[3]
FILES = 200
TURNS = 60


def script() -> Script:
    """Thirty times an edit and a command."""
    turns = []
    for number in range(TURNS // 2):
        edit = {"path": f"src/m{number:03}.py", "old": "VALUE = 0\n", "new": f"VALUE = {number + 1}\n"}
        turns.append(Turn(f"Edit {number}.", calls=[Call("edit", edit)]))
        turns.append(Turn(f"Run {number}.", calls=[Call("run", {"command": f"true {number}"})]))
    turns.append(Turn("Done.", calls=[Call("finish", {"summary": "Done."})]))
    return Script([Conversation("all", turns)], name="turns", pace=Pace(chunk=4096))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repo = folder / "repo"
        (repo / "src").mkdir(parents=True)
        for number in range(FILES):
            (repo / "src" / f"m{number:03}.py").write_text(f'"""Module {number}."""\n\nVALUE = 0\n')
        for args in (
            ("init", "-qb", "main"),
            ("add", "."),
            ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
        ):
            subprocess.run(["git", "-C", str(repo), *args], check=True)
        user = []
        if os.geteuid() == 0:
            folder.chmod(0o755)
            subprocess.run(["chown", "-R", "1778:1778", str(folder)], check=True)
            user = ["setpriv", "--reuid=1778", "--regid=1778", "--clear-groups"]
        model = ScriptedModel(script())
        model.start()
        command = ["run", "--repo", str(repo), "--task", "Do it", "--approve", "all", "--state", str(folder / "state")]
        subprocess.run(
            [*user, sys.executable, "-m", "bot", *command, "--model", f"anthropic:{model.model_id}"],
            check=True,
            cwd="/",
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "HOME": str(folder),
                "ANTHROPIC_API_KEY": "scripted-key",
                "ISSUEWRIGHT_ANTHROPIC__BASE_URL": model.url,
                "ISSUEWRIGHT_LIMITS__TURNS": str(TURNS + 10),
            },
            stderr=subprocess.DEVNULL,
        )
        model.stop()
        at = [request.at_s for request in model.requests]
    gaps = [1000 * (after - before) for before, after in itertools.pairwise(at)]
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    quantiles = statistics.quantiles(gaps, n=20)
    sys.stdout.write(
        f"{len(at)} requests; period p50 {statistics.median(gaps):.1f} ms, p95 {quantiles[18]:.1f} ms; "
        f"edits p50 {statistics.median(gaps[0::2]):.1f}, commands p50 {statistics.median(gaps[1::2]):.1f}; "
        f"CPU of all child processes {cpu.ru_utime + cpu.ru_stime:.2f} s\n"
    )


if __name__ == "__main__":
    main()
