"""What a project is made of is told from its files alone."""

import pytest

from bot.projects.base import Recipe
from bot.projects.detect import detect, is_wanted
from tests.e2e.projects import GO, JAVA, NODE, PYTHON, RUST, Project

POM = "<project/>"
NAMED = '[project]\nname = "a"\n'
PACKAGE = '{"name": "a"}'
GROUPS = """\
[dependency-groups]
docs = ["sphinx"]
dev = ["ruff", {include-group = "Test"}]
test = ["pytest>=8", {include-group = "dev"}]
"""


def found(**files: str) -> list[Recipe]:
    """Detect; `__` in a name stands for a slash, and what is not wanted is left out as in a run."""
    return list(detect({name: text.encode() for name, text in files.items() if is_wanted(name)}))


def one(files: dict[str, str]) -> Recipe:
    """Detect what must be one ecosystem."""
    [recipe] = found(**files)
    return recipe


@pytest.mark.parametrize(
    ("project", "name", "commands"),
    [
        (PYTHON, "python", ["pip install --no-input --disable-pip-version-check -e '.[test]'"]),
        (NODE, "node", ["npm ci --no-audit --no-fund"]),
        (GO, "go", []),
        (RUST, "rust", ["cargo fetch --locked"]),
        (
            JAVA,
            "java",
            ['gradle --no-daemon --quiet --init-script "$GRADLE_USER_HOME/resolve.gradle" issuewrightResolve'],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_ecosystem_is_told(project: Project, name: str, commands: list[str]) -> None:
    """The small projects of the stories are one ecosystem each, with the command that people would run."""
    recipe = one(dict(project.files))
    assert (recipe.name, list(recipe.commands)) == (name, commands)
    assert set(recipe.inputs) <= set(project.files)
    assert recipe.inputs


PIP = "pip install --no-input --disable-pip-version-check"


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"requirements.txt": ""}, [f"{PIP} -r 'requirements.txt'"]),
        (
            {
                "requirements.txt": "",
                "requirements-dev.txt": "",
                "test-requirements.txt": "",
                "requirements-docs.txt": "",
            },
            [f"{PIP} -r 'requirements-dev.txt' -r 'requirements.txt' -r 'test-requirements.txt'"],
        ),
        ({"requirements/test.txt": "", "requirements/base.txt": ""}, [f"{PIP} -r 'requirements/test.txt'"]),
        ({"setup.py": ""}, [f"{PIP} -e '.'"]),
        ({"setup.cfg": "[metadata]\nname = a\n"}, [f"{PIP} -e '.'"]),
        ({"pyproject.toml": '[tool.poetry]\nname = "a"\n'}, [f"{PIP} -e '.'"]),
        (
            {"pyproject.toml": f"{NAMED}[project.optional-dependencies]\ndev = []\ndocs = []\nTest = []\n"},
            [f"{PIP} -e '.[dev,Test]'"],
        ),
        ({"pyproject.toml": f'[project]\nname = "a"\n{GROUPS}'}, [f"{PIP} -e '.' 'ruff' 'pytest>=8'"]),
        (
            {"pyproject.toml": '[project]\nname = "a"\n', "uv.lock": ""},
            [
                'python3 -m venv "$VIRTUAL_ENV/../uv"',
                f'"$VIRTUAL_ENV/../uv"/bin/{PIP} uv',
                '"$VIRTUAL_ENV/../uv"/bin/uv sync --frozen',
            ],
        ),
        (
            {"pyproject.toml": '[tool.poetry]\nname = "a"\n[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'},
            [
                'python3 -m venv "$VIRTUAL_ENV/../poetry"',
                f'"$VIRTUAL_ENV/../poetry"/bin/{PIP} poetry',
                '"$VIRTUAL_ENV/../poetry"/bin/poetry install --no-interaction --all-extras',
            ],
        ),
        ({"package.json": PACKAGE}, ["npm install --no-audit --no-fund --no-package-lock"]),
        ({"package.json": PACKAGE, "npm-shrinkwrap.json": ""}, ["npm ci --no-audit --no-fund"]),
        ({"package.json": PACKAGE, "yarn.lock": ""}, ["yarn install --frozen-lockfile"]),
        ({"package.json": PACKAGE, "yarn.lock": "", ".yarnrc.yml": ""}, ["yarn install --immutable"]),
        ({"package.json": PACKAGE, "pnpm-lock.yaml": "", "package-lock.json": ""}, ["pnpm install --frozen-lockfile"]),
        ({"go.mod": "module a\n"}, ["go mod download"]),
        ({"go.work": "go 1.19\n", "a/go.mod": ""}, ["go mod download"]),
        ({"Cargo.toml": ""}, ["cargo fetch"]),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_each_kind_of_file_has_its_command(files: dict[str, str], commands: list[str]) -> None:
    """Locks come before other files, and the groups for developers and tests belong to a set-up."""
    assert list(one(files).commands) == commands


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": ""},
        {"pyproject.toml": "[tool.ruff]\nline-length = 100\n"},
        {"pyproject.toml": "not toml ["},
        {"setup.cfg": "[flake8]\nmax-line-length = 100\n"},
        {"requirements-docs.txt": "sphinx"},
        {"web/package.json": PACKAGE},
        {"sub/pom.xml": POM},
    ],
    ids="+".join,
)
def test_what_is_no_project_is_left_alone(files: dict[str, str]) -> None:
    """Settings of a tool, or a project further down, make no set-up."""
    assert found(**files) == []


