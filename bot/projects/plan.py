"""All that a project's recipes come to: one list of commands, one set of variables, and the key of what they make."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.projects.base import OWN, SHARED, Files, Recipe

FORMAT = 1
"""Of a prepared environment; another number makes all of them anew."""
_KEY_DIGITS = 32
_RECIPES = ("Makefile", "makefile", "GNUmakefile", "justfile", "Taskfile.yml")
"""What a command that names only a target reads."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done once before the first edit."""

    recipes: Sequence[Recipe]
    commands: Sequence[str]
    shown: Sequence[str]
    """Of the commands those that people look for: without what only makes the place to install into."""
    inputs: Mapping[str, str]
    """SHA-256 of each file that decides what is made, by path."""
    bound: bool
    """Whether what is made fits no work tree that lies elsewhere."""

    @property
    def names(self) -> tuple[str, ...]:
        """The ecosystems."""
        return tuple(recipe.name for recipe in self.recipes)

    def key(self, facts: Sequence[str]) -> str:
        """Name what these commands make of these files with these tools; hexadecimal.

        Args:
            facts: of the machine, as versions, architecture and level of the sandbox.
        """
        told = [FORMAT, list(self.commands), dict(self.inputs), self.variables(()), list(facts)]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]

    def variables(self, reachable: Collection[str]) -> dict[str, str]:
        """Return the variables of later commands, with `SHARED` and `OWN` in them.

        Args:
            reachable: names of ecosystems whose index can be asked.
        """
        made: dict[str, str] = {}
        for recipe in self.recipes:
            made |= recipe.variables
            if recipe.name not in reachable:
                made |= recipe.offline
        return made | {"PATH": ":".join(path for recipe in self.recipes for path in recipe.programs)}


def plan(recipes: Sequence[Recipe], files: Files, own: Sequence[str] | None) -> Plan:
    """Put recipes together.

    Args:
        recipes: of the ecosystems whose programs are there.
        files: contents of all files that detection saw.
        own: commands that the repository names, in place of those that were found out.
    """
    first = [command for recipe in recipes for command in recipe.first]
    found = [command for recipe in recipes for command in recipe.commands]
    paths = {path for recipe in recipes for path in recipe.inputs} if own is None else set(files)
    shown = found if own is None else own
    return Plan(
        recipes,
        [*first, *shown],
        shown,
        {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(paths)},
        # Nobody knows what a repository's own commands install.
        bound=own is not None or any(recipe.bound for recipe in recipes),
    )


def named_by(commands: Sequence[str]) -> set[str]:
    """Name the files that commands may read as far as their words tell: those decide what the commands make, too."""
    words = {word.removeprefix("./") for command in commands for word in re.findall(r"[\w./@+-]+", command)}
    return words | (set(_RECIPES) if words & {"make", "just", "task"} else set())


def filled(variables: Mapping[str, str], *, shared: str, own: str, path: str) -> dict[str, str]:
    """Put the folders of one task into variables.

    Args:
        variables: of a plan.
        shared: the prepared environment.
        own: the task's own folder.
        path: where programs are that come behind the environment's.
    """
    made = {name: value.replace(SHARED, shared).replace(OWN, own) for name, value in variables.items()}
    return made | {"PATH": ":".join(filter(None, [made.get("PATH"), path]))}
