"""The dialect `prose` as a model speaks it: a line that begins with a verb, and blocks of text below it; pure."""

import json
import re
from collections.abc import Sequence

from bot.testing.model.reply import Call
from bot.testing.model.spoken_lesson import Form, Found, Lesson

_LINE = re.compile(r'(\S+)((?: [\w.-]+=(?:"(?:[^"\\]|\\.)*"|[^\s"`]+))*)(?: `([^`\n]+)`)?[ \t\r]*(?:\n|\Z)')
_OPTION = re.compile(r' ([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s"`]+)')
_BARE = re.compile(r"[\w./:+-]+", re.ASCII)
_TAUGHT_OPTION = re.compile(r" ([\w.-]+)=…")


class Prose:
    """Verbs; what fits between backticks on the line stands there, what is longer in a block with the token."""

    evidence: str = "three backticks and `TOKEN`"

    def form(self, tools: str, at: int, name: str, token: str) -> tuple[Form, int] | None:
        """Look for a line that begins with the verb and holds nothing but parameters, with its blocks."""
        fence = re.escape(f"```{token}")
        line = rf"^{re.escape(name.upper())}((?: [\w.-]+=…)*)(?: `([^`\n]+)`)?((?:\n{fence}\n.+\n{fence})*)$"
        found = re.compile(line, re.MULTILINE).search(tools, at)
        if found is None:
            return None
        texts = re.findall(rf"{fence}\n(.+)\n{fence}", found[3])
        first = [found[2]] if found[2] else texts[:1]
        needed = [*first, *_TAUGHT_OPTION.findall(found[1]), *(text for text in texts if text not in first)]
        return Form(name, needed, frozenset(texts)), found.end()

    def write(self, call: Call, lesson: Lesson) -> str:
        """Spell a call; broken JSON stands behind the verb as it is."""
        arguments, form = call.parsed(), lesson.form(call.tool)
        verb = call.tool.upper()
        if arguments is None:
            return f"{verb} {call.spelled()}"
        texts = {name: form.spell(name, value) for name, value in arguments.items()}
        # The only value of a tool that nobody taught is most likely what it is for.
        first = next(iter(form.needed or (texts if len(texts) == 1 else ())), "")
        blocks = [name for name in form.needed if name in texts and (name == first or name in form.texts)]
        quoted = ""
        if first in texts and first not in form.texts and re.fullmatch(r"[^`\r\n]+", texts[first]):
            quoted = f" `{texts[first]}`"
            blocks = [name for name in blocks if name != first]
        options = [name for name in texts if name not in blocks and not (quoted and name == first)]
        line = "".join([verb, *(f" {name}={_option(texts[name])}" for name in options), quoted])
        return "\n".join([line, *(_block(texts[name], lesson) for name in blocks)])

    def find(self, text: str, at: int, lesson: Lesson) -> Found | None:
        """Read a line with a known verb, and its blocks as far as there are any."""
        line = _LINE.match(text, at)
        form = None if line is None else {one.upper(): form for one, form in lesson.forms.items()}.get(line[1])
        if line is None or form is None:
            return None
        arguments: dict[str, object] = {}
        for name, written in _OPTION.findall(line[2]):
            arguments[name] = form.read(name, json.loads(written) if written.startswith('"') else written)
        missing = [name for name in form.needed if name not in arguments]
        if line[3] and missing:
            arguments[missing[0]] = form.read(missing[0], line[3])
            del missing[0]
        end = line.end()
        for name, value, after in _blocks(text, end, missing, lesson):
            arguments[name], end = form.read(name, value), after
        return Found(at, end - text.startswith("\n", end - 1), [(form.name, arguments)])


def _option(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _block(text: str, lesson: Lesson) -> str:
    mark = f"```{lesson.mark(text)}"
    if text.endswith("\n"):
        return f"{mark}\n{text}{mark}"
    return f"{mark} no-eol\n{text}\n{mark}"


def _blocks(text: str, at: int, names: Sequence[str], lesson: Lesson) -> Sequence[tuple[str, str, int]]:
    """Read the blocks directly below a line: the parameter of each, its text, and where it ends."""
    fence = rf"```{re.escape(lesson.token)}(?:-[0-9]+)?"
    block = re.compile(rf"({fence})( no-eol)?\n(.*?)^\1[ \t\r]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
    found: list[tuple[str, str, int]] = []
    for name in names:
        if (one := block.match(text, at)) is None:
            break
        at = one.end()
        found.append((name, one[3].removesuffix("\n") if one[2] else one[3], at))
    return found
