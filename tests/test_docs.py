"""What the documents say is what there is.

To write `docs/commands.md` anew: `python -c "from tests.test_docs import write; write()"` in the top directory.
"""

import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
import typer
import yaml

from bot import errors
from bot.cli.main import EXITS, app
from bot.cli.screen import EXIT_CODES
from bot.commands.catalogue import CATALOGUE, Option
from bot.settings.server import ServerSettings

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/*.md")])
RECORDS = sorted(ROOT.glob("docs/decisions/[0-9]*.md"))
RECORD_LINES = 60
SHA = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40}")

INTRODUCTION = """\
# Commands
This page is written by `tests/test_docs.py` from the commands themselves.

## On GitHub
A comment of which the first line begins with `{word}` is a command. What is quoted, in code, in a list or a heading is
talk about commands. Adding the label `{label}` to an issue asks for work too, planned first where the mode says so.

| comment | what happens |
|---|---|
{rows}

`status` and `help` need read access to the repository, all others write access, asked of GitHub at that moment. A
second `fix` while it runs is told to the running task. Removing the label, or closing the thread, stops it. The App's
own name, as `@issuewright fix`, is another word for the same. [How people decide](approvals.md) tells more of `plan`,
`approve` and `deny`.

## In the terminal
{exits}

With `--json` standard output holds one JSON object a line and nothing else; words for people are on standard error.
"""


def commands() -> dict[str, typer.core.TyperCommand]:
    """The commands of the terminal, in the order of `--help`."""
    group = typer.main.get_command(app)
    return cast("dict[str, typer.core.TyperCommand]", cast("typer.core.TyperGroup", group).commands)


def page() -> str:
    """Write `docs/commands.md`."""
    settings = ServerSettings()
    rows = [f"| `{entry.usage(settings.command)}` | {entry.help}{_options(entry.options)} |" for entry in CATALOGUE]
    exits = textwrap.fill(EXITS.replace("\n", " "), 120)
    parts = [
        INTRODUCTION.format(word=settings.command, label=settings.label, rows="\n".join(rows), exits=exits),
        *(_command(name, command) for name, command in commands().items()),
    ]
    return "\n".join(parts)


def write() -> None:
    """Bring `docs/commands.md` up to date."""
    (ROOT / "docs/commands.md").write_text(page(), encoding="utf-8")


def _options(options: Sequence[Option]) -> str:
    return "".join(f" `{option.name}`: {option.help}" for option in options)


def _command(name: str, command: typer.core.TyperCommand) -> str:
    lines = [f"### `issuewright {name}`", (command.help or "").strip(), "", "| option | meaning |", "|---|---|"]
    for parameter in command.params:
        if parameter.name == "help":
            continue
        shown = ", ".join(f"`{word}`" for word in [*parameter.opts, *parameter.secondary_opts])
        argument = parameter.param_type_name == "argument"
        label = f"`{(parameter.name or '').upper()}`" if argument else shown
        text = str(getattr(parameter, "help", "") or "")
        default = parameter.default
        tail = f" Default: `{default}`." if isinstance(default, str | int) and not isinstance(default, bool) else ""
        lines.append(f"| {label} | {text}{tail} |")
    return "\n".join(lines) + "\n"


def text_of(name: str) -> str:
    """Read a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[str]:
    """The shell blocks of a page."""
    yield from re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_page_of_commands_is_up_to_date() -> None:
    """`docs/commands.md` says what the commands say of themselves."""
    assert text_of("docs/commands.md") == page(), 'run `python -c "from tests.test_docs import write; write()"`'


def test_every_command_is_in_the_readme() -> None:
    """Each command of the terminal and each command of a comment has its place in the README."""
    readme = text_of("README.md")
    assert [name for name in commands() if f"| `issuewright {name}` |" not in readme] == []
    assert [entry.name for entry in CATALOGUE if f"`/agent {entry.name}`" not in readme] == []


def test_every_exit_code_is_told() -> None:
    """README, `--help` and the page name every exit code that there is."""
    for code in {*EXIT_CODES.values(), 2, 4}:
        for text in (text_of("README.md"), EXITS, text_of("docs/commands.md")):
            assert re.search(rf"\b{code}\s[a-z]", text), code


def test_every_error_says_whom_it_is_for() -> None:
    """Each error has a docstring of its own."""
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    assert [kind.__name__ for kind in kinds if not kind.__doc__ or not kind.__doc__.strip()] == []


def test_the_readme_begins_with_what_can_be_pasted() -> None:
    """The first block shows the thing, the second one tests it; both use the pins."""
    first, second = list(blocks(text_of("README.md")))[:2]
    assert first.splitlines() == [
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        "pip install -c constraints.txt .",
        "issuewright demo",
    ]
    assert second.strip() == 'pip install -c constraints.txt -e ".[dev]" && pytest'


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_name_commands_that_exist(path: Path) -> None:
    """Wherever a page shows a command line, the command and its options are real."""
    known = commands()
    text = path.read_text(encoding="utf-8")
    for name, rest in re.findall(r"issuewright ([a-z]+)((?: [^\n`]*)?)", "\n".join([*blocks(text), *_inline(text)])):
        assert name in known, f"{path.name}: issuewright {name}"
        options = {word for parameter in known[name].params for word in parameter.opts + parameter.secondary_opts}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= options, f"{path.name}: issuewright {name}{rest}"


def _inline(text: str) -> list[str]:
    return re.findall(r"`(issuewright [^`\n]+)`", text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Every link inside the repository leads to a file that is there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "#", "mailto:")):
            assert (path.parent / target.partition("#")[0]).exists(), f"{path.name}: {target}"


@pytest.mark.parametrize("name", ["architecture", "extending", "security"])
def test_pages_name_files_that_exist(name: str) -> None:
    """A file that a page sends readers to is there."""
    found = re.findall(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?)`", text_of(f"docs/{name}.md"))
    missing = [one for one in found if not any((base / one).exists() for base in (ROOT, ROOT / "bot"))]
    # State folders are the operator's.
    assert [one for one in missing if one not in {"repositories/", "tasks/", "executors/"}] == []


def test_decisions_are_short_and_listed() -> None:
    """Each record has context, choice and price in under sixty lines, a number of its own and a place in the list."""
    listed = text_of("docs/decisions/README.md")
    assert [path.name[:4] for path in RECORDS] == [f"{number:04}" for number in range(1, len(RECORDS) + 1)]
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < RECORD_LINES, path.name
        assert text.startswith(f"# {path.name[:4]}: "), path.name
        assert re.findall(r"^## (\w+)", text, re.MULTILINE) == ["Context", "Choice", "Price"], path.name
        assert f"({path.name})" in listed, path.name


def test_the_action_passes_inputs_by_environment() -> None:
    """The action has its outputs, no expression in a script, and no input that is not used."""
    action = yaml.safe_load(text_of(".github/actions/agent/action.yml"))
    assert set(action["outputs"]) == {"conclusion", "pr-url", "branch", "task-id", "cost-usd", "tokens"}
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in action["inputs"])
    assert all("${{" not in step.get("run", "") for step in action["runs"]["steps"])
    for name in action["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in str(action["runs"]), name
    variables = {name for step in action["runs"]["steps"] for name in step.get("env", {})}
    settings = {name for name in variables if name.startswith("ISSUEWRIGHT_")}
    configuration = text_of("docs/configuration.md")
    assert [name for name in settings if f"`{name}`" not in configuration] == []


def test_the_example_workflow_is_narrow() -> None:
    """The example starts on two events, with no rights but those of its job, one at a time for each thread."""
    text = text_of("docs/examples/agent-workflow.yml")
    workflow = yaml.safe_load(text)
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"issues": {"types": ["labeled"]}, "issue_comment": {"types": ["created"]}}
    assert workflow["permissions"] == {}
    (job,) = workflow["jobs"].values()
    writes = dict.fromkeys(["checks", "contents", "issues", "pull-requests"], "write")
    assert job["permissions"] == {**writes, "actions": "read", "statuses": "read"}
    assert job["concurrency"]["cancel-in-progress"] is False
    assert "github.event.issue.number" in job["concurrency"]["group"]
    (step,) = job["steps"]
    action = yaml.safe_load(text_of(".github/actions/agent/action.yml"))
    assert set(step["with"]) <= set(action["inputs"])
    assert {name for name, one in action["inputs"].items() if one["required"]} <= set(step["with"])
    assert int(step["with"]["minutes"]) < job["timeout-minutes"]
    assert "zizmor: ignore[dangerous-triggers]" in text


@pytest.mark.parametrize("name", ["workflows/ci.yml", "actions/agent/action.yml"])
def test_actions_of_others_are_pinned(name: str) -> None:
    """Whoever moves a tag of an action we use changes nothing for us, and no step keeps credentials."""
    text = text_of(f".github/{name}")
    for used in re.findall(r"uses: (\S+)", text):
        assert SHA.fullmatch(used), used
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/**/*.yml")), ids=lambda path: path.name)
def test_yaml_of_github_can_be_read(path: Path) -> None:
    """Every file that GitHub reads is YAML."""
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_image_runs_as_nobody_in_particular() -> None:
    """The image has a numeric user, our command as its entry point and a health check without curl."""
    text = text_of("Dockerfile")
    assert re.search(r"^USER 10001", text, re.MULTILINE)
    assert '"issuewright"]' in text
    assert re.search(r'^CMD \["serve"\]', text, re.MULTILINE)
    assert "HEALTHCHECK" in text
    assert "curl" not in text


def test_what_ci_runs_is_what_the_readme_says() -> None:
    """`.ci/run` finds the README's blocks by their headings, can be run, and is sound shell."""
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    for heading in re.findall(r'block "([^"$]+)"', script.read_text(encoding="utf-8")):
        assert f"\n## {heading}\n" in text_of("README.md")
    assert sys.version_info >= (3, 11)
