"""What people are asked about a single action, and what they are told of what they decided."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence

from bot.domain.events import ActionRequested
from bot.domain.request import SHORT, VALID, ActionRequest, paths_of
from bot.github import pieces, text

_SHOWN = 20_000
"""Characters of a call that a comment shows; the beginning and the end of a longer one."""
_PATHS = 10_000
"""Characters of all paths of a call; with what is shown of it there is room in a comment for so much."""
_WIDE = 160
"""Characters of a line that a reader sees without scrolling, at most."""
_LINE = 200
_NO_GLYPH = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""What is shown as nothing and counts as a letter or a mark: the rest of Default_Ignorable_Code_Point, and the empty
Braille cell. Source: DerivedCoreProperties.txt of Unicode 16."""
_FOLDED = re.compile(r"[\n\t]|^ | $| (?= )")


def request(call: ActionRequest, asked: ActionRequested, *, requester: str, word: str, approvals: int = 1) -> str:
    """Write the comment that asks for approval of one call.

    Args:
        call: exactly what would be done.
        asked: how it is told.
        requester: login of who asked for the run, who gets a notification.
        word: the command word.
        approvals: people who have to approve it.
    """
    calling = f"@{requester}: " if re.fullmatch(r"[A-Za-z0-9_-]+", requester) else ""
    rule = f" ({text.code(asked.rule)} of the policy)" if asked.rule else ""
    waits = f"**{'a' if calling else 'A'} call of {text.code(call.tool)} waits for approval**, and the work with it."
    parts = [
        f"{calling}{waits} Asked because {pieces.sentence(asked.why)[:-1]}{rule}.",
        _answers(call.short, pieces.plain(word), approvals),
        *_what(call),
        _bound(call),
    ]
    return "\n\n".join(parts)


def _answers(short: str, word: str, approvals: int) -> str:
    needed = f" It takes the approval of {approvals} people with write access." if approvals > 1 else ""
    return (
        f"`{word} approve {short}` carries it out, once; `{word} deny {short} <reason>` does not, and the model hears"
        f" the reason. `{word} approve always <pattern>` also allows what is like it, in this task only.{needed}"
    )


def _bound(call: ActionRequest) -> str:
    """Say what a decision counts for."""
    return (
        f"In the folder {text.code(call.cwd)} of the files with tree `{call.tree[:12]}`. Hash `{call.short}`, in full"
        f" `{call.hash}`. A decision counts for these bytes, these files and this policy, until"
        f" {call.asked_at + VALID:%Y-%m-%d %H:%M} UTC. Whoever edits this comment makes it void."
    )


def _what(call: ActionRequest) -> list[str]:
    """Show the command, or what would be changed."""
    arguments: dict[str, object] = json.loads(call.arguments)
    match call.tool:
        case "run":
            info, shown = "sh", str(arguments.pop("command", ""))
        case "apply_patch":
            info, shown = "diff", str(arguments.pop("patch", ""))
        case "edit":
            old, new = str(arguments.pop("old", "")), str(arguments.pop("new", ""))
            info, shown = "diff", "\n".join([*_signed("-", old), *_signed("+", new)])
        case "write":
            info, shown = "diff", "\n".join(_signed("+", str(arguments.pop("content", ""))))
        case _:
            info, shown = "json", json.dumps(arguments, indent=1, sort_keys=True, ensure_ascii=False)
            arguments = {}
    named = _paths(call)
    for name in ("path", "target"):
        arguments.pop(name, None)
    others = ", ".join(f"{name} {text.code(_line(json.dumps(value)))}" for name, value in sorted(arguments.items()))
    # In front and whole: a patch that is too long for a comment is shown in part.
    return list(filter(None, [named and f"On {named}.", others and f"With {others}:", *exactly(shown, info)]))


