"""The commands: their names, how they are written and what they do, for the parser, the help comment and the docs."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """An option, written between the command's name and its text."""

    name: str
    """With its dashes."""
    value: str
    """What stands for the value in the usage; empty where it takes none."""
    help: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One command."""

    name: str
    help: str
    options: Sequence[Option] = ()
    takes: str = ""
    """What follows, as the usage shows it; empty where nothing does."""

    def usage(self, word: str) -> str:
        """Write how to use it, as `/agent fix [--model NAME] [text]`."""
        options = [f"[{' '.join(filter(None, (option.name, option.value)))}]" for option in self.options]
        return " ".join(filter(None, [word, self.name, *options, self.takes]))


MODEL = Option("--model", "NAME", "Use this model for the run, as `provider:name`.")
FRESH = Option("--fresh", "", "Begin from the base branch, on a branch of its own, without what was said before.")

CATALOGUE: Sequence[Entry] = (
    Entry(
        "fix",
        "Work on this thread: an issue becomes a pull request, a pull request gets a commit. The text, also over"
        " several lines, says what to do; without it the thread's own text does. A plan that waits is carried out.",
        options=(MODEL,),
        takes="[text]",
    ),
    Entry(
        "plan",
        "Make a plan and wait for people, or change the plan that waits as the text says; the old one is superseded.",
        takes="[text]",
    ),
    Entry(
        "approve",
        "Let the plan or the action that waits happen: the one with this hash, or without it the one that stood there"
        " when the comment was written. `always` and a pattern allow all such actions of this task.",
        takes="[HASH | always PATTERN]",
    ),
    Entry("deny", "Refuse the action that waits; the model is told the reason and goes on.", takes="[HASH] [reason]"),
    Entry(
        "ask",
        "Ask about the plan, the code or the thread. The answer is a comment; nothing is changed, and what waits goes"
        " on waiting.",
        takes="<question>",
    ),
    Entry(
        "answer",
        "Answer what a waiting task asked, also over several lines; it goes on with that.",
        takes="<text>",
    ),
    Entry("retry", "Do what the last run was asked to do once more.", options=(FRESH,)),
    Entry("update", "Bring the base branch into the pull request; the model resolves what conflicts."),
    Entry("check", "Run the checks on the branch as it stands, without a model, and show what they say."),
    Entry("budget", "Let a task that reached its budget go on, with this many US dollars.", takes="<usd>"),
    Entry("model", "Use this model, as `provider:name`, for the task's further runs.", takes="<name>"),
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
