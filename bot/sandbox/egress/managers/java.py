"""Reads Maven's settings for its mirrors, and Maven's own model for its default repository."""

import asyncio
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from bot.sandbox.egress.sources import Found, Machine, Sources

_MODEL_JAR = "lib/maven-model-builder-*.jar"
_MODEL = "org/apache/maven/model/pom-4.0.0.xml"
_SETTINGS = ".m2/settings.xml"
_MISSING = "mvn is not found here, so nothing is known of Java's repositories: install Maven where the server finds it."
_NO_DEFAULT = (
    "This Maven does not say which repository is its default: set a mirror of `central` in ~/.m2/settings.xml."
)
_GRADLE = "Gradle's repositories stand in each project's own files: allow those that Maven does not use by name."


@dataclass(frozen=True, slots=True)
class Mirror:
    """What stands in for some repositories."""

    id: str
    of: str
    """Patterns with commas between them."""
    url: str

    def stands_for(self, repository: str) -> bool:
        """Tell whether it stands in for a repository of the network.

        Source: https://maven.apache.org/guides/mini/guide-mirror-settings.html
        """
        patterns = [pattern.strip() for pattern in self.of.split(",")]
        if f"!{repository}" in patterns:
            return False
        return any(pattern in {repository, "*", "external:*"} for pattern in patterns)


async def ask(machine: Machine) -> Sources:
    """Read what Maven would read for the server's user."""
    return await asyncio.to_thread(_ask, machine)


def _ask(machine: Machine) -> Sources:
    mvn = next(iter(machine.programs("mvn")), None)
    if mvn is None:
        return Sources(remarks=(_MISSING, _GRADLE))
    found = Found(machine.never)
    installed = Path(mvn).resolve().parents[1]
    mirrors: list[Mirror] = []
    guarded: set[str] = set()
    # The user's come first, and the first that fits wins.
    for file in (machine.home / _SETTINGS, installed / "conf/settings.xml"):
        if file.is_file():
            tree = _parse(file, found)
            mirrors += _mirrors(tree)
            guarded |= {_text(server, "id") for server in tree.iterfind("./servers/server")}
    usable = []
    for mirror in mirrors:
        if mirror.id in guarded:
            found.remarks.append(
                f"Maven's mirror {mirror.id} has credentials in settings.xml, which do not reach a sandbox: "
                "where it asks for them, name one that does not."
            )
        if found.take(mirror.url, f"Maven's mirror {mirror.id}"):
            usable.append(mirror)
    _take_defaults(found, installed, mirrors)
    found.remarks.append(_GRADLE)
    return found.sources(files={_SETTINGS: _written(usable)} if usable else {})


def _take_defaults(found: Found, installed: Path, mirrors: Sequence[Mirror]) -> None:
    """Take the repositories that every project has, but for those that a mirror stands in for."""
    jar = next(iter(sorted(installed.glob(_MODEL_JAR))), None)
    try:
        if jar is None:
            raise FileNotFoundError(_MODEL_JAR)
        with zipfile.ZipFile(jar) as opened:
            model = _plain(ET.fromstring(opened.read(_MODEL)))  # noqa: S314 - of the installed Maven
    except (OSError, KeyError, zipfile.BadZipFile, ET.ParseError):
        found.remarks.append(_NO_DEFAULT)
        return
    for kind in ("repositories/repository", "pluginRepositories/pluginRepository"):
        for repository in model.iterfind(f"./{kind}"):
            name = _text(repository, "id")
            if not any(mirror.stands_for(name) for mirror in mirrors):
                found.take(_text(repository, "url"), f"Maven's repository {name}")


def _parse(file: Path, found: Found) -> ET.Element:
    try:
        return _plain(ET.fromstring(file.read_bytes()))  # noqa: S314 - of the server's user
    except (OSError, ET.ParseError):
        found.remarks.append(f"{file} cannot be read, so what it says of mirrors is not known: mend it.")
        return ET.Element("settings")


def _plain(tree: ET.Element) -> ET.Element:
    """Take the namespace, which files have or have not, off all names."""
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2]
    return tree


def _mirrors(settings: ET.Element) -> Iterable[Mirror]:
    """List the mirrors; one that is blocked stands there to forbid something."""
    for mirror in settings.iterfind("./mirrors/mirror"):
        if _text(mirror, "blocked") != "true":
            yield Mirror(_text(mirror, "id"), _text(mirror, "mirrorOf"), _text(mirror, "url"))


def _text(element: ET.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _written(mirrors: Sequence[Mirror]) -> str:
    """Write settings that hold mirrors and nothing else."""
    settings = ET.Element("settings")
    listed = ET.SubElement(settings, "mirrors")
    for mirror in mirrors:
        entry = ET.SubElement(listed, "mirror")
        for name, text in (("id", mirror.id), ("mirrorOf", mirror.of), ("url", mirror.url)):
            ET.SubElement(entry, name).text = text
    return ET.tostring(settings, encoding="unicode") + "\n"
