"""Who may change workflow files."""

from __future__ import annotations

from bot.testing.hub.identity import Caller

FOLDER = ".github/workflows"


def may_write_workflows(caller: Caller) -> bool:
    """Tell whether a caller may push workflow files: people may, an App needs `workflows`, a job never."""
    return caller.kind == "person" or caller.permissions.get("workflows") == "write"


def refusal(path: str) -> str:
    """Return git's reason for refusing a ref, in GitHub's words."""
    return f"refusing to allow a GitHub App to create or update workflow `{path}` without `workflows` permission"
