"""The toolset reads what a model wrote and never repairs what would change something."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.domain.messages import Image, ToolSpec
from bot.errors import SandboxError
from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext, ToolOutput
from bot.tools.toolset import StandardToolset
from tests.unit.tools.conftest import UID


async def test_order(toolset: StandardToolset) -> None:
    """Tools come in the order of their names."""
    names = [spec.name for spec in toolset.specs]
    assert names == sorted(names)
    assert toolset.reads_only("read")
    assert not toolset.reads_only("run")
    assert toolset.reads_only("no such tool")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        (
            "shell",
            "{}",
            "unknown_tool: 'shell'; the tools are answer_thread, apply_patch, ask_person, checks, ci_logs, ",
        ),
        ("read", '{"file": "a"}', "Allowed: path, offset?, limit?, numbers?"),
        ("read", '{"path": "a", "why": "x"}', "why: Extra inputs are not permitted"),
        ("read", '{"path": 5}', "path: Input should be a valid string"),
        ("read", '{"path": "a", "offset": "3"}', "offset: Input should be a valid integer"),
        ("read", '{"path": "a"', "no valid JSON"),
        ("read", '["a"]', "no JSON object"),
        ("read", '{"path": "a", "path": "b"}', "a name is given twice"),
        ("read", '{"path": "a", "offset": NaN}', "NaN is no JSON"),
        ("read", "[" * 100_000, "nested too deep"),
        ("run", "", "command: Field required"),
        ("run", '"{\\"command\\": \\"touch x\\"}"', "no JSON object"),
        ("run", '{"command": "touch x",}', "no valid JSON"),
        ("run", "{'command': 'touch x'}", "no valid JSON"),
        ("write", '{"path": "x", "content": "' + "x" * (3 << 20) + '"}', "more than"),
        ("write", '{"path": "x", "content": "\\ud800"}', "no file can hold"),
        ("write", '{"path": "x\\u0000", "content": ""}', "bad_path"),
    ],
)
async def test_bad_calls(toolset: StandardToolset, name: str, arguments: str, words: str) -> None:
    """S45: a call that is wrong in any way is an error for the model, and nothing is done."""
    output = await toolset.call(1, 0, name, arguments)
    assert output.is_error
    assert words in output.text
    assert len(output.text) < 1000
    assert (await toolset.call(1, 1, "list", "")).text == "no files fit"


async def test_twice_encoded(toolset: StandardToolset) -> None:
    """An object inside a string is taken where nothing can be changed by it."""
    assert (await toolset.call(1, 0, "list", '"{\\"pattern\\": \\"*\\"}"')).text == "no files fit"
    assert (await toolset.call(1, 0, "list", " ")).text == "no files fit"


DOT = Image("image/png", "QUJD")


class Talker:
    """A tool that says what it is told."""

    def __init__(self, *, reads_only: bool, error: Exception | None = None) -> None:
        self.spec = ToolSpec("talk", "", {})
        self.reads_only = reads_only
        self._error = error

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Do so, or fail."""
        if self._error is not None:
            raise self._error
        text = str(arguments["text"]) * int(str(arguments["times"]))
        return ToolOutput(text, "said\0", changed=None, images=[DOT])


@pytest.mark.parametrize(("reads_only", "limit"), [(True, 52_000), (False, 30_000)])
async def test_limits(context: ToolContext, reads_only: bool, limit: int) -> None:  # noqa: FBT001
    """Text is cut with both ends kept, and cleaned of what JSON cannot carry."""
    toolset = StandardToolset([Talker(reads_only=reads_only)], context)
    output = await toolset.call(1, 0, "talk", '{"text": "x", "times": 100000}')
    assert limit < len(output.text) < limit + 100
    output = await toolset.call(1, 0, "talk", '{"text": "a\\u0000\\ud800b", "times": 1}')
    assert (output.text, output.summary, output.changed) == ("a\ufffd\ufffdb", "said\ufffd", None)
    assert output.images == [DOT]


async def test_only_tool_errors(context: ToolContext) -> None:
    """Only what the model can mend becomes a result; a broken place and a bug go on."""
    for error in (SandboxError("broken"), RuntimeError("bug")):
        toolset = StandardToolset([Talker(reads_only=True, error=error)], context)
        with pytest.raises(type(error)):
            await toolset.call(1, 0, "talk", "{}")


async def test_broken_place() -> None:
    """A workspace that does not exist is no matter for the model."""
    sandbox = ProcessSandbox(Place(Path("/nonexistent"), uid=None if os.geteuid() else UID))
    toolset = StandardToolset([], ToolContext(sandbox, FileLedger()))
    assert toolset.specs == []
    with pytest.raises(SandboxError):
        await sandbox.start()
    await sandbox.close()
