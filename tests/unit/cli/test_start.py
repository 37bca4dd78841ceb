"""What a command's start pays for: nothing that it does not use."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SERVERS = {"bot.serving", "bot.tasks.intake", "dbos", "fastapi", "uvicorn", "githubkit", "markdown_it", "msgspec"}
LATER = {"anthropic", "openai", "google.genai", "sqlalchemy", "genai_prices"}


def loaded(*lines: str) -> set[str]:
    """Name what an interpreter has imported after some lines."""
    code = "\n".join((*lines, "import sys", "print(*sys.modules)"))
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return set(made.stdout.decode().split())


def test_the_terminal_imports_no_server_and_nothing_large_before_it_is_needed() -> None:
    """`run` has no use for GitHub's side, and begins before the model's SDK and the database are there."""
    assert not loaded("import bot.cli.run") & (SERVERS | LATER)


def test_help_imports_hardly_anything() -> None:
    """The list of commands needs none of them."""
    assert not loaded("import bot.cli.main") & {"bot.bootstrap", "pydantic", "rich", "yaml", *SERVERS, *LATER}


def test_a_new_store_needs_no_migrations(tmp_path: Path) -> None:
    """Alembic is for a database that an earlier version wrote."""
    opening = f"open_store(pathlib.Path({str(tmp_path)!r}), None, now=lambda: None)"
    found = loaded("import pathlib", "from bot.store.opening import open_store", opening, opening)
    assert "sqlalchemy" in found
    assert "alembic" not in found
