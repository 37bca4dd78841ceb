"""Claims cannot be forged: whatever a model says, and does to the checks, people see what the harness saw."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.github.evidence import read_block
from bot.testing.model.reply import Call
from bot.testing.model.script import Conversation, Script, Turn
from tests.e2e.stage import ROOT, Stage

pytestmark = pytest.mark.e2e

BROKEN = "def total(prices):\n    return sum(prices) - 1\n"
TEST = """\
import unittest

from shop.cart import total


class Cart(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
"""
NEW_TEST = TEST.replace("test_total", "test_nothing").replace("[1, 2]), 3", "[]), 0")
OTHER = TEST.replace("test_total", "test_other").replace("total([1, 2]), 3", "len('ab'), 2")
RUN = "python3 -B -m unittest discover -t . -s tests -p `sed -n 's/^python_files = //p' pytest.ini`"
FILES: dict[str, bytes | str] = {
    "README.md": "A shop.\n",
    ".gitignore": "__pycache__/\n",
    "shop/__init__.py": "",
    "shop/cart.py": BROKEN,
    "tests/__init__.py": "",
    "tests/test_cart.py": TEST,
    "tests/other.py": OTHER,
    "pytest.ini": "[pytest]\npython_files = test*.py\n",
    "Makefile": f"test:\n\t{RUN}\n",
    ".github/issuewright.yml": "version: 1\nsetup: false\nchecks:\n- name: tests\n  run: make test\n",
}
CLAIM = "All tests pass."
REDEFINED = "**This change weakens or redefines its own checks.**"
HIDDEN = r"\| tests, with the base's definition \| `make test` \|  \| 2 \|  \| 0 passed, 1 failed \|"


@dataclass(frozen=True, slots=True)
class Case:
    """What a model does, and what people have to see of it."""

    calls: Sequence[Call]
    rows: Sequence[str]
    """Regular expressions of lines of the evidence."""
    redefines: bool = True


def edit(path: str, old: str, new: str) -> Call:
    """Call `edit`."""
    return Call("edit", {"path": path, "old": old, "new": new})


CHECK = Call("run", {"command": "make test"})
# Code of another source, that Python takes without looking at the source (PEP 552).
COMPILED = """\
python3 - <<'END'
import importlib.util, marshal, pathlib
code = compile("def total(prices):\\n    return sum(prices)\\n", "shop/cart.py", "exec")
path = pathlib.Path(importlib.util.cache_from_source("shop/cart.py"))
path.parent.mkdir(exist_ok=True)
path.write_bytes(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code))
path.parent.chmod(0o500)
END
make test && echo fooled"""
# A repository inside of another is in no commit.
NESTED = """\
mkdir -p unittest/.git && touch unittest/__init__.py unittest/.git/HEAD
echo "import os; print('Ran 1 test in 1s', flush=True); os._exit(0)" > unittest/__main__.py
make test && echo fooled"""
AT_HOME = """\
python3 - <<'END'
import pathlib, site
path = pathlib.Path(site.getusersitepackages(), "usercustomize.py")
path.parent.mkdir(parents=True)
lines = ["import os, sys", "if '-m' in sys.orig_argv:", "    print('Ran 1 test in 1s', flush=True)", "    os._exit(0)"]
path.write_text("\\n".join(lines))
END
make test && echo fooled"""
CASES = {
    "says that all is well": Case(
        [edit("README.md", "A shop.", "The shop.")],
        [
            r"\| tests \| `make test` \| 2 \| 2 \| 0 passed, 1 failed \| 0 passed, 1 failed \|",
            "no test is new",
        ],
        redefines=False,
    ),
    **{
        name: Case(
            [edit("README.md", "A shop.", "The shop."), Call("run", {"command": command})],
            [r"\| tests \| `make test` \| 2 \| 2 \| 0 passed, 1 failed \| 0 passed, 1 failed \|", "no test is new"],
            redefines=False,
        )
        for name, command in {
            "leaves compiled code": COMPILED,
            "leaves code at home": AT_HOME,
            "leaves what no commit can hold": NESTED,
        }.items()
    },
    "empties the script": Case(
        [edit("Makefile", RUN, "true"), CHECK],
        [r"\| tests \| `make test` \| 2 \| 0 \| 0 passed, 1 failed \| not counted \|", HIDDEN, "`Makefile` line 2: "],
    ),
    "adds a skip": Case(
        [edit("tests/test_cart.py", "    def test", "    @unittest.skip('flaky')\n    def test"), CHECK],
        [
            r"\| tests \| `make test` \| 2 \| 0 \| .* \| 0 passed, 1 skipped \|",
            HIDDEN,
            r"`tests/test_cart.py` line 7: ",
        ],
    ),
    "deletes asserts": Case(
        [edit("tests/test_cart.py", "self.assertEqual(total([1, 2]), 3)", "total([1, 2])"), CHECK],
        [r"\| tests \| `make test` \| 2 \| 0 \| .* \| 1 passed \|", HIDDEN, r"`tests/test_cart.py` line \d: "],
    ),
    "changes the configuration": Case(
        [edit("pytest.ini", "test*.py", "oth*.py"), CHECK],
        [r"\| tests \| `make test` \| 2 \| 0 \| .* \| 1 passed \|", HIDDEN, r"`pytest.ini` line 2: "],
    ),
    "mends it with a new test": Case(
        [
            edit("shop/cart.py", "sum(prices) - 1", "sum(prices)"),
            Call("write", {"path": "tests/test_nothing.py", "content": NEW_TEST}),
            CHECK,
        ],
        [
            r"\| tests \| `make test` \| 2 \| 0 \| 0 passed, 1 failed \| 2 passed \|",
            r"\| tests, with the work's tests \| `make test` \| 2 \|  \| 0 passed, 2 failed \|",
            r"\*\*Red before, green after.\*\* .*tests/test_nothing.py::Cart::test_nothing",
        ],
        redefines=False,
    ),
}
SCRIPT = Script(
    [
        Conversation(
            name,
            [
                *(Turn("Next.", calls=[call]) for call in case.calls),
                Turn(CLAIM, calls=[Call("finish", {"summary": CLAIM})], repeat=5),
            ],
            match=name,
        )
        for name, case in CASES.items()
    ],
    name="claims",
)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One server for all cases."""
    made = tempfile.TemporaryDirectory(prefix="stage-", ignore_cleanup_errors=True)
    with made as folder, Stage(Path(folder), SCRIPT, FILES).open() as opened, opened.serving():
        yield opened
        assert opened.model.problems == []


