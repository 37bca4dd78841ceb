"""What is said of a change's files: which wait for a person before they are pushed, which were pushed all the same."""

import re
from collections.abc import Mapping, Sequence

from bot.domain.changes import LARGEST_CHANGE, LARGEST_FILE, MOST_FILES, WAITS, Finding, Kind
from bot.domain.request import SHORT, VALID, ActionRequest
from bot.github import pieces, requests, text

_LISTED = 50
"""Paths of one kind that a comment lists."""
_WHOLE: frozenset[Kind] = frozenset({"protected", "link", "submodule"})
"""Kinds where each path is decided about: all stand there, and none is cut."""
_NAMED = 5
_PATH_CHARS = 300
_WHAT: Mapping[Kind, str] = {
    "protected": "changes what decides about others (workflows, owners, what agents are told)",
    "link": "has symbolic links that may lead out of the repository",
    "submodule": "changes which commit a submodule is, or whether it is there",
    "deletions": "deletes a large part of the repository",
    "size": "is large",
    "lock": "changes lock files",
    "image": "changes how images are built",
    "ci": "changes what CI runs",
    "mode": "changes the mode of files",
}
"""Each goes on from `the change`."""
_MARKS: Mapping[Kind, str] = {
    "lock": "this file decides which versions are installed",
    "image": "this file decides how an image is built, and what is in it",
    "ci": "CI runs or reads this file",
    "mode": "the mode of this file is another one now",
}
"""What is said of one file; only of kinds that are pushed."""


def why(findings: Sequence[Finding]) -> str:
    """Say what people decide about, as the end of a sentence that begins with `it`."""
    return "; it ".join(f"{_what(one)}: {pieces.paths(one.paths)}" for one in findings)


def request(
    asked: ActionRequest,
    findings: Sequence[Finding],
    diff: str,
    *,
    requester: str,
    word: str,
    approvals: int = 1,
) -> str:
    """Write the comment that asks whether a change may be pushed.

    Args:
        asked: what an approval is bound to.
        findings: what people decide about.
        diff: of the files whose content they decide about; empty where there are none.
        requester: login of who asked for the run, who gets a notification.
        word: the command word.
        approvals: people who have to approve it.
    """
    word, short = pieces.plain(word), asked.hash[:SHORT]
    calling = f"@{requester}: " if re.fullmatch(r"[A-Za-z0-9_-]+", requester) else ""
    needed = f" It takes the approval of {approvals} people with write access." if approvals > 1 else ""
    how = (
        f"`{word} approve {short}` pushes exactly this; `{word} deny {short} <reason>` does not, and the model hears"
        f" the reason.{needed}"
    )
    bound = (
        f"The whole change has the git tree `{asked.tree}` and stays on the server until then. Hash `{short}`, in full"
        f" `{asked.hash}`. The decision counts for this tree and these files until"
        f" {asked.asked_at + VALID:%Y-%m-%d %H:%M} UTC; whoever edits this comment makes it void."
    )
    head = f"{calling}**{'t' if calling else 'T'}he work is done and waits before it is pushed.**"
    shown = requests.exactly(diff, "diff") if diff else []
    return "\n\n".join([head, how, bound, *[_listed(one) for one in findings], *shown])


def shown_of(findings: Sequence[Finding]) -> list[str]:
    """Name the files whose content people decide about."""
    return sorted({path for one in findings if one.kind in _WHOLE for path in one.paths})


def waits(asked: ActionRequest, findings: Sequence[Finding], word: str) -> str:
    """Say in a sentence what a run waits for."""
    short = asked.hash[:SHORT]
    how = f"`{pieces.plain(word)} approve {short}` or `{pieces.plain(word)} deny {short} <reason>`"
    return f"The work is not pushed yet, since it {why(findings)}. A person decides: {how}."


def stays(findings: Sequence[Finding]) -> str:
    """Say that unfinished work is not shown."""
    return f"What there is of the work stays on the server, since it {why(findings)}. A further run goes on with it."


def nobody_agreed(findings: Sequence[Finding]) -> str:
    """Say, to go on from `could not be published:`, that a change is not pushed where nobody agrees to it here."""
    return f"it {why(findings)}. A person has to agree to that, and nobody did here; nothing was pushed"


def marked(findings: Sequence[Finding]) -> str:
    """Say what of a pushed change needs a look."""
    said = "; it ".join(f"{_what(one)}: {pieces.paths(one.paths)}" for one in findings)
    return f"Look at this with care: the change {said}."


def mark(kinds: Sequence[Kind]) -> str:
    """Write what stands on the first changed line of a file that was pushed and needs a look."""
    return f"**Look at this with care:** {'; '.join(_MARKS[kind] for kind in kinds)}."


def agreed(by: str, paths: Sequence[str]) -> str:
    """Say that a person let a change through."""
    return f"{pieces.person(by)} approved that this is pushed: {pieces.paths(paths)}."


def is_void(why_void: str) -> str:
    """Say that an approval does not count any more."""
    return f"The approval of the push does not count any more: {why_void}. It is asked anew where that is still needed."


def is_moved() -> str:
    """Say that work that waited is another tree now."""
    return "The work that waited to be pushed stands on top of what others pushed meanwhile, and is asked about anew."


def is_gone(why_gone: str) -> str:
    """Say that work that waited cannot be gone on with."""
    return f"The work that waited to be pushed is not gone on with: {why_gone}. It is done anew."


def left_out(found: Mapping[str, str]) -> str:
    """Say what of the work tree is in no commit.

    Args:
        found: reason by path.
    """
    shown = [*found.items()][:_NAMED]
    named = "; ".join(f"{text.code(pieces.shorten(path, _PATH_CHARS))} ({reason})" for path, reason in shown)
    more = f"; and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
    return f"Not in the commit: {named}{more}."


def _what(finding: Finding) -> str:
    what = _WHAT[finding.kind]
    match finding.kind:
        case "deletions":
            return f"deletes or empties {len(finding.paths)} of {finding.of} files"
        case "size":
            limits = f"over {LARGEST_FILE >> 20} MiB in a file, {LARGEST_CHANGE >> 20} MiB or {MOST_FILES} files in all"
            return f"{what} ({limits})"
        case _:
            return what


def _listed(finding: Finding) -> str:
    is_whole = finding.kind in _WHOLE
    shown = finding.paths if is_whole else finding.paths[:_LISTED]
    named = [requests.spelled(path) if is_whole else pieces.shorten(path, _PATH_CHARS) for path in shown]
    rows = [f"- {text.code(name)}" for name in named]
    more = len(finding.paths) - len(shown)
    what = _what(finding)
    return "\n".join([f"It {what}:", "", *rows, *([f"- and {more} more"] if more else [])])


def waiting(findings: Sequence[Finding]) -> list[Finding]:
    """Choose what people decide about before."""
    return [one for one in findings if one.kind in WAITS]
