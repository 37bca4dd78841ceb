"""Patches of several files on a real workspace: all or nothing."""

import asyncio

import pytest

from bot.errors import ToolError
from bot.sandbox.base import Change
from bot.tools.base import ToolContext
from tests.unit.tools.calls import Put, Use, raw, tree


def patch(*lines: str) -> str:
    """Put lines between the first and the last."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def test_everything_at_once(use: Use, put: Put, context: ToolContext) -> None:
    """Files are added, deleted, changed and moved by one patch; the text shows each, the rest stays as it was."""
    await put("old.txt", b"bye\n")
    await put("run.sh", b"#!/bin/sh\r\necho a\r\n", "755")
    await put("bom.txt", b"\xef\xbb\xbfa\nb")
    await put("exec", b"1\n2\n", "750")
    text = patch(
        "*** Add File: new/deep/a.txt", "+one", "*** Delete File: old.txt",
        "*** Update File: run.sh", "-echo a", "+echo b", "*** Update File: bom.txt", " a", "-b", "+c",
        "*** Update File: exec", "*** Move to: bin/exec", "-2", "+two",
    )  # fmt: skip
    output = await use("apply_patch", patch=text)
    assert output.text == (
        "added new/deep/a.txt\ndeleted old.txt\nupdated run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo a\n+echo b\n"
        "updated bom.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\nmoved exec to bin/exec\n@@ -1,2 +1,2 @@\n 1\n-2\n+two"
    )
    assert output.changed == ("new/deep/a.txt", "old.txt", "run.sh", "bom.txt", "bin/exec", "exec")
    assert output.summary == "new/deep/a.txt, old.txt, run.sh, bom.txt, bin/exec"
    assert tree(context) == {
        "bin/": (b"", 0),
        "bin/exec": (b"1\ntwo\n", 0o750),
        "bom.txt": (b"\xef\xbb\xbfa\nc", 0o644),
        "new/": (b"", 0),
        "new/deep/": (b"", 0),
        "new/deep/a.txt": (b"one\n", 0o644),
        "run.sh": (b"#!/bin/sh\r\necho b\r\n", 0o755),
    }


GOOD = ("*** Add File: new/a.txt", "+x", "*** Update File: a.txt", "-one", "+two")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (("*** Update File: b.txt", "-nothing", "+x"), "not_found: the old lines of part 1 of b.txt"),
        (("*** Update File: gone.txt", "-a", "+x"), "not_found: no such file: gone.txt"),
        (("*** Delete File: gone.txt",), "not_found: no such file: gone.txt"),
        (("*** Delete File: dir",), "not_regular_file: this is a folder: dir"),
        (("*** Add File: b.txt", "+x"), "exists: there is something of this name already: b.txt"),
        (("*** Add File: dir", "+x"), "exists: there is something of this name already: dir"),
        (("*** Add File: b.txt/c", "+x"), "not_found: a part of the path is no folder"),
        (("*** Update File: b.txt", "*** Move to: dir/c.txt"), "exists: there is something of this name already"),
        (("*** Update File: latin", "-a", "+x"), "not_utf8"),
        (("*** Update File: binary", "-a", "+x"), "binary_file"),
        (("*** Add File: ../x", "+x"), "path_outside_workspace"),
        (("*** Add File: .git/hooks/x", "+x"), "protected_path"),
        (("*** Add File: c.txt", "+# ... rest of the code unchanged ..."), "placeholder"),
        (("*** Update File: link", "-one", "+three"), "two changes concern the same file"),
        (("*** Add File: \ud800", "+x"), "bad_path"),
        (("*** Add File: c.txt", "+\ud800"), "characters that no file can hold"),
    ],
)
async def test_nothing_where_one_does_not_fit(
    use: Use, put: Put, context: ToolContext, bad: tuple[str, ...], words: str
) -> None:
    """Whatever is wrong with one file, all others stay as they were, whichever comes first."""
    await put("a.txt", b"one\n")
    await put("b.txt", b"b\n")
    await put("dir/c.txt", b"c\n")
    await put("latin", b"a\nZ\xfcrich\n")
    await put("binary", b"a\n\0")
    await context.sandbox.run("ln -s a.txt link", timeout_s=5)
    before = tree(context)
    for lines in ((*GOOD, *bad), (*bad, *GOOD)):
        output = await use("apply_patch", patch=patch(*lines))
        assert output.is_error
        assert words in output.text
        assert tree(context) == before


async def test_what_cannot_be_written_changes_nothing(put: Put, context: ToolContext) -> None:
    """Where a later change fails while earlier ones are made already, those are taken back, folders too."""
    await put("a.txt", b"one\n", "600")
    await put("b.txt", b"two\n")
    await put("shut/c.txt", b"three\n")
    known = {
        path: (await context.sandbox.open(path, limit_bytes=0)).sha256 for path in ("a.txt", "b.txt", "shut/c.txt")
    }
    before = tree(context)
    changes = [
        Change("a.txt", b"1", known["a.txt"]),
        Change("b.txt", None, known["b.txt"]),
        Change("x/y/z", b"new", None),
    ]
    late = [
        Change("x/y/z", b"other", None),
        Change("a.txt/z", b"", None),
        Change("shut/c.txt", b"3", "0" * 64),
        Change("gone", b"", "0" * 64),
        Change("q" * 300, b"", None),
    ]
    for last in late:
        with pytest.raises(ToolError):
            await context.sandbox.apply([*changes, last])
        assert tree(context) == before
    # This one fails when three are made already: what was to be a file has become a folder.
    with pytest.raises(ToolError, match="exists: there is something of this name already: p"):
        await context.sandbox.apply([*changes, Change("p", b"file", None), Change("p/q", b"file", None)])
    assert tree(context) == before
    # The folder can be read, and nothing in it can be named.
    await context.sandbox.run("chmod 555 shut", timeout_s=5)
    with pytest.raises(ToolError, match="permission_denied"):
        await context.sandbox.apply([*changes, Change("shut/c.txt", b"3", known["shut/c.txt"])])
    assert tree(context) == before
    assert len(await context.sandbox.apply(changes)) == 3
    assert sorted(path for path in tree(context) if path[-1] != "/") == ["a.txt", "shut/c.txt", "x/y/z"]


async def test_a_link_is_followed_for_a_change_and_goes_itself(use: Use, put: Put, context: ToolContext) -> None:
    """Updating writes to where a link leads; deleting and moving take the link away."""
    await put("a.txt", b"one\n")
    await context.sandbox.run("ln -s a.txt link; ln -s a.txt other", timeout_s=5)
    assert not (await use("apply_patch", patch=patch("*** Update File: link", "-one", "+two"))).is_error
    assert not (await use("apply_patch", patch=patch("*** Delete File: link"))).is_error
    assert not (await use("apply_patch", patch=patch("*** Update File: other", "*** Move to: b.txt"))).is_error
    assert tree(context) == {"a.txt": (b"two\n", 0o644), "b.txt": (b"two\n", 0o644)}


async def test_what_was_known_stays_known(use: Use, put: Put) -> None:
    """After a patch only files that were known before, and new ones, may be overwritten."""
    await put("read.txt", b"1\n")
    await put("unread.txt", b"1\n")
    await put("moved.txt", b"1\n")
    await use("read", path="read.txt")
    await use("read", path="moved.txt")
    text = patch(
        "*** Update File: read.txt", "-1", "+2", "*** Update File: unread.txt", "-1", "+2", "*** Add File: new.txt",
        "+x", "*** Update File: moved.txt", "*** Move to: there.txt", "-1", "+2",
    )  # fmt: skip
    assert not (await use("apply_patch", patch=text)).is_error
    for path in ("read.txt", "new.txt", "there.txt"):
        assert not (await use("write", path=path, content="y\n")).is_error
    assert (await use("write", path="unread.txt", content="y\n")).text.startswith("exists:")


async def test_the_diffs_of_many_files_stay_short(use: Use, context: ToolContext) -> None:
    """Each file is named, and the more there are the less of each is shown."""
    await context.sandbox.run("for i in $(seq 100); do seq 100 > f$i; done", timeout_s=20)
    rows = [f"{mark}{n}" for n in range(1, 101) for mark in "-+"]
    sections = [line for i in range(1, 101) for line in (f"*** Update File: f{i}", *(f"{row}{i}" for row in rows))]
    output = await use("apply_patch", patch=patch(*sections))
    assert output.is_error  # the lines are not there: nothing was changed
    sections = [line for i in range(1, 101) for line in (f"*** Update File: f{i}", "-50", "-51", "+x")]
    output = await use("apply_patch", patch=patch(*sections))
    assert output.text.count("updated f") == 100
    assert len(output.text.split("\n")) < 250
    assert await raw(context, "f77") == b"".join(b"%d\n" % n for n in range(1, 101)).replace(b"50\n51\n", b"x\n")


async def test_patches_at_once(use: Use, put: Put, context: ToolContext) -> None:
    """Of two patches of the same place that come at once, one is made and the other refused."""
    await put("a.txt", b"one\n")
    texts = [patch("*** Update File: a.txt", "-one", f"+{word}") for word in ("two", "three")]
    outputs = await asyncio.gather(*(use("apply_patch", patch=text) for text in texts))
    assert sorted(output.is_error for output in outputs) == [False, True]
    assert await raw(context, "a.txt") in {b"two\n", b"three\n"}
