"""Story: a dependency gets a new major version, with its lock file and the code that uses it."""

import json

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Script, Turn
from tests.e2e.everyday.registry import archive, integrity, tarball
from tests.e2e.everyday.telling import CONFIG, Files, plan, run, story

ISSUE = ("Update tinypad to its second major version", "With `package-lock.json`, please. Its interface has changed.")


def _manifest(name: str, version: str, **more: object) -> str:
    return json.dumps({"name": name, "version": version, "main": "index.js", **more})


PACKAGES = {
    ("tinypad", "1.0.0"): {
        "package.json": _manifest("tinypad", "1.0.0"),
        "index.js": "module.exports = (text, width) => ' '.repeat(Math.max(0, width - text.length)) + text;\n",
    },
    ("tinypad", "2.1.0"): {
        "package.json": _manifest("tinypad", "2.1.0", dependencies={"tinyspace": "^1.0.0"}),
        "index.js": "const space = require('tinyspace');\n"
        "exports.left = (text, width) => space(width - text.length) + text;\n",
        "README.md": "# tinypad\n\nSince 2.0 the module has names: `require('tinypad').left(text, width)`.\n",
    },
    ("tinyspace", "1.0.3"): {
        "package.json": _manifest("tinyspace", "1.0.3"),
        "index.js": "module.exports = (count) => ' '.repeat(Math.max(0, count));\n",
    },
}
_FIRST = {
    "name": "shop",
    "version": "1.0.0",
    "lockfileVersion": 3,
    "requires": True,
    "packages": {
        "": {"name": "shop", "version": "1.0.0", "dependencies": {"tinypad": "^1.0.0"}},
        "node_modules/tinypad": {
            "version": "1.0.0",
            "resolved": tarball("tinypad", "1.0.0"),
            "integrity": integrity(archive(PACKAGES["tinypad", "1.0.0"])),
        },
    },
}
MANIFEST = '{\n  "name": "shop",\n  "version": "1.0.0",\n  "dependencies": {\n    "tinypad": "^1.0.0"\n  }\n}\n'
INDEX = "const pad = require('tinypad');\n\nexports.price = (text) => pad(text, 8);\n"
CHECK = "node --test"
FILES: Files = {
    CONFIG: f"version: 1\nchecks:\n- name: tests\n  run: {CHECK}\n".encode(),
    "package.json": MANIFEST.encode(),
    "package-lock.json": (json.dumps(_FIRST, indent=2) + "\n").encode(),
    "index.js": INDEX.encode(),
    "test.js": b"const test = require('node:test');\nconst assert = require('node:assert');\n"
    b"test('price', () => assert.equal(require('./index.js').price('9.99'), '    9.99'));\n",
}
LOCKED = {
    "": {"name": "shop", "version": "1.0.0", "dependencies": {"tinypad": "^2.1.0"}},
    "node_modules/tinypad": {
        "version": "2.1.0",
        "resolved": tarball("tinypad", "2.1.0"),
        "integrity": integrity(archive(PACKAGES["tinypad", "2.1.0"])),
        "dependencies": {"tinyspace": "^1.0.0"},
    },
    "node_modules/tinyspace": {
        "version": "1.0.3",
        "resolved": tarball("tinyspace", "1.0.3"),
        "integrity": integrity(archive(PACKAGES["tinyspace", "1.0.3"])),
    },
}
"""What the new lock has to hold, with digests that only the real archives have."""
STEPS = ("See what is used, and what there is", "Update manifest and lock", "Follow the new interface")

SCRIPT: Script = story(
    "lock",
    Turn(
        "I see what is used, and which versions there are.",
        calls=[
            plan(*STEPS, done=0),
            Call("search", {"pattern": "tinypad", "glob": "*.{js,json}"}),
            Call("read", {"path": "package.json"}),
            run("npm view tinypad versions --json"),
        ],
    ),
    Turn(
        "npm writes both files.",
        calls=[run("npm install 'tinypad@^${newest}'"), run(CHECK), plan(*STEPS, done=1)],
        expect=[Condition(tool="search", matches=r"^index\.js$")],
        capture={"newest": r'"(2\.\d+\.\d+)"'},
    ),
    Turn(
        "The tests show the new interface; I look it up.",
        calls=[Call("read", {"path": "node_modules/tinypad/README.md"}), Call("read", {"path": "index.js"})],
        expect=[
            Condition(tool="run", matches="^added 1 package, and changed 1 package"),
            Condition(tool="run", matches="pad is not a function"),
        ],
    ),
    Turn(
        "I follow it.",
        calls=[
            Call(
                "edit",
                {"path": "index.js", "old": "const pad = require('tinypad');", "new": "const pad = ${call}.left;"},
            ),
            Call("run", {"command": f"{CHECK} && npm ls --all"}),
            plan(*STEPS, done=3),
        ],
        capture={"call": r"`(require\('tinypad'\))\.left\("},
    ),
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": "tinypad is 2.1.0, in manifest and lock; the import follows."})],
        expect=[Condition(tool="run", matches=r"tinyspace@1\.0\.3", lacks="pad is not a function")],
    ),
)
