"""What a check's command leads to is a definition of the check, and what takes another's place is told."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.projects.evidence.called import calls_of, leads, told
from bot.projects.evidence.touched import first, touched, unread
from tests.unit.projects.evidence.made import changes

Files = Mapping[str, tuple[str | None, str | None]]

MAKE = """\
PY = python
include rules.mk
all: test
test: prepare
\t$(PY) -m pytest
prepare:
\t./dev/prepare.sh
deploy:
\t./deploy.sh
"""
PACKAGE = """\
{
  "main": "index.js",
  "scripts": {"start": "node index.js", "ok": "npm run -s deep", "deep": "node dev/run.js", "predeep": "sh dev/pre.sh"}
}
"""


def edit(path: str) -> Files:
    """Change a file, whatever it holds."""
    return {path: ("pytest\n", "true\n")}


CALLED: Mapping[str, tuple[Files, Sequence[str], str]] = {
    "a script": (edit("run.sh"), ["./run.sh"], "script"),
    "a script of a name that says nothing": (edit("dev/all.py"), ["python3 dev/all.py --fast"], "script"),
    "a program without an ending": (edit("bin/prove"), ["timeout 60 ./bin/prove"], "script"),
    "a script of node": (edit("run.js"), ["CI=true node run.js"], "script"),
    "a script in a folder that is gone to": (edit("dev/run.sh"), ["cd dev && sh run.sh"], "script"),
    "a module": (edit("tools/prove.py"), ["python -m tools.prove"], "script"),
    "a package": (edit("tools/prove/__main__.py"), ["python -m tools.prove"], "script"),
    "a variable": ({"Makefile": (MAKE, MAKE.replace("PY = python", "PY = true"))}, ["make test"], "script"),
    "what a target needs": (
        {"Makefile": (MAKE, MAKE.replace("\t./dev/prepare.sh", "\ttrue"))},
        ["make -C . test"],
        "script",
    ),
    "a shell": ({"Makefile": (MAKE, f"SHELL := /bin/true\n{MAKE}")}, ["make test"], "ignored failure"),
    "a shell, whoever calls make": ({"Makefile": (MAKE, f"SHELL := /bin/true\n{MAKE}")}, [], "configuration"),
    "flags of make": ({"Makefile": (MAKE, f"MAKEFLAGS += -n\n{MAKE}")}, ["make"], "ignored failure"),
    "what a Makefile includes": (edit("rules.mk"), ["make test", told("Makefile", MAKE, ["make test"])], "script"),
    "a script of a target": (edit("dev/prepare.sh"), ["make test", told("Makefile", MAKE, ["make test"])], "script"),
    "a script of a changed Makefile": (
        {"Makefile": (MAKE, MAKE + "more:\n"), **edit("dev/prepare.sh")},
        ["make test"],
        "script",
    ),
    "a script of npm": (
        {"package.json": (PACKAGE, PACKAGE.replace("node dev/run.js", "true"))},
        ["npm run ok"],
        "script",
    ),
    "a file of a script of npm": (
        edit("dev/run.js"),
        ["npm run ok", told("package.json", PACKAGE, ["npm run ok"])],
        "script",
    ),
    "a script before one": (
        edit("dev/pre.sh"),
        ["npm run ok", told("package.json", PACKAGE, ["npm run ok"])],
        "script",
    ),
    "a script of a script": (
        {"a.sh": ("sh dev/b.sh\n", "sh dev/b.sh # \n"), **edit("dev/b.sh")},
        ["sh a.sh"],
        "script",
    ),
    "justfile": (edit("justfile"), ["just test"], "script"),
    "pytest.py": ({"pytest.py": (None, "print('500 passed')\n")}, ["python -m pytest"], "configuration"),
    "a module of the library": ({"argparse.py": (None, "a\n")}, ["python -m pytest"], "configuration"),
    "unittest": ({"unittest/__init__.py": (None, "")}, ["python -m unittest"], "configuration"),
    "usercustomize": ({"usercustomize.py": (None, "a\n")}, ["pytest"], "configuration"),
    "in a folder of sources": ({"src/sitecustomize.py": (None, "a\n")}, ["pytest"], "configuration"),
    "plugins": ({"a.egg-info/entry_points.txt": (None, "[pytest11]\na = a\n")}, ["pytest"], "configuration"),
    "makefile": ({"makefile": (None, "test:\n\ttrue\n")}, ["make test"], "configuration"),
    "GNUmakefile": ({"GNUmakefile": (None, "test:\n\ttrue\n")}, [], "configuration"),
    "pytest.toml": ({"pytest.toml": (None, "[pytest]\naddopts = ['-x']\n")}, [], "configuration"),
    ".pytest.toml": ({".pytest.toml": (None, "[pytest]\naddopts = ['-x']\n")}, [], "configuration"),
    "tox.toml": ({"tox.toml": (None, "[env_run_base]\ncommands = []\n")}, [], "configuration"),
    "vitest": ({"vitest.config.ts": (None, "export default {test: {include: []}}\n")}, [], "configuration"),
    ".npmrc": ({".npmrc": (None, "script-shell=/bin/true\n")}, [], "configuration"),
    "cargo": ({".cargo/config.toml": (None, '[target.x]\nrunner = "true"\n')}, [], "configuration"),
    "maven": ({".mvn/maven.config": (None, "-DskipTests\n")}, [], "skip"),
    "jvm": ({".mvn/jvm.config": (None, "-Dx\n")}, [], "configuration"),
    "gradle": ({"gradle.properties": ("a=1\n", "a=1\nskipTests=true\n")}, [], "configuration"),
    "gradle's start": ({"gradle/init.d/a.gradle": (None, "gradle.taskGraph\n")}, [], "configuration"),
    "go.work": ({"go.work": (None, "go 1.22\nuse ./other\n")}, [], "configuration"),
    "flags of go": ({".env": (None, "GOFLAGS=-run=None\n")}, [], "configuration"),
    "options of pytest": (
        {"tests/__init__.py": ("", "import os\nos.environ['PYTEST_ADDOPTS'] = '--co'\n")},
        [],
        "configuration",
    ),
    "options of pytest anywhere": ({"small.py": ("", "putenv('PYTEST_ADDOPTS', '-x')\n")}, [], "configuration"),
}


@pytest.mark.parametrize("name", CALLED)
def test_what_a_check_comes_to_is_told(name: str) -> None:
    """The finding names the file."""
    files, commands, kind = CALLED[name]
    found = touched(changes(files), commands)
    assert [one for one in found if one.path == [*files][-1] and one.kind == kind], found


HONEST: Mapping[str, tuple[Files, Sequence[str]]] = {
    "a test that is named": ({"tests/test_a.py": ("a = 1\n", "a = 2\n")}, ["pytest tests/test_a.py"]),
    "what is only read": (edit("small.py"), ["mypy small.py && ruff check small.py", "cc -o a small.py"]),
    "a list of packages": (edit("requirements.txt"), ["pip install -r requirements.txt && pytest"]),
    "a document": (edit("README.md"), ["python -m doctest README.md"]),
    "another script": (edit("deploy.sh"), ["make test", told("Makefile", MAKE, ["make test"])]),
    "a program of a package": (edit("index.js"), ["npm test", told("package.json", PACKAGE, ["npm test"])]),
    "a file of the same name elsewhere": (edit("docs/run.sh"), ["./run.sh"]),
    "the first Makefile": ({"Makefile": (None, MAKE)}, ["make test"]),
    "a module of a package": ({"small/types.py": (None, "a\n"), "small/pytest.py": (None, "a\n")}, ["pytest"]),
    "a module that was there": ({"argparse.py": ("a\n", "b\n")}, ["pytest"]),
    "a makefile without make": ({"sub/makefile": (None, "a:\n")}, ["pytest"]),
    "a registry": ({".npmrc": (None, "registry=https://npm.example.com\n")}, ["npm test"]),
    "a version": ({"gradle.properties": ("version=1\n", "version=2\n")}, ["./gradlew test"]),
    "a project's file that is named": (
        {"pyproject.toml": ('[project]\nversion = "1"\n', '[project]\nversion = "2"\n')},
        ["ruff check --config pyproject.toml", "pytest -c pyproject.toml"],
    ),
    "options in words": ({"docs/a.md": (None, "Set PYTEST_ADDOPTS.\n")}, ["pytest"]),
    "options that are taken away": (
        {"tests/test_a.py": ("", "def test_a(m):\n    m.delenv('PYTEST_ADDOPTS')\n    assert a\n")},
        ["pytest"],
    ),
    "code": (edit("small/add.py"), ["python -m pytest -q", "make test", told("Makefile", MAKE, ["make test"])]),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_a_check_only_tests_is_not_told(name: str) -> None:
    """Code, tests and documents are no definitions, also where a command names them."""
    files, commands = HONEST[name]
    assert touched(changes(files), commands) == []


def test_leads_name_what_may_be_looked_up() -> None:
    """Files of programs, scripts, modules, and scripts beside the one that names them."""
    assert leads("make test") == ["GNUmakefile", "makefile", "Makefile", "make"]
    assert "dev/lib.sh" in leads('. "$(dirname "$0")/lib.sh"\n', "dev")
    assert {"tools/prove.py", "tools/prove/__main__.py"} <= set(leads("python -m tools.prove"))
    assert "tests/test_a.py" not in leads("pytest tests/test_a.py")


def test_what_was_there_is_read_before_what_is_new() -> None:
    """Hundreds of new tests keep no weakened one, and no new definition, from being read."""
    new = {f"tests/test_a{number:03}.py" for number in range(400)} | {"pytest.py"}
    paths = sorted({*new, "tests/test_zz.py", "small.py", "Makefile", "run.sh"})
    order = first(paths, new, ["./run.sh"])
    assert order[:4] == ["Makefile", "run.sh", "tests/test_zz.py", "pytest.py"]
    assert order[-1] == "small.py"
    assert sorted(order) == paths


def test_what_was_not_read_is_counted() -> None:
    """Beyond the limit a finding says how many files there are."""
    assert unread(["a", "b"], 2) == []
    [one] = unread(["a", "b", "c"], 1)
    assert (one.path, one.kind) == ("b", "unread")
    assert one.words.startswith("2 of 3 files")


@given(st.lists(st.text() | st.sampled_from([MAKE, PACKAGE, "make", "-m a.b", "cd a; ./b.sh"]), max_size=4), st.text())
def test_no_text_brings_it_down(texts: list[str], path: str) -> None:
    """Whatever the commands say."""
    calls_of(texts).call(path)
    for text in texts:
        leads(text, path)
        for name in (path, "Makefile", "package.json"):
            told(name, text, texts)
