"""Asks Go for its module proxies and its checksum database."""

import re

from bot.sandbox.egress.sources import Found, Machine, Sources

_NAMES = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY")
_MISSING = "go does not answer here, so nothing is known of Go's module proxies: install go where the server finds it."
_DIRECT = (
    "Go is told to fetch modules from their own repositories, which sandboxes do not reach: "
    "set GOPROXY to a module proxy with `go env -w`."
)


async def ask(machine: Machine) -> Sources:
    """Ask Go; `direct` is left out, since it means the repositories themselves."""
    answered = await machine.ask_json("go", "env", "-json", *_NAMES)
    if answered is None:
        return Sources(remarks=(_MISSING,))
    said = {name: str(value) for name, value in answered.items() if value}
    found = Found(machine.never)
    proxy = _proxies(found, said.get("GOPROXY", ""))
    environment = {"GOPROXY": proxy or "off"}
    if not proxy:
        found.remarks.append(_DIRECT)
    environment |= {name: said[name] for name in ("GONOSUMDB", "GOPRIVATE", "GONOPROXY") if name in said}
    environment["GOSUMDB"] = _checksums(found, said.get("GOSUMDB", "off"))
    return found.sources(environment)


def _proxies(found: Found, value: str) -> str:
    """Keep what can be used of a list, with the separators, which say after which errors the next one is asked."""
    kept = ""
    for number, (separator, url) in enumerate(re.findall(r"([,|]?)([^,|]+)", value), 1):
        if url in {"direct", "off"}:
            continue
        if found.take(url, f"Go's module proxy {number}"):
            kept += f"{separator if kept else ''}{url}"
    return kept


def _checksums(found: Found, value: str) -> str:
    """Take the database, `name`, `name+key` or `name+key URL`; `off` where it cannot be used."""
    if value == "off":
        return value
    name, _, url = value.partition(" ")
    usable = found.take(url.strip() or f"https://{name.partition('+')[0]}", "Go's checksum database")
    return value if usable else "off"
