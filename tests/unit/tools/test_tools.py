"""Each tool on a real workspace."""

# ruff: noqa: RUF001 - these characters are meant

import json

from bot.tools.base import ToolContext
from bot.tools.run import Run
from bot.tools.standard import standard_tools
from tests.unit.tools.calls import Put, Use, raw


async def test_read(use: Use, put: Put) -> None:
    """A file is shown as it is, with the lines and how many there are, and numbers only when asked for."""
    await put("a.py", b"one\ntwo\nthree\n")
    assert (await use("read", path="a.py")).text == "lines 1–3 of 3\none\ntwo\nthree"
    assert (await use("read", path="a.py", offset=2, limit=1)).text == "lines 2–2 of 3\ntwo\n[use offset=3 to go on]"
    assert (await use("read", path="./a.py", numbers=True, limit=1)).text.split("\n")[1] == "1 | one"
    output = await use("read", path="a.py", offset=9)
    assert output.is_error
    assert "beyond the last line, 3" in output.text


async def test_read_limits(use: Use, put: Put, context: ToolContext) -> None:
    """S57: at most 2,000 lines and 50 kB are shown, long lines are cut, and each cut says how to go on."""
    await put("lines", b"x\n" * 5000)
    output = await use("read", path="lines")
    assert output.text.startswith("lines 1–2000 of 5000\n")
    assert output.text.endswith("\n[use offset=2001 to go on]")
    await put("wide", (b"y" * 999 + b"\n") * 100)
    output = await use("read", path="wide")
    assert output.text.startswith("lines 1–50 of 100\n")
    assert len(output.text) < 50_100
    await put("long", b"z" * 5000 + b"\nend\n")
    assert "[… 3000 more characters in this line …]\nend" in (await use("read", path="long")).text
    await put("huge", b"0123456789\n" * 1_000_000)
    assert "truncated: the first 10485760 of 11000000 bytes" in (await use("read", path="huge", offset=5)).text
    assert context.ledger.seen == {}


async def test_read_odd(use: Use, put: Put) -> None:
    """Empty, binary, CRLF and badly encoded files are said to be so."""
    await put("empty", b"")
    await put("binary", b"a\0b")
    await put("dos", b"\xef\xbb\xbfa\r\nb\r\n")
    await put("latin", b"Z\xfcrich\n")
    assert (await use("read", path="empty")).text == "(empty)"
    assert (await use("read", path="binary")).text.startswith("binary_file")
    assert (await use("read", path="dos")).text == "lines 1–2 of 2; lines end in CRLF\na\nb"
    assert (
        await use("read", path="latin")
    ).text == "lines 1–1 of 1; not UTF-8: shown with �, cannot be edited as text\nZ�rich"
    assert (await use("read", path="nothing")).text == "not_found: no such file: nothing"
    for path in ("../x", "/etc/passwd", ".git/config"):
        assert (await use("read", path=path)).is_error


async def test_list_and_search(use: Use, put: Put) -> None:
    """Listing gives paths; searching gives lines below their files."""
    await put("src/a.py", b"def hello():\n    hello()\n")
    await put("b.md", b"hello\n")
    assert (await use("list")).text == "b.md\nsrc/a.py"
    assert (await use("list", pattern="*.rs")).text == "no files fit"
    assert (await use("search", pattern="hello")).text == "b.md\n1: hello\nsrc/a.py\n1: def hello():\n2:     hello()"
    assert (await use("search", pattern="hello", glob="*.md")).text == "b.md\n1: hello"
    assert (await use("search", pattern="absent")).text == "nothing found"
    assert (await use("search", pattern="(")).text.startswith("bad_pattern")


async def test_long_lists(use: Use, context: ToolContext) -> None:
    """Both stop at their limit and say how much there is."""
    await context.sandbox.run("mkdir d; for i in $(seq 600); do echo needle > d/$i; done", timeout_s=30)
    assert (await use("list")).text.endswith("\n[500 of 600; narrow the pattern]")
    assert (await use("search", pattern="needle")).text.endswith("\n[200 of 600 lines; narrow the pattern or the glob]")


async def test_write(use: Use, context: ToolContext) -> None:
    """A new file is made with its folders; one that was written may be written again."""
    output = await use("write", path="a/b.txt", content="x\ny")
    assert (output.text, output.changed) == ("created a/b.txt (2 lines)", ("a/b.txt",))
    assert (await use("write", path="a/./b.txt", content="z\n")).text == "overwrote a/b.txt (1 lines)"
    assert await raw(context, "a/b.txt") == b"z\n"


async def test_write_guard(use: Use, put: Put, context: ToolContext) -> None:
    """S58: a file that was not read to its end, or that changed since, is not overwritten."""
    await put("a.txt", b"1\n2\n3\n")
    assert (await use("write", path="a.txt", content="x")).text.startswith("exists:")
    await use("read", path="a.txt", limit=2)
    assert (await use("write", path="a.txt", content="x")).text.startswith("exists:")
    await use("read", path="a.txt", offset=3)
    await put("a.txt", b"changed\n")
    assert (await use("write", path="a.txt", content="x")).text.startswith("stale_file:")
    assert await raw(context, "a.txt") == b"changed\n"
    await use("read", path="a.txt")
    assert not (await use("write", path="a.txt", content="x")).is_error
    await use("run", command="rm a.txt")
    assert (await use("write", path="a.txt", content="y")).is_error
    assert (await use("write", path="a.txt", content="y")).text == "created a.txt (1 lines)"