def exactly(words: str, info: str) -> list[str]:
    """Show what people decide about as it is: nothing of it unseen, and said where a part is left out."""
    visible, hidden = _visible(words)
    fenced, note = _cut(visible)
    unseen = "a character that nobody can see is" if hidden == 1 else f"{hidden} characters that nobody can see are"
    notes = [note, f"**Look twice:** {unseen} written as `\\u{{…}}`." if hidden else ""]
    if (widest := max(map(len, fenced.split("\n")))) > _WIDE:
        notes.append(f"**Look twice:** a line has {widest} characters; its end may be out of sight.")
    return list(filter(None, [text.fence(fenced, info), *notes]))


def is_showable(call: ActionRequest) -> bool:
    """Whether a comment has room for all files that a call names; who does not see one cannot agree to it."""
    return len(_paths(call)) <= _PATHS


def _paths(call: ActionRequest) -> str:
    paths = dict.fromkeys(paths_of(json.loads(call.arguments)))
    return ", ".join(text.code(spelled(path)) for path in paths)


def _signed(sign: str, words: str) -> list[str]:
    return [f"{sign}{line}" for line in words.split("\n")] if words else []


def _cut(words: str) -> tuple[str, str]:
    """Shorten what is too long for a comment, and say how much there is of it."""
    if len(words) <= _SHOWN:
        return words, ""
    half = _SHOWN // 2
    digest = hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()
    left_out = len(words) - 2 * half
    shown = f"{words[:half]}\n[… {left_out} characters are not shown …]\n{words[-half:]}"
    return shown, f"**Only {2 * half} of {len(words)} characters are shown.** SHA-256 of all: `{digest}`."


def _visible(words: str) -> tuple[str, int]:
    """Write out what nobody can see, as characters that turn the reading direction: nobody approves those unseen."""
    made: list[str] = []
    hidden = 0
    for letter in words:
        if letter not in "\n\t " and (unicodedata.category(letter)[0] in "CZ" or _NO_GLYPH.match(letter)):
            made.append(f"\\u{{{ord(letter):04x}}}")
            hidden += 1
        else:
            made.append(letter)
    return "".join(made), hidden


def spelled(path: str) -> str:
    """Write a path as no other is written: also blanks that code in a sentence folds or leaves out."""
    return _FOLDED.sub(lambda found: f"\\u{{{ord(found[0]):04x}}}", _visible(path)[0])


def _line(words: str) -> str:
    return pieces.shorten(_visible(words)[0], _LINE)


def waits(asked: Sequence[ActionRequested]) -> str:
    """Say in a sentence what waits: tool, short command and hash."""
    named = "; ".join(f"{text.code(one.tool)} {_call(one)} (hash `{one.hash[:SHORT]}`)" for one in asked)
    return f"{'Calls wait' if len(asked) > 1 else 'A call waits'} for a person's approval: {named}."


def how_to_approve(word: str) -> str:
    """Say what people can do about a call that waits."""
    return (
        f"`{word} approve <hash>` carries it out; `{word} deny <hash> <reason>` does not; `{word} stop` ends the work."
    )


def allowed_always(tool: str, pattern: str, by: str) -> str:
    """Say what a person allowed for the rest of the task."""
    what = "commands that begin" if tool == "run" else f"calls of {text.code(tool)} on paths"
    return f"Approved always in this task by {pieces.person(by)}: {what} {text.code(_line(pattern))}."


def is_void(asked: ActionRequested, why: str) -> str:
    """Say that what was decided about a call does not count."""
    return f"{_named(asked)} was not carried out: {why}. The model asks anew if it still needs it."


def is_lost(asked: ActionRequested) -> str:
    """Say that a call may have been carried out."""
    return (
        f"{_named(asked)} was approved, and the worker ended in the midst of it: it may have been carried out, and is"
        " not repeated. Approve it anew if the model asks again."
    )


def is_denied(asked: ActionRequested, by: str) -> str:
    """Say that a call was not carried out."""
    return f"{_named(asked)} was denied by {pieces.person(by)}, and not carried out."


