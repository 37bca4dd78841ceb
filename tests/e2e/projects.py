"""Five small projects, one of each ecosystem, with a test that needs what set-up brings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Name = Literal["python", "node", "go", "rust", "java"]


@dataclass(frozen=True, slots=True)
class Project:
    """One project."""

    files: Mapping[str, str]
    check: str
    """Runs its tests."""
    needs: tuple[str, ...]
    """Programs."""
    proof: str
    """Fails unless what set-up made is there."""
    network: str = ""
    """The preset without which it cannot be set up; empty where Debian's packages are enough."""


PYTHON = Project(
    files={
        "pyproject.toml": (
            '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n\n'
            '[project]\nname = "small"\nversion = "0.1"\ndependencies = ["iniconfig"]\n\n'
            '[project.optional-dependencies]\ntest = ["pytest"]\n\n'
            '[tool.setuptools]\npackages = ["small"]\n'
        ),
        "small/__init__.py": (
            "import iniconfig\n\n\ndef two(text):\n    return int(iniconfig.IniConfig('x', data=text)['a']['b'])\n"
        ),
        "test_small.py": "import small\n\n\ndef test_two():\n    assert small.two('[a]\\nb=2') == 2\n",
    },
    check="python -m pytest -q -p no:cacheprovider",
    needs=("python3",),
    # The package has to come from this very tree, not from the one in which the environment was made.
    proof='cd / && python -c "import iniconfig, small; print(small.__file__)"',
    network="python",
)
NODE = Project(
    files={
        "package.json": '{"name": "small", "version": "1.0.0", "dependencies": {"dep": "file:./dep"}}\n',
        "package-lock.json": (
            '{"name": "small", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {\n'
            '  "": {"name": "small", "version": "1.0.0", "dependencies": {"dep": "file:./dep"}},\n'
            '  "dep": {"version": "1.0.0"},\n'
            '  "node_modules/dep": {"resolved": "dep", "link": true}}}\n'
        ),
        "dep/package.json": '{"name": "dep", "version": "1.0.0", "main": "index.js"}\n',
        "dep/index.js": "exports.two = () => 2;\n",
        "test.js": (
            "const test = require('node:test');\nconst assert = require('node:assert');\n"
            "test('two', () => assert.equal(require('dep').two(), 2));\n"
        ),
    },
    check="node --test",
    needs=("node", "npm"),
    proof="node -e \"console.log(require('dep').two())\"",
)
NODE_REGISTRY = Project(
    files={
        "package.json": '{"name": "small", "version": "1.0.0", "dependencies": {"ms": "2.1.3"}}\n',
        "test.js": (
            "const test = require('node:test');\nconst assert = require('node:assert');\n"
            "test('ms', () => assert.equal(require('ms')('2s'), 2000));\n"
        ),
    },
    check="node --test",
    needs=("node", "npm"),
    proof="node -e \"require('ms')\"",
    network="node",
)
GO = Project(
    files={
        "go.mod": "module example.org/small\n\ngo 1.19\n\nrequire example.org/dep v1.0.0\n",
        "vendor/modules.txt": "# example.org/dep v1.0.0\n## explicit; go 1.19\nexample.org/dep\n",
        "vendor/example.org/dep/dep.go": "package dep\n\nfunc Two() int { return 2 }\n",
        "small.go": 'package small\n\nimport "example.org/dep"\n\nfunc Four() int { return 2 * dep.Two() }\n',
        "small_test.go": (
            'package small\n\nimport "testing"\n\nfunc TestFour(t *testing.T) {\n'
            "\tif Four() != 4 {\n\t\tt.Fatal(Four())\n\t}\n}\n"
        ),
        # A vendored project needs no set-up; this one has a command of its own, so that there is something to keep.
        ".github/issuewright.yml": 'setup:\n- go build -o "$ISSUEWRIGHT_SHARED/go/bin/known" ./cmd\n',
        "cmd/main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("known") }\n',
    },
    check="go test ./...",
    needs=("go",),
    proof="known",
)
RUST = Project(
    files={
        "Cargo.toml": (
            '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\ndep = { path = "dep" }\n'
        ),
        "Cargo.lock": (
            'version = 3\n\n[[package]]\nname = "dep"\nversion = "0.1.0"\n\n'
            '[[package]]\nname = "small"\nversion = "0.1.0"\ndependencies = [\n "dep",\n]\n'
        ),
        ".gitignore": "target/\n",
        "dep/Cargo.toml": '[package]\nname = "dep"\nversion = "0.1.0"\nedition = "2021"\n',
        "dep/src/lib.rs": "pub fn two() -> i32 {\n    2\n}\n",
        "src/lib.rs": (
            "pub fn four() -> i32 {\n    dep::two() * 2\n}\n\n#[test]\nfn is_four() {\n    assert_eq!(four(), 4);\n}\n"
        ),
    },
    check="cargo test --locked --quiet",
    needs=("cargo", "rustc"),
    proof='test -e "$CARGO_HOME/.package-cache"',
)
JAVA = Project(
    files={
        "build.gradle": (
            "apply plugin: 'java'\nrepositories { maven { url 'file:///usr/share/maven-repo' } }\n"
            "dependencies { testCompile 'junit:junit:4.13.2' }\n"
        ),
        ".gitignore": "build/\n",
        "src/main/java/small/Small.java": (
            "package small;\n\npublic class Small {\n    public static int two() {\n        return 2;\n    }\n}\n"
        ),
        "src/test/java/small/SmallTest.java": (
            "package small;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\n"
            "public class SmallTest {\n    @Test\n    public void isTwo() {\n"
            "        assertEquals(2, Small.two());\n    }\n}\n"
        ),
    },
    check="gradle --quiet test",
    needs=("java", "javac", "gradle"),
    proof='test -d "$GRADLE_USER_HOME/caches"',
)
