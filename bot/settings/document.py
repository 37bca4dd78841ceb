"""Write the page and the files that show every setting, from the fields themselves.

To bring them up to date: `python -c "from bot.settings.document import write; write()"` in the project's top directory.
"""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from bot.settings.problems import secret_keys
from bot.settings.repository import PATH, RepositorySettings
from bot.settings.server import DEFAULT_STATE_DIR, PREFIX, ServerSettings

_WIDTH = 110
_EXAMPLES: dict[str, object] = {
    "model": "anthropic:claude-sonnet-5-5",
    "limits.turns": 40,
    "limits.tokens": 1_000_000,
    "limits.usd": 1.5,
    "limits.minutes": 30,
    "policy": "strict",
    "require_approvals": 2,
    "network": [],
    "parallel_commands": False,
    "setup.run": ["npm ci"],
    "setup.network": ["node"],
    "draft": True,
    "ready": "never",
}
"""Values of the example for keys that have no default to show."""


def configuration() -> str:
    """Return the page `docs/configuration.md`."""
    secrets = {".".join(key) for key in secret_keys(ServerSettings)}
    rows = []
    for key, field in _leaves(ServerSettings):
        default = "secret" if key in secrets else f"`{_yaml(_default(field))}`"
        variable = PREFIX + key.replace(".", "__").upper()
        rows.append(f"| `{key}` | {default} | {_cell(field)} | `{variable}` |")
    theirs = []
    for key, field in _leaves(RepositorySettings):
        default = "required" if field.is_required() else f"`{_yaml(field.default)}`"
        theirs.append(f"| `{key}` | {default} | {_cell(field)} |")
    return _PAGE.format(server="\n".join(rows), repository="\n".join(theirs), path=PATH, example=repository_yaml())


def server_yaml() -> str:
    """Return `config/server.yaml`: every key with its default; it changes nothing."""
    secrets = {".".join(key) for key in secret_keys(ServerSettings)}
    lines = [
        "# What the operator says. Every key stands here with its default, so this file changes nothing as it is.",
        f"# An environment variable wins over this file: `limits.turns` is {PREFIX}LIMITS__TURNS; flags win over both.",
        "# Secrets may not stand here: set their variable, or name a file. `null` means the default.",
    ]
    group = ""
    for key, field in _leaves(ServerSettings):
        above, _, name = key.rpartition(".")
        if above != group:
            group = above
            section = ServerSettings.model_fields[above].annotation
            lines += ["", *_comment((section.__doc__ or "") if section else "", ""), f"{above}:"]
        indent = "  " if above else ""
        lines += _comment(field.description or "", indent)
        if key in secrets:
            lines.append(f"{indent}# {name}: only {PREFIX}{key.replace('.', '__').upper()}")
        else:
            lines.append(f"{indent}{name}: {_yaml(_default(field))}")
    return "\n".join(lines) + "\n"


def repository_yaml() -> str:
    """Return `config/issuewright.example.yml`: every key that a repository may set."""
    lines = [f"# Copy this to {PATH} on the default branch and keep what you need; only `version` must be there."]
    lines.append("# It can only tighten what the operator of the server allows.")
    for name, field in RepositorySettings.model_fields.items():
        lines += _comment(field.description or "", "")
        inner = _group(field.annotation)
        if name == "checks" and inner:
            lines.append("checks:")
            lines += [f"  # {key}: {item.description}" for key, item in inner.model_fields.items()]
            lines += ["  - name: tests", "    run: python -m pytest -q", "    timeout_s: 600"]
        elif name == "rules" and inner:
            lines.append("rules:")
            lines += [f"  # {key}: {item.description}" for key, item in inner.model_fields.items()]
            lines += ["  - tool: run", "    command: [make, deploy*]", "    verdict: ask", "    why: it deploys"]
        elif inner:
            lines.append(f"{name}:")
            for key, item in inner.model_fields.items():
                lines += [
                    *_comment(item.description or "", "  "),
                    f"  {key}: {_yaml(_EXAMPLES.get(f'{name}.{key}', item.default))}",
                ]
        else:
            value = 1 if field.is_required() else _EXAMPLES.get(name, field.default)
            lines.append(f"{name}: {_yaml(value)}")
    return "\n".join(lines) + "\n"


def write(root: Path | None = None) -> None:
    """Write the page and both files below the project's top directory."""
    root = root or Path()
    for name, text in written().items():
        (root / name).write_text(text, encoding="utf-8")


def written() -> dict[str, str]:
    """Return everything that is written, by path below the project's top directory."""
    return {
        "docs/configuration.md": configuration(),
        "config/server.yaml": server_yaml(),
        "config/issuewright.example.yml": repository_yaml(),
    }


def _group(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        if found := _group(argument):
            return found
    return None


def _leaves(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if inner := _group(field.annotation):
            if field.description:
                yield f"{above}{name}", field
            yield from _leaves(inner, f"{above}{name}{'[]' if field.description else ''}.")
        else:
            yield f"{above}{name}", field


def _default(field: FieldInfo) -> object:
    default: object = field.get_default(call_default_factory=True)
    return None if default == DEFAULT_STATE_DIR or isinstance(default, SecretStr) else default


def _yaml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _cell(field: FieldInfo) -> str:
    return (field.description or "").replace("|", "\\|")


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
    )


_PAGE = """\
# Configuration
This page is written by `bot/settings/document.py` from the settings themselves.

## The operator's settings
Each later one wins: the default, the file, the environment, a flag.

- **File**: the one that `--config` names, else the one that `ISSUEWRIGHT_CONFIG` names, else the packed
  `config/server.yaml`, which holds every key with its default. A file in the working directory is not looked for, since
  that directory may be anybody's repository. An unknown key is an error; `null` means the default.
- **Environment**: lists are separated by commas; a variable that is set to nothing counts as not set; one that begins
  with `ISSUEWRIGHT_` and sets nothing is an error.
- **Secrets** come from the environment or from a file of their own (`…_file`), never from YAML or a flag. At the same
  level a secret, its file and its command (`…_command`, for keys of models) exclude each other; else the higher level
  wins.

| key | default | meaning | variable |
|---|---|---|---|
{server}

## The repository's settings
`{path}` on the default branch, in YAML. A broken file starts nothing and is answered with line, column and remedy.

It can only tighten: of two limits the lower one applies, a model counts only if `models.allowed` (or the operator's
own choice) covers it, of the network only what the operator names can be named, and `draft: false` does not undo the
operator's drafts. The pull request says what applied and what did not. Anchors, aliases, tags, a key twice, and more
than 64 KiB are refused.

| key | default | meaning |
|---|---|---|
{repository}

```yaml
{example}```
"""
