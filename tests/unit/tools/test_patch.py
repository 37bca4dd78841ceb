"""Patches without files: what can be read, and where a part fits."""

# ruff: noqa: RUF001 - these characters are meant

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.errors import ToolError
from bot.tools.contents import Text
from bot.tools.hunks import put
from bot.tools.patch import Add, Delete, Hunk, Update, read_patch


def patch(*lines: str) -> str:
    """Put lines between the first and the last."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def hunks(*lines: str) -> list[Hunk]:
    """Read the parts of one file."""
    (section,) = read_patch(patch("*** Update File: f", *lines))
    assert isinstance(section, Update)
    return list(section.hunks)


def patched(text: str, *lines: str) -> str:
    """Put lines of a patch into a text."""
    return put(Text(text, bom=False), hunks(*lines), "f").text


def test_all_sections() -> None:
    """Adding, deleting, updating and moving are read, with blank lines between them or without."""
    text = patch(
        "*** Add File: a/new.txt", "+one", "+", "", "*** Delete File: ./old.txt",
        "*** Update File: b.txt", "*** Move to: c.txt", "@@ def f():", " x", "-y", "+z", "", "*** Update File: d",
        "-a", "+b", "*** End of File", "*** Update File: e", "*** Move to: g",
    )  # fmt: skip
    first = Hunk(9, ["def f():"], [(" ", "x"), ("-", "y"), ("+", "z")], at_end=False)
    second = Hunk(15, [], [("-", "a"), ("+", "b")], at_end=True)
    assert read_patch(text) == [
        Add("a/new.txt", "one\n\n"),
        Delete("old.txt"),
        Update("b.txt", "c.txt", [first]),
        Update("d", None, [second]),
        Update("e", "g", []),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```diff\n{}\n```",
        "apply_patch <<'EOF'\n{}\nEOF\n",
        "<<EOF\n{}\nEOF",
        "\n  {}  \n\n",
    ],
)
def test_wrapping_is_taken_off(text: str) -> None:
    """A fence, a here-document and blank lines around a patch do no harm."""
    assert read_patch(text.format(patch("*** Delete File: f"))) == [Delete("f")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: there is no `*** Begin Patch`. A patch is"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b", "there is no `*** Begin Patch`"),
        ("*** Begin Patch\n*** Update File: f\n-a\n+b", "line 4: there is no `*** End Patch`: the patch was cut off"),
        (patch(), "the patch names no file"),
        (patch("*** Frobnicate File: f"), "line 2: expected `*** Add File"),
        (patch("*** Add File:"), "line 2: the path is missing"),
        (patch("*** Update File: f", "*** Move to: ", "-a", "+b"), "line 3: the path is missing"),
        (patch("*** Update File: f"), "line 2: nothing is to be changed in f"),
        (patch("*** Update File: f", "@@"), "line 2: nothing is to be changed in f"),
        (patch("*** Update File: f", "@@ def f():"), "line 3: this part has no line with + or -"),
        (patch("*** Update File: f", " a", " b"), "line 3: this part has no line with + or -"),
        (patch("*** Update File: f", "-a", "b"), "line 4: lines of a file have a space, - or + before them: 'b'"),
        (patch("*** Add File: f", "+a", "b"), "line 4: expected `*** Add File"),
        (patch("*** Delete File: f", "-a"), "line 3: expected `*** Add File"),
        (patch("*** Delete File: f", "*** Delete File: ./f"), "f is named twice"),
        (patch("*** Update File: f", "*** Move to: g", "*** Add File: g", "+x"), "g is named twice"),
        ("I will now patch.\n" + patch("*** Delete File: f"), "line 1: this stands outside the patch: 'I will"),
        (patch("*** Delete File: f") + "\n-more", "line 4: this stands outside the patch: '-more'"),
        (patch(*(f"*** Delete File: f{n}" for n in range(201))), "more than 200 files"),
    ],
)
def test_what_cannot_be_read(text: str, words: str) -> None:
    """A patch that is wrong anywhere is refused with the line, and is not applied in part."""
    with pytest.raises(ToolError) as caught:
        read_patch(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("bad_patch: ")
    assert str(caught.value).endswith("Nothing was changed.")


TWO = "class A:\n    def f(self):\n        return 1\n\n\nclass B:\n    def f(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("a\nb\nc\n", [" a", "-b", "+B", " c"], "a\nB\nc\n"),
        ("1\n2\n3\n4\n", ["@@", "-2", "+two", "@@", "-4", "+four"], "1\ntwo\n3\nfour\n"),
        ("a\nb\n", ["-a", "-b"], ""),
        ("", ["+a"], "a\n"),
        ("a\n", ["+b", "+c"], "a\nb\nc\n"),
        ("a", ["+b"], "a\nb"),
        ("a\nb", ["-b", "+c"], "a\nc"),
        ("a\nb", ["-b", "\\ No newline at end of file", "+c"], "a\nc"),
        ("a\nb\n", ["-b"], "a\n"),
        ("x\na\nx\na\n", ["-a", "+b", "*** End of File"], "x\na\nx\nb\n"),
        ("a\nb\n", ["-a", "+c", "*** End of File"], "c\nb\n"),
        ("a\n\nb\n", [" a", "", "-b", "+c", "", ""], "a\n\nc\n"),
        ("a\nb\n", [" a", "-b", "+c", " "], "a\nc\n"),
        ("a\r\nb\r\n", [" a", "-b", "+c", "+d"], "a\r\nc\r\nd\r\n"),
        ("a\r\nb\nc\n", [" b", "+x", " c"], "a\r\nb\nx\nc\n"),
        ("a\r\nb\nc\n", [" a", "+x"], "a\r\nx\r\nb\nc\n"),
        ("T\n=======\nb\n", [" T", " =======", "-b", "+c"], "T\n=======\nc\n"),
        ("<<<<<<< x\na\n=======\nb\n>>>>>>> y\n", ["-<<<<<<< x", "-a", "-=======", " b", "->>>>>>> y"], "b\n"),
        ("*** End Patch\n", ["-*** End Patch", "+*** Begin Patch"], "*** Begin Patch\n"),
        ("- a\n+ b\n@@ c\n", [" - a", "-+ b", "++ d", " @@ c"], "- a\n+ d\n@@ c\n"),
        (TWO, ["@@ class B:", "-        return 1", "+        return 2"], TWO[:-2] + "2\n"),
        (TWO, ["@@ class B:", "@@     def f(self):", "-        return 1", "+        return 2"], TWO[:-2] + "2\n"),
        (TWO, ["@@ -7,2 +7,2 @@ class B:", "-        return 1", "+        return 2"], TWO[:-2] + "2\n"),
        (TWO, ["@@ class A:", "-        return 1", "+        return 2"], TWO.replace("1", "2", 1)),
        (TWO, [" class B:", "     def f(self):", "-        return 1"], TWO.removesuffix("        return 1\n")),
        ("# A\nx\n# B\ny\n", ["@@ # B", "-y", "+z"], "# A\nx\n# B\nz\n"),
        ("f() {\n  a;\n}\ng() {\n  a;\n}\n", ["@@ f() {", "-  a;", "+  b;"], "f() {\n  b;\n}\ng() {\n  a;\n}\n"),
        ("void f()\n{\n  a;\n}\nvoid g()\n{\n  a;\n}\n", ["@@ void f()", "-  a;", "+  b;"],
         "void f()\n{\n  b;\n}\nvoid g()\n{\n  a;\n}\n"),
        ("if x:\n    a  \n    b\n", ["     a", "-    b", "+    c"], "if x:\n    a  \n    c\n"),
        ("if x:\n    a\n    b\n", [" a", "-b", "+c", "+  d"], "if x:\n    a\n    c\n      d\n"),
        ("\tif x:\n\t\ta\n", [" if x:", "-\ta", "+\tb"], "\tif x:\n\t\tb\n"),
        ("say “hi” – twice\nx\n", ['-say "hi" - twice', '+say "ho"', " x"], 'say "ho"\nx\n'),
        ("keep “this”\nx\n", [' keep "this"', "-x", "+y"], "keep “this”\ny\n"),
    ],
)  # fmt: skip
def test_parts_that_fit(text: str, lines: list[str], result: str) -> None:
    """A part that fits in one place is put there; what it does not change stays, byte for byte."""
    assert patched(text, *lines) == result


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        ("a\na\n", ["-a", "+b"], "not_unique: the old lines of part 1 of f (line 3 of the patch) fit 2 times"),
        (TWO, ["-        return 1", "+        return 2"], "fit 2 times (lines 3, 8): give more lines around"),
        (TWO, ["@@     def f(self):", "-        return 1", "+        return 2"], "below its @@ line"),
        (TWO.replace("1", "2", 1), ["@@ class A:", "-        return 1", "+        return 2"], "and none of them below"),
        (TWO, ["@@ class C:", "-        return 1", "+        return 2"], "below a line 'class C:', and there is none"),
        ("# A\nx\n# B\nx\n", ["@@ # A", "-x", "+y"], "fit 2 times"),
        ("a\nb\n", ["-c", "+d"], "not_found: the old lines of part 1 of f (line 3 of the patch) are not in the file."),
        ("a = 1\nb = 2\n", ["-a = 2", "+a = 3"], "Nearest (80% alike):\n1 | a = 1"),
        ("a\nvalue = 12345\n", ["-value = 1234", "+value = 12345"], "`new` is already present at line 2"),
        ("1\n2\n3\n", ["@@", "-3", "+x", "@@", "-1", "+y"], "parts come in the order of the file"),
        ("1\n2\n3\n", ["@@", "-2", "+x", "@@", "-2", "+y"], "from line 3 on"),
        ("1\n2\n3\n", [" 1", "-2", "+x", "@@", " 2", "-3"], "from line 3 on"),
        ("a\n", ["@@ a", "+b"], "has only lines to add: give a line of the file"),
        ("a\n", ["-a", "+a"], "changes nothing"),
        ("a\n", [" a", "+# ... rest of the code unchanged ..."], "placeholder: write all of the code"),
        ("  a\n  b\n", ["-    a", "-    b", "+c"], "have not enough to take away"),
        ("a \na  \n", ["-a", "+b"], "with other spaces at line ends fit 2 times"),
        ("\n\n\n", ["-", "-", "+x"], "fit 2 times"),
        ("x\n", ["- ", "+y"], "not_found"),
        ("start\nwrong\nend\n", [" start", "-middle", " end"], "not_found"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit(text: str, lines: list[str], words: str) -> None:
    """A part that fits nowhere, or in several places, is refused; the words say how to go on."""
    with pytest.raises(ToolError) as caught:
        patched(text, *lines)
    assert words in str(caught.value)


LINES = st.lists(st.text('ab {}\t“"', max_size=4), max_size=12)


@given(LINES, st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_part_changes_its_place_alone(lines: list[str], data: st.DataObject, end: str, last: bool) -> None:  # noqa: FBT001
    """Whatever pass fits, all before and after the old lines stays as it was, and so does the end of the file."""
    assume((last and lines) or (len(lines) > 1 and lines[-1]))
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    new = data.draw(st.lists(st.text("abc", max_size=3), max_size=3))
    text = end.join(lines) + end * last
    try:
        result = patched(text, *(f"-{line}" for line in lines[start:stop]), *(f"+{line}" for line in new))
    except ToolError:
        return
    expected = [*lines[:start], *new, *lines[stop:]]
    made = "".join(line + end for line in expected)
    assert result == (made if last or not text else made.removesuffix(end))


@given(st.text("*@ +-\nabAddFile:EndPatchBegin", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing that a model writes makes the reader fail in another way."""
    for written in (text, patch(text), patch("*** Update File: f", text)):
        try:
            read_patch(written)
        except ToolError as error:
            assert str(error).startswith("bad_patch: ")  # noqa: PT017 - most of it is refused
