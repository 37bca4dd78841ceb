"""In what lines may differ and still be the same ones: spaces at their ends, one indentation, typography."""

from collections.abc import Sequence

_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("‐‑‒–—―−", "-")  # noqa: RUF001 - these characters are meant
    | dict.fromkeys("‘’‚‛", "'")  # noqa: RUF001
    | dict.fromkeys("“”„‟", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " ")
)
"""One character for one, so that places stay the same. Source: Codex, `apply-patch/src/seek_sequence.rs`."""


def plain(text: str) -> str:
    """Write quotes, dashes and spaces as a keyboard does; each character stays one."""
    return text.translate(_TYPOGRAPHY)


def same_but_ends(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether lines differ in spaces at their ends at most."""
    return all(one.rstrip() == other.rstrip() for one, other in zip(found, wanted, strict=True))


def indent(line: str) -> str:
    """Return the white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def shift(found: Sequence[str], wanted: Sequence[str]) -> tuple[str, str] | None:
    """Say which one indentation stands before every line of the first, or of the second, and not of the other.

    Returns:
        What the first has more and what it has less, one of them empty; None where the lines differ in another way.
    """
    shifts = set()
    for one, other in zip(found, wanted, strict=True):
        if one.strip() != other.strip():
            return None
        if one.strip():
            longer, shorter = indent(one), indent(other)
            if longer.endswith(shorter):
                shifts.add((longer[: len(longer) - len(shorter)], ""))
            elif shorter.endswith(longer):
                shifts.add(("", shorter[: len(shorter) - len(longer)]))
            else:
                return None
    return shifts.pop() if len(shifts) == 1 else None


def moved(text: str, more: str, less: str) -> str | None:
    """Indent lines by what `shift` said; None where one of them has not enough to take away."""
    lines = []
    for line in text.split("\n"):
        if not line.strip():
            lines.append(line)
        elif line.startswith(less):
            lines.append(more + line[len(less) :])
        else:
            return None
    return "\n".join(lines)
