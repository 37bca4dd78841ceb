from dataclasses import replace

import pytest

from bot.domain.changes import LARGEST_FILE, MOST_FILES, WAITS, FileChange, Finding, judge, leaves

FILE, SCRIPT, LINK, MODULE = 0o100644, 0o100755, 0o120000, 0o160000


def added(path: str, size: int = 1) -> FileChange:
    """A new file."""
    return FileChange(path, 0, FILE, size)


def changed(path: str, size: int = 1) -> FileChange:
    """A file with other content."""
    return FileChange(path, FILE, FILE, size)


def gone(path: str) -> FileChange:
    """A deleted file."""
    return FileChange(path, FILE, 0)


def kinds(*changes: FileChange, there: int = 100, workflows: tuple[str, ...] = ()) -> list[str]:
    """Return what is found, by kind."""
    return [finding.kind for finding in judge(changes, there, workflows)]


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/x.yml",
        ".GitHub/dependabot.yml",
        ".github/CODEOWNERS",
        "CODEOWNERS",
        "docs/CODEOWNERS",
        "AGENTS.md",
        "packages/one/agents.md",
        "Claude.md",
        ".clinerules",
        "web/.clinerules/a.md",
        ".cursorrules",
        "web/copilot-instructions.md",
        ".gemini/settings.json",
        "web/.roo/rules/a.md",
        ".clinerules-code",
        ".vscode/mcp.json",
        "opencode.json",
        ".lfsconfig",
        ".forgejo/workflows/x.yml",
    ],
)
def test_what_decides_about_others_waits(path: str) -> None:
    """Added, changed or deleted, in any case and at any level."""
    for change in (added(path), changed(path), gone(path)):
        assert judge([change, added("a.py")], 100) == [Finding("protected", [path])]


@pytest.mark.parametrize("path", ["src/github/a.py", "CODEOWNERS.md", "src/CODEOWNERS", "agents.py", "docs/agents.rst"])
def test_what_only_looks_like_it_does_not(path: str) -> None:
    """Names that are near."""
    assert kinds(added(path)) == []


def test_a_plan_that_people_approved_is_not_asked_about_again() -> None:
    """Exactly the files that it names, however the model wrote them; size and links all the same."""
    changes = [changed("AGENTS.md"), changed("web/AGENTS.md"), added("big", LARGEST_FILE + 1)]
    found = judge(changes, 100, (), ["`agents.md` (new)", "big"])
    assert [(one.kind, one.paths) for one in found] == [("protected", ["web/AGENTS.md"]), ("size", ["big"])]


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "/etc/passwd"),
        ("l", ".."),
        ("l", "../x"),
        ("a/l", "../../x"),
        ("a/l", "./.././../x"),
        ("a/l", "b/../../../x"),
        ("a/b/l", "up/../x"),
        ("l", ".git/config"),
        ("a/l", "../.GIT"),
    ],
)
def test_a_link_that_may_leave_waits(path: str, target: str) -> None:
    """Out of the tree, into git's folder, or up behind a name that may itself be a link."""
    assert leaves(path, target)
    assert kinds(FileChange(path, 0, LINK, len(target), target)) == ["link"]


@pytest.mark.parametrize(
    ("path", "target"), [("l", "a"), ("a/l", "../b"), ("a/b/l", "../../c"), ("l", "."), ("l", "a..b")]
)
def test_a_link_that_stays_does_not(path: str, target: str) -> None:
    """Relative ones that go up first, and not above the top; dangling or not."""
    assert not leaves(path, target)
    assert kinds(FileChange(path, 0, LINK, len(target), target)) == []


@pytest.mark.parametrize(
    ("path", "waits"),
    [("docs/ai.md", True), (".ai/skills/x", True), ("web/ai.md", True), ("docs/ai.md.bak", False), ("a", False)],
)
def test_what_stands_behind_a_protected_name_waits(path: str, *, waits: bool) -> None:
    """A link with that name may lead anywhere in the repository."""
    links = {"CLAUDE.md": "docs/ai.md", ".claude": ".ai", "web/AGENTS.md": "./ai.md", "b": "a", ".github/x": "../.."}
    found = judge([changed(path)], 100, links=links)
    assert [one.kind for one in found] == (["protected"] if waits else [])


def test_many_deletions_wait() -> None:
    """More than a fifth of all files; what moved is not gone, and one alone may always go."""
    assert kinds(*(gone(f"f{number}") for number in range(3)), there=10) == ["deletions"]
    assert kinds(*(gone(f"f{number}") for number in range(2)), there=10) == []
    assert kinds(gone("f"), there=1) == []
    went = [FileChange(f"a/f{number}", FILE, 0, was=f"{number}") for number in range(5)]
    assert (
        kinds(*went, *(FileChange(f"b/g{number}", 0, FILE, 1, sha=f"{number}") for number in range(5)), there=10) == []
    )
    # What only has the same name is another file, and makes up for none.
    assert kinds(*went, *(FileChange(f"b/f{number}", 0, FILE, 1, sha="x") for number in range(5)), there=10) == [
        "deletions"
    ]
    emptied = [FileChange(f"f{number}", FILE, FILE, 0, sha="none", was=f"{number}") for number in range(3)]
    assert kinds(*emptied, there=10) == ["deletions"]
    assert kinds(*(FileChange(f"f{number}", FILE, SCRIPT, 0, sha="x", was="x") for number in range(3)), there=10) == [
        "mode"
    ]
    [finding] = judge([gone("a"), gone("b")], 4)
    assert (finding.paths, finding.of) == (["a", "b"], 4)


