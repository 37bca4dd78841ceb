"""Asks pip; uv and Poetry in a sandbox are told the same."""

import ast
import asyncio
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from bot.sandbox.egress.sources import Found, Machine, Sources

_DEFAULT = """\
import json
from pip._internal.models.index import PyPI
print(json.dumps({"index": PyPI.simple_url, "files": PyPI.file_storage_domain}))
"""
"""Pip says its default nowhere else. Source: https://github.com/pypa/pip/blob/main/src/pip/_internal/models/index.py"""

_SECTIONS = ("global", "install", ":env:")
"""Of pip's configuration, each after those that it wins over."""
_LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"'#]+)""", re.IGNORECASE)
_PAGES = 500
"""Of an index in files that are read for where their packages lie."""
_MISSING = "pip does not answer here, so nothing is known of Python's indexes: install pip for the server's python3."


async def ask(machine: Machine) -> Sources:
    """Ask the first interpreter that has pip."""
    for interpreter in machine.programs("python3"):
        code, text, _ = await machine.ask(interpreter, "-m", "pip", "config", "list")
        if code == 0:
            return await _sources(machine, interpreter, read(text))
    return Sources(remarks=(_MISSING,))


def read(text: str) -> dict[str, list[str]]:
    """Read `pip config list`: the words of each option that `pip install` minds."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if equals and section in found:
            try:
                found[section][option] = str(ast.literal_eval(value))
            except (ValueError, SyntaxError):
                continue
    won: dict[str, str] = {}
    for section in _SECTIONS:
        won |= found[section]
    return {option: value.split() for option, value in won.items()}


async def _sources(machine: Machine, interpreter: str, options: Mapping[str, list[str]]) -> Sources:
    found = Found(machine.never)
    environment: dict[str, str] = {}
    if options.get("no-index", ["0"])[0].lower() in {"1", "true", "yes", "on"}:
        environment["PIP_NO_INDEX"] = "1"
    else:
        if "index-url" in options:
            environment |= _told("PIP_INDEX_URL", "UV_DEFAULT_INDEX", _usable(found, options["index-url"], "index"))
        else:
            await _default(machine, interpreter, found)
        extra = _usable(found, options.get("extra-index-url", []), "extra index")
        environment |= _told("PIP_EXTRA_INDEX_URL", "UV_INDEX", extra)
    links = _usable(found, options.get("find-links", []), "folder of packages")
    environment |= _told("PIP_FIND_LINKS", "UV_FIND_LINKS", links)
    found.folders += await asyncio.to_thread(_linked, list(found.folders))
    if "trusted-host" in options:
        environment["PIP_TRUSTED_HOST"] = " ".join(options["trusted-host"])
    return found.sources(environment)


def _usable(found: Found, urls: list[str], what: str) -> list[str]:
    return [url for number, url in enumerate(urls, 1) if found.take(url, f"Pip's {what} {number}")]


def _told(pip: str, uv: str, urls: list[str]) -> dict[str, str]:
    """Name indexes to pip and uv; of several, uv parts links by commas."""
    return {pip: " ".join(urls), uv: ("," if uv == "UV_FIND_LINKS" else " ").join(urls)} if urls else {}


async def _default(machine: Machine, interpreter: str, found: Found) -> None:
    """Take pip's own index and the host of its files."""
    said = await machine.ask_json(interpreter, "-c", _DEFAULT)
    if said is None:
        found.remarks.append("This pip does not say which index is its default: set index-url in pip.conf.")
        return
    if found.take(str(said["index"]), "Pip's own index"):
        found.take(f"https://{said['files']}", "The files of pip's own index")


def _linked(folders: list[Path]) -> list[Path]:
    """List the folders in which the packages of indexes lie; pages often link to a folder beside them."""
    linked = {place for folder in folders for page in _pages(folder) for place in _places(page)}
    return sorted(place for place in linked if not any(place.is_relative_to(folder) for folder in folders))


def _pages(folder: Path) -> Iterator[Path]:
    return itertools.islice(folder.glob("*/index.html"), _PAGES)


def _places(page: Path) -> set[Path]:
    links = [urlsplit(urljoin(page.as_uri(), link)) for link in _LINK.findall(page.read_text("utf-8", "replace"))]
    return {Path(unquote(link.path)).parent for link in links if link.scheme == "file"}