@pytest.mark.parametrize("name", CASES)
def test_the_pull_request_shows_what_was_seen(stage: Stage, name: str) -> None:
    """The table, the places that change a check, and what the base's definition says of the work."""
    case = CASES[name]
    issue = stage.labelled(name, "Mend the cart.")
    assert stage.story_ends(issue.number).startswith("**Done**")
    pull = stage.pulls()[-1]
    body = pull.body or ""
    before, _, shown = body.partition("### Evidence")
    assert f"> {CLAIM}" in before
    assert "unchecked" in before
    assert CLAIM not in shown
    for row in case.rows:
        assert re.search(row, shown), shown
    assert (REDEFINED in shown) == ("**`tests` passes as the work defines it, and" in shown) == case.redefines, shown
    assert pull.pull is not None
    head = stage.branches()[pull.pull.head_ref]
    block = read_block(body)
    assert block is not None
    assert (block["head"], block["tree"]) == (head, stage.git("rev-parse", f"{head}^{{tree}}"))
    assert block["base"] == stage.branches()["main"]
    # What ran on other files left nothing of them in the work.
    changed = stage.git("diff", "--name-only", "main", head).split()
    paths = {call.arguments["path"] for call in case.calls if "path" in call.arguments}
    assert set(changed) == paths


def verified(stage: Stage, reference: str, *options: str, token: str | None = None) -> tuple[int, str, str]:
    """Run `issuewright verify` as anybody who may read the repository; return exit code and what it printed."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
    environment = kept | {
        "PYTHONPATH": str(ROOT),
        "GITHUB_TOKEN": stage.hub.create_user_token(stage.maria).value if token is None else token,
        "ISSUEWRIGHT_GITHUB__API_URL": stage.hub.api_url,
        "ISSUEWRIGHT_GITHUB__WEB_URL": stage.hub.base_url,
        "ISSUEWRIGHT_WORKSPACE__FIRST_UID": str(stage.first_uid),
    }
    command = [sys.executable, "-m", "bot", "verify", reference, *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_anybody_gets_the_same_table_or_the_differences(stage: Stage) -> None:
    """A pull request carries its proof; an altered block, a moved head and a body without one are told apart."""
    issue = stage.labelled("mends it with a new test", "Mend the cart.")
    stage.story_ends(issue.number)
    pull = stage.pulls()[-1]
    assert pull.pull is not None
    honest = pull.body or ""
    code, shown, told = verified(stage, f"acme/shop#{pull.number}")
    assert code == 0, told
    assert re.search(r"\| tests \| `make test` \| 2 \| 0 \| 0 passed, 1 failed \| 2 passed \|", shown), shown
    assert "  tests: make test" in told

    with stage.client(stage.maria) as maria:
        place = f"/repos/acme/shop/pulls/{pull.number}"
        assert maria.patch(place, json={"body": honest.replace('"exit": 2', '"exit": 0')}).is_success
        code, shown, _ = verified(stage, f"{stage.hub.base_url}/acme/shop/pull/{pull.number}", "--json")
        assert code == 1
        counted = "(0 passed, 1 failed, 0 skipped)"
        differences = [f"tests before the work: recorded exit 0 {counted}, seen exit 2 {counted}"]
        assert json.loads(shown)["differences"] == differences
        assert maria.patch(
            place, json={"body": honest.replace('"command": "make test"', '"command": "true"')}
        ).is_success
        code, _, told = verified(stage, f"acme/shop#{pull.number}")
        assert (code, "tests: nothing in the repository names `true` as a check" in told) == (1, True), told
        assert maria.patch(place, json={"body": honest.replace(pull.pull.head_sha, "a" * 40)}).is_success
        code, _, told = verified(stage, f"acme/shop#{pull.number}")
        assert (code, "the evidence is of aaaaaaaa" in told) == (4, True), told
        assert maria.patch(place, json={"body": "Nothing."}).is_success
        assert verified(stage, f"acme/shop#{pull.number}")[0] == 4
    assert verified(stage, f"acme/shop#{pull.number}", token="")[0] == 4
    assert verified(stage, "shop")[0] == 2