def approved(asked: ActionRequested, by: str, *, always: str = "", differ: bool = False) -> str:
    """Say that a call is approved.

    Args:
        asked: the call.
        by: who approved it.
        always: what is allowed beside it once it is carried out; empty for nothing.
        differ: whether some of them wrote a pattern and not all the same, so that none counts.
    """
    also = f" {allowed_always(asked.tool, always, by)}" if always else ""
    also += " Not all wrote the same pattern, so this call alone is approved." if differ else ""
    return f"**Approved** by {pieces.person(by)}. {_named(asked)} is carried out, once, in the next run.{also}"


def denied(asked: ActionRequested, by: str, reason: str) -> str:
    """Say that a call is denied."""
    why = " The model hears the reason." if reason else ""
    return f"**Denied** by {pieces.person(by)}. {_named(asked)} is not carried out.{why}"


def dropped(by: str) -> str:
    """Say that a request is not to be decided about any more, since the work was stopped."""
    return f"**Void**: {pieces.person(by)} stopped the work. Nothing of this is carried out."


def settled(line: str, body: str) -> str:
    """Write the comment of a request that is decided about.

    Args:
        line: who decided how.
        body: what was asked.
    """
    return f"{line}\n\n{pieces.details('What was asked', body)}"


def more_needed(asked: ActionRequested, by: str, required: int, word: str) -> str:
    """Say that others have to approve too."""
    return (
        f"{_named(asked)} has the approval of {pieces.person(by)}. It takes {required} people here: another one writes"
        f" `{pieces.plain(word)} approve {asked.hash[:SHORT]}`."
    )


def nothing_waits(word: str) -> str:
    """Refuse a decision where no call waits, or none was there yet."""
    status = f"`{pieces.plain(word)} status` says how the task stands."
    return f"Nothing waited for a decision here when that was written. {status}"


def which(asked: Sequence[ActionRequested], word: str) -> str:
    """Ask for the hash where several calls may be meant, or nobody knows whether one was there already."""
    listed = "\n".join(f"- `{one.hash[:SHORT]}`: {_call(one)}" for one in asked)
    return f"Say which call you mean, as `{pieces.plain(word)} approve <hash>`. Nothing was decided.\n\n{listed}"


def ambiguous(short: str, word: str) -> str:
    """Refuse a hash that begins several."""
    more = f"Write more of it: `{pieces.plain(word)} approve <hash>`."
    return f"Several calls have a hash that begins with `{pieces.plain(short)}`. {more} Nothing was decided."


def unknown(short: str) -> str:
    """Refuse a hash that no request of this task has."""
    return (
        f"Nothing in this task has the hash `{pieces.plain(short)}`: it may belong to another one. Nothing was decided."
    )


def decided_before(asked: ActionRequested, verdict: str, by: str) -> str:
    """Refuse a second decision."""
    how = {
        "approved": f"was approved before, by {pieces.person(by)}",
        "denied": f"was denied before, by {pieces.person(by)}",
        "superseded": "was asked anew later; decide about that request",
    }.get(verdict, "does not count any more")
    return f"{_named(asked)} {how}. Nothing was decided."


def expired(asked: ActionRequested, word: str) -> str:
    """Refuse a decision that comes too late."""
    return _anew(asked, f"was asked more than {VALID.days} days ago", word)


def edited(asked: ActionRequested, word: str) -> str:
    """Refuse a decision about a request that does not say any more what was asked."""
    return _anew(asked, "is void: its comment is not as it was posted", word)


def bad_pattern(pattern: str, why: str) -> str:
    """Refuse a pattern."""
    return f"{text.code(_line(pattern))} cannot be approved always: {why}. Nothing was decided."


def _anew(asked: ActionRequested, what: str, word: str) -> str:
    return (
        f"{_named(asked)} {what}. Nothing was decided: `{pieces.plain(word)} fix` lets the work go on, and the model"
        " asks anew if it still needs it."
    )


def _named(asked: ActionRequested) -> str:
    return f"The call `{asked.hash[:SHORT]}` ({_call(asked)})"


def _call(asked: ActionRequested) -> str:
    """Show a call in one line; a path that is decided about is never cut."""
    return text.code(_line(asked.shown) if asked.tool == "run" else spelled(asked.shown))
