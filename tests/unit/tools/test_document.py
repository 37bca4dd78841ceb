"""The page of the tools says what the tools say."""

from pathlib import Path

from bot.tools.document import page, write
from bot.tools.standard import standard_tools

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    """`docs/tools.md` is what the tools make of it."""
    written = (ROOT / "docs/tools.md").read_text(encoding="utf-8")
    assert written == page(), 'run `python -c "from bot.tools.document import write; write()"`'


def test_every_tool_and_argument_is_there(tmp_path: Path) -> None:
    """Each tool has its heading, and each argument its row."""
    (tmp_path / "docs").mkdir()
    write(tmp_path)
    text = (tmp_path / "docs/tools.md").read_text(encoding="utf-8")
    for tool in standard_tools():
        section = text.partition(f"### `{tool.spec.name}`\n")[2].partition("\n#")[0]
        assert tool.spec.description in section
        properties = tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        assert [name for name in properties if f"| `{name}` |" not in section] == []
