"""What is listed and found: all that git does not ignore, and nothing that a pattern could do besides."""

import time
from typing import Any

import pytest

from bot.errors import ToolError
from bot.sandbox.process import ProcessSandbox


@pytest.fixture
def tree(place: Any) -> Any:
    """Fill a workspace."""
    place.put("README.md", b"# Hello\n")
    place.put("src/main.py", b"import os\n\nprint('hello')\n")
    place.put("src/deep/util.py", b"def hello():\r\n    pass\r\n")
    place.put("src/deep/data.json", b"{}")
    place.put(".gitignore", b"build/\n*.log\n")
    place.put("src/deep/.gitignore", b"*.tmp\n")
    place.put("src/deep/x.tmp", b"hello")
    place.put("build/out.py", b"hello")
    place.put("a.log", b"hello")
    place.put(".git/config", b"[core]\n\tfsmonitor = touch /tmp/pwned\n# hello\n")
    place.put("binary.bin", b"hello\0")
    place.link("link.md", "README.md")
    return place


async def names(sandbox: ProcessSandbox, pattern: str) -> list[str]:
    """List what fits."""
    entries, total = await sandbox.list(pattern, limit=100)
    assert total == len(entries)
    return [entry.path for entry in entries]


@pytest.mark.usefixtures("tree")
async def test_list(sandbox: ProcessSandbox) -> None:
    """The listing is sorted, has neither ignored files nor `.git`, and says kinds and sizes."""
    entries, total = await sandbox.list("**", limit=100)
    assert [entry.path for entry in entries] == [
        ".gitignore", "README.md", "binary.bin", "link.md", "src/deep/.gitignore", "src/deep/data.json",
        "src/deep/util.py", "src/main.py",
    ]  # fmt: skip
    assert total == 8
    kinds = {entry.path: (entry.kind, entry.size_bytes) for entry in entries}
    assert kinds["README.md"] == ("file", 8)
    assert kinds["link.md"][0] == "symlink"
    first, total = await sandbox.list("**", limit=2)
    assert ([entry.path for entry in first], total) == ([".gitignore", "README.md"], 8)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/deep/util.py", "src/main.py"]),
        ("src/*.py", ["src/main.py"]),
        ("src/**/*.py", ["src/deep/util.py", "src/main.py"]),
        ("**/deep/**", ["src/deep/.gitignore", "src/deep/data.json", "src/deep/util.py"]),
        ("src/deep/", ["src/deep/.gitignore", "src/deep/data.json", "src/deep/util.py"]),
        ("src/deep", ["src/deep/.gitignore", "src/deep/data.json", "src/deep/util.py"]),
        ("./src/*.{py,json}", ["src/main.py"]),
        ("**/*.{json,md}", ["README.md", "link.md", "src/deep/data.json"]),
        ("main.py", ["src/main.py"]),
        ("m[a-c]?n.py", ["src/main.py"]),
        ("nothing*", []),
        ("../*", []),
        ("build/**", []),
    ],
)
@pytest.mark.usefixtures("tree")
async def test_globs(sandbox: ProcessSandbox, pattern: str, found: list[str]) -> None:
    """`**` spans folders; a name alone fits at any depth; a folder stands for all below it."""
    assert await names(sandbox, pattern) == found


@pytest.mark.usefixtures("tree")
async def test_search(sandbox: ProcessSandbox) -> None:
    """A search gives lines of text files that are not ignored, with their numbers."""
    hits, total = await sandbox.search("(?i)hello", glob=None, limit=10)
    assert [(hit.path, hit.line, hit.text) for hit in hits] == [
        ("README.md", 1, "# Hello"),
        ("src/deep/util.py", 1, "def hello():"),
        ("src/main.py", 3, "print('hello')"),
    ]
    assert total == 3
    hits, total = await sandbox.search("hello", glob="*.py", limit=1)
    assert ([hit.path for hit in hits], total) == (["src/deep/util.py"], 2)
    braces = await sandbox.search("hello", glob="src/*.{py,md}", limit=9)
    assert braces == await sandbox.search("hello", glob="src/main.py", limit=9)
    assert await sandbox.search("no such text", glob=None, limit=10) == ([], 0)


