"""The key of a prepared environment changes with all that decides what is in it, and with nothing else."""

from bot.projects.detect import detect
from bot.projects.plan import Plan, filled, named_by, plan

FILES = {"package.json": b'{"name": "a"}', "package-lock.json": b"{}", "go.mod": b"module a\n"}


def made(files: dict[str, bytes] = FILES, own: list[str] | None = None) -> Plan:
    """Plan what these files need."""
    return plan(detect(files), files, own)


def test_the_key_is_stable() -> None:
    """The same files, commands and facts have the same key, in whatever order."""
    assert made().key(["x"]) == made(dict(reversed(FILES.items()))).key(["x"])
    assert len(made().key([])) == 32


def test_the_key_follows_what_counts() -> None:
    """Contents, commands and facts of the machine count; a file that decides nothing does not."""
    key = made().key(["node 20"])
    assert made({**FILES, "package-lock.json": b"{ }"}).key(["node 20"]) != key
    assert made(own=["npm ci"]).key(["node 20"]) != key
    assert made().key(["node 22"]) != key
    # The lock says of a workspace's packages all that counts.
    assert made({**FILES, "web/package.json": b"{}"}).key(["node 20"]) == key
    unlocked = {name: text for name, text in FILES.items() if name != "package-lock.json"}
    assert made({**unlocked, "web/package.json": b"{}"}).key([]) != made(unlocked).key([])


def test_own_commands_replace_what_was_found() -> None:
    """A repository's own commands stand in place of the others, behind what makes the place to install into."""
    files = {"requirements.txt": b""}
    found = plan(detect(files), files, None)
    assert [found.bound, len(found.commands), len(found.shown)] == [False, 2, 1]
    own = plan(detect(files), files, ["make deps"])
    assert list(own.commands) == ['python3 -m venv "$VIRTUAL_ENV"', "make deps"]
    assert list(own.shown) == ["make deps"]
    assert own.bound
    assert plan((), {}, ["make deps"]).commands == ["make deps"]


def test_own_commands_name_files_that_count() -> None:
    """A script, a list of packages or a Makefile that a repository's own commands read decides what they make."""
    assert {"scripts/setup.sh", "ci/needs.txt"} <= named_by(["bash ./scripts/setup.sh && pip install -r ci/needs.txt"])
    assert "Makefile" in named_by(["make deps"])
    assert "Makefile" not in named_by(["npm ci"])
    files = {"scripts/setup.sh": b"1"}
    assert plan((), files, ["bash scripts/setup.sh"]).inputs.keys() == files.keys()


def test_variables_name_the_folders_of_one_task() -> None:
    """Folders are put in at the end, so that a recorded plan fits wherever the state folder is."""
    variables = filled(made().variables(["node"]), shared="/e", own="/o", path="/usr/bin")
    assert variables["PATH"] == "/e/node/node_modules/.bin:/e/go/bin:/usr/bin"
    assert (variables["GOPATH"], variables["GOCACHE"], variables["GOPROXY"]) == ("/e/go", "/o/go-build", "off")
    assert "npm_config_offline" not in variables
    assert filled({}, shared="/e", own="/o", path="/usr/bin") == {"PATH": "/usr/bin"}


def test_an_installed_package_is_bound_to_its_tree() -> None:
    """An editable installation names the tree; mere requirements do not."""
    assert made({"setup.py": b""}).bound
    assert not made({"requirements.txt": b""}).bound
