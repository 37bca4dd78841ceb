from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.workspace.githttp import GitServer, serving
from tests.unit.workspace.helpers import publish, seed

FILES: dict[str, str | bytes] = {
    "README.md": "# Web\n",
    "src/app.py": "print('a')\n",
    "src/lib/util.py": "X = 1\n",
    ".gitignore": "build/\n*.log\n",
    "crlf.txt": b"one\r\ntwo\r\n",
    ".gitattributes": "* text=auto eol=crlf\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A person's repository with one commit on `main`."""
    folder = tmp_path / "source"
    seed(folder, FILES)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the working copies are kept."""
    return tmp_path / "state"


@pytest.fixture
def server(tmp_path: Path, source: Path) -> Iterator[GitServer]:
    """A git server that holds `source` as `acme/web.git`."""
    root = tmp_path / "served"
    (root / "acme").mkdir(parents=True)
    publish(source, root / "acme" / "web.git")
    with serving(root) as made:
        yield made
