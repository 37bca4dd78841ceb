"""What the tools do not let happen by mistake, and the small tools."""

import asyncio
import struct
import zlib
from collections.abc import Sequence
from typing import cast

import pytest

from bot.domain.plan import PlanItem
from bot.sandbox.base import Entry, ExecResult, Sandbox
from bot.tools.base import ToolContext
from bot.tools.run import Run
from tests.unit.tools.calls import Put, Use, raw, tree


async def test_move(use: Use, put: Put, context: ToolContext) -> None:
    """A file is renamed with its mode, and is known afterwards as it was before; nothing is overwritten."""
    await put("a.sh", b"1\n", "755")
    await put("b.sh", b"2\n")
    await use("read", path="a.sh")
    output = await use("move", path="a.sh", target="./bin/a.sh")
    assert (output.text, output.changed) == ("moved a.sh to bin/a.sh", ("a.sh", "bin/a.sh"))
    assert tree(context)["bin/a.sh"] == (b"1\n", 0o755)
    assert not (await use("write", path="bin/a.sh", content="3\n")).is_error
    for path, target, words in (
        ("b.sh", "bin/a.sh", "exists:"), ("b.sh", "b.sh", "exists:"), ("bin", "lib", "not_regular_file:"),
        ("gone", "x", "not_found:"), ("b.sh", "../x", "path_outside"), ("b.sh", ".git/x", "protected_path"),
    ):  # fmt: skip
        assert (await use("move", path=path, target=target)).text.startswith(words)
    assert sorted(tree(context)) == ["b.sh", "bin/", "bin/a.sh"]


async def test_plan(use: Use) -> None:
    """The whole plan is taken over each time, on one line an item, and shown as check boxes."""
    output = await use("update_plan", items=[{"text": "look\n around", "done": True}, {"text": "mend"}])
    assert output.plan == (PlanItem("look around", done=True), PlanItem("mend", done=False))
    assert output.text == "- [x] look around\n- [ ] mend"
    assert (output.summary, output.changed) == ("1 of 2 done", ())
    assert (await use("update_plan", items=[])).plan == ()
    assert (await use("read", path="gone")).plan is None
    for items in ([{"text": ""}], [{"text": "x" * 201}], [{"text": "x", "done": "yes"}], ["x"], [{"text": "x"}] * 31):
        output = await use("update_plan", items=items)
        assert (output.malformed, output.plan) == (True, None)


async def test_a_command_that_wants_a_person(use: Use, context: ToolContext) -> None:
    """Where the model itself says that a person should be asked, nothing runs without one."""
    output = await use("run", command="touch made", requires_approval=True)
    assert output.is_error
    assert output.text.startswith("needs_agreement: a person has to allow this command")
    assert tree(context) == {}
    assert (await use("run", command="touch made", requires_approval=False)).exit_code == 0


@pytest.mark.parametrize(
    ("path", "right", "wrong", "words"),
    [
        ("a.py", "x = 1\n", "x = (1\n", "a.py does not parse any more: Python 3."),
        ("a.py", "x = 1\n", "return 1\n", "line 1: 'return' outside function"),
        ("a.pyi", "x: int\n", "x: \n", "does not parse any more: Python 3."),
        ("a.json", '{"a": 1}\n', '{"a": 1,}\n', "Expecting property name"),
        ("a.yml", "a: 1\n", "a: b: c\n", "mapping values are not allowed here"),
        ("a.yaml", "a: !Ref x\n---\nb: 1\n", "a: [1\n", "while parsing a flow sequence"),
        ("a.toml", "a = 1\n", "a = \n", "Invalid value"),
    ],
)
async def test_a_file_that_parsed(  # noqa: PLR0917 - its sides
    use: Use, put: Put, context: ToolContext, path: str, right: str, wrong: str, words: str
) -> None:
    """A change that breaks it is made and comes back with the error, by whichever tool; mending it is silent."""
    await put(path, right.encode())
    await use("read", path=path)
    wrote = await use("write", path=path, content=wrong)
    assert not wrote.is_error
    assert f"WARNING: {path} does not parse any more: " in wrote.text
    assert words in wrote.text
    assert await raw(context, path) == wrong.encode()
    assert "WARNING" not in (await use("write", path=path, content=right)).text
    old, new = ([f"{mark}{line}" for line in text.splitlines()] for mark, text in (("-", right), ("+", wrong)))
    body = "\n".join(["*** Begin Patch", f"*** Update File: {path}", *old, *new, "*** End Patch"])
    assert words in (await use("apply_patch", patch=body)).text
    assert "WARNING" not in (await use("edit", path=path, old=wrong, new=wrong + right[:1])).text
    assert "WARNING" not in (await use("edit", path=path, old=wrong + right[:1], new=right)).text
    assert words in (await use("edit", path=path, old=right, new=wrong)).text