async def test_write_keeps(use: Use, put: Put, context: ToolContext) -> None:
    """Overwriting keeps line ends, byte order mark and mode; a badly encoded or binary file is never written."""
    await put("dos", b"\xef\xbb\xbfa\r\nb\r\n", "755")
    await use("read", path="dos")
    await use("write", path="dos", content="c\nd\n")
    assert await raw(context, "dos") == b"\xef\xbb\xbfc\r\nd\r\n"
    assert (await context.sandbox.open("dos", limit_bytes=1)).mode == 0o755
    for name, data in {"latin": b"Z\xfcrich\n", "binary": b"a\0b"}.items():
        await put(name, data)
        await use("read", path=name)
        assert (await use("write", path=name, content="x")).is_error
        assert (await use("edit", path=name, old="a", new="x")).is_error
        assert await raw(context, name) == data


async def test_placeholder(use: Use) -> None:
    """A whole file with a line that stands for code is refused."""
    output = await use("write", path="a.py", content="def f():\n    pass\n# ... rest of the code unchanged ...\n")
    assert output.text.startswith("placeholder:")
    assert (await use("list")).text == "no files fit"


async def test_edit(use: Use, put: Put, context: ToolContext) -> None:
    """An edit shows the diff, says how it matched, keeps the mode and changes nothing else."""
    await put("a.py", b"def f():\n    return 1\n\n\ndef g():\n    return 2\n", "755")
    output = await use("edit", path="a.py", old="    return 1", new="    return 10")
    assert output.text == ("edited a.py\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n+    return 10\n \n \n def g():")
    assert (output.changed, output.summary) == (("a.py",), "a.py")
    output = await use("edit", path="a.py", old="return 2\n", new="return 3\n")
    assert not output.is_error
    output = await use("edit", path="a.py", old="def g():\n  return 3", new="x")
    assert output.text.startswith("not_found")
    output = await use("edit", path="a.py", old="def f():  \n    return 10", new="def f():\n    return 11")
    assert output.text.startswith("edited a.py (matched with other spaces at line ends)\n")
    assert await raw(context, "a.py") == b"def f():\n    return 11\n\n\ndef g():\n    return 3\n"
    assert (await context.sandbox.open("a.py", limit_bytes=1)).mode == 0o755


async def test_edit_and_write(use: Use, put: Put) -> None:
    """After an edit only a file that was known before may be overwritten."""
    await put("a", b"1\n2\n")
    await use("edit", path="a", old="1", new="one")
    assert (await use("write", path="a", content="x")).text.startswith("exists:")
    await use("read", path="a")
    await use("edit", path="a", old="2", new="two")
    assert not (await use("write", path="a", content="x")).is_error


async def test_edit_makes(use: Use, context: ToolContext) -> None:
    """An empty `old` makes a file, and never replaces one."""
    assert (await use("edit", path="new.py", old="", new="x\n")).text == "created new.py"
    assert (await use("edit", path="new.py", old="", new="y\n")).is_error
    assert (await use("edit", path="other.py", old="x", new="y\n")).text.startswith("not_found")
    assert await raw(context, "new.py") == b"x\n"


async def test_delete(use: Use, put: Put, context: ToolContext) -> None:
    """One file goes, and is forgotten."""
    await put("a", b"1\n")
    await use("read", path="a")
    assert (await use("delete", path="a")).changed == ("a",)
    assert (await use("delete", path="a")).text.startswith("not_found")
    assert context.ledger.seen == {}


async def test_run(use: Use) -> None:
    """A command gives its exit code and both streams; failing is no error of the tool."""
    output = await use("run", command="echo out; echo err >&2; exit 3")
    assert output.text == "exit code: 3\nstdout:\nout\nstderr:\nerr"
    assert (output.command, output.exit_code, output.changed, output.is_error) == (output.summary, 3, None, False)
    assert (await use("run", command="true")).text == "exit code: 0"
    output = await use("run", command="sleep 9", timeout_s=1)
    assert output.text == "timed out after 1 s; all that it started was ended"
    assert output.exit_code is None
    output = await use("run", command="seq 100000; seq 100000 >&2; exit 1")
    assert 16_000 < len(output.text) < 16_300
    assert output.text.endswith("99999\n100000")
    assert (await use("run", command="true", timeout_s=0)).is_error


async def test_the_operators_limit_binds_every_command(context: ToolContext) -> None:
    """A model may ask for more time than the operator allows; it does not get it, and is told how much it had."""
    tool = Run(1)
    assert "at most 1 s" in tool.spec.description
    output = await tool.call({"command": "sleep 9", "timeout_s": 500}, context)
    assert output.exit_code is None
    assert output.text.startswith("timed out after 1 s")


async def test_finish(use: Use) -> None:
    """The summary is the text, and the work is done."""
    output = await use("finish", summary="did it")
    assert (output.text, output.finished, output.changed) == ("did it", True, ())


def test_schemas() -> None:
    """All tools together cost few tokens, say no more than is needed, and never change."""
    specs = [tool.spec for tool in standard_tools()]
    assert [spec.name for spec in specs] == [
        "answer_thread", "apply_patch", "ask_person", "checks", "ci_logs", "ci_status", "delete", "edit", "finish",
        "list", "move", "propose_plan", "read", "run", "search", "update_plan", "write",
    ]  # fmt: skip
    text = json.dumps([[spec.name, spec.description, spec.parameters] for spec in specs])
    assert len(text) < 5100
    assert not [word for word in ("title", "$defs", "$ref", "anyOf", "maxLength") if word in text]
    assert text == json.dumps(
        [[spec.name, spec.description, spec.parameters] for spec in (tool.spec for tool in standard_tools())]
    )
    assert {tool.spec.name for tool in standard_tools() if tool.reads_only} == {
        "answer_thread", "ask_person", "ci_logs", "ci_status", "finish", "list", "propose_plan", "read", "search",
        "update_plan",
    }  # fmt: skip
