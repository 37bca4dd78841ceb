"""The commands: their names, how they are written and what they do, for the parser, the help comment and the docs."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """An option, written between the command's name and its text."""

    name: str
    """With its dashes."""
    value: str
    """What stands for the value in the usage."""
    help: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One command."""

    name: str
    help: str
    options: Sequence[Option] = ()
    takes_text: bool = False

    def usage(self, word: str) -> str:
        """Write how to use it, as `/agent fix [--model NAME] [text]`."""
        options = [f"[{option.name} {option.value}]" for option in self.options]
        return " ".join([word, self.name, *options, *(["[text]"] if self.takes_text else [])])


MODEL = Option("--model", "NAME", "Use this model for the run, as `provider:name`.")

CATALOGUE: Sequence[Entry] = (
    Entry(
        "fix",
        "Work on this thread: an issue becomes a pull request, a pull request gets a commit. The text, also over"
        " several lines, says what to do; without it the thread's own text does.",
        options=(MODEL,),
        takes_text=True,
    ),
    Entry(
        "answer",
        "Answer what a waiting task asked, also over several lines; it goes on with that.",
        takes_text=True,
    ),
    Entry("status", "Say what the task is doing."),
    Entry("stop", "End the running task, or drop what it waits for; what was done is kept."),
    Entry("help", "Show this list."),
)

NAMES: Sequence[str] = tuple(entry.name for entry in CATALOGUE)


def find(name: str) -> Entry | None:
    """Find a command by its name, in whatever case it was typed."""
    return next((entry for entry in CATALOGUE if entry.name == name.casefold()), None)


def usages(word: str) -> Sequence[tuple[str, str]]:
    """List usage and explanation of each command, as the help comment shows them."""
    return tuple((entry.usage(word), entry.help) for entry in CATALOGUE)
