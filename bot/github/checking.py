"""The checks of a branch as it stands: the comment that shows them, and the mark on evidence of an earlier commit."""

import re

from bot.github import evidence, pieces, text
from bot.github.evidence import CHECK_NAME, EvidenceView

_HEADING = re.compile(r"^### Evidence[ \t]*\r?\n\r?\n", re.MULTILINE)
"""Ours: whatever others say stands in quotes, in cells or in fences behind it."""
_STALE = re.compile(r"\*\*Stale:\*\* [^\r\n]*\r?\n\r?\n")
_HIDDEN = re.compile(r"\r?\n\r?\n(?=<!-- issuewright:)")


def comment(view: EvidenceView) -> str:
    """Write the comment that shows how a commit stands.

    Args:
        view: of a head alone.
    """
    return f"**{evidence.title(view)}** on `{pieces.plain(view.head[:8])}`.\n\n{evidence.section(view)}"


def marked(body: str, recorded: str, head: str) -> str:
    """Say in a pull request's text that its evidence is of another commit than the head, or take that back.

    All else stays as it is; so does a text in which our heading is no more.

    Args:
        body: ours.
        recorded: the commit that the evidence is of.
        head: the commit that the branch stands on.
    """
    heading = _HEADING.search(body)
    if heading is None:
        return body
    rest = (
        _STALE.sub("", body[heading.end() :], count=1) if _STALE.match(body, heading.end()) else body[heading.end() :]
    )
    stale = "" if recorded == head else f"{_stale(recorded, head)}\n\n"
    words, *hidden = _HIDDEN.split(f"{body[: heading.end()]}{stale}{rest}", maxsplit=1)
    return text.cut(words, tail="".join(hidden))


def _stale(recorded: str, head: str) -> str:
    was, now = pieces.plain(recorded[:8]), pieces.plain(head[:8])
    return (
        f"**Stale:** recorded on `{was}`; the head is `{now}` by now, and its check `{CHECK_NAME}` says how it stands."
    )


def not_shown(why: str) -> str:
    """Say that people do not see the check run."""
    return f"The check `{CHECK_NAME}` could not be shown: {pieces.sentence(why)}"


def not_marked(why: str) -> str:
    """Say that the pull request's text still shows evidence of an earlier commit as if it were the head's."""
    return f"Evidence of an earlier commit stands in the pull request's text, unmarked: {pieces.sentence(why)}"


def no_branch(branch: str) -> str:
    """Refuse to check what is not there."""
    return f"The branch {text.code(branch)} is not there any more, so there is nothing to check."