@pytest.mark.parametrize(
    "after", [{"after": LINK, "size": 6, "target": "README"}, {"after": FILE, "size": 1}, {"after": SCRIPT, "size": 5}]
)
def test_what_replaces_files_by_next_to_nothing_deletes_them(after: dict[str, object]) -> None:
    """A link to elsewhere, or a blank line; a link where the file was moved away from deletes nothing."""
    made = [replace(FileChange(f"f{n}", FILE, FILE, was_size=100), sha="x", was=f"{n}", **after) for n in range(3)]  # type: ignore[arg-type]  # as the dictionary says
    assert "deletions" in kinds(*made, there=10)
    assert "deletions" not in kinds(*made, there=20)
    moved = [FileChange(f"g{n}", 0, FILE, 100, sha=f"{n}") for n in range(3)]
    assert ("deletions" in kinds(*made, *moved, there=10)) is (after["after"] != LINK)
    assert kinds(*(replace(one, size=6, after=FILE) for one in made), there=10) == []


def test_deletions_that_come_bit_by_bit_wait_too() -> None:
    """Of all that the task did; where this change deletes nothing, or one file, it is none of them."""
    whole = [gone(f"f{number}") for number in range(21)], 100
    two = [gone("f19"), gone("f20")]
    assert judge(two, 81, whole=whole) == [Finding("deletions", [one.path for one in whole[0]], 100)]
    assert judge(two, 81, whole=(whole[0][:20], 100)) == []
    assert judge(two[:1], 81, whole=whole) == []
    assert judge([added("a")], 81, whole=whole) == []


@pytest.mark.parametrize(("before", "after"), [(0, MODULE), (MODULE, 0), (MODULE, MODULE), (FILE, MODULE)])
def test_a_submodule_that_moves_comes_or_goes_waits(before: int, after: int) -> None:
    """What is in it nobody sees in the change."""
    assert kinds(FileChange("lib", before, after, sha="b", was="a")) == ["submodule"]


def test_large_changes_wait() -> None:
    """One large file, many bytes or many files; what is deleted has no size."""
    assert kinds(added("a", LARGEST_FILE)) == []
    assert judge([added("a", LARGEST_FILE + 1), added("b")], 9)[0].paths == ["a"]
    assert judge([added(f"f{number}", 5 << 20) for number in range(5)], 9)[0] == Finding(
        "size", [f"f{number}" for number in range(5)], 25 << 20
    )
    assert kinds(*(added(f"f{number}") for number in range(MOST_FILES + 1))) == ["size"]
    assert kinds(*(added(f"f{number}") for number in range(MOST_FILES))) == []
    # A fifth of a large repository is many files.
    deleted = [gone(f"f{number}") for number in range(MOST_FILES + 1)]
    assert judge(deleted, 10_000) == [Finding("size", sorted(one.path for one in deleted))]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (changed("uv.lock"), "lock"),
        (gone("web/package-lock.json"), "lock"),
        (changed("go.sum"), "lock"),
        (changed("Dockerfile"), "image"),
        (changed("ops/dev.dockerfile"), "image"),
        (changed("docker-compose.dev.yml"), "image"),
        (changed("Jenkinsfile"), "ci"),
        (changed(".circleci/config.yml"), "ci"),
        (changed("scripts/test.sh"), "ci"),
        (changed("Makefile"), "ci"),
        (changed("ci/setup/index.js"), "ci"),
        (changed("ci/setup/lib/deep.js"), "ci"),
        (changed("scripts/a.sh"), "ci"),
        (changed("scripts/b.sh"), "ci"),
        (changed("scripts/c.sh"), "ci"),
        (changed(".drone.yml"), "ci"),
        (changed("Jenkinsfile.prod"), "ci"),
        (changed("Dockerfile-prod"), "image"),
        (changed("docker-bake.hcl"), "image"),
        (changed("pylock.toml"), "lock"),
        (FileChange("a.sh", FILE, SCRIPT, 1), "mode"),
        (FileChange("a.sh", SCRIPT, FILE, 1), "mode"),
        (FileChange("a", FILE, LINK, 1, "b"), "mode"),
        (FileChange("a", LINK, FILE, 1), "mode"),
    ],
)
def test_what_is_pushed_and_marked(change: FileChange, kind: str) -> None:
    """Lock files, images, what the workflows call, and other modes wait for nobody."""
    workflows = (
        "steps:\n- run: ./scripts/test.sh --fast\n- run: make check\n- uses: ./ci/setup\n",
        '- run: $GITHUB_WORKSPACE/scripts/a.sh\n- run: "${GITHUB_WORKSPACE}"/scripts/c.sh\n',
        "- run: ${{ github.workspace }}/scripts/b.sh\n",
    )
    assert kinds(change, workflows=workflows) == [kind]
    assert kind not in WAITS


@pytest.mark.parametrize(
    "change",
    [
        added("new.sh"),
        FileChange("new", 0, SCRIPT, 1),
        changed("test.sh"),
        changed("scripts/test.sh.bak"),
        changed("other/scripts/test.sh"),
        changed("test"),
        changed("lock.py"),
        changed("dockerfiles.md"),
    ],
)
def test_what_is_not_marked(change: FileChange) -> None:
    """New files, and names that only stand in a workflow as a part of others."""
    assert kinds(change, workflows=("- run: scripts/test.sh\n- run: cmake . && test x\n",)) == []


def test_what_waits_is_not_marked_too() -> None:
    """Each path is told of once."""
    assert kinds(FileChange(".github/run.sh", FILE, SCRIPT, 1)) == ["protected"]
    assert Finding.from_data(Finding("lock", ["a"], 1).to_data()) == Finding("lock", ["a"], 1)