def test_wrappers_bring_their_own_program() -> None:
    """A project with a wrapper needs Java alone."""
    assert one({"pom.xml": POM}).needs == ("java", "mvn")
    maven = one({"pom.xml": POM, "mvnw": "", ".mvn/wrapper/maven-wrapper.properties": "x", "sub/pom.xml": POM})
    assert maven.needs == ("java",)
    assert maven.commands[0].startswith("sh ./mvnw ")
    assert set(maven.inputs) == {"pom.xml", "mvnw", ".mvn/wrapper/maven-wrapper.properties", "sub/pom.xml"}
    gradle = one({"build.gradle.kts": "", "gradlew": "", "gradle/libs.versions.toml": ""})
    assert gradle.needs == ("java",)
    assert set(gradle.inputs) == {"build.gradle.kts", "gradlew", "gradle/libs.versions.toml"}


def test_a_manager_that_the_project_names_is_taken_in_that_version() -> None:
    """`packageManager` decides which version is fetched where the machine has none; no more of it is in the command."""
    files = {"package.json": '{"packageManager": "pnpm@9.1.0+sha512.abc"}', "pnpm-lock.yaml": ""}
    assert one(files).first[0].endswith(" pnpm@9.1.0 )")
    files["package.json"] = '{"packageManager": "pnpm@9; curl evil"}'
    assert one(files).first[0].endswith(" pnpm@9 )")
    files["package.json"] = '{"packageManager": "pnpm"}'
    assert one(files).first[0].endswith(" pnpm )")
    files["package.json"] = "[]"
    assert one(files).first[0].endswith(" pnpm )")


def test_names_of_files_cannot_become_commands() -> None:
    """A name that a repository chose is one word of the command."""
    extra = "x']; touch evil; echo '"
    text = f'[project]\nname = "a"\n[dependency-groups]\ndev = ["{extra}"]\n'
    [command] = one({"pyproject.toml": text}).commands
    assert command == f"{PIP} -e '.' 'x'\\'']; touch evil; echo '\\'''"


def test_a_project_of_several_ecosystems_has_several_recipes() -> None:
    """Each ecosystem sees its own files only, in a fixed order."""
    both = found(**{"package.json": PACKAGE, "requirements.txt": "", "Cargo.toml": ""})
    assert [recipe.name for recipe in both] == ["python", "node", "rust"]
    assert list(both[0].inputs) == ["requirements.txt"]


def test_what_installers_left_is_not_asked_for() -> None:
    """A package's own files are none of the project's."""
    assert not is_wanted("node_modules/a/package.json")
    assert not is_wanted("web/node_modules/a/package.json")
    assert is_wanted("web/package.json")
    assert not is_wanted("web/requirements.txt")
