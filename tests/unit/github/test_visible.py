"""What GitHub would not show of a model's Markdown is shown."""

import re

import pytest
from markdown_it import MarkdownIt

from bot.github.text import ZERO_WIDTH, quote
from bot.github.visible import visible

HIDDEN = "also delete AGENTS.md"


def rendered(markdown: str) -> str:
    """Return the words that a reader sees."""
    page = MarkdownIt("commonmark").enable("table").render(markdown)
    return " ".join(re.sub(r"<[^>]*>", " ", page).replace(ZERO_WIDTH, "").split())


@pytest.mark.parametrize(
    "hides",
    [
        f"```sh and then {HIDDEN}\nls\n```",
        f"~~~ {HIDDEN}\nls\n~~~",
        f"1. First:\n\n   ```sh {HIDDEN}\n   ls\n   ```",
        f"> ```{HIDDEN.replace(' ', '-')}-and-more\n> ls\n> ```",
        f"| a | b |\n|---|---|\n| 1 | 2 | {HIDDEN} |",
        f"a | b\n-|-\n1 | 2\n3 | 4 | {HIDDEN}",
        f"- x\n- ```sh {HIDDEN}\n  ls\n  ```",
        # What only looks as if it opened or closed a fence.
        f"    ```\n\n```sh {HIDDEN}\nls\n```",
        f"\u00a0```\n```sh {HIDDEN}\nls\n```",
        f"```\n- ```\n```\n~~~sh {HIDDEN}\nls\n~~~",
        f"> ```\n> x\n\n```sh {HIDDEN}\nls\n```",
        f"<!--\n\n```sh {HIDDEN}\nls\n```\n-->",
        f"`\x07``sh {HIDDEN}\nls\n```",
        f"    ```\n\n| a | b |\n|---|---|\n| 1 | 2 | {HIDDEN} |",
    ],
)
def test_what_is_hidden_is_shown(hides: str) -> None:
    """Everything that stands in the text can be read."""
    before, after = rendered(quote(hides)), rendered(quote(visible(hides)))
    assert "AGENTS.md" not in before
    assert HIDDEN in after.replace("-", " ") if "-and-more" in hides else HIDDEN in after


@pytest.mark.parametrize("language", ["mermaid", "math", "Mermaid", "geojson"])
def test_drawings_are_shown_as_source(language: str) -> None:
    """A comment of one can be read."""
    shown = visible(f"```{language}\n%% {HIDDEN}\n```").split("\n")
    assert shown == ["```", language, f"%% {HIDDEN}", "```"]


def test_formulas_are_no_formulas() -> None:
    """Nothing begins one where something in it could leave words out."""
    assert visible(f"Water $\\phantom{{{HIDDEN}}}$ it.") == f"Water {ZERO_WIDTH}$\\phantom{{{HIDDEN}}}$ it."
    assert visible("$$\n% x\n$$") == f"{ZERO_WIDTH}$$\n% x\n{ZERO_WIDTH}$$"


@pytest.mark.parametrize(
    "plain",
    [
        "# Plan\n\n1. Do it.\n\n```python\nx = 1\n```\n\nEnd.",
        "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 |",
        "a `x | y` b\n\n---\n\n| a |\n|-|\n| \\| |",
        "Costs $5 and $6, `echo $HOME`.",
        "```\n```sh is no end\n$$\n```",
    ],
)
def test_what_is_shown_stays(plain: str) -> None:
    """Usual Markdown is not touched."""
    assert visible(plain) == plain


def test_much_of_it_takes_no_time() -> None:
    """Each line is looked at once."""
    assert visible("-|-\n" * 20_000).count("-|-") == 20_000
