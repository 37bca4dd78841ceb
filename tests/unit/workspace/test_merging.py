"""Joining commits without a work tree, with real git."""

import os
from pathlib import Path

import pytest

from bot.domain.merging import Conflict, Merged, PutOn
from bot.errors import WorkspaceError
from bot.workspace.base import Identity
from bot.workspace.worktree import GitWorkspace
from tests.unit.workspace.helpers import AT, add, git, local, opened

US = Identity("wright[bot]", "1+wright[bot]@users.noreply.github.com")


async def fork(source: Path, state: Path) -> tuple[GitWorkspace, str]:
    """Open the copy of a repository that has lines, and stand its checkout on a branch of a person."""
    add(source, {"a.txt": "one\ntwo\nthree\n", "far.txt": "far\n"})
    workspace, base = await opened(state, source)
    git(source, "checkout", "--quiet", "-b", "theirs")
    return workspace, base


async def ours(workspace: GitWorkspace, base: str, path: str, data: bytes | None) -> str:
    """Make our commit on the base."""
    return await workspace.with_file(base, path, data, US, AT, "Ours")


def of(tree: str, workspace: GitWorkspace, path: str) -> str:
    """Read a file of a tree by git itself."""
    return git(workspace.git_dir, "show", f"{tree}:{path}")


async def test_changes_apart_are_joined_without_a_conflict(source: Path, state: Path) -> None:
    """Both sides stand in the tree, and the commit of it has both for parents; the same again gives the same id."""
    workspace, base = await fork(source, state)
    theirs = add(source, {"far.txt": "farther\n"})
    mine = await ours(workspace, base, "a.txt", b"ONE\ntwo\nthree\n")
    merged = await workspace.merge(mine, theirs)
    assert not merged.conflicts
    assert (of(merged.tree, workspace, "a.txt"), of(merged.tree, workspace, "far.txt")) == (
        "ONE\ntwo\nthree",
        "farther",
    )
    made = await workspace.joined(merged.tree, [mine, theirs], US, AT, "Merge")
    assert made == await workspace.joined(merged.tree, [mine, theirs], US, AT, "Merge")
    assert git(workspace.git_dir, "log", "-1", "--format=%P|%s|%an", made) == f"{mine} {theirs}|Merge|wright[bot]"
    git(workspace.git_dir, "fsck", "--strict")
    assert await workspace.checkpoint(None, "the work tree is as it was", AT) == base


async def test_lines_in_conflict_show_both_sides_and_what_they_came_from(source: Path, state: Path) -> None:
    """Each side is named by its full id."""
    workspace, base = await fork(source, state)
    theirs = add(source, {"a.txt": "one\nTHEIRS\nthree\n"})
    mine = await ours(workspace, base, "a.txt", b"one\nOURS\nthree\n")
    merged = await workspace.merge(mine, theirs)
    assert merged.conflicts == [Conflict("a.txt", "lines")]
    lines = of(merged.tree, workspace, "a.txt").split("\n")
    assert lines[1:3] == [f"<<<<<<< {mine}", "OURS"]
    assert lines[3].startswith("||||||| ")
    assert lines[4:8] == ["two", "=======", "THEIRS", f">>>>>>> {theirs}"]


async def test_kinds_of_conflicts_are_told_apart(source: Path, state: Path) -> None:
    """Binary files, links, submodules, what is gone or renamed on a side, and a file where a folder is."""
    many = "".join(f"{number}\n" for number in range(50))
    add(source, {"bin": b"\0base", "gone": many, "moved": many + "x\n", "kind": "k\n"})
    (source / "link").symlink_to("base")
    base = add(source, {})
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(source, "commit", "--quiet", "-m", "a submodule")
    workspace, base = await opened(state, source)

    def side(name: str, sub: str) -> None:
        git(source, "checkout", "--quiet", "-b", name, base)
        (source / "bin").write_bytes(b"\0" + name.encode())
        (source / "link").unlink()
        (source / "link").symlink_to(name)
        git(source, "update-index", "--add", "--cacheinfo", f"160000,{sub * 40},sub")

    side("theirs", "2")
    git(source, "rm", "--quiet", "gone")
    git(source, "mv", "moved", "moved-here")
    (source / "kind").unlink()
    (source / "kind").mkdir()
    (source / "kind" / "x").write_text("x\n")
    git(source, "add", "bin", "link", "kind")
    git(source, "commit", "--quiet", "-m", "theirs")
    theirs = git(source, "rev-parse", "HEAD")
    side("ours", "3")
    (source / "gone").write_text(many + "more\n")
    git(source, "rm", "--quiet", "moved")
    (source / "kind").write_text("another\n")
    git(source, "add", "bin", "link", "gone", "kind")
    git(source, "commit", "--quiet", "-m", "ours")
    mine = git(source, "rev-parse", "HEAD")
    found = {one.path: one.clash for one in (await workspace.merge(mine, theirs)).conflicts}
    assert found.pop(f"kind~{mine}") == "kind"
    assert found == {
        "bin": "binary",
        "gone": "deleted",
        "link": "link",
        "moved-here": "renamed",
        "sub": "submodule",
    }


async def test_names_are_bytes(source: Path, state: Path) -> None:
    """A name that is no text, and one with a line break, come through as they are."""
    names = [os.fsdecode(b"not-\xff-text"), "two\nlines", "tab\there"]
    add(source, dict.fromkeys(names, "base\n"))
    workspace, base = await opened(state, source)
    theirs = add(source, dict.fromkeys(names, "theirs\n"))
    mine = base
    for name in names:
        mine = await ours(workspace, mine, name, b"ours\n")
    assert [one.path for one in (await workspace.merge(mine, theirs)).conflicts] == sorted(names, key=os.fsencode)


