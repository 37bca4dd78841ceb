"""Bash commands are read into what bash would run."""

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.shell import MAX_BYTES, Script, parse
from bot.agent.wrappers import UNKNOWN, Command, Redirection, Word

PIECES = ["a", "b", " ", "  ", "'", '"', "\\", "$", "\n", "\t", "#", "!", "{", "}", ",", "~", "=", "-", "x=1", ";", "&"]
PIECES += ["|", "(", ")", "<", ">", "2", "é", "*", "?", "[", "]", "`", "..", "$|", "\\\n", "^", "%", "@", "+", ":", "/"]
"""What words are made of, and what ends them."""
SCRIPTS = ["p a", "q b", "r", " ", "\n", ";", "&&", "||", "|", "(", ")", "{ ", " ;}", "'", '"', "\\", "#", "! ", ">f "]
SCRIPTS += ["2>&1", "<<'E'\n", "\nE\n", "<<E\n", "x=1 ", "x=1;", "if p;then ", "fi", "&", "command ", "env ", "`", "$("]
SCRIPTS += ["timeout 1 ", "eval ", "<&- ", ">&2", "\\\n", "c", " -", "\\ ", "\\\t"]
"""What scripts are made of; `p`, `q` and `r` are functions that tell how they were called."""


def texts(command: Command) -> tuple[str, ...]:
    """The words of a command."""
    return tuple(word.text for word in command.words)


def only(text: str) -> Command:
    """The one command of a script that is understood."""
    script = parse(text)
    assert script.unread is None
    assert len(script.commands) == 1
    return script.commands[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la src", ("ls", "-la", "src")),
        (r"\rm 'a b' \"c\" d\ e", ("rm", "a b", '"c"', "d e")),
        ("r'm' -\"rf\" x", ("rm", "-rf", "x")),
        (r'echo "a \"b\" \$c \d"', ("echo", r'a "b" $c \d')),
        ('grep "^a$" "b$|c" b', ("grep", "^a$", "b$|c", "b")),
        ("echo '' \"\" 12", ("echo", "", "", "12")),
        ("echo a#b # rm c", ("echo", "a#b")),
        ("ls \\\n -l", ("ls", "-l")),
        ("find . -name {} -print", ("find", ".", "-name", "{}", "-print")),
        ("a -I{} {}/b", ("a", "-I{}", "{}/b")),
        ("ls > a b c", ("ls", "b", "c")),
        ("cat <<'E' -n\n$(rm a)\nE", ("cat", "-n")),
    ],
)
def test_words_are_read_as_bash_reads_them(text: str, words: tuple[str, ...]) -> None:
    """Quotes and what is escaped are gone; what stands behind a redirection is no other target."""
    assert texts(only(text)) == words


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a; b && c || d | e & f", ["a", "b", "c", "d", "e", "f"]),
        ("a\nb", ["a", "b"]),
        ("(a; { b; }); ! c", ["a", "b", "c"]),
        (" && ".join("a" * 500), ["a"] * 500),
        ("timeout -k 1 5 nice -n 3 env -u Y X=1 a", ["a"]),
        ("sh -c 'a; bash -lc \"b c\"'", ["a", "b c"]),
        ("eval a 'b;' c", ["a b", "c"]),
        ("command a; command -v a", ["a", "command -v a"]),
        ("a | xargs -0 -n 1 b c", ["a", "b c "]),
        ("sudo -u x a", ["sudo -u x a", "a"]),
        ("/x/env a", ["/x/env a", "a"]),
        (r"find . -exec a {} \; -execdir b c +", [r"a ", "b c", "find . -exec a {} ; -execdir b c +"]),
        ("coproc builtin a", ["a"]),
        ("env -S 'a b'", ["env -S a b"]),
        ("env", ["env"]),
        ("bash a.sh", ["bash a.sh"]),
        ("zsh -c a", ["zsh -c a"]),
        ("# a", []),
        ("", []),
    ],
)
def test_commands_come_out_of_lists_and_wrappers(text: str, commands: list[str]) -> None:
    """Each simple command stands alone; a wrapper that is not known in this form is a command of its own."""
    script = parse(text)
    assert script.unread is None
    assert [" ".join(texts(command)) for command in script.commands] == commands


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("echo $(rm x)", "rm x"),
        ('echo "a `rm x` b"', "rm x"),
        ("echo ${X:-$(rm x)}", "rm x"),
        ("echo $(( $(rm x) ))", "rm x"),
        ("cat <(rm x)", "rm x"),
        ("if a; then rm x; fi", "rm x"),
        ("for i in 1 2; do rm x; done", "rm x"),
        ("ls() { rm x; }; ls", "rm x"),
        ("cat <<E\n$(rm x)\nE", "rm x"),
        ("X=$(rm x)", "rm x"),
        ('[ "$(rm x)" ]', "rm x"),
        ("echo $'a' ; rm x", "rm x"),
        ("cat <<< $(rm x)", "rm x"),
    ],
)
def test_what_is_not_understood_is_noted_and_its_commands_are_listed(text: str, inside: str) -> None:
    """A rule that forbids sees through what a rule that allows does not trust."""
    script = parse(text)
    assert script.unread is not None
    assert any(inside in " ".join(texts(command)) for command in script.commands)


