"""Story: code begins to use another package, which is declared in the same change and not there while it is written."""

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Script, Turn
from tests.e2e.everyday.telling import CONFIG, Files, run, story

ISSUE = ("Greet in capitals", "With `tinyloud`, please; the tests should show it.")
PACKAGES = {
    ("tinyname", "1.0"): "NAME = 'shop'\n",
    ("tinyloud", "2.0"): "def loud(text):\n    return text.upper()\n",
}
APP = b"import tinyname\n\n\ndef greeting():\n    return f'hello {tinyname.NAME}'\n"
TESTS = b"""\
import unittest

from app import greeting


class Greeting(unittest.TestCase):
    def test_it(self):
        self.assertEqual(greeting(), "hello shop")
"""
CHECK = "python3 -m unittest"
FILES: Files = {
    CONFIG: f"version: 1\nchecks:\n- name: tests\n  run: {CHECK}\n".encode(),
    "app.py": APP,
    "test_app.py": TESTS,
    "requirements.txt": b"tinyname==1.0\n",
}
AFTER: Files = FILES | {
    "app.py": APP.replace(b"import tinyname\n", b"import tinyname\nfrom tinyloud import loud\n").replace(
        b"return f'hello {tinyname.NAME}'", b"return loud(f'hello {tinyname.NAME}')"
    ),
    "test_app.py": TESTS.replace(b"hello shop", b"HELLO SHOP"),
    "requirements.txt": b"tinyname==1.0\ntinyloud==2.0\n",
}


def _edit(path: str, old: str, new: str) -> Call:
    return Call("edit", {"path": path, "old": old, "new": new})


SCRIPT: Script = story(
    "declared",
    Turn("I look.", calls=[Call("read", {"path": path}) for path in ("app.py", "test_app.py", "requirements.txt")]),
    Turn(
        "I declare it, use it and test it.",
        calls=[
            _edit("requirements.txt", "tinyname==1.0\n", "tinyname==1.0\ntinyloud==2.0\n"),
            _edit("app.py", "import tinyname\n", "import tinyname\nfrom tinyloud import loud\n"),
            _edit("app.py", "return f'hello {tinyname.NAME}'", "return loud(f'hello {tinyname.NAME}')"),
            _edit("test_app.py", "hello shop", "HELLO SHOP"),
            run(CHECK),
        ],
    ),
    Turn(
        "It is not there while I work; the harness sets it up before its checks.",
        calls=[Call("finish", {"summary": "The greeting is in capitals. I could not try it without `tinyloud`."})],
        expect=[Condition(tool="run", matches="No module named 'tinyloud'")],
    ),
)
