"""What of a job's log a model is shown first: the steps that failed, by the marks that GitHub puts into logs.

A step begins with `##[group]Run …`; `##[error]` stands before what failed, last of all the step itself.
"""

from collections.abc import Iterable, Sequence

CHARS = 16_000
"""Of the steps that failed together, as of what a command prints."""
LINE_CHARS = 2_000
_BEHIND = 3
"""Lines that are shown behind the last error of a step."""
_MOST_STEPS = 4
_STEP = "##[group]Run "
_ERROR = "##[error]"


def excerpt(lines: Sequence[str]) -> list[str]:
    """Show the failed steps, of a long one both ends; without any mark of a failure the end of the log.

    Args:
        lines: of the whole log.

    Returns:
        Lines, with notes in brackets of where they stand.
    """
    steps = _failed(lines)
    left_out = len(steps) - _MOST_STEPS
    shown: list[str] = []
    if not steps:
        shown.append("[no step is marked as failed; the end of the log:]")
        steps = [range(len(lines))]
    for step in steps[:_MOST_STEPS]:
        for part in _both_ends(lines, step, CHARS // min(len(steps), _MOST_STEPS)):
            shown.append(f"[lines {part.start + 1} to {part.stop}]")
            shown += (line(lines[number]) for number in part)
    return [*shown, f"[{left_out} more failed steps]"] if left_out > 0 else shown


def line(text: str) -> str:
    """Shorten a line; errors may stand at its end."""
    if len(text) <= LINE_CHARS:
        return text
    kept = LINE_CHARS // 4
    return f"{text[:kept]} [… {len(text) - LINE_CHARS} characters …] {text[kept - LINE_CHARS :]}"


def _failed(lines: Sequence[str]) -> list[range]:
    """Find the failed steps, each from its beginning to a few lines behind its last error."""
    found: list[range] = []
    begin = 0
    for number, text in enumerate(lines):
        if text.startswith(_STEP):
            begin = number
            if found:
                found[-1] = range(found[-1].start, min(found[-1].stop, number))
        elif text.startswith(_ERROR):
            end = min(number + 1 + _BEHIND, len(lines))
            if found and found[-1].start == begin:
                found.pop()
            found.append(range(begin, end))
    return found


def _both_ends(lines: Sequence[str], step: range, room: int) -> list[range]:
    """Keep the first quarter and the last three quarters of so many characters, in whole lines."""
    if sum(_size(lines[number]) for number in step) <= room:
        return [step]
    head = _fitting(lines, step, room // 4)
    tail = _fitting(lines, reversed(step), room - room // 4)
    return [part for part in (range(step.start, step.start + head), range(step.stop - tail, step.stop)) if part]


def _fitting(lines: Sequence[str], numbers: Iterable[int], room: int) -> int:
    """Count the lines that fit."""
    count = 0
    for number in numbers:
        room -= _size(lines[number])
        if room < 0:
            break
        count += 1
    return count


def _size(text: str) -> int:
    return min(len(text), LINE_CHARS) + 1
