"""The dialect `xml` as a model speaks it: a tag for the tool, a tag for each parameter; pure."""

import re

from bot.testing.model.reply import Call
from bot.testing.model.spoken_lesson import Form, Found, Lesson

_OPENING = re.compile(r"<([^\s<>/]+)>")
_BLANK = re.compile(r"\s*")
_VALUE = re.compile(r'<([^\s<>/="\']+)(?: id="([^"]*)")?>\n?(.*?)</\1(?(2) id="\2")>', re.DOTALL)
_TAUGHT = re.compile(r'<([^\s<>/="\']+)( id="[^"]*")?>')


class Xml:
    """Tags; a value has the token in both of its tags where its text may hold a closing tag."""

    evidence: str = '`id="TOKEN"` in its opening and in its closing tag'

    def form(self, tools: str, at: int, name: str, token: str) -> tuple[Form, int] | None:
        """Look for a tag on a line of its own and all up to its end."""
        tag = re.escape(name)
        found = re.compile(rf"^<{tag}>\n(.*?)^</{tag}>$", re.MULTILINE | re.DOTALL).search(tools, at)
        if found is None:
            return None
        taught = _TAUGHT.findall(found[1])
        return Form(name, [one for one, _ in taught], frozenset(one for one, own in taught if own)), found.end()

    def write(self, call: Call, lesson: Lesson) -> str:
        """Spell a call; broken JSON stands in the tool's tag as it is."""
        arguments, form = call.parsed(), lesson.form(call.tool)
        if arguments is None:
            return f"<{call.tool}>\n{call.spelled()}\n</{call.tool}>"
        values = [_value(form, name, value, lesson) for name, value in arguments.items()]
        return "\n".join([f"<{call.tool}>", *values, f"</{call.tool}>"])

    def find(self, text: str, at: int, lesson: Lesson) -> Found | None:
        """Read from the tool's opening tag to its closing one, with nothing but parameters in between."""
        opening = _OPENING.match(text, at)
        if opening is None or opening[1] not in lesson.forms:
            return None
        name, place = opening[1], opening.end()
        arguments: dict[str, object] = {}
        while True:
            blank = _BLANK.match(text, place)
            place = place if blank is None else blank.end()
            if text.startswith(closing := f"</{name}>", place):
                return Found(at, place + len(closing), [(name, arguments)])
            value = _VALUE.match(text, place)
            if value is None:
                return None
            arguments[value[1]] = lesson.forms[name].read(value[1], value[3])
            place = value.end()


def _value(form: Form, name: str, value: object, lesson: Lesson) -> str:
    text = form.spell(name, value)
    if name not in form.texts and not re.search(r"\n|</", text):
        return f"<{name}>{text}</{name}>"
    mark = lesson.mark(text)
    return f'<{name} id="{mark}">\n{text}</{name} id="{mark}">'
