"""Simple commands of a shell, and the ones that they start: `timeout 5 ls`, `sh -c ls`, `find -exec ls`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
_REPLACED = re.compile(r"(?:-I|-i|--replace=?)(.*)", re.DOTALL)
"""The options of `xargs` that name the text which it replaces in its command's words; `{}` where they name none."""
SHELLS = frozenset({"sh", "bash", "dash", "ash"})
"""Those that read a script as bash does, or nearly; zsh and fish do not."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    text: str
    """Without its quotes; as it is written where it is unknown."""
    kind: Literal["plain", "pattern", "unknown"] = "plain"
    """A pattern becomes the names of files; an unknown one becomes anything, also several words or none."""


UNKNOWN = Word("", "unknown")


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where a stream of a command goes, or comes from."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether a file may be written to."""
        return self.operator in _WRITES


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command, out of its wrappers."""

    words: tuple[Word, ...]
    """Its name and arguments; none where only variables are set or files opened."""
    assignments: tuple[str, ...] = ()
    """Names of the variables that are set for it, or for the shell."""
    redirections: tuple[Redirection, ...] = ()
    """Also those of the groups around it; copies of streams as `2>&1` are left out."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a program that starts another one is called."""

    flags: str = r"(?!)"
    """A regular expression of the options that stand alone."""
    valued: tuple[str, ...] = ()
    """Options whose value is the next word, or stands behind them."""
    operands: int = 0
    """Words of its own before the command."""
    assigns: bool = False
    """Whether it takes variables before the command."""
    appends: bool = False
    """Whether it adds words that nobody knows before it runs."""
    kept: bool = False
    """Whether it does more than start: then it is judged as well."""

    def takes(self, option: str) -> int | None:
        """Return how many of the next words belong to an option; None where the option is not known."""
        if option in self.valued:
            return 1
        for one in self.valued:
            if option.startswith(f"{one}=" if one.startswith("--") else one):
                return 0
        return 0 if re.fullmatch(self.flags, option) else None


_PRIVILEGE = Wrapper(r"-[nEHSkb]+", ("-u", "-g", "--user", "--group"), assigns=True, kept=True)

WRAPPERS: Mapping[str, Wrapper] = {
    "builtin": Wrapper(),
    "busybox": Wrapper(),
    "command": Wrapper(r"-p"),
    "coproc": Wrapper(),
    "doas": _PRIVILEGE,
    # Not known on purpose: `-S` splits a text by rules of its own, `-C` leads elsewhere, as does `-a` of `xargs`.
    "env": Wrapper(r"-|-i|--ignore-environment", ("-u", "--unset"), assigns=True),
    "exec": Wrapper(r"-[cl]+", ("-a",)),
    "ionice": Wrapper(r"-t", ("-c", "-n")),
    "nice": Wrapper(r"-\d+", ("-n", "--adjustment")),
    "nohup": Wrapper(),
    "setsid": Wrapper(r"-[cfw]+"),
    "stdbuf": Wrapper(valued=("-i", "-o", "-e", "--input", "--output", "--error")),
    "sudo": _PRIVILEGE,
    "time": Wrapper(r"-p"),
    "timeout": Wrapper(
        r"-v|--foreground|--preserve-status|--verbose", ("-k", "-s", "--kill-after", "--signal"), operands=1
    ),
    "xargs": Wrapper(
        r"-[0rtx]+|--null|--no-run-if-empty|-i.*|--replace(?:=.*)?",
        ("-n", "-P", "-I", "-L", "-d", "-s", "-E", "--max-args", "--max-procs", "--delimiter"),
        appends=True,
    ),
}


def within(inner: Command, outer: Command) -> Command:
    """Give a command the variables and streams of what starts it."""
    return replace(
        inner,
        assignments=(*outer.assignments, *inner.assignments),
        redirections=(*inner.redirections, *outer.redirections),
    )


