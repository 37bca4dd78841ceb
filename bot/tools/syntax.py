"""Whether a file that could be parsed still can; what is wrong is told with the change, which stands."""

import asyncio
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

import yaml

from bot.sandbox.base import Sandbox

_MOST_CHARS = 100_000
"""Of what is parsed here: YAML is read with some 300,000 characters a second, and with a tenth of that at worst."""
_MOST_PYTHON_CHARS = 1_000_000
_MOST_BRACKETS = 100
"""In one line of YAML: the reader looks at all that are open there with every token, which takes for ever with many."""
_PYTHON = frozenset({".py", ".pyi"})


async def broken(sandbox: Sandbox, path: str, before: str, after: str) -> str:
    """Say what is wrong with a text that was right before; empty where nothing is, or nothing can be said.

    Args:
        sandbox: in which Python is compiled.
        path: says what it is by its ending.
        before: the text until now; empty for a new file.
        after: the text from now on.
    """
    kind = PurePosixPath(path).suffix.lower()
    if max(len(before), len(after)) > (_MOST_PYTHON_CHARS if kind in _PYTHON else _MOST_CHARS):
        return ""
    if kind in _PYTHON:
        said = await sandbox.python_complaint(after.encode())
        was_right = said is not None and (not before or await sandbox.python_complaint(before.encode()) is None)
    elif kind in _PARSERS:
        said = await asyncio.to_thread(_complaint, kind, after)
        was_right = said is not None and await asyncio.to_thread(_complaint, kind, before) is None
    else:
        return ""
    return f"\nWARNING: {path} does not parse{' any more' if before else ''}: {said}" if was_right else ""


def _complaint(kind: str, text: str) -> str | None:
    try:
        _PARSERS[kind](text)
    except RecursionError:
        return None
    # JSONDecodeError and TOMLDecodeError are ValueErrors.
    except (ValueError, yaml.YAMLError) as error:
        return " ".join(str(error).split())[:500]
    return None


def _json(text: str) -> object:
    # Numbers stay text: turning a long one into an int takes for ever.
    return json.loads(text, parse_int=str, parse_float=str)


def _yaml(text: str) -> object:
    if any(line.count("[") + line.count("{") > _MOST_BRACKETS for line in text.split("\n")):
        return None
    # Events only: no alias is followed and nothing is made of a tag; and in Python, where no text can do harm.
    return sum(1 for _ in yaml.parse(text, Loader=yaml.SafeLoader))


_PARSERS: Mapping[str, Callable[[str], object]] = {
    ".json": _json,
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
}
