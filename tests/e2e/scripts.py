"""What the scripted model says in the stories, and the project it says it about."""

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn

CONFIG = """\
version: 1
checks:
  - name: greeting
    run: sh check.sh
"""
FILES: dict[str, bytes | str] = {
    "greet.txt": "Helo, world\n",
    "check.sh": "grep -q Hello greet.txt\n",
    ".github/issuewright.yml": CONFIG,
}

FIRST = (
    Turn("I mend it.", calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})]),
    Turn(
        "I look at it.",
        calls=[Call("run", {"command": "sh check.sh; cat greet.txt"})],
        expect=[Condition(tool="edit", matches="edited greet.txt")],
    ),
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": "The greeting was misspelt."})],
        expect=[Condition(tool="run", matches="Hello, world")],
    ),
)
SECOND = (
    Turn("Again.", calls=[Call("read", {"path": "greet.txt"})]),
    Turn(
        "I add it.",
        calls=[
            Call("edit", {"path": "greet.txt", "old": "world", "new": "whole world"}),
            Call("run", {"command": "sh check.sh"}),
        ],
        expect=[Condition(tool="read", matches="Hello, world")],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "The whole world is greeted."})]),
)
GREETING = Script(
    [
        Conversation("fix", FIRST, match="greeting is wrong"),
        Conversation("more", SECOND, match_last="whole world"),
        Conversation("a person's", SECOND, match="Greet the whole world"),
    ],
    name="greeting",
)
