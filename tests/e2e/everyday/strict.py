"""Story: `'use strict'` into every JavaScript file."""

import re

from bot.testing.model.reply import Call, Reply
from bot.testing.model.request import Request
from bot.testing.model.script import Script, Turn
from tests.e2e.everyday.telling import AT_ONCE, CONFIG, Files, at, plan, results, run, say, story

ISSUE = (
    "Put 'use strict' into every JavaScript file",
    "Each `.js` file should begin with the directive, behind its shebang and its header comment. Change nothing else.",
)
DIRECTIVE = re.compile(r"""(['"])use strict\1;?""")
_LEAD = re.compile(r"\A(?:#![^\n]*\n)?(?:\s|//[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
"""What stands before the first statement: a shebang, blank lines and comments."""
CHECK = """\
import pathlib, re, sys
bad = []
for path in sorted(pathlib.Path(".").rglob("*.js")):
    text = path.read_bytes().decode("latin-1").replace("\\xef\\xbb\\xbf", "", 1)
    lead = re.match(r"(?:#![^\\n]*\\n)?(?:\\s|//[^\\n]*\\n|/\\*.*?\\*/)*", text, re.DOTALL)
    if not re.match("(['\\"])use strict\\\\1", text[lead.end():]):
        bad.append(str(path))
print("without the directive:", *bad or ["none"])
sys.exit(len(bad) > 0)
"""
FILES: Files = {
    CONFIG: b"version: 1\nsetup: false\nchecks:\n- name: strict\n  run: python3 check.py\n",
    "check.py": CHECK.encode(),
    "README.md": b"# Shop\n\nSome scripts, no `use strict` yet.\n",
    "package.json": b'{"name": "shop", "version": "1.0.0"}\n',
    "src/plain.js": b"const one = 1;\n\nmodule.exports = one;\n",
    "src/bom.js": b"\xef\xbb\xbfconst two = 2;\nmodule.exports = two;\n",
    "src/windows.js": b"const three = 3;\r\n\r\nmodule.exports = three;\r\n",
    "src/bom-windows.js": b"\xef\xbb\xbf// Three more.\r\nlet more = 3;\r\n",
    "src/header.js": b"/*\n * Copyright of somebody.\n */\n\nconst four = 4;\n",
    "src/already.js": b"'use strict';\n\nconst five = 5;\n",
    "src/already-header.js": b'// A note.\n"use strict";\nconst six = 6;\n',
    "src/late.js": b"function f() {\n  'use strict';\n  return 7;\n}\n",
    "src/mixed.js": b"const eight = 8;\r\nconst nine = 9;\nconst ten = 10;\n",
    "src/no-newline.js": b"module.exports = 11;",
    "src/empty.js": b"",
    "src/blank.js": b"\n\nlet twelve = 12;\n",
    "src/long.js": b"const table = [" + b"1, " * 4000 + b"0];\n",
    "src/latin.js": b"const caf\xe9 = 13;\n",
    "src/na\u00efve name.js": "const naïve = 14;\n".encode(),
    "bin/tool.js": b"#!/usr/bin/env node\nconsole.log('tool');\n",
    "bin/header.js": b"#!/usr/bin/env node\n// A tool.\nconsole.log('header');\n",
    "src/types.d.ts": b"declare const one: number;\n",
    "src/module.mjs": b"export const one = 1;\n",
    "src/data.json": b"[1]\n",
    "docs/js.txt": b"const x = 1;\n",
}
EXECUTABLE = ("bin/tool.js", "bin/header.js", "src/windows.js")
BY_COMMAND = "src/latin.js"
"""A file that no file tool can edit as text."""
COMMAND = rf"sed -i '1i '\''use strict'\'';\n' {BY_COMMAND}"
CHECKED = "python3 check.py"
STEPS = ("Look which files there are", "Put the directive in", "Check")


def _work(request: Request) -> Reply:
    """Read what `list` named, edit what was read, and do by a command what a tool refused; so many calls at a time."""
    ((_, listed),) = results(request, "list")
    paths, read, edited = listed.text.splitlines(), at(request, "read"), at(request, "edit")
    if unread := [path for path in paths if path not in read]:
        return say("I read.", *[Call("read", {"path": path, "limit": 20}) for path in unread[:AT_ONCE]])
    edits = [call for path in paths if path not in edited and (call := _one(path, read[path].text))]
    if edits:
        return say("I put it in.", plan(*STEPS, done=1), *edits[: AT_ONCE - 1])
    refused = {path: result.text for path, result in edited.items() if result.is_error}
    commands = at(request, "run", "command")
    if not commands:
        assert list(refused) == [BY_COMMAND], refused
        assert "use a command" in refused[BY_COMMAND], refused
        return say("That one needs a command.", run(COMMAND), run(CHECKED), plan(*STEPS, done=2))
    assert "without the directive: none" in commands[CHECKED].text, commands
    return say("Done.", Call("finish", {"summary": "Every .js file is strict; two were already."}))


def _one(path: str, shown: str) -> Call | None:
    notes, _, text = shown.partition("\n")
    if shown.startswith("(empty)"):
        return Call("edit", {"path": path, "old": "", "new": "'use strict';\n"})
    assert notes.startswith("lines 1–"), shown[:200]  # noqa: RUF001 - the tool's words
    found = _LEAD.match(text + "\n")
    assert found is not None
    rest = text[found.end() :]
    if DIRECTIVE.match(rest):
        return None
    old = rest.splitlines()[0]
    if cut := re.search(r" \[… \d+ more characters in this line …\]\Z", old):
        # Only the beginning of the line is known, and enough.
        old = old[: cut.start()][:200]
    return Call("edit", {"path": path, "old": old, "new": f"'use strict';\n\n{old}"})


SCRIPT: Script = story(
    "strict",
    Turn(
        "I look which files there are.",
        calls=[
            plan(*STEPS, done=0),
            Call("list", {"pattern": "*.js"}),
            Call("search", {"pattern": "use strict", "glob": "*.js"}),
        ],
    ),
    *[_work] * 12,
)


def wanted(path: str, data: bytes) -> bytes:
    """Say what becomes of a file, in another way than the script does it: the directive and a blank line go in."""
    if not path.endswith(".js") or path in {"src/already.js", "src/already-header.js"}:
        return data
    if not data:
        return b"'use strict';\n"
    place = {
        "src/bom.js": 3, "src/bom-windows.js": data.find(b"let"), "src/header.js": data.find(b"const"),
        "src/blank.js": 2, "bin/tool.js": data.find(b"console"), "bin/header.js": data.find(b"console"),
    }.get(path, 0)  # fmt: skip
    end = b"\r\n" if "windows" in path or path == "src/mixed.js" else b"\n"
    return data[:place] + b"'use strict';" + end + end + data[place:]
