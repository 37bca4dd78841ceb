"""Write the page that shows every tool, from the tools themselves.

To bring it up to date: `python -c "from bot.tools.document import write; write()"` in the project's top directory.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.domain.changes import SHARE
from bot.domain.messages import ToolSpec
from bot.tools.base import Tool
from bot.tools.standard import standard_tools

_PATH = "docs/tools.md"


def page() -> str:
    """Return the page."""
    return _PAGE.format(tools="\n".join(_tool(tool) for tool in standard_tools()), share=f"{SHARE:.0%}")


def write(root: Path | None = None) -> None:
    """Write the page below the project's top directory."""
    ((root or Path()) / _PATH).write_text(page(), encoding="utf-8")


def _tool(tool: Tool) -> str:
    spec = tool.spec
    rows = [
        f"| `{name}` | {_kind(found)} | {_meaning(spec, name, found)} |" for name, found in _properties(spec).items()
    ]
    notes = "Changes nothing." if tool.reads_only else "Changes files."
    table = ["| argument | type | meaning |", "|---|---|---|", *rows]
    return "\n".join([f"### `{spec.name}`", f"{spec.description} {notes}", "", *table, ""])


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, Any]]:
    # The schema of an object, as `ToolSpec` promises.
    found: Mapping[str, Mapping[str, Any]] = spec.parameters["properties"]  # type: ignore[assignment]
    return found


def _kind(found: Mapping[str, Any]) -> str:
    if found["type"] != "array":
        return str(found["type"])
    inner = ", ".join(f"`{name}`: {_kind(one)}" for name, one in found["items"].get("properties", {}).items())
    return f"list of {inner or _kind(found['items'])}"


def _meaning(spec: ToolSpec, name: str, found: Mapping[str, Any]) -> str:
    needed = spec.parameters["required"]
    told = [str(found["description"]).replace("|", "\\|")] if "description" in found else []
    if isinstance(needed, list) and name not in needed:
        told.append(f"Default: `{json.dumps(found.get('default'))}`.")
    return " ".join(told)


_PAGE = """\
# Tools
This page is written by `bot/tools/document.py` from the tools themselves: descriptions and arguments are what the model
is told. It is told the same at every request, in the same order.

{tools}
## What holds for all of them
- Paths are relative to the work tree and stay inside it, links included; `.git` is nobody's but the harness's.
- A file is written whole and at once. Encoding, byte order mark, line ends, the end of the last line and mode bits stay
  as they were; what is no UTF-8 text, or has NUL bytes, is never rewritten.
- `write` overwrites only what was read to its end and has not changed since. `edit` and `apply_patch` need no reading:
  what they replace must be there, and in one place.
- `edit` and `apply_patch` try what is written first, and then, only where it is nowhere: other line ends, other spaces
  at line ends, one other indentation, other quotes, dashes or spaces; `edit` also line numbers before all lines. Each
  must fit in one place of the file. Nothing is compared by likeness; what is nearest is only shown with the refusal.
- `apply_patch` fits all parts to all files before it changes one; where one does not fit, or cannot be written, nothing
  is changed. It never overwrites: a file that is added, and the target of a move, must not exist. Below `@@` stands a
  line that comes before the change; where lines below it are indented deeper, the change must be among them.
- A line that only stands for code, as `# ... rest of the code unchanged ...`, is refused.
- A Python, JSON, YAML or TOML file that could be parsed, and cannot be any more, is changed all the same; the error
  comes back with the change. Python is compiled inside the sandbox, by the version named with the error.
- Where more than {share} of the files that were there would be gone, `delete` and `apply_patch` delete nothing, and a
  command that did it is told so: a person has to agree. One file alone may go, and what a command moved is not gone.
- A command that seems to have reached no network, or could not install into what was set up, is told what it may reach,
  which settings say so, and where it may install.
- `checks` runs what the repository's `checks` name, else what its files tell of as they are at that moment: scripts of
  a `package.json`, configured linters, tests of pytest, unittest, Django, Go, Cargo, Maven and Gradle, targets of make.
- `ci_status` and `ci_logs` ask GitHub from the server, about the task's own repository alone; where a task is not on
  GitHub they are not offered. Of a log the failed steps are shown first, of a long step both ends; 8 MiB of a log are
  read, its beginning and its end. Tokens in it are masked.
- Calls of one reply that only read go side by side, up to eight. Changes go alone and in order, and behind one that
  failed the later ones are not made. With `sandbox.parallel_commands` neighbouring calls of `run` go side by side too,
  in one work tree, and share one checkpoint: a crash among them makes all of them again from where the first began.
- A search is git's, with a Perl expression, over what is not ignored, untracked files too; it has 10 s.
- A refusal begins with a word for its reason, and says what would work.
"""
