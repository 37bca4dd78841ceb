"""What an agent may leave in its work tree, and what has to arrive of it: content, modes, names, operations.

Each case has a folder of its own, named like it, in one repository. `calls` act there with the agent's own tools;
`before` and `after` are written down by hand, and made into trees by plain git (`Plumbing`), so that nothing of what
is tested takes part in what is expected.
"""

import base64
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.testing.model.reply import Call

FILE, SCRIPT, LINK, MODULE = "100644", "100755", "120000", "160000"
Entry = tuple[str, bytes]
"""Mode, and content: of a link its target, of a submodule its commit."""
Change = Entry | None
"""What is at a path afterwards; None where nothing is."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that an agent does in a folder."""

    name: str
    calls: Sequence[Call]
    after: Mapping[bytes, Change]
    """Paths below the folder that are other than before."""
    before: Mapping[bytes, Entry] = field(default_factory=dict)

    def within(self, entries: Mapping[bytes, Change]) -> dict[bytes, Change]:
        """Return entries by their path in the repository."""
        return {self.name.encode() + b"/" + path: entry for path, entry in entries.items()}


class Plumbing:
    """Makes trees in a bare repository with git's plumbing, which looks at no attributes and no ignore rules."""

    def __init__(self, git_dir: Path, index: Path) -> None:
        self._git_dir = git_dir
        self._index = index

    def git(self, *args: str, stdin: bytes | None = None) -> str:
        """Ask git."""
        who = {f"GIT_{role}_{what}": "ann" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_INDEX_FILE": str(self._index), **who}
        command = ["git", "-c", "safe.directory=*", "--git-dir", str(self._git_dir), *args]
        done = subprocess.run(command, env=env, input=stdin, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def tree(self, base: str | None, changes: Mapping[bytes, Change]) -> str:
        """Return the id of a tree: another one with changes."""
        self._index.unlink(missing_ok=True)
        if base is not None:
            self.git("read-tree", base)
        gone = [b"0 " + b"0" * 40 + b"\t" + path + b"\0" for path, entry in changes.items() if entry is None]
        rows = [self._row(path, *entry) for path, entry in changes.items() if entry is not None]
        self.git("update-index", "-z", "--index-info", stdin=b"".join([*gone, *rows]))
        return self.git("write-tree")

    def commit(self, branch: str, changes: Mapping[bytes, Change]) -> str:
        """Put a commit that holds this and nothing else on a branch, and return its id."""
        made = self.git("commit-tree", "-m", "base", self.tree(None, changes))
        self.git("update-ref", f"refs/heads/{branch}", made)
        return made

    def _row(self, path: bytes, mode: str, content: bytes) -> bytes:
        sha = content.decode() if mode == MODULE else self.git("hash-object", "-w", "--stdin", stdin=content)
        return f"{mode} {sha}\t".encode() + path + b"\0"


def run(name: str, *commands: str) -> Call:
    """Let the agent run commands in a case's folder."""
    return Call("run", {"command": "\n".join([f"set -e; mkdir -p {name}; cd {name}", *commands])})


def put(path: bytes, content: bytes) -> str:
    """Write the command that writes bytes into a file of any name."""
    return f"base64 -d > {quoted(path)} <<< {base64.b64encode(content).decode()}"


def quoted(path: bytes) -> str:
    """Write a name so that bash reads these bytes, and no program takes it for an option."""
    return "./$'" + "".join(f"\\{byte:03o}" for byte in path) + "'"


def content(name: str, data: bytes) -> Case:
    """Let a command write a new file."""
    return Case(name, [run(name, put(b"new", data))], {b"new": (FILE, data)})


def written(name: str, text: str) -> Case:
    """Let the tool `write` write a new file."""
    return Case(name, [Call("write", {"path": f"{name}/new", "content": text})], {b"new": (FILE, text.encode())})


def edited(name: str, before: bytes, after: bytes, old: str, new: str) -> Case:
    """Let the tool `edit` change a line; all other bytes have to stay."""
    call = Call("edit", {"path": f"{name}/old", "old": old, "new": new})
    return Case(name, [call], {b"old": (FILE, after)}, {b"old": (FILE, before)})


def named(name: str, *paths: bytes) -> Case:
    """Let a command make files of some names."""
    commands = [f"mkdir -p {quoted(path.rpartition(b'/')[0])}; {put(path, path)}" for path in paths]
    return Case(name, [run(name, *commands)], {path: (FILE, path) for path in paths})


def by_attributes(name: str, attributes: bytes, before: bytes, after: bytes) -> Case:
    """Let a command write two files, one new, where `.gitattributes` asks for a conversion."""
    call = run(name, put(b"old.txt", after), put(b"new.txt", before))
    return Case(
        name,
        [call],
        {b"old.txt": (FILE, after), b"new.txt": (FILE, before)},
        {b".gitattributes": (FILE, attributes), b"old.txt": (FILE, before)},
    )


def shell(name: str, before: Mapping[bytes, Entry], after: Mapping[bytes, Change], *calls: str) -> Case:
    """Let the agent run commands, each of them a call of its own."""
    return Case(name, [run(name, call) for call in calls], after, before)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"
LARGE = (b"0123456789\n" * 476_626)[: 5 << 20]
PINNED = b"1234567890abcdef1234567890abcdef12345678"
X, Y = (FILE, b"x\n"), (FILE, b"y\n")
LONG = b"n" * 255
DEEP = b"/".join([b"folder-" + b"d" * 60] * 9)

CONTENTS = (
    Case("empty", [run("empty", ": > new")], {b"new": (FILE, b"")}),
    content("binary", bytes(range(256)) * 8),
    content("crlf", b"one\r\ntwo\r\n"),
    content("mixed-ends", b"one\r\ntwo\nthree\rfour\r\n"),
    written("no-final-newline", "one\ntwo"),
    content("bom", b"\xef\xbb\xbfone\n"),
    content("utf-16", "one\r\ntwø\r\n".encode("utf-16")),
    content("latin-1", "caf\xe9\n".encode("latin-1")),
    Case("five-megabytes", [run("five-megabytes", "yes 0123456789 | head -c 5242880 > new")], {b"new": (FILE, LARGE)}),
    content("lfs-pointer", POINTER),
    written("written-crlf", "one\r\ntwo\r\n"),
    edited("edited-crlf", b"one\r\ntwo\r\nthree", b"one\r\n2\r\nthree", "two", "2"),
    edited("edited-mixed", b"one\r\ntwo\nthree\n", b"one\r\n2\nthree\n", "two", "2"),
    edited("edited-bom", b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbf1\ntwo\n", "one", "1"),
)
MODES = (
    shell("made-executable", {b"a": X}, {b"a": (SCRIPT, b"x\n")}, "chmod +x a"),
    shell("no-more-executable", {b"a": (SCRIPT, b"x\n")}, {b"a": X}, "chmod a-x a"),
    shell("new-script", {}, {b"a": (SCRIPT, b"#!/bin/sh\n")}, "echo '#!/bin/sh' > a; chmod 755 a"),
    shell(
        "odd-modes",
        {b"seen": X},
        {b"a": X, b"b": X, b"c": (SCRIPT, b"x\n"), b"d": (SCRIPT, b"x\n")},
        "for f in a b c d; do echo x > $f; done; chmod 600 a; chmod 666 b; chmod 700 c; chmod 777 d; chmod 640 seen",
    ),
    Case(
        "edited-script",
        [Call("edit", {"path": "edited-script/a", "old": "x", "new": "y"})],
        {b"a": (SCRIPT, b"y\n")},
        {b"a": (SCRIPT, b"x\n")},
    ),
    shell(
        "link", {b"in/a": X}, {b"in/l": (LINK, b"a"), b"up": (LINK, b"in/../in/a")}, "ln -s a in/l; ln -s in/../in/a up"
    ),
    shell("dangling", {}, {b"l": (LINK, b"not/there")}, "ln -s not/there l"),
    shell("link-to-folder", {b"in/a": X}, {b"l": (LINK, b"in"), b"in/b": Y}, "ln -s in l; echo y > l/b"),
    shell("link-elsewhere", {b"l": (LINK, b"a")}, {b"l": (LINK, b"caf\xe9 \n")}, "ln -sfn $'caf\\351 \\n' l"),
)
NAMES = (
    named("spaces", b" ", b" a  b ", b"a b/c d "),
    named("quotes", b"'", b'"', b"`$(x)`", b"\\", b"a\\b", b"$HOME"),
    named("newlines", b"\n", b"a\nb\n", b"\t", b"a\r", b"\x01\x1b[31m"),
    named("no-utf-8", b"caf\xe9", b"\xff\xfe", b"\xc3", b"fold\xe9r/a"),
    named("dashes", b"-", b"-rf", b"--help", b"-x/--"),
    named("normal-forms", "caf\u00e9".encode(), "cafe\u0301".encode(), "\u1e9b\u0323".encode(), "\U0001f339".encode()),
    named("very-long", LONG, DEEP + b"/a"),
    named("patterns", b"*", b"[a]", b"?", b":(top)", b":!a", b"#a", b"!a", b"{a,b}"),
    named("letter-case", b"README", b"readme", b"Readme/a"),
    named("order", b"a-b", b"a.b", b"a/b", b"a0", b"A"),
)
ATTRIBUTES = (
    by_attributes("attributes-eol", b"* text=auto eol=crlf\n", b"one\ntwo\n", b"one\r\n2\n"),
    by_attributes("attributes-lfs", b"* filter=lfs diff=lfs merge=lfs -text\n", POINTER, b"no pointer\n"),
    by_attributes("attributes-ident", b"* ident\n", b"$Id$\n", b"$Id: 0123 $\n"),
    by_attributes("attributes-export", b"* export-subst\n", b"$Format:%H$\n", b"$Format:%h$\n"),
    by_attributes("attributes-encoding", b"* text working-tree-encoding=UTF-16\n", b"one\n", b"two\n"),
    shell(
        "attributes-new",
        {b"a": (FILE, b"a\r\n")},
        {b".gitattributes": (FILE, b"* text\n"), b"b": (FILE, b"b\r\n")},
        "echo '* text' > .gitattributes; printf 'b\\r\\n' > b",
    ),
)
IGNORED = (
    shell(
        "ignored",
        {b".gitignore": (FILE, b"*.log\nbuild/\n!kept.log\n")},
        {b"kept.log": X, b"a": X},
        "mkdir build; for f in a.log build/a kept.log a; do echo x > $f; done",
    ),
    shell(
        "tracked-though-ignored",
        {b".gitignore": (FILE, b"*.log\ndist/\n"), b"a.log": X, b"dist/a": X, b"dist/b": X},
        {b"a.log": Y, b"dist/a": Y, b"dist/b": None},
        "echo y > a.log; echo y > dist/a; rm dist/b; echo y > dist/new; echo y > b.log",
    ),
    shell(
        "tracked-and-made-anew",
        {b".gitignore": (FILE, b"*.log\ndist/\n"), b"a.log": X, b"dist/in/a": X, b"dist/in/b": X, b"dist/c": X},
        {b"a.log": Y, b"dist/in/a": Y, b"dist/c": None},
        "rm -r a.log dist",
        "mkdir -p dist/in; echo y > a.log; echo y > dist/in/a; echo x > dist/in/b; echo x > dist/in/new",
    ),
    shell(
        "ignored-by-the-work",
        {b"a.log": X, b"in/a": X},
        {b".gitignore": (FILE, b"*.log\nin/\n"), b"a.log": Y, b"in/a": Y},
        "printf '*.log\\nin/\\n' > .gitignore; echo y > a.log; echo y > in/a; echo y > b.log; echo y > in/b",
    ),
)
OPERATIONS = (
    Case("deleted", [Call("delete", {"path": "deleted/in/a"})], {b"in/a": None}, {b"in/a": X, b"b": X}),
    Case(
        "moved-and-edited",
        [
            Call("move", {"path": "moved-and-edited/a", "target": "moved-and-edited/in/b"}),
            Call("edit", {"path": "moved-and-edited/in/b", "old": "two", "new": "2"}),
        ],
        {b"a": None, b"in/b": (SCRIPT, b"one\n2\n")},
        {b"a": (SCRIPT, b"one\ntwo\n")},
    ),
    shell(
        "folder-renamed",
        {b"in/a": X, b"in/deep/b": Y},
        {b"in/a": None, b"in/deep/b": None, b"out/a": X, b"out/deep/b": Y},
        "mv in out",
    ),
    shell("name-in-other-case", {b"a.txt": X}, {b"a.txt": None, b"A.txt": X}, "mv a.txt A.txt"),
    shell("file-to-link", {b"a": X, b"b": Y}, {b"a": (LINK, b"b")}, "ln -sf b a"),
    shell("link-to-file", {b"a": (LINK, b"b"), b"b": Y}, {b"a": X}, "rm a; echo x > a"),
    shell("file-to-folder", {b"a": X}, {b"a": None, b"a/a": Y}, "rm a; mkdir a; echo y > a/a"),
    shell("folder-to-file", {b"a/a": X, b"a/b": Y}, {b"a/a": None, b"a/b": None, b"a": Y}, "rm -r a; echo y > a"),
    shell("folder-to-link", {b"a/a": X, b"b/a": X}, {b"a/a": None, b"a": (LINK, b"b")}, "rm -r a; ln -s b a"),
    shell("linked-to-folder", {b"l": (LINK, b"b"), b"b/a": X}, {b"l": None, b"l/a": Y}, "rm l; mkdir l; echo y > l/a"),
    shell("empty-folder", {b"in/a": X}, {b"in/a": None, b"b": Y}, "rm in/a; mkdir -p new/er; echo y > b"),
    shell("swapped", {b"a": X, b"b": (SCRIPT, b"y\n")}, {b"a": (SCRIPT, b"y\n"), b"b": X}, "mv a c; mv b a; mv c b"),
    shell("submodule-beside", {b"lib": (MODULE, PINNED), b"a": X}, {b"a": Y}, "echo y > a"),
    shell(
        "submodule-trodden",
        {b"in/lib": (MODULE, PINNED), b"a": X, b"in/b": X},
        {b"a": None, b"in/b": None},
        "mkdir -p in/lib; echo x > in/lib/x; rm -r a in",
    ),
    Case(
        "patched",
        [
            Call(
                "apply_patch",
                {
                    "patch": "*** Begin Patch\n*** Update File: patched/a\n@@\n-two\n+2\n*** Delete File: patched/b\n"
                    "*** Add File: patched/c\n+three\n*** End Patch"
                },
            )
        ],
        {b"a": (FILE, b"one\r\n2\r\n"), b"b": None, b"c": (FILE, b"three\n")},
        {b"a": (FILE, b"one\r\ntwo\r\n"), b"b": X},
    ),
)
CASES: Sequence[Case] = (*CONTENTS, *MODES, *NAMES, *ATTRIBUTES, *IGNORED, *OPERATIONS)
OTHERS: Mapping[bytes, Change] = {
    b".gitmodules": (FILE, b'[submodule "lib"]\n\tpath = submodule-beside/lib\n\turl = ../lib\n'),
    b"README.md": (FILE, b"# Carried\n"),
    b"run.sh": (SCRIPT, b"#!/bin/sh\n"),
    b"latest": (LINK, b"README.md"),
}
"""What no case touches."""


def all_of(cases: Iterable[Case]) -> dict[bytes, Change]:
    """Return what a repository holds before all of these cases."""
    found = dict(OTHERS)
    for case in cases:
        found |= case.within(case.before)
    return found
