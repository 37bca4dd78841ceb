"""Node: `node_modules`, by the package manager whose lock file is there."""

import json
import re

from bot.projects.base import SHARED, Files, Recipe, under

WANTED = (
    "package.json", "**/package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
    "pnpm-workspace.yaml", ".npmrc", ".yarnrc.yml", ".nvmrc",
)  # fmt: skip
_QUIET = "--no-audit --no-fund"


def recipe(files: Files) -> Recipe | None:
    """Say how the Node part is set up; None where there is none."""
    if "package.json" not in files:
        return None
    program, command = manager(files)
    wanted = _asked(files["package.json"], program) or program
    # The manager itself comes from the index where the machine has none. Not by `--global --prefix`, with which npm
    # would no longer read the machine's own configuration.
    place = 'mkdir -p "$ISSUEWRIGHT_NODE" && cd "$ISSUEWRIGHT_NODE" && echo "{}" >package.json'
    found = f"command -v {program} >/dev/null || ( {place} && npm install {_QUIET} {wanted} )"
    locks = [name for name in WANTED if name in files]
    return Recipe(
        name="node",
        needs=("node", "npm"),
        first=() if program == "npm" else (found,),
        commands=(command,),
        # A lock says of the packages of a workspace all that counts.
        inputs=locks if _is_locked(files) else sorted({*locks, *under(files, "package.json")}),
        versions="node --version; npm --version",
        variables={
            "ISSUEWRIGHT_NODE": f"{SHARED}/node",
            "npm_config_update_notifier": "false",
            "YARN_ENABLE_TELEMETRY": "0",
        },
        offline={"npm_config_offline": "true", "YARN_ENABLE_NETWORK": "0"},
        programs=(f"{SHARED}/node/node_modules/.bin",),
    )


def manager(files: Files) -> tuple[str, str]:
    """Name the package manager and the command with which it installs."""
    if "pnpm-lock.yaml" in files:
        return "pnpm", "pnpm install --frozen-lockfile"
    if "yarn.lock" in files:
        modern = ".yarnrc.yml" in files or re.fullmatch(r"yarn@[2-9].*", _asked(files["package.json"], "yarn"))
        return "yarn", f"yarn install {'--immutable' if modern else '--frozen-lockfile'}"
    if _is_locked(files):
        return "npm", f"npm ci {_QUIET}"
    # Without a lock none is left behind either: it would become part of the change.
    return "npm", f"npm install {_QUIET} --no-package-lock"


def _is_locked(files: Files) -> bool:
    return any(name in files for name in ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"))


def _asked(text: bytes, manager: str) -> str:
    """Return the manager with its version as `packageManager` names it; empty where it does not."""
    try:
        said = json.loads(text)
    except ValueError:
        return ""
    named = said.get("packageManager") if isinstance(said, dict) else None
    found = re.match(rf"{manager}@[0-9][0-9A-Za-z.-]*", named) if isinstance(named, str) else None
    return found[0] if found else ""
