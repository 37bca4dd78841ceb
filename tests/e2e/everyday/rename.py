"""Story: a function gets another name and its module another place, across two hundred files."""

import re
from collections.abc import Mapping, Sequence

from bot.testing.model.reply import Call, Reply
from bot.testing.model.request import Request
from bot.testing.model.script import Condition, Script, Turn
from tests.e2e.everyday.telling import AT_ONCE, CONFIG, Files, at, plan, results, run, say, story

ISSUE = (
    "Rename to_cents, and move its module",
    "`shop.legacy.money.to_cents` should be `shop.money.as_cents`, everywhere: imports, calls, comments, documents.",
)
CALLERS = 200
AREAS = 5
CHECK = "python3 -m unittest discover -q -s tests -t ."
WORD = r"\bto_cents\b|\blegacy\.money\b|from shop\.legacy import money"
STEPS = ("Find all places", "Move the module", "Change the callers", "Run the tests")

_FORMS = (
    "from {module} import {name}\n\n\ndef price(amount):\n    return {name}(amount) + {i}\n",
    "import {module} as money\n\n\ndef price(amount):\n    return money.{name}(amount) + {i}\n",
    (
        "from {module} import (\n    ROUNDING,\n    {name},\n)\n\n\ndef price(amount):\n"
        "    assert ROUNDING\n    return {name}(amount) + {i}\n"
    ),
    "from {package} import money\n\n\ndef price(amount):\n    return money.{name}(amount) + {i}\n",
    "from {module} import {name}\r\n\r\n\r\ndef price(amount):\r\n    return {name}(amount) + {i}\r\n",
    "def price(amount):\n    from {module} import {name}\n\n    return {name}(amount) + {i}",
    (
        '"""Prices, by `{module}.{name}`."""\n\nfrom {module} import {name}\n\nto_cents_total = {i}\n\n\n'
        "def into_cents(amount):\n    # As {name} does it.\n    return {name}(amount)\n\n\n"
        "def price(amount):\n    return into_cents(amount) + to_cents_total\n"
    ),
    "\ufefffrom {module} import {name}\n\n\ndef price(amount):\n    return {name}(amount) + {i}\n",
)
"""How a caller may spell it: with an alias, over several lines, with CRLF, without a last line break, in a comment
beside names that only look alike, behind a byte order mark."""
_TWICE = (
    "from {module} import {name}\n\n\ndef zero(amount):\n    return {name}(amount)\n\n\n"
    "def price(amount):\n    if amount:\n        return zero(amount) + {i}\n    return {name}(amount)\n"
)
"""Here `return` is a line that is there twice, but for its indentation."""
_SAME = (
    "from {module} import {name}\n\n\ndef low(amount):\n    cents = {name}(amount)\n    return cents\n\n\n"
    "def price(amount):\n    cents = {name}(amount)\n    return cents + {i}\n"
)
"""Here a line is there twice, and a patch has to say which it means."""


