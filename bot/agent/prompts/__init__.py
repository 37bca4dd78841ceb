"""The prompts, as templates whose comments say why each rule stands there."""

from functools import cache


@cache
def render(name: str, **values: int | bool | str) -> str:
    """Fill in a prompt; its comments are left out.

    Args:
        name: of the file, without `.md.j2`.
        values: all that it has a place for.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - `--help` needs none

    # Nothing here becomes HTML.
    prompts = Environment(loader=PackageLoader("bot.agent", "prompts"), undefined=StrictUndefined, autoescape=False)  # noqa: S701
    return prompts.get_template(f"{name}.md.j2").render(**values).strip()
