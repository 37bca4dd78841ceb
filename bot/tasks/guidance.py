"""Reads what a repository says to those who work on it, from a commit of its base branch and never from a work tree."""

import asyncio
import hashlib
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from bot.agent.prompt import nested_rules
from bot.agent.rules import (
    ELSE_FOLDERS,
    FILE_BYTES,
    LIMIT_BYTES,
    RULES,
    Guidance,
    bank_files,
    joined,
    nested,
    rule_files,
)
from bot.domain.messages import ToolSpec
from bot.redaction import mask_known
from bot.settings.resolve import RunMemory
from bot.tools.base import FileLedger, ToolOutput, Toolset
from bot.workspace.base import Workspace

MARK = "/"
"""Behind the path of rules: the ledger's key, which no file has, that says which call told them."""


async def read_guidance(workspace: Workspace, commit: str, memory: RunMemory) -> Guidance:
    """Read the rules of the top folder, and the memory bank where that is wished.

    Args:
        workspace: where the commit can be read.
        commit: of the base branch.
        memory: what applies to the memory bank.
    """
    there = dict(await workspace.files_at(commit, "."))
    if RULES not in there:
        for folder in ELSE_FOLDERS:
            there |= _below(folder, await workspace.files_at(commit, folder))
    rules, used = joined(await _read(workspace, commit, rule_files(there), there))
    noted = ""
    if memory.mode != "off":
        names = await workspace.files_at(commit, memory.folder)
        paths = [f"{memory.folder}/{name}" for name in bank_files(names)]
        noted, _ = joined(await _read(workspace, commit, paths, _below(memory.folder, names)))
    return Guidance(commit, mask_known(rules), used, mask_known(noted))


def _below(folder: str, names: Mapping[str, int]) -> dict[str, int]:
    return {f"{folder}/{name}": size for name, size in names.items()}


async def _read(
    workspace: Workspace, commit: str, paths: Iterable[str], sizes: Mapping[str, int]
) -> dict[str, bytes | None]:
    return {path: await workspace.read_at(commit, path) if sizes[path] <= FILE_BYTES else None for path in paths}


class GuidedToolset:
    """Tools that tell a folder's own `AGENTS.md` with the first file that the model reads or changes below it.

    Which were told is kept in the ledger alone, so that a replay knows it too.
    """

    def __init__(
        self,
        toolset: Toolset,
        ledger: FileLedger,
        workspace: Workspace,
        task_id: str,
        guidance: Callable[[], Guidance],
    ) -> None:
        """Stand before a toolset.

        Args:
            toolset: does the work.
            ledger: of the same toolset.
            workspace: where the base branch's commit can be read.
            task_id: for the fence.
            guidance: what was told at the start; known later than the tools are made.
        """
        self._toolset = toolset
        self._ledger = ledger
        self._workspace = workspace
        self._task_id = task_id
        self._guidance = guidance
        self._telling = asyncio.Lock()
        self._known: dict[str, Mapping[str, bytes | None]] = {}
        self._there: frozenset[str] | None = None
        """Where the commit has rules; looked up once, since most folders have none."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Those of the toolset."""
        return self._toolset.specs

    def reads_only(self, name: str) -> bool:
        """Whether a tool changes nothing."""
        return self._toolset.reads_only(name)

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Make the call, and put what is new of the repository's rules behind its result."""
        before = set(self._ledger.seen)
        output = await self._toolset.call(turn, index, name, arguments)
        touched = {*(output.changed or ()), *(set(self._ledger.seen) - before)}
        if name == "read" and not output.is_error:
            # A file that is read in part is not in the ledger.
            touched.add(output.summary)
        if output.finished or not self._guidance().commit:
            return output
        # Calls that read go side by side, and one of them is to tell.
        async with self._telling:
            note = await self._note(touched, f"{turn}/{index}")
        return replace(output, text=f"{output.text}\n\n{note}") if note else output

    async def _note(self, touched: set[str], call: str) -> str:
        """Say what holds for these files and was not told yet; empty where nothing is new."""
        found: dict[str, bytes | None] = {}
        for path in dict.fromkeys(rules for one in sorted(touched) for rules in nested(one)):
            # A call that is made again after a crash may find its own mark, which another one recorded.
            if self._ledger.seen.get(path + MARK, call) == call:
                found |= {path: data for path, data in (await self._at(path)).items() if not self._is_seen(path, data)}
        text, _ = joined(found, limit_bytes=max(0, LIMIT_BYTES - await self._used(call)))
        self._ledger.seen |= {path + MARK: call for path in found}
        return nested_rules(self._task_id, mask_known(text)) if text else ""

    def _is_seen(self, path: str, data: bytes | None) -> bool:
        """Tell whether the model read just this by itself."""
        return data is not None and self._ledger.seen.get(path) == hashlib.sha256(data).hexdigest()

    async def _used(self, call: str) -> int:
        """Count the bytes of rules that other calls told, and the start; from the record alone."""
        used = self._guidance().used
        for key, teller in list(self._ledger.seen.items()):
            if key.endswith(MARK) and teller != call:
                used += sum(len(data or b"") for data in (await self._at(key.removesuffix(MARK))).values())
        return used

    async def _at(self, path: str) -> Mapping[str, bytes | None]:
        """Read rules as of the commit, once; empty where it has none at this path."""
        if path not in self._known:
            commit, folder = self._guidance().commit, path.rpartition("/")[0]
            if self._there is None:
                self._there = await self._workspace.paths_named(commit, RULES)
            is_there = posixpath.normpath(path) in self._there
            sizes = _below(folder, await self._workspace.files_at(commit, folder)) if is_there else {}
            self._known[path] = await _read(self._workspace, commit, [path] if path in sizes else [], sizes)
        return self._known[path]
