"""What people ask for every day, done through the real tools on the real stage, from the label to the pull request."""

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.sandbox.choose import choose
from tests.e2e.everyday import declared, docs, lock, rename, strict, web
from tests.e2e.everyday.registry import npm_registry, python_registry
from tests.e2e.everyday.telling import Blob, at_terminal, checked, told
from tests.e2e.test_ecosystems import PATH, lacking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_every_javascript_file_becomes_strict_and_nothing_else_changes(folder: Path) -> None:
    """Behind shebang, byte order mark and header, with each file's own line ends and mode; once, and nowhere twice."""
    with told(folder, strict.SCRIPT, strict.FILES, strict.ISSUE, executable=strict.EXECUTABLE) as end:
        assert {path: blob.data for path, blob in end.after.items()} == {
            path: strict.wanted(path, data) for path, data in strict.FILES.items()
        }
        for path, blob in end.after.items():
            assert blob.mode == ("100755" if path in strict.EXECUTABLE else "100644"), path
            if path.endswith(".js"):
                assert len(strict.DIRECTIVE.findall(blob.data.decode("latin-1"))) == 1 + (path == "src/late.js"), path
        assert checked(end.body, "strict") == ("1", "0")


def needs_bubblewrap() -> None:
    """Only there a command can listen."""
    try:
        uid = 200_000 + os.getpid() % 30_000 * 65 if os.geteuid() == 0 else None
        asyncio.run(choose("bubblewrap", "bubblewrap", uid=uid, allowed_none=False))
    except OperatorError as error:
        lacking(str(error))


@pytest.mark.parametrize("network", [True, False], ids=["network", "no network"])
def test_a_web_server_whose_dependency_is_missing(folder: Path, *, network: bool) -> None:
    """With the index it is installed and the server is asked; without, the result names the setting, and so people."""
    needs_bubblewrap()
    index = python_registry(folder / "registry", web.PACKAGES)
    reach = {"ISSUEWRIGHT_SANDBOX__NETWORK": '["python"]'} if network else {}
    kind = {"ISSUEWRIGHT_SANDBOX__KIND": "bubblewrap"}
    with told(folder, web.SCRIPT, web.FILES, web.ISSUE, **index, **reach, **kind) as end:
        assert {path: blob.data for path, blob in end.after.items()} == web.AFTER
        assert checked(end.body, "compiles") == ("0", "0")
        assert (web.TRIED in end.body) is network
        assert ("`sandbox.network` would have to name" in end.body) is not network
        assert ("| `~/venv/bin/python app.py 8765 & curl" in end.body) is network


def test_a_dependency_is_added_with_the_code_that_uses_it(folder: Path) -> None:
    """The checks after the work find it, at once and without the model's help; reviewers read why."""
    index = python_registry(folder / "registry", declared.PACKAGES)
    with told(folder, declared.SCRIPT, declared.FILES, declared.ISSUE, **index) as end:
        assert {path: blob.data for path, blob in end.after.items()} == declared.AFTER
        assert checked(end.body, "tests") == ("0", "0")
        assert "**Set-up again** of python, since the work changed `requirements.txt`" in end.body
        assert len([one for one in end.stage.model.requests if one.path == "/v1/messages"]) == 3


def test_a_dependency_is_updated_with_its_lock_file(folder: Path) -> None:
    """The package manager itself writes manifest and lock, from a registry behind a company's proxy."""
    if missing := [name for name in ("node", "npm") if shutil.which(name, path=PATH) is None]:
        lacking(f"{', '.join(missing)} is not installed where sandboxes find programs")
    with npm_registry(folder / "registry", lock.PACKAGES) as where:
        reach = {"ISSUEWRIGHT_SANDBOX__NETWORK": '["node"]'}
        with told(folder, lock.SCRIPT, lock.FILES, lock.ISSUE, **where, **reach) as end:
            assert end.changed == {"package.json", "package-lock.json", "index.js"}
            after = {path: blob.data.decode() for path, blob in end.after.items()}
            assert after["package.json"] == lock.MANIFEST.replace("^1.0.0", "^2.1.0")
            assert json.loads(after["package-lock.json"])["packages"] == lock.LOCKED
            assert after["index.js"] == lock.INDEX.replace("('tinypad');", "('tinypad').left;")
            assert checked(end.body, "tests") == ("0", "0")


def test_a_rename_across_two_hundred_files(folder: Path) -> None:
    """A function and its module, in every spelling of an import; no other byte changes, and the tests are green."""
    with told(folder, rename.SCRIPT, rename.FILES, rename.ISSUE) as end:
        assert {path: blob.data for path, blob in end.after.items()} == rename.AFTER
        assert len(end.changed) == rename.CALLERS + 4
        assert checked(end.body, "tests") == ("0", "0")


def is_documented(after: Mapping[str, Blob]) -> None:
    """Everything public is on the page with its signature and docstring, nothing else is, and no code changed."""
    sources = {path: data.decode() for path, data in docs.FILES.items() if path.startswith("ledger/")}
    wanted = docs.documented(sources)
    assert {name.partition(".")[2] for name in wanted} == {
        "Account", "Account.book", "Account.is_empty", "total", "monthly", "undocumented",
    }  # fmt: skip
    page = after[docs.PAGE].data.decode()
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    assert headings == [f"### `{name}{signature}`" for name, (signature, _) in wanted.items()]
    assert "### `accounts.Account.book(self, amount: int, /, note: str='') -> int`" in headings
    assert "    ValueError: the balance would fall below the limit." in page
    assert all(said in page for _, said in wanted.values())
    readme = docs.FILES["README.md"].decode().split("To be written.")
    assert after["README.md"].data.decode().startswith(f"{readme[0]}```python\n{docs.EXAMPLE}")
    assert after["README.md"].data.decode().endswith(readme[1])
    same = {path: blob.data for path, blob in after.items() if path not in {docs.PAGE, "README.md"}}
    assert same == {path: data for path, data in docs.FILES.items() if path != "README.md"}


def test_documents_from_code(folder: Path) -> None:
    """The check of the repository, which asks the real modules, is red before and green after."""
    with told(folder, docs.SCRIPT, docs.FILES, docs.ISSUE) as end:
        is_documented(end.after)
        assert checked(end.body, "docs") == ("1", "0")


def test_documents_from_code_at_the_terminal(folder: Path) -> None:
    """The same task leaves the same tree on a branch of a person's clone, and their checkout as it was."""
    is_documented(at_terminal(folder, docs.SCRIPT, docs.FILES, docs.ISSUE))
