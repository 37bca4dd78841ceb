"""`issuewright models`: what we know of models, and which of them does what here."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from bot import bootstrap
from bot.facts import ModelFacts, facts_of
from bot.settings.catalogue import UNKNOWN_OUTPUT, UNKNOWN_WINDOW, load_catalogue
from bot.settings.server import ServerSettings

UNKNOWN = "unknown"
WIDTH = 400
"""Columns that no row needs."""
LEGEND = (
    "Prices are those that `genai-prices` publishes, for a million tokens, and may be off. Where the window is "
    f"unknown {UNKNOWN_WINDOW:,} tokens are assumed, and where the reply is, {UNKNOWN_OUTPUT:,}."
)


def show(*, config: Path | None, as_json: bool) -> int:
    """Print the models; returns 0."""
    settings = bootstrap.load(config, {}, quiet=True)
    catalogue = load_catalogue(settings.models.catalogue)
    configured = _configured(settings)
    names = dict.fromkeys([*configured, *catalogue.names])
    facts = [facts_of(settings, catalogue, name) for name in names]
    if as_json:
        for fact in facts:
            typer.echo(json.dumps({**asdict(fact), "used_for": configured.get(fact.name)}))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Model", no_wrap=True)
    for column in ("Window", "Reply", "In $", "Out $"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("Calls", "Thinking", "Cache", "Images", "Used for"):
        table.add_column(column, no_wrap=True)
    for fact in facts:
        table.add_row(*_cells(fact), configured.get(fact.name, ""))
    # A cut figure is worse than a long line, which a terminal wraps.
    Console(highlight=False, width=WIDTH).print(table)
    typer.echo(f"\n{LEGEND}")
    return 0


def _configured(settings: ServerSettings) -> dict[str, str]:
    used = {settings.models.act: "work"}
    for name in settings.models.fallback:
        used.setdefault(name, "fallback")
    return used


def _cells(fact: ModelFacts) -> Iterator[str]:
    yield fact.name
    for tokens in (fact.window, fact.output):
        yield UNKNOWN if tokens is None else f"{tokens:,}"
    for dollars in (fact.input_usd, fact.output_usd):
        yield UNKNOWN if dollars is None else f"≈{dollars:.2f}"
    if not fact.known:
        yield from (fact.dialect, UNKNOWN, UNKNOWN, UNKNOWN)
        return
    yield from (fact.dialect, fact.thinking, _word(fact.caching), _word(fact.images))


def _word(value: bool) -> str:
    return "yes" if value else "no"