async def test_no_program_of_the_repository_joins_anything(source: Path, state: Path, tmp_path: Path) -> None:
    """Attributes name a driver and the person's configuration knows it: neither is listened to."""
    mark = tmp_path / "ran"
    git(source, "config", "merge.evil.driver", f"touch {mark}; false")
    git(source, "config", "filter.evil.smudge", f"touch {mark}")
    git(source, "config", "filter.evil.clean", f"touch {mark}")
    git(source, "config", "core.hooksPath", str(tmp_path))
    (source / ".git" / "info").mkdir(exist_ok=True)
    (source / ".git" / "info" / "attributes").write_text("* merge=evil\n")
    git(source, "config", "filter.evil.clean", "cat")
    add(source, {".gitattributes": "* merge=evil filter=evil conflict-marker-size=30\n", "a": "base\n"})
    git(source, "config", "filter.evil.clean", f"touch {mark}")
    workspace, base = await opened(state, source)
    mine = await ours(workspace, base, "a", b"ours\n")
    theirs = await ours(workspace, base, "a", b"theirs\n")
    merged = await workspace.merge(mine, theirs)
    assert merged.conflicts == [Conflict("a", "lines")]
    assert f"<<<<<<< {mine}" in of(merged.tree, workspace, "a").split("\n")
    assert not mark.exists()


async def test_what_has_nothing_in_common_is_refused(source: Path, state: Path) -> None:
    """As a branch that somebody began from nothing."""
    workspace, base = await fork(source, state)
    git(source, "checkout", "--quiet", "--orphan", "other")
    other = add(source, {"a.txt": "other\n"})
    with pytest.raises(WorkspaceError, match="could not be joined"):
        await workspace.merge(base, other)


async def test_the_same_change_stands_on_what_others_pushed(source: Path, state: Path) -> None:
    """Author, date and message stay, others are counted, and the same again gives the same commit."""
    workspace, base = await fork(source, state)
    add(source, {"far.txt": "farther\n"})
    head = add(source, {"far.txt": "farthest\n"})
    mine = await ours(workspace, base, "a.txt", b"ONE\ntwo\nthree\n")
    put = await workspace.put_on(mine, head, since=base)
    assert put == await workspace.put_on(mine, head, since=base)
    assert put is not None
    assert (put.others, put.there) == (2, False)
    shown = "--format=%P|%an|%ae|%at|%cn|%ct|%B"
    told = git(workspace.git_dir, "log", "-1", shown, mine).partition("|")[2]
    assert git(workspace.git_dir, "log", "-1", shown, put.commit) == f"{head}|{told}"
    assert git(workspace.git_dir, "diff", "--name-only", head, put.commit) == "a.txt"
    git(workspace.git_dir, "fsck", "--strict")


async def test_what_others_changed_too_is_theirs(source: Path, state: Path) -> None:
    """No empty commit is made; a part of the change that is theirs leaves the rest."""
    workspace, base = await fork(source, state)
    head = add(source, {"a.txt": "ONE\ntwo\nthree\n", "far.txt": "farther\n"})
    mine = await ours(workspace, base, "a.txt", b"ONE\ntwo\nthree\n")
    assert await workspace.put_on(mine, head, since=base) == PutOn(head, 1, there=True, same=True)
    more = await workspace.with_file(mine, "c.txt", b"c\n", Identity("Ann", "a@b"), AT, "More")
    put = await workspace.put_on(more, head, since=base)
    assert put is not None
    assert (put.there, put.same) == (False, False)


async def test_what_an_earlier_life_put_there_is_found_again(source: Path, state: Path) -> None:
    """Also below what others pushed after it, so that no second one is made."""
    workspace, base = await fork(source, state)
    head = add(source, {"far.txt": "farther\n"})
    mine = await ours(workspace, base, "a.txt", b"ONE\ntwo\nthree\n")
    put = await workspace.put_on(mine, head, since=base)
    assert put is not None
    later = await workspace.with_file(put.commit, "far.txt", b"later\n", Identity("Ann", "a@b"), AT, "Later")
    for stands in (put.commit, later):
        again = await workspace.put_on(mine, stands, since=base)
        assert again is not None
        assert (again.commit, again.others, again.there) == (put.commit, 1, True)


async def test_what_conflicts_or_was_rewritten_takes_nothing(source: Path, state: Path) -> None:
    """Then the work goes elsewhere."""
    workspace, base = await fork(source, state)
    conflicting = add(source, {"a.txt": "THEIRS\n"})
    mine = await ours(workspace, base, "a.txt", b"OURS\n")
    assert await workspace.put_on(mine, conflicting, since=base) is None
    git(source, "checkout", "--quiet", "--orphan", "other")
    rewritten = add(source, {"b.txt": "b\n"})
    assert await workspace.put_on(mine, rewritten, since=base) is None


async def test_only_full_ids_are_taken(source: Path, state: Path) -> None:
    """No name of a branch, and nothing that git could take for an option."""
    workspace, base = await opened(state, source)
    with pytest.raises(WorkspaceError, match="no full commit id"):
        await workspace.merge(base, "--help")
    assert local(source).url
    assert await workspace.merge(base, base) == Merged(await workspace.tree_of(base), there=True)
