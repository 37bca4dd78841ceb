"""What to tell a model whose edit did not fit: the lines that come nearest, and whether the work is done already."""

import difflib
from collections import Counter
from collections.abc import Sequence

_LIKE = 0.6
_AROUND = 2
_MOST_LINES = 30
_MOST_WINDOWS = 20
_MOST_COMPARED = 20_000
"""Lines of a file that are compared; a nearer one further down is not worth the time."""
_MOST_RATIOS = 3
"""Windows that are compared closely, which takes time by the cube of the length where text repeats itself."""
_COMPARED_CHARS = 600
_LINE_CHARS = 300
_TOO_SHORT = 8


def present(text: str, new: str) -> str:
    """Say where the new text is there already; empty where it is not."""
    wanted = new.replace("\r\n", "\n").strip("\n")
    plain = text.replace("\r\n", "\n")
    at = plain.find(wanted) if len(wanted.strip()) >= _TOO_SHORT else -1
    if at < 0:
        return ""
    return f" `new` is already present at line {plain.count(chr(10), 0, at) + 1}: this edit may be done."


def similar(text: str, old: str) -> str:
    """Show the lines that are most like `old`, with their numbers; empty where none is like it enough."""
    lines = text.replace("\r\n", "\n").split("\n")[:_MOST_COMPARED]
    wanted = old.replace("\r\n", "\n").strip("\n").split("\n")
    matchers = [(_matcher(lines[at : at + len(wanted)], wanted), -at) for at in _candidates(lines, wanted)]
    likely = sorted(((matcher.quick_ratio(), at, matcher) for matcher, at in matchers), key=lambda one: one[:2])
    best, place = max(((matcher.ratio(), at) for _, at, matcher in likely[-_MOST_RATIOS:]), default=(0.0, 0))
    if best < _LIKE:
        return " Nothing in the file is like it; read the file again."
    start = max(0, -place - _AROUND)
    end = min(len(lines), -place + len(wanted) + _AROUND, start + _MOST_LINES)
    shown = "\n".join(f"{number + 1} | {lines[number][:_LINE_CHARS]}" for number in range(start, end))
    return f" Nearest ({best:.0%} alike):\n{shown}"


def _matcher(found: Sequence[str], wanted: Sequence[str]) -> difflib.SequenceMatcher[str]:
    one, other = "\n".join(found)[:_COMPARED_CHARS], "\n".join(wanted)[:_COMPARED_CHARS]
    return difflib.SequenceMatcher(None, one, other, autojunk=False)


def _candidates(lines: Sequence[str], wanted: Sequence[str]) -> Sequence[int]:
    """Choose the few windows that are worth a comparison: by equal lines first, by equal words else."""
    keys = [line.strip() for line in wanted if line.strip()]
    scores: Counter[int] = Counter()
    positions = {line.strip(): index for index, line in reversed(list(enumerate(wanted))) if line.strip()}
    for at, line in enumerate(lines):
        index = positions.get(line.strip())
        if index is not None:
            scores[max(0, at - index)] += 1
    if not scores and keys:
        words = set(_words(" ".join(keys)))
        first = set(_words(keys[0]))
        for at, line in enumerate(lines):
            shared = first.intersection(_words(line)) or words.intersection(_words(line))
            scores[at] += len(shared)
    return [at for at, score in scores.most_common(_MOST_WINDOWS) if score]


def _words(text: str) -> Sequence[str]:
    return "".join(char if char.isalnum() else " " for char in text).split()