_LONG = re.compile(r"--?(?:login|noediting|noprofile|norc|posix|restricted|verbose)")
"""Options of bash that stand alone; it takes all long ones with one dash as well."""
_OTHER_LONG = re.compile(r"--?(?:debug|debugger|help|rcfile|version)")


def script_of(command: Command, base: str) -> Word | None:
    """Return the text that a shell is given to run; None where it is given none."""
    arguments = command.words[1:]
    if base == "eval":
        arguments = arguments[1:] if arguments[:1] == (Word("--"),) else arguments
        kinds = {word.kind for word in arguments}
        text = " ".join(word.text for word in arguments)
        return Word(text, "unknown" if "unknown" in kinds else "pattern" if "pattern" in kinds else "plain")
    place, is_script = 0, False
    while place < len(arguments) and arguments[place].text.startswith(("-", "+")):
        option = arguments[place]
        if option.kind != "plain":
            return None
        place += 1
        if option.text in {"-", "--"}:
            break
        if _LONG.fullmatch(option.text):
            continue
        if _OTHER_LONG.fullmatch(option.text) or not re.fullmatch(r"[-+][A-Za-z]+", option.text):
            return None
        letters = option.text[1:]
        is_script = is_script or (option.text[0] == "-" and "c" in letters)
        # Each of these takes a word, which need not stand right behind it.
        place += letters.count("o") + letters.count("O")
    return arguments[place] if is_script and place < len(arguments) else None


def unwrapped(command: Command, wrapper: Wrapper) -> Command | None:
    """Return what a wrapper starts; None where one of its own words is not known, or it starts nothing."""
    words = command.words
    place = 1
    replaced = ""
    while place < len(words) and words[place].text.startswith("-") and words[place].text != "-":
        word = words[place]
        if word.kind != "plain":
            return None
        place += 1
        if word.text == "--":
            break
        taken = wrapper.takes(word.text)
        value = words[place : place + (taken or 0)]
        if taken is None or not _are_plain(value, taken):
            return None
        if wrapper.appends and (found := _REPLACED.fullmatch(word.text)):
            replaced = found[1] or (value[0].text if value else "{}")
        place += taken
    assignments = list(command.assignments)
    while wrapper.assigns and place < len(words) and words[place].kind == "plain" and "=" in words[place].text:
        assignments.append(words[place].text.partition("=")[0])
        place += 1
    inner = words[place + wrapper.operands :]
    if not inner or not _are_plain(words[place : place + wrapper.operands], wrapper.operands):
        return None
    inner = tuple(UNKNOWN if replaced and replaced in word.text else word for word in inner)
    more = (UNKNOWN,) if wrapper.appends else ()
    return Command((*inner, *more), tuple(assignments), command.redirections)


def _are_plain(words: Sequence[Word], number: int) -> bool:
    """Whether so many words are there and each is one word: names of files may be more, of which the last is run."""
    return len(words) == number and all(word.kind == "plain" for word in words)


_GIT_VALUED = frozenset({"-C", "-c", "--attr-source", "--config-env", "--git-dir", "--namespace", "--work-tree"})


def past_options_of_git(command: Command) -> tuple[Command, Word | None]:
    """Leave out what stands before git's own command, as in `git -C a push`; return where `-C` leads too."""
    words = command.words
    if not words or words[0].text.rpartition("/")[2] != "git":
        return command, None
    place, folder = 1, None
    while place < len(words) and words[place].text.startswith("-"):
        if words[place].text == "-C" and place + 1 < len(words):
            folder = words[place + 1]
        place += 2 if words[place].text in _GIT_VALUED else 1
    return replace(command, words=(words[0], *words[place:])), folder


def started_by_find(command: Command) -> Iterator[Command]:
    """Give the commands that `find` starts for what it finds."""
    inner: list[Word] | None = None
    for word in command.words:
        if inner is not None and word.text in {";", "+"}:
            yield within(Command(tuple(inner)), command)
            inner = None
        elif inner is not None:
            inner.append(UNKNOWN if "{}" in word.text else word)
        elif word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            inner = []
