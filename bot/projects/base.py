"""What an ecosystem says of a project: the commands that set it up, and what decides whether they have to run again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SHARED = "{shared}"
"""In a variable: the prepared environment, which later tasks may only read."""
OWN = "{own}"
"""In a variable: a folder that every task has for itself and that begins as set-up left it."""
Files = Mapping[str, bytes]
"""Contents of the files that detection wants to see, by their path in the repository."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one ecosystem's part of a project is set up."""

    name: str
    """Of the ecosystem, and of the network preset that its set-up may use."""
    needs: Sequence[str]
    """Programs that have to be installed."""
    commands: Sequence[str]
    """Shell commands, run in the repository's top directory one after the other until one fails."""
    inputs: Sequence[str]
    """Files whose contents decide what the commands make."""
    versions: str
    """Shell command whose output changes when other tools would make something else."""
    first: Sequence[str] = ()
    """Commands that make the place to install into; a repository's own commands run behind them too."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """For set-up and for every later command."""
    offline: Mapping[str, str] = field(default_factory=dict)
    """For later commands that cannot reach the ecosystem's index: tools then say at once what they lack."""
    programs: Sequence[str] = ()
    """Folders whose programs come first on the path."""
    bound: bool = False
    """Whether what is made names the work tree's own path, so that it fits no tree that lies elsewhere."""


def expression(glob: str) -> str:
    """Turn a glob into a regular expression: `*` stays inside a folder, `**/` spans any number of them."""
    return "".join(
        {"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*)", glob)
    )


def quoted(text: str) -> str:
    """Make any text one word of a shell command."""
    return "'" + text.replace("'", "'\\''") + "'"


def under(files: Files, *names: str) -> list[str]:
    """Find files of these names in whatever folder, sorted."""
    return sorted(path for path in files if path.rpartition("/")[2] in names)
