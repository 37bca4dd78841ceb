"""Asks npm; Yarn and pnpm in a sandbox are told the same."""

from bot.sandbox.egress.sources import Found, Machine, Sources

_MISSING = "npm does not answer here, so nothing is known of Node's registries: install npm where the server finds it."


async def ask(machine: Machine) -> Sources:
    """Ask npm for its registry and those of scopes."""
    said = await machine.ask_json("npm", "config", "list", "--json")
    if said is None:
        return Sources(remarks=(_MISSING,))
    found = Found(machine.never)
    environment: dict[str, str] = {}
    for name, url in said.items():
        if name != "registry" and not name.endswith(":registry"):
            continue
        what = "npm's registry" if name == "registry" else f"npm's registry of {name.removesuffix(':registry')}"
        if found.take(str(url), what):
            environment[f"npm_config_{name}"] = str(url)
    if url := environment.get("npm_config_registry"):
        # Yarn 1 and later ones; each leaves the other's alone.
        environment |= {"YARN_REGISTRY": url, "YARN_NPM_REGISTRY_SERVER": url}
    return found.sources(environment)