async def test_files_that_are_not_judged(use: Use, put: Put) -> None:
    """What did not parse before, what is of another kind, and what would take for ever is not complained of."""
    for path, before, after in (
        ("tsconfig.json", "// a comment\n{}\n", "// a comment\n{,}\n"),
        ("chart.yaml", "a: {{ .Values.a }}\n{{- if b }}\n", "a: {{ .Values.a }}\n{{- if c: d: }}\n"),
        ("a.txt", "x = 1\n", "x = (1\n"),
        ("deep.json", "1\n", "[" * 90_000 + "\n"),
        ("deep.yml", "a: 1\n", "[" * 90_000 + "\n"),
        ("deep.py", "x = 1\n", "x = " + "-" * 90_000 + "1\n"),
        ("long.json", "1\n", "[" + "1," * 60_000 + "\n"),
    ):
        await put(path, before.encode())
        await use("read", path=path)
        output = await use("write", path=path, content=after)
        assert "overwrote" in output.text
        assert "WARNING" not in output.text


async def test_a_new_file_that_does_not_parse(use: Use) -> None:
    """A new Python file is judged too; an empty one is right."""
    assert "WARNING: b.py does not parse: Python 3." in (await use("write", path="b.py", content="def f(:\n")).text
    assert "WARNING: c.py does not parse: Python 3." in (await use("edit", path="c.py", old="", new="def f(:\n")).text
    assert (await use("write", path="d.py", content="")).text == "created d.py (0 lines)"


async def test_nothing_of_a_source_is_run(use: Use, context: ToolContext) -> None:
    """Looking at a source runs none of it, and what keeps the compiler busy is given up."""
    source = "import os\nos.system('touch made')\n'''"
    assert "WARNING" in (await use("write", path="a.py", content=source)).text
    assert list(tree(context)) == ["a.py"]
    # The compiler would make a number of it that fills the memory, or a text as long.
    assert not (await use("write", path="b.py", content="x = 9**9**9\ny = 'a' * 9**9\n")).is_error


async def fill(context: ToolContext, count: int) -> None:
    """Make files."""
    await context.sandbox.run(f"for i in $(seq {count}); do echo $i > f$i; done", timeout_s=20)


async def test_deleting_much_needs_a_person(use: Use, context: ToolContext) -> None:
    """Up to a fifth of the files may go, in one go or one by one; then nothing is deleted any more."""
    await fill(context, 10)
    assert not (await use("delete", path="f1")).is_error
    assert not (await use("delete", path="f2")).is_error
    output = await use("delete", path="f3")
    assert output.text.startswith(
        "needs_agreement: 3 of 10 files would be gone, more than 20%; nothing was deleted now."
    )
    body = "*** Begin Patch\n*** Delete File: f4\n*** Update File: f5\n-5\n+five\n*** End Patch"
    assert (await use("apply_patch", patch=body)).text.startswith("needs_agreement: 3 of 10")
    assert await raw(context, "f5") == b"5\n"
    assert not (await use("write", path="new", content="x")).is_error
    assert not (await use("delete", path="new")).is_error
    assert not (await use("move", path="f6", target="g6")).is_error
    assert (await use("delete", path="g6")).text.startswith("needs_agreement: 3 of 10")
    assert len(tree(context)) == 8


async def test_one_file_of_few_may_go(use: Use, context: ToolContext) -> None:
    """In a small repository one file is no large part; the second one is."""
    await fill(context, 3)
    assert not (await use("delete", path="f1")).is_error
    assert (await use("delete", path="f2")).text.startswith("needs_agreement: 2 of 3")


async def test_a_command_that_deletes_much_is_told_so(use: Use, context: ToolContext) -> None:
    """A command cannot be kept from it; its result says what is gone, and that it has to come back."""
    await fill(context, 20)
    assert not (await use("run", command="rm f1 f2 f3 f4; touch x y z")).is_error
    output = await use("run", command="rm f5")
    assert output.is_error
    assert "\nneeds_agreement: 5 of 20 files are gone, more than 20% (f1, f2, f3, f4, f5, …)." in output.text
    assert (output.exit_code, output.changed) == (0, None)
    assert not (await use("run", command="touch f1")).is_error
    assert not (await use("run", command="true")).is_error