DOUBTS = [
    "rm$IFS-rf x",
    "{rm,-rf,x}",
    "l{s,}",
    "$x",
    "a $1",
    "ls \u00a0x",
    "ls\u200b",
    "ls\r",
    "l\\\ns",
    "a 'b",
    "a\0b",
]
DOUBTS += ["bash -c $x", "eval " * 9 + "a", "env " * 40 + "a", "(" * 500, "a \ud800", "[[ -v a ]]", "export A=b"]
DOUBTS += ["a " * MAX_BYTES, "$(" * 300 + "a" + ")" * 300]


@pytest.mark.parametrize("text", DOUBTS)
def test_doubts_are_noted(text: str) -> None:
    """Expansions, what cannot be seen, what is no bash, and too much of anything."""
    assert parse(text).unread is not None


def test_the_beginning_of_what_is_too_long_is_read() -> None:
    """There stands what a long here-document is for."""
    script = parse("cat > a <<'E'\n" + "b\n" * MAX_BYTES + "E")
    assert script.unread is not None
    assert Redirection(">", Word("a")) in script.commands[0].redirections


def test_words_that_names_of_files_become_are_marked() -> None:
    """A pattern is no plain word, unless it is quoted; braces and variables are anything."""
    assert only("ls *.py '*' \\? a[bc]").words == (
        Word("ls"),
        Word("*.py", "pattern"),
        Word("*"),
        Word("?"),
        Word("a[bc]", "pattern"),
    )
    assert parse("ls {a,b} $x").commands[0].words[1:] == (Word("{a,b}", "unknown"), Word("$x", "unknown"))
    assert only("xargs ls").words == (Word("ls"), UNKNOWN)


def test_streams_and_variables_belong_to_their_commands() -> None:
    """Also those of groups and wrappers; a copy of a stream is no file."""
    assert only("X=1 Y=2 a 2>&1 >b <c") == Command(
        (Word("a"),), ("X", "Y"), (Redirection(">", Word("b")), Redirection("<", Word("c")))
    )
    script = parse("(a; b) >> c")
    assert [one.redirections for one in script.commands] == [(Redirection(">>", Word("c")),)] * 2
    assert only("X=1 sh -c 'a > b' > c") == Command(
        (Word("a"),), ("X",), (Redirection(">", Word("b")), Redirection(">", Word("c")))
    )
    assert [one.target.text for one in only("a &> b >& c >| d").redirections if one.writes] == ["b", "c", "d"]
    assert only("> a") == Command((), (), (Redirection(">", Word("a")),))
    assert only("A=1") == Command((), ("A",))


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES + SCRIPTS), max_size=40).map("".join)))
def test_any_text_is_read(text: str) -> None:
    """Nothing raises, and the same text reads the same."""
    assert isinstance(parse(text), Script)
    assert parse(text) == parse(text)


def made(seed: int, pieces: list[str], number: int) -> list[str]:
    """Texts put together by chance, always the same ones."""
    chance = random.Random(seed)
    return ["".join(chance.choices(pieces, k=chance.randint(1, 8))) for _ in range(number)]


def bash(script: str, folder: Path) -> list[tuple[str, ...]]:
    """Run a script in bash; how `p`, `q` and `r` were called, which succeed or, the second time, fail."""
    calls: list[tuple[str, ...]] = []
    log = folder / "log"
    for code in "01":
        functions = "\n".join(f"{name}() {{ printf '%s\\0' {name} \"$@\" END >&9; return {code}; }}" for name in "pqr")
        log.write_bytes(b"")
        subprocess.run(
            ["/bin/bash", "-c", f"{functions}\nexec 9>>log\n{script}"],
            cwd=folder,
            env={"PATH": "/nonexistent", "HOME": "~"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        told = log.read_bytes().split(b"END\0")[:-1]
        calls += [tuple(word.decode() for word in call.split(b"\0")[:-1]) for call in told]
    return calls


def test_bash_runs_nothing_else(tmp_path: Path) -> None:
    """Of what is understood, bash itself calls only commands that are listed, and with just these words."""
    texts_ = [f"p {text}" for text in made(1, PIECES, 1000)] + made(2, SCRIPTS, 1000)
    seen = 0
    for text in texts_:
        script = parse(text)
        if script.unread is not None:
            continue
        listed = {texts(command) for command in script.commands if all(word.kind == "plain" for word in command.words)}
        loose = {command.words[0].text for command in script.commands if texts(command) not in listed}
        for call in bash(text, tmp_path):
            seen += 1
            assert call in listed or call[0] in loose, text
    assert seen > 300
