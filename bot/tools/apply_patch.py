"""`apply_patch`: several files changed by one patch, all of it or nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.domain.messages import ToolSpec
from bot.errors import ToolError
from bot.sandbox.base import Change, FileContent
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.contents import Text, decode
from bot.tools.deletions import allow
from bot.tools.diffs import diff
from bot.tools.hunks import put
from bot.tools.patch import FORM, Add, Delete, Section, Update, read_patch
from bot.tools.placeholders import left_out
from bot.tools.syntax import broken

_FILE_BYTES = 10 << 20
_DIFF_LINES = 120
"""Of all files together."""
_LEAST_LINES = 8


class _Arguments(Arguments):
    patch: str


@dataclass(frozen=True, slots=True)
class _Planned:
    """What becomes of one file."""

    done: str
    """`added`, `deleted`, `updated` or `moved`, and the path."""
    path: str
    target: str | None
    """Where the file is afterwards; None where it is gone."""
    before: str
    after: str
    sha256: str | None
    """Of the file as it was."""
    changes: Sequence[Change]


class ApplyPatch:
    """Reads the patch, fits it to all files, and only then changes them together."""

    spec: ToolSpec = specify("apply_patch", f"Change several files at once, or nothing. {FORM}.", _Arguments)
    reads_only: bool = False

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Apply the patch and show what changed."""
        sections = read_patch(parse(_Arguments, arguments).patch)
        planned = [await _plan(section, context) for section in sections]
        deleted = [one.path for one in planned if one.target is None]
        if deleted:
            await allow(context, deleted)
        changes = [change for one in planned for change in one.changes]
        try:
            digests = await context.sandbox.apply(changes)
        except ToolError as error:
            raise ToolError(f"{error}. Nothing was changed.") from None
        made = {change.path: digest for change, digest in zip(changes, digests, strict=True)}
        for one in planned:
            _remember(one, made, context)
        shown = _DIFF_LINES // _LEAST_LINES
        lines = max(_LEAST_LINES, _DIFF_LINES // len(planned))
        # The model wrote it: of a patch for many files the first few diffs tell whether it came out as meant.
        texts = [await _told(one, lines if at < shown else 0, context) for at, one in enumerate(planned)]
        summary = ", ".join(one.target or one.path for one in planned)
        return ToolOutput("\n".join(texts), summary, changed=tuple(made))


async def _plan(section: Section, context: ToolContext) -> _Planned:
    match section:
        case Add(path, content):
            line = left_out(content, "")
            if line is not None:
                raise ToolError(f"placeholder: write the whole file; this line only stands for some of it: {line}")
            data = Text("", bom=False).encode(content)
            return _Planned(f"added {path}", path, path, "", content, None, [Change(path, data, None)])
        case Delete(path):
            found = await context.sandbox.open(path, limit_bytes=0)
            return _Planned(f"deleted {path}", path, None, "", "", found.sha256, [Change(path, None, found.sha256)])
        case Update():
            # Not in the event loop: a large file and an unlucky text take seconds.
            return await asyncio.to_thread(_updated, section, await _whole(section.path, context))


async def _whole(path: str, context: ToolContext) -> FileContent:
    found = await context.sandbox.open(path, limit_bytes=_FILE_BYTES)
    if len(found.data) < found.size_bytes:
        raise ToolError(f"too_large: {found.size_bytes} bytes, at most {_FILE_BYTES} can be edited: {path}")
    return found


def _updated(section: Update, found: FileContent) -> _Planned:
    path, target = section.path, section.target
    if not section.hunks and target is not None:
        changes = _moved(path, target, found.data, found)
        return _Planned(f"moved {path} to {target}", path, target, "", "", found.sha256, changes)
    text = decode(found.data, path)
    patched = put(text, section.hunks, path)
    data = text.encode(patched.text)
    how = f" (matched with {', '.join(patched.how)})" if patched.how else ""
    if target is None:
        changes = [Change(path, data, found.sha256)]
        return _Planned(f"updated {path}{how}", path, path, text.text, patched.text, found.sha256, changes)
    changes = _moved(path, target, data, found)
    return _Planned(f"moved {path} to {target}{how}", path, target, text.text, patched.text, found.sha256, changes)


def _moved(path: str, target: str, data: bytes, found: FileContent) -> Sequence[Change]:
    return [Change(target, data, None, found.mode), Change(path, None, found.sha256)]


def _remember(one: _Planned, made: Mapping[str, str | None], context: ToolContext) -> None:
    """Take over what the model knows: a patch shows no more of a file than was known before."""
    ledger = context.ledger
    known = one.sha256 is None or ledger.seen.get(one.path) == one.sha256
    if one.target != one.path:
        ledger.seen.pop(one.path, None)
        if ledger.there is not None and one.target is not None and one.path in ledger.there:
            ledger.there = ledger.there - {one.path} | {one.target}
    digest = made.get(one.target) if one.target is not None else None
    if known and one.target is not None and digest is not None:
        ledger.seen[one.target] = digest


async def _told(one: _Planned, lines: int, context: ToolContext) -> str:
    """Say what was done to one file, with as many lines of its diff."""
    if one.target is None or one.before == one.after:
        return one.done
    shown = "" if one.sha256 is None or not lines else f"\n{diff(one.before, one.after, most_lines=lines)}"
    return one.done + shown + await broken(context.sandbox, one.target, one.before, one.after)
