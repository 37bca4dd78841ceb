"""Asks Cargo's configuration for its registries, and Cargo itself for its default one."""

import asyncio
import json
import re
import socket
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from bot.sandbox.egress.sources import Found, Machine, Sources
from bot.sandbox.egress.upstream import trusting

_ANSWER_S = 10.0
_MOST_BYTES = 64 << 10
_DEFAULT = "crates-io"
_SPARSE = "sparse+"
_CONFIG = "config.json"
_INDEX = re.compile(r"failed to (?:download from|fetch) `(https://[^`\s]+)`")
_ENTRY = re.compile(r"CARGO_REGISTRIES_(\w+)_INDEX")
_PROTOCOL = {"CARGO_REGISTRIES_CRATES_IO_PROTOCOL": "sparse"}
"""What Cargo does by itself from 1.70 on; 1.68 and 1.69 have to be told."""
_PROJECT = '[package]\nname = "asks"\nversion = "0.0.0"\nedition = "2018"\n[dependencies]\na = "1"\n'
_PLACES = ("registry", "directory", "local-registry")
"""The kinds of a source that can be used inside; `git` would be the last one."""
_MISSING = "cargo is not found here, so nothing is known of Rust's registries: install cargo where the server finds it."

Tables = dict[str, dict[str, str]]
"""Names of sources or registries, and what is said of each."""


async def ask(machine: Machine) -> Sources:
    """Ask for the registry of crates, or what stands in for it, and for all other registries that have a name."""
    found = Found(machine.never)
    said = await asyncio.to_thread(_said, machine, found)
    environment = dict(_PROTOCOL)
    sources = _replaced(said["source"])
    kept: dict[str, Tables] = {"source": {}, "registries": {}}
    for name, source in sources.items():
        kind = next((place for place in _PLACES if place in source), "")
        if "replace-with" in source or (kind and await _take(machine, found, f"Cargo's source {name}", source[kind])):
            kept["source"][name] = source
    for name, registry in said["registries"].items():
        if "index" in registry and await _take(machine, found, f"Cargo's registry {name}", registry["index"]):
            kept["registries"][name] = {"index": registry["index"]}
    environment |= {
        name: url
        for name, url in machine.environment.items()
        if _ENTRY.fullmatch(name) and await _take(machine, found, f"Cargo's registry in {name}", url)
    }
    if not sources:
        await _take_default(machine, found)
    text = _toml(kept)
    return found.sources(environment, {".cargo/config.toml": text} if text else {})


def _said(machine: Machine, found: Found) -> dict[str, Tables]:
    """Read the configuration that holds for the server's user in `/`."""
    said: dict[str, Tables] = {"source": {}, "registries": {}}
    home = Path(machine.environment.get("CARGO_HOME") or machine.home / ".cargo")
    for folder in (home, Path("/.cargo")):
        # Cargo takes the older name where both are there.
        file = next((path for path in (folder / "config", folder / "config.toml") if path.is_file()), None)
        if file is None:
            continue
        try:
            read = tomllib.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            found.remarks.append(f"{file} cannot be read, so what it says of registries is not known: mend it.")
            continue
        for table, tables in said.items():
            for name, values in _texts(read.get(table)).items():
                tables[name] = tables.get(name, {}) | values
    return said


def _texts(table: object) -> Tables:
    """Keep the texts of a table of tables."""
    tables = table if isinstance(table, dict) else {}
    return {
        str(name): {key: value for key, value in values.items() if isinstance(value, str)}
        for name, values in tables.items()
        if isinstance(values, dict)
    }


def _replaced(sources: Tables) -> Tables:
    """Follow what stands in for the default registry; empty where nothing does."""
    chain: Tables = {}
    name = _DEFAULT
    while name in sources and name not in chain:
        chain[name] = {key: value for key, value in sources[name].items() if key in (*_PLACES, "replace-with")}
        name = chain[name].get("replace-with", name)
    return chain if "replace-with" in chain.get(_DEFAULT, {}) else {}


async def _take(machine: Machine, found: Found, what: str, place: str) -> bool:
    """Take an index or a folder, and the host that the index names for downloads."""
    if not found.take(place.removeprefix(_SPARSE), what):
        return False
    if place.startswith(_SPARSE):
        await _take_downloads(machine, found, what, place.removeprefix(_SPARSE))
    elif "://" in place and not place.startswith("file:"):
        found.remarks.append(f"{what} is read with git, so the host of its downloads is not known: allow it by name.")
    return True


async def _take_downloads(machine: Machine, found: Found, what: str, index: str) -> None:
    try:
        said = await asyncio.to_thread(_get, machine, f"{index.rstrip('/')}/{_CONFIG}")
    except (OSError, ValueError):
        found.remarks.append(
            f"{what} does not answer, so the host of its downloads is not known: allow it by name where it is another."
        )
        return
    if said.get("auth-required") is True:
        found.remarks.append(f"{what} asks for a token, which must not reach a sandbox: name one that needs none.")
    found.take(str(said.get("dl")), f"The downloads of {what}")


def _get(machine: Machine, url: str) -> Mapping[str, object]:
    """Get a JSON object over HTTPS, as the server reaches the network."""
    proxies = {"https": machine.https_proxy} if machine.https_proxy else {}
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=trusting(machine.ca_bundle))
    )
    with opener.open(url, timeout=_ANSWER_S) as answer:
        said = json.loads(answer.read(_MOST_BYTES))
    if not isinstance(said, dict):
        raise ValueError("this is no JSON object")  # noqa: TRY004 - as if it were no JSON
    return said


async def _take_default(machine: Machine, found: Found) -> None:
    """Take the registry of the first Cargo that has one that can be used."""
    cargos = machine.programs("cargo")
    if not cargos:
        found.remarks.append(_MISSING)
    for cargo in cargos:
        url = next(iter(_INDEX.findall(await _complaint(machine, cargo))), "")
        if url.endswith(f"/{_CONFIG}"):
            await _take(machine, found, "Cargo's own registry", _SPARSE + url.removesuffix(_CONFIG))
            return
        why = "fetches its index with git, which sandboxes do not reach" if url else "does not say where its crates are"
        found.remarks.append(f"{cargo} {why}: install cargo 1.70 or later.")


async def _complaint(machine: Machine, cargo: str) -> str:
    """Let Cargo, away from all configuration, try to reach its registry through a closed door."""
    with tempfile.TemporaryDirectory(prefix="issuewright-") as folder, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        project = Path(folder)
        (project / "src").mkdir()
        (project / "src/lib.rs").touch()
        (project / "Cargo.toml").write_text(_PROJECT, encoding="utf-8")
        extra = {
            **_PROTOCOL,
            "CARGO_HOME": f"{folder}/home",
            "CARGO_HTTP_PROXY": f"http://127.0.0.1:{closed.getsockname()[1]}",
            "CARGO_NET_OFFLINE": "false",
            "CARGO_NET_RETRY": "0",
        }
        _, _, complaint = await machine.ask(cargo, "generate-lockfile", extra=extra, cwd=project)
    return complaint


def _toml(tables: Mapping[str, Tables]) -> str:
    """Write tables of texts; JSON's texts are TOML's."""
    lines: list[str] = []
    for table, entries in tables.items():
        for name, values in entries.items():
            lines.append(f"[{table}.{json.dumps(name)}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "".join(f"{line}\n" for line in lines)
