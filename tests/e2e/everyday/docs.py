"""Story: a reference page and a part of the README, written from the docstrings of the code."""

import ast
from collections.abc import Iterator, Mapping

from bot.testing.model.reply import Call, Reply
from bot.testing.model.request import Request
from bot.testing.model.script import Condition, Script, Turn
from tests.e2e.everyday.telling import CONFIG, Files, at, plan, results, run, say, story

ISSUE = (
    "Document the package",
    (
        "`docs/api.md` should have every public function, class and method of `ledger`, with its docstring, and "
        "the README a short example that works."
    ),
)
PAGE = "docs/api.md"
EXAMPLE = """\
>>> from ledger.accounts import Account
>>> account = Account("cash")
>>> account.book(250)
250

"""
"""The blank line ends the output for `doctest`."""
CHECK = "python3 check_docs.py && python3 -m doctest README.md"
FILES: Files = {
    CONFIG: f"version: 1\nsetup: false\nchecks:\n- name: docs\n  run: {CHECK}\n".encode(),
    "README.md": b"# Ledger\n\nKeeps accounts.\n\n## Use\n\nTo be written.\n\n## License\n\nNone.\n",
    "check_docs.py": b"""\
import importlib
import inspect
import pathlib

page = pathlib.Path("docs/api.md")
assert page.exists(), "docs/api.md is missing"
text = page.read_text()
missing = []
for path in sorted(pathlib.Path("ledger").glob("[!_]*.py")):
    module = importlib.import_module(f"ledger.{path.stem}")
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        members = [name]
        if inspect.isclass(value):
            members += [f"{name}.{one}" for one, _ in inspect.getmembers(value, inspect.isfunction) if one[0] != "_"]
        missing += [f"{path.stem}.{one}" for one in members if f"### `{path.stem}.{one}" not in text]
assert not missing, f"not documented: {missing}"
""",
    "ledger/__init__.py": b'"""Accounts and reports."""\n',
    "ledger/_store.py": b'"""Internal."""\n\n\ndef save(rows):\n    """Save rows."""\n',
    "ledger/accounts.py": b'''\
"""Accounts and what is booked on them."""

from ledger._store import save


class Account:
    """One account; amounts are whole cents."""

    def __init__(self, name, *, limit=0):
        self.name = name
        self.limit = limit
        self.balance = 0

    def book(self, amount: int, /, note: str = "") -> int:
        """Book an amount and return the new balance.

        Raises:
            ValueError: the balance would fall below the limit.
        """
        if self.balance + amount < self.limit:
            raise ValueError(note)
        self.balance += amount
        return self.balance

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on it."""
        return self.balance == 0

    def _touch(self):
        """Internal."""


def total(accounts: "list[Account]", *names: str, **options: object) -> int:
    """Add up the balances of accounts, of all where no name is given."""
    return sum(one.balance for one in accounts if not names or one.name in names)


def _hidden():
    """Internal."""
''',
    "ledger/reports.py": b'''\
"""Reports as text.\\n"""


async def monthly(month: str = "2026-01", *, currency: str = "EUR") -> str:
    """Write the report of a month, as `2026-01`, in a currency.

    An empty month gives a report all the same.
    """
    return f"{month} {currency}"


def undocumented(a, b=(1, 2)):
    return a, b
''',
}
STEPS = ("Read the code", "Write the page", "Put an example into the README", "Check")


def documented(files: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return signature and docstring of everything public, by its full name."""
    found: dict[str, tuple[str, str]] = {}
    for path, text in files.items():
        module = path.removeprefix("ledger/").removesuffix(".py")
        if not module.startswith("_"):
            found |= {f"{module}.{name}": told for name, told in _public(ast.parse(text).body)}
    return found


def _public(body: list[ast.stmt], above: str = "") -> Iterator[tuple[str, tuple[str, str]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            told = ast.get_docstring(node) or "Not described in the code."
            yield f"{above}{node.name}", (f"({ast.unparse(node.args)}){returns}", told)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ("", ast.get_docstring(node) or "")
            yield from _public(node.body, f"{node.name}.")


def _read(request: Request) -> Reply:
    """Read the modules that `list` named."""
    ((_, listed),) = results(request, "list")
    paths = listed.text.splitlines()
    assert len(paths) == len([path for path in FILES if path.startswith("ledger/")]), listed.text
    return say("I read them.", *[Call("read", {"path": path}) for path in paths], Call("read", {"path": "README.md"}))


def _write(request: Request) -> Reply:
    """Write the page from what was read, and the example over the gap in the README."""
    read = {path: found.text.split("\n", 1)[1] for path, found in at(request, "read").items() if path != "README.md"}
    rows = [f"### `{name}{signature}`\n\n{said}\n" for name, (signature, said) in documented(read).items()]
    page = "# Reference\n\n" + "\n".join(rows)
    example = f"```python\n{EXAMPLE}```\n\nAll of it: [{PAGE}]({PAGE})."
    return say(
        "I write the page, and the example.",
        Call("write", {"path": PAGE, "content": page}),
        Call("edit", {"path": "README.md", "old": "To be written.", "new": example}),
        plan(*STEPS, done=3),
        run(CHECK),
    )


SCRIPT: Script = story(
    "docs",
    Turn("I look for the modules.", calls=[plan(*STEPS, done=0), Call("list", {"pattern": "ledger/*.py"})]),
    _read,
    _write,
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": "The page has all that is public; the README's example was run."})],
        expect=[Condition(tool="run", matches=r"\Aexit code: 0")],
    ),
)