class Late:
    """A sandbox in which whoever looks at everything second gets to it when the first command has ended."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self._looks = 0
        self._ran = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def list(self, pattern: str, *, limit: int) -> tuple[Sequence[Entry], int]:
        """Look, in time or not."""
        self._looks += limit > 0
        if self._looks > 1:
            await self._ran.wait()
        return await self._inner.list(pattern, limit=limit)

    async def run(self, command: str, *, timeout_s: float, output_chars: int) -> ExecResult:
        """Run it."""
        result = await self._inner.run(command, timeout_s=timeout_s, output_chars=output_chars)
        self._ran.set()
        return result


async def test_commands_side_by_side_share_the_first_look(context: ToolContext) -> None:
    """What one of them deletes before the other has looked is missed all the same, then and later."""
    await fill(context, 20)
    late = ToolContext(cast("Sandbox", Late(context.sandbox)), context.ledger)
    many, _ = await asyncio.gather(
        Run().call({"command": "rm f1 f2 f3 f4 f5"}, late), Run().call({"command": "true"}, late)
    )
    assert "needs_agreement: 5 of 20 files are gone" in many.text
    assert "needs_agreement: 6 of 20 files are gone" in (await Run().call({"command": "rm f6"}, context)).text


async def test_what_people_read_is_more_than_blanks(use: Use) -> None:
    """A blank question or plan ends nothing: the call is wrong, and says which argument."""
    for output in (
        await use("ask_person", question=" \n\t "),
        await use("propose_plan", plan="  ", files=[], turns=1),
    ):
        assert (output.malformed, output.finished, output.question, output.proposal) == (True, False, None, None)
        assert output.text.startswith("bad_arguments: ")
    assert (await use("ask_person", question=" Which? ")).question == "Which?"


async def test_what_a_command_moved_is_not_gone(use: Use, context: ToolContext) -> None:
    """A folder that was moved is still there: no complaint, and afterwards one file may be deleted as before."""
    await context.sandbox.run("mkdir -p a/b; touch a/__init__.py a/b/__init__.py $(seq -f a/f%g 8)", timeout_s=5)
    assert not (await use("run", command="mv a z")).is_error
    assert not (await use("run", command="rm z/f1")).is_error
    assert not (await use("delete", path="z/f2")).is_error
    assert (await use("delete", path="z/f3")).text.startswith("needs_agreement: 3 of 10")


async def test_ignored_files_do_not_count(use: Use, context: ToolContext) -> None:
    """What git ignores may come and go."""
    await fill(context, 5)
    await context.sandbox.run(
        "echo 'build/' > .gitignore; mkdir build; touch build/$(seq -s ' build/' 50)", timeout_s=5
    )
    assert (await use("run", command="rm -r build")).text == "exit code: 0"


def png(width: int, height: int) -> bytes:
    """Make a picture without colours."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * (width + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + head + pixels + chunk(b"IEND", b"")


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x03\x00\x05\x01\x01\x11\x00\xff\xda\x00\x02xyz\xff\xd9"
GIF = b"GIF89a" + struct.pack("<HH", 7, 9) + b"\0\0\0;"
WEBP = {
    b"VP8X": bytes(8) + (10).to_bytes(3, "little") + (19).to_bytes(3, "little"),
    b"VP8L": bytes(4) + b"\x2f" + struct.pack("<I", 10 | 19 << 14),
    b"VP8 ": bytes(4) + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 11, 20),
}


def webp(kind: bytes) -> bytes:
    """Make the head of one."""
    body = b"WEBP" + kind + WEBP[kind]
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (png(3, 2), "image/png, 3 × 2 pixels, "),  # noqa: RUF001 - the sign of multiplication
        (JPEG, "image/jpeg, 5 × 3 pixels, "),  # noqa: RUF001
        (GIF, "image/gif, 7 × 9 pixels, "),  # noqa: RUF001
        *((webp(kind), "image/webp, 11 × 20 pixels, ") for kind in WEBP),  # noqa: RUF001
    ],
)
async def test_pictures(use: Use, put: Put, context: ToolContext, data: bytes, words: str) -> None:
    """A picture is shown, whatever its name; the text says what it is; it cannot be overwritten as text."""
    await put("picture", data)
    output = await use("read", path="picture")
    assert output.text == f"{words}{len(data)} bytes"
    (image,) = output.images
    assert (image.media_type, image.size_bytes) == (words.partition(",")[0], len(data))
    assert context.ledger.seen == {}
    for cut in (data[:-1], data[: len(data) // 2]):
        await put("picture", cut)
        assert (await use("read", path="picture")).text.startswith(("broken_image:", "binary_file:"))


async def test_pictures_that_are_too_large(use: Use, put: Put) -> None:
    """A picture that no provider takes is refused, and not sent."""
    await put("wide.png", png(8001, 1))
    assert (await use("read", path="wide.png")).text.startswith("too_large: 8001 × 1 pixels")  # noqa: RUF001
    await put("none.png", png(0, 0))
    assert (await use("read", path="none.png")).text.startswith("too_large: 0 × 0")  # noqa: RUF001
    await put("heavy.png", png(3, 2) + bytes(4 << 20))
    assert (await use("read", path="heavy.png")).text.startswith("binary_file:")