def project(package: str, name: str) -> Files:
    """Make the project as it is with these names: what the story begins with, and what it has to end with."""
    module, place = f"{package}.money", f"{package.replace('.', '/')}/money.py"
    texts = {
        CONFIG: f"version: 1\nsetup: false\nchecks:\n- name: tests\n  run: {CHECK}\n",
        "README.md": f"# Shop\n\nAmounts become cents by `{module}.{name}`.\n",
        "shop/__init__.py": "",
        "shop/legacy/__init__.py": "",
        "shop/legacy/rates.py": "RATES = {}\n",
        place: f'"""Money."""\n\nROUNDING = "half up"\n\n\ndef {name}(amount):\n'
        f'    """Return an amount in cents."""\n    return round(amount * 100)\n',
        "tests/__init__.py": "",
        "tests/test_prices.py": "import importlib\nimport unittest\n\n"
        f"from {module} import {name}\n\n\nclass Prices(unittest.TestCase):\n    def test_all(self):\n"
        f"        for i in range({CALLERS}):\n"
        f'            caller = importlib.import_module(f"shop.area{{i % {AREAS}}}.caller{{i:03}}")\n'
        f"            self.assertEqual(caller.price(2), {name}(2) + i)\n",
    }
    texts |= {f"shop/area{area}/__init__.py": "" for area in range(AREAS)}
    for i in range(CALLERS):
        form = {17: _TWICE, 33: _SAME}.get(i % 40, _FORMS[i // AREAS % len(_FORMS)])
        text = form.format(module=module, package=package, name=name, i=i)
        texts[f"shop/area{i % AREAS}/caller{i:03}.py"] = text
    return {path: text.encode() for path, text in texts.items()}


FILES = project("shop.legacy", "to_cents")
AFTER = project("shop", "as_cents")


def renamed(line: str) -> str:
    """Write one line with the new names, as the model thinks it out."""
    line = line.replace("from shop.legacy import money", "from shop import money")
    return re.sub(r"\bto_cents\b", "as_cents", line.replace("shop.legacy.money", "shop.money"))


def _hits(text: str) -> dict[str, list[str]]:
    """Read a result of `search`: the lines of each file."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for row in text.splitlines():
        if hit := re.fullmatch(r"\d+: (.*)", row):
            lines.append(hit[1])
        else:
            lines = found.setdefault(row, [])
    return found


def _section(path: str, lines: Sequence[str]) -> str:
    """Write the part of a patch that changes lines of one file, each where it stands."""
    parts = "".join(f"@@\n-{line}\n+{renamed(line)}\n" for line in lines)
    return f"*** Update File: {path}\n{parts}"


def _patch(sections: Sequence[str]) -> Call:
    return Call("apply_patch", {"patch": "*** Begin Patch\n" + "".join(sections) + "*** End Patch"})


def _places(request: Request) -> Mapping[str, dict[str, list[str]]]:
    """Collect what the narrow searches found, by their glob."""
    return {glob: _hits(found.text) for glob, found in at(request, "search", "glob").items() if glob}


def _narrow(request: Request) -> Reply:
    """Search folder by folder, as the first result asks for."""
    ((_, found),) = results(request, "search")
    assert "narrow the pattern or the glob]" in found.text.splitlines()[-1], found.text[-200:]
    globs = [*(f"shop/area{area}/**" for area in range(AREAS)), "tests/**", "*.md"]
    return say("Folder by folder.", *[Call("search", {"pattern": WORD, "glob": glob}) for glob in globs])


def _change(request: Request) -> Reply:
    """Change a folder's places, which are known by their lines alone; then read what has a line twice."""
    places = _places(request)
    assert not [text for found in places.values() for text in found if text.startswith("[")]
    made = results(request, "apply_patch")
    for _, result in made:
        assert not result.is_error, result.text[:1000]
    if len(made) < len(places):
        found = list(places.values())[len(made)]
        patch = _patch([_section(path, lines) for path, lines in found.items() if path not in _twice(found)])
        return say("The next folder.", patch, plan(*STEPS, done=2))
    read = at(request, "read")
    left = [path for found in places.values() for path in _twice(found) if path not in read]
    return say("Now those where a line is there twice.", *[Call("read", {"path": path}) for path in left[:AT_ONCE]])


def _twice(found: Mapping[str, Sequence[str]]) -> list[str]:
    return [path for path, lines in found.items() if len(set(lines)) < len(lines)]


def _finish_rest(request: Request) -> Reply:
    """Change each of them as a whole, with the lines around."""
    read = {path: result.text.split("\n")[1:] for path, result in at(request, "read").items() if "area" in path}
    assert read
    sections = [
        f"*** Update File: {path}\n@@\n"
        + "".join(f" {line}\n" if line == renamed(line) else f"-{line}\n+{renamed(line)}\n" for line in lines)
        for path, lines in read.items()
    ]
    return say(
        "I change them with what stands around.",
        _patch(sections),
        run(CHECK),
        Call("search", {"pattern": WORD}),
        plan(*STEPS, done=4),
    )


SCRIPT: Script = story(
    "rename",
    Turn(
        "I find all places.",
        calls=[
            plan(*STEPS, done=0),
            Call("search", {"pattern": WORD}),
            Call("list", {"pattern": "shop/*/__init__.py"}),
            Call("read", {"path": "shop/legacy/money.py"}),
        ],
    ),
    _narrow,
    Turn(
        "First the module.",
        calls=[
            Call("move", {"path": "shop/legacy/money.py", "target": "shop/money.py"}),
            Call("edit", {"path": "shop/money.py", "old": "def to_cents(", "new": "def as_cents("}),
        ],
        expect=[Condition(tool="search", matches=r"^shop/area4/caller199\.py$")],
    ),
    *[_change] * (AREAS + 4),
    _finish_rest,
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": f"`shop.money.as_cents` it is, in {CALLERS} callers and the documents."})],
        expect=[
            Condition(tool="run", matches=r"\Aexit code: 0$"),
            Condition(tool="search", matches="^nothing found$"),
        ],
    ),
)
