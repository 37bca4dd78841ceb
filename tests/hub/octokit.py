"""GitHub's whole REST description, from npm: the judge of routes that the shared subset lacks."""

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from tests.hub.oracle import Seen, unavailable

PACKAGE = "@octokit/openapi@23.0.2"
"""The release that the shared subset was cut from."""

WHOLE = "package/generated/api.github.com.json"
PACK_S = 80.0
REFERENCE = re.compile(r'"#/components/(schemas|responses)/([^"]+)"')


def describe(folder: Path, wanted: AbstractSet[tuple[str, str]]) -> Path:
    """Return a description of some (method, template), made as the shared subset is; see `unavailable`.

    Of the package, unpacked 400 MB, only the one file of 13 MB is read.
    """
    with tarfile.open(_pack(folder)) as package:
        content = package.extractfile(WHOLE)
        assert content is not None
        whole = json.load(content)
    path = folder / "described.json"
    path.write_text(json.dumps(cut(whole, wanted)))
    return path


def cut(whole: dict[str, Any], wanted: AbstractSet[tuple[str, str]]) -> dict[str, Any]:
    """Return the answers of those operations that are described, with all the components they need."""
    paths: dict[str, dict[str, object]] = {}
    for template, methods in whole["paths"].items():
        for method, described in methods.items():
            if (method.upper(), template) in wanted:
                paths.setdefault(template, {})[method] = {"responses": described["responses"]}
    components: dict[str, dict[str, object]] = {"schemas": {}, "responses": {}}
    # every refusal that is not described is judged by this one
    open_ends: Seen = {("schemas", "basic-error"), *REFERENCE.findall(json.dumps(paths))}
    while open_ends:
        group, name = open_ends.pop()
        components[group][name] = whole["components"][group][name]
        found = REFERENCE.findall(json.dumps(components[group][name]))
        open_ends |= {(group, name) for group, name in found if name not in components[group]}
    return {"paths": paths, "components": components}


def _pack(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        unavailable("there is no npm here")
    command = [npm, "pack", "--pack-destination", str(folder), PACKAGE]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PACK_S)
    except subprocess.TimeoutExpired:
        unavailable(f"npm did not bring {PACKAGE} in {PACK_S:.0f} s")
    if done.returncode != 0:
        unavailable(f"npm could not bring {PACKAGE}: {done.stderr.strip()[-300:]}")
    return folder / done.stdout.split()[-1]