@pytest.mark.parametrize(
    "pattern", ["--pre=sh", "-z", "--open-files-in-pager=touch pwned", "$(touch pwned)", "-e", "-f/etc/passwd"]
)
async def test_pattern_is_data(sandbox: ProcessSandbox, tree: Any, pattern: str) -> None:
    """S60: a pattern that looks like an option or a command is only looked for."""
    tree.put("odd.txt", f"here: {pattern}\n".encode())
    hits, _ = await sandbox.search(rf"\Q{pattern}\E", glob=None, limit=10)
    assert [hit.path for hit in hits] == ["odd.txt"]
    plain, _ = await sandbox.search(pattern, glob="odd.txt", limit=10)
    assert len(plain) == (pattern[0] == "-")
    assert await sandbox.search("x", glob=pattern, limit=10) == ([], 0)
    assert not (tree.root / "pwned").exists()


async def test_bad_patterns(sandbox: ProcessSandbox, tree: Any) -> None:
    """S60: a pattern that is wrong or takes for ever is refused with a reason, and soon."""
    tree.put("a.txt", b"a" * 60_000 + b"!\n")
    started = time.monotonic()
    for pattern in ("(open", "", "a\0b", "two\nlines", "(a+)+$"):
        with pytest.raises(ToolError, match=r"bad_pattern|too_much"):
            await sandbox.search(pattern, glob=None, limit=10)
    for glob in ("{a,b}" * 20, "x" * 2000):
        with pytest.raises(ToolError, match="bad_pattern"):
            await sandbox.list(glob, limit=10)
    with pytest.raises(ToolError, match=r"path_outside|bad_pattern"):
        await sandbox.search("x", glob="/etc/**", limit=10)
    with pytest.raises(ToolError, match=r"path_outside|bad_pattern"):
        await sandbox.search("x", glob="../**", limit=10)
    tree.put("a" * 250)
    assert await names(sandbox, "*a" * 100 + "b") == []
    assert await names(sandbox, "**/" * 100 + "*a*b/*c") == []
    assert time.monotonic() - started < 10


async def test_long_lines(sandbox: ProcessSandbox, tree: Any) -> None:
    """A line of megabytes is cut; odd names and undecodable text survive."""
    tree.put("min.js", b"x" * 5_000_000 + b" needle\nneedle 2\n")
    tree.put("line\nbreak", b"Z\xfcrich needle\n")
    hits, total = await sandbox.search("needle", glob=None, limit=10)
    assert [(hit.path, hit.line, len(hit.text)) for hit in hits] == [
        ("line\nbreak", 1, 13), ("min.js", 1, 501), ("min.js", 2, 8),
    ]  # fmt: skip
    assert total == 3
    assert hits[0].text == "Z\ufffdrich needle"


async def test_many_hits(sandbox: ProcessSandbox, tree: Any) -> None:
    """All hits are counted, the first are given."""
    tree.put("many.txt", b"needle\n" * 20_000)
    hits, total = await sandbox.search("needle", glob=None, limit=3)
    assert ([hit.line for hit in hits], total) == ([1, 2, 3], 20_000)


async def test_poisoned_repository(sandbox: ProcessSandbox, tree: Any) -> None:
    """The tree's own `.git` is never read: its settings run nothing, and its absence changes nothing."""
    marker = tree.base / "tree" / "pwned"
    config = f"[core]\n\tfsmonitor = touch {marker}\n\thooksPath = .\n[grep]\n\tfallbackToNoIndex = true\n"
    tree.put(".git/config", config.encode())
    tree.put(".git/HEAD", b"ref: refs/heads/main\n")
    (tree.root / ".git/objects").mkdir()
    (tree.root / ".git/refs").mkdir()
    await sandbox.list("**", limit=10)
    await sandbox.search("hello", glob=None, limit=10)
    assert not marker.exists()
