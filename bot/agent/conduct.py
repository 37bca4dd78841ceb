"""How a model conducts itself: going in circles, saying nothing, finishing before the checks have run."""

import re
from collections import Counter, deque
from collections.abc import Sequence
from typing import Literal

from bot.domain.messages import Reply
from bot.errors import LimitReached
from bot.projects.checks import FoundCheck
from bot.tools.base import ToolOutput

REPEATS_WARN = 3
REPEATS_STOP = 5
"""The same call with the same result; in 845 recorded real calls the longest such run was 1."""
ALTERNATION_WARN = 4
ALTERNATION_STOP = 6
"""Calls in which two take turns and give nothing new; OpenHands stops at the same number."""
NUDGES = 2
"""Replies without a call that are answered with a nudge; the next one is taken as the final answer."""
EMPTIES = 2
"""Replies with nothing in them behind which the same is asked again; the next one counts as one without a call."""

PROSE = (".adoc", ".md", ".rst")
"""How names of files end whose changes no test that was only found says anything about."""

Answer = Literal["act", "again", "nudge", "done"]
"""What to do about a reply: run its calls; ask the same again, as if it had not come; nudge; take it as the end."""


class Circles:
    """Sees a model do the same again on a work tree that stays the same."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._looks: Counter[str] = Counter()
        self._changes: Counter[str] = Counter()
        self._last: deque[str] = deque(maxlen=ALTERNATION_STOP)

    def count(self, key: str, *, changed: bool) -> bool:
        """Count a call; True where the model should be told that it repeats itself.

        What was never seen before is progress, behind which the count begins anew. So does it behind a change of the
        work tree, since the same look then is another one: a linter may pass after each of many edits. Only the change
        itself goes on being counted: back and forth is a circle too.

        Args:
            key: of the call with its result.
            changed: whether the call is known to have changed the work tree.

        Raises:
            LimitReached: it was told and did not stop.
        """
        if key not in self._seen:
            self._seen.add(key)
            self._looks.clear()
            self._changes.clear()
        if changed:
            self._looks.clear()
            self._last.clear()
        counted = self._changes if changed else self._looks
        counted[key] += 1
        self._last.append(key)
        if counted[key] >= REPEATS_STOP:
            raise LimitReached("repeats", counted[key], REPEATS_STOP)
        if self._alternate(ALTERNATION_STOP):
            raise LimitReached("repeats", ALTERNATION_STOP, ALTERNATION_STOP)
        return counted[key] >= REPEATS_WARN or self._alternate(ALTERNATION_WARN)

    def _alternate(self, length: int) -> bool:
        last = list(self._last)[-length:]
        return len(last) == length and len(set(last[::2])) == len(set(last[1::2])) == 1


class Silence:
    """Decides about replies that call nothing."""

    def __init__(self) -> None:
        self._nudges = 0
        self._empties = 0

    def judge(self, reply: Reply) -> Answer:
        """Say what to do about a reply; a reply with calls forgets those without."""
        if reply.message.calls:
            self._nudges = self._empties = 0
            return "act"
        if not reply.message.text.strip() and self._empties < EMPTIES:
            self._empties += 1
            return "again"
        self._empties = 0
        # What was cut off is no final answer.
        if self._nudges >= NUDGES and reply.stop == "end":
            return "done"
        self._nudges += 1
        return "nudge"


class Finishing:
    """Knows which checks the model has not run since it last edited a file, and which threads it has not answered."""

    def __init__(self, checks: Sequence[str], found: Sequence[FoundCheck] = (), threads: Sequence[str] = ()) -> None:
        """Begin.

        Args:
            checks: commands of the repository's checks; none where the model cannot run commands.
            found: checks that nobody named: what does as much counts too, and texts alone need none.
            threads: names of the review's threads that have to be answered.
        """
        self._unanswered = list(threads)
        self._was_reminded = False
        self._alike = {_plain(check.command): re.compile(check.alike or "(?!)") for check in found}
        self._checks = {_plain(check): check for check in [*checks, *(check.command for check in found)]}
        self._due: set[str] = set()
        self._was_refused = False

    def acted(self, output: ToolOutput) -> None:
        """Take note of what a call did.

        A command may have changed files too, but then it is more often a check than an edit, and counts as none.
        """
        if output.answer is not None and output.answer.thread in self._unanswered:
            self._unanswered.remove(output.answer.thread)
        if output.changed:
            is_code = any(not path.endswith(PROSE) for path in output.changed)
            self._due |= {check for check in self._checks if is_code or check not in self._alike}
        if output.command is not None:
            command = _plain(output.command)
            self._due -= {check for check in self._due if self._is_run_by(check, command)}

    def _is_run_by(self, check: str, command: str) -> bool:
        return check in command or (check in self._alike and self._alike[check].search(command) is not None)

    def refusal(self) -> str:
        """Return why the model may not finish yet, once in a run for each reason; empty where it may."""
        return " ".join(filter(None, [self._unchecked(), self._silent()]))

    def _silent(self) -> str:
        if self._was_reminded or not self._unanswered:
            return ""
        self._was_reminded = True
        listed = ", ".join(self._unanswered)
        return f"Not finished yet: {listed} of the review have no answer. Call `answer_thread` for each, then `finish`."

    def _unchecked(self) -> str:
        if self._was_refused or not self._due:
            return ""
        self._was_refused = True
        listed = ", ".join(f"`{written}`" for check, written in self._checks.items() if check in self._due)
        return (
            f"Not finished yet: since your last edit you have not run {listed}. Call `checks`, look at what it "
            "says, and call `finish` again. If it cannot be run here, call `finish` again and say so in the summary."
        )


def _plain(command: str) -> str:
    return " ".join(command.split())
