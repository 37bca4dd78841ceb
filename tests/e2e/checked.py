"""Five small projects, one of each ecosystem, whose checks are told from their files; all pass and need no network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.e2e import projects


@dataclass(frozen=True, slots=True)
class Checked:
    """One project with what is found in it."""

    files: Mapping[str, str]
    checks: Sequence[tuple[str, str, str]]
    """Kind, name and command."""
    needs: Sequence[str]
    """Programs."""
    spoil: tuple[str, str, str]
    """A file, a part of it, and what makes its tests fail in that place."""


PYTHON = Checked(
    files={
        "pyproject.toml": "[tool.ruff]\nline-length = 100\n\n[tool.mypy]\nstrict = true\nfiles = ['small']\n",
        "small/__init__.py": "def two() -> int:\n    return 2\n",
        "tests/__init__.py": "",
        "tests/test_small.py": (
            "import unittest\n\nimport small\n\n\nclass Two(unittest.TestCase):\n    def test_two(self):\n"
            "        self.assertEqual(2, small.two())\n"
        ),
    },
    checks=[
        ("lint", "ruff", "ruff check ."),
        ("types", "mypy", "python3 -m mypy"),
        ("tests", "unittest", "python3 -m unittest"),
    ],
    needs=["python3"],
    spoil=("small/__init__.py", "2", "3"),
)
NODE = Checked(
    files={
        "package.json": (
            '{"name": "small", "version": "1.0.0", "private": true, "scripts": {"build": "node --check index.js", '
            '"lint": "node lint.js", "typecheck": "node --check test.js", "test": "node --test"}}\n'
        ),
        "index.js": "exports.two = () => 2;\n",
        "lint.js": "process.exit(require('fs').readFileSync('index.js', 'utf8').includes('\\t') ? 1 : 0);\n",
        "test.js": (
            "const test = require('node:test');\nconst assert = require('node:assert');\n"
            "test('two', () => assert.equal(require('./index').two(), 2));\n"
        ),
    },
    checks=[
        ("build", "npm build", "npm run build"),
        ("lint", "npm lint", "npm run lint"),
        ("types", "npm typecheck", "npm run typecheck"),
        ("tests", "npm test", "CI=true npm run test"),
    ],
    needs=["node", "npm"],
    spoil=("index.js", "2", "3"),
)
GO = Checked(
    files=projects.GO.files,
    checks=[
        ("build", "go build", "go build -o /dev/null ./..."),
        ("lint", "go vet", "go vet ./..."),
        ("tests", "go test", "go test ./..."),
    ],
    needs=["go"],
    spoil=("small.go", "2 *", "3 *"),
)
RUST = Checked(
    files=projects.RUST.files,
    checks=[("build", "cargo build", "cargo build"), ("tests", "cargo test", "cargo test")],
    needs=["cargo", "rustc"],
    spoil=("src/lib.rs", "* 2", "* 3"),
)
JAVA = Checked(
    files=projects.JAVA.files,
    checks=[("build", "gradle build", "gradle testClasses"), ("tests", "gradle test", "gradle test")],
    needs=["java", "javac", "gradle"],
    spoil=("src/main/java/small/Small.java", "return 2", "return 3"),
)
