"""Output made fit for a model."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.sandbox.environment import environment
from bot.sandbox.helper.children import Kept
from bot.sandbox.helper.globs import Glob, expand, fits
from bot.sandbox.output import both_ends, clean, clip


@given(st.binary(max_size=300))
def test_nothing_gets_through(data: bytes) -> None:
    """Whatever a command prints, no control character but tab and line feed is left."""
    assert not [char for char in clean(data) if (ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160]


def test_unfinished_escapes() -> None:
    """An escape that never ends takes no more than its line."""
    assert clean(b"a\x1b]0;title\nb\x1b[") == "a\nb"
    assert clean(b"\x1bPq data\n text") == "\n text"


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 20), st.integers(1, 20))
def test_kept(chunks: list[bytes], head: int, tail: int) -> None:
    """However the stream comes, its first and last bytes are kept, and all of it where it is short."""
    kept, whole = Kept(head, tail), b"".join(chunks)
    for chunk in chunks:
        kept.add(chunk)
    first, last = kept.parts
    assert first == whole[:head]
    assert last == whole[head:][-tail:]
    assert kept.total == len(whole)


def test_clip() -> None:
    """A quarter is the head, the rest the tail."""
    assert clip("x" * 10, 10) == "x" * 10
    assert clip("a" * 50 + "b" * 50, 40) == "a" * 10 + "\n[… 60 characters left out …]\n" + "b" * 30
    assert both_ends(b"ab", b"yz", 30, 4) == "a\n[… 27 bytes left out …]\nyz"


@given(st.text("a/*", max_size=8), st.text("a/", max_size=8))
def test_globs_agree(pattern: str, path: str) -> None:
    """The matcher says what a plain recursive definition says."""

    def slow(parts: list[str], names: list[str]) -> bool:
        if not parts:
            return not names
        if parts[0] == "**":
            return any(slow(parts[1:], names[at:]) for at in range(len(names) + 1 if len(parts) > 1 else 0)) or (
                len(parts) == 1 and bool(names)
            )
        return bool(names) and star(parts[0], names[0]) and slow(parts[1:], names[1:])

    def star(part: str, name: str) -> bool:
        if not part:
            return not name
        if part[0] == "*":
            return any(star(part[1:], name[at:]) for at in range(len(name) + 1))
        return name[:1] == part[0] and star(part[1:], name[1:])

    assert Glob(pattern).fits(path) == slow(pattern.split("/"), path.split("/"))


def test_expand() -> None:
    """Braces are written out."""
    assert expand("a/{b,c{d,e}}/*") == ["a/b/*", "a/cd/*", "a/ce/*"]
    assert expand("a/b") == ["a/b", "a/b/**"]
    assert expand("b") == ["b", "b/**", "**/b"]
    assert expand("{a}/x*") == ["{a}/x*"]
    assert fits("x/y", [Glob("z"), Glob("x/*")])


def test_environment() -> None:
    """A virtual environment comes first on the path; what the caller gives wins."""
    made = environment("/h", "/h/tmp", "m", {"VIRTUAL_ENV": "/v", "CI": "false"})
    assert made["PATH"].startswith("/v/bin:/usr/local/sbin:")
    assert (made["HOME"], made["CI"], made["VIRTUAL_ENV"]) == ("/h", "false", "/v")


def test_programs_come_first() -> None:
    """A toolchain's programs come before the machine's, a virtual environment's before both."""
    made = environment("/h", "/h/tmp", "m", {"VIRTUAL_ENV": "/v"}, [Path("/opt/node/bin")])
    assert made["PATH"].startswith("/v/bin:/opt/node/bin:/usr/local/sbin:")
    made = environment("/h", "/h/tmp", "m", {"PATH": "/env/bin"}, [Path("/opt/node/bin")])
    assert made["PATH"].startswith("/env/bin:/opt/node/bin:/usr/local/sbin:")
