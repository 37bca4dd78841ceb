"""Play a script: a request in, the reply out; pure, so the same request always gets the same reply."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.testing.model.reply import Call, Pace, Part, Reply, Thinking
from bot.testing.model.request import Request, Text, ToolResult
from bot.testing.model.scene import Moment, Scene, find_scene
from bot.testing.model.script import Choose, Condition, Conversation, Script, Step, Turn

NAME = re.compile(r"(\$?)\$\{([a-z_][a-z0-9_]*)\}")
"""A captured value in a text. Lower case only: `${HOME}` and `${{ secrets.X }}` are other people's."""

QUOTED = 300
"""Characters of a result that a problem quotes."""


class Stuck(Exception):  # noqa: N818 - not an error of ours: the play answers with its words
    """The script cannot go on; says why."""


def play(script: Script, request: Request) -> Reply:
    """Return what the script answers to the request.

    A script that cannot go on answers with a text that says why, also in `Reply.problem`. Nothing is raised, but for
    what a callable turn raises.
    """
    scene = find_scene(script, request)
    if scene is None:
        opening = next((message.text for message in request.messages if message.role == "user"), "")
        return _stuck(Reply(key="none"), f'no conversation of "{script.name}" fits the message {_quoted(opening)}')
    turn = scene.moments[-1].turn
    empty = Reply(key=scene.key, conversation=scene.conversation.name, turn=turn)
    try:
        reply = _perform(script, scene, request)
    except Stuck as stuck:
        where = f'conversation "{scene.conversation.name}", turn {turn + 1}'
        return _stuck(empty, f'{where} of "{script.name}": {stuck}')
    return replace(reply, key=empty.key, conversation=empty.conversation, turn=turn)


def _perform(script: Script, scene: Scene, request: Request) -> Reply:
    moment = scene.moments[-1]
    step = _step(scene.conversation, moment.turn)
    if step is None:
        raise Stuck(f"the script has only {len(_steps(scene.conversation))} turns")
    if not isinstance(step, Turn | Choose):
        return step(request)
    turn = _chosen(step, moment)
    if turn is None:
        raise Stuck(f"no alternative fits what came: {_came(moment)}")
    for condition in turn.expect:
        if not _holds(condition, moment):
            raise Stuck(f"expected {_described(condition)}, but there came {_came(moment)}")
    values = {**script.values, **_captured(scene), **_capture(turn, moment)}
    return Reply(
        parts=_parts(turn, values, request), stop=turn.stop, pace=_pace(script, turn), faults=tuple(turn.faults)
    )


def _steps(conversation: Conversation) -> list[Step]:
    return [s for s in conversation.turns for _ in range(s.repeat if isinstance(s, Turn) else 1)]


def _step(conversation: Conversation, turn: int) -> Step | None:
    steps = _steps(conversation)
    return steps[turn] if turn < len(steps) else None


def _chosen(step: Turn | Choose, moment: Moment) -> Turn | None:
    turns = step.of if isinstance(step, Choose) else (step,)
    return next((turn for turn in turns if turn.when is None or _holds(turn.when, moment)), None)


def _captured(scene: Scene) -> dict[str, str]:
    """Collect what earlier turns captured, from what they had in front of them."""
    values: dict[str, str] = {}
    for moment in scene.moments[:-1]:
        step = _step(scene.conversation, moment.turn)
        turn = _chosen(step, moment) if isinstance(step, Turn | Choose) else None
        for name, pattern in turn.capture.items() if turn else ():
            if (value := _search(pattern, moment.heard)) is not None:
                values[name] = value
    return values


def _capture(turn: Turn, moment: Moment) -> dict[str, str]:
    values = {name: _search(pattern, moment.heard) for name, pattern in turn.capture.items()}
    for name, value in values.items():
        if value is None:
            raise Stuck(f"nothing to capture as ${{{name}}} with /{turn.capture[name]}/ in {_came(moment)}")
    return {name: value for name, value in values.items() if value is not None}


def _search(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return None if found is None else found[1] if found.re.groups else found[0]


def _holds(condition: Condition, moment: Moment) -> bool:
    if condition.said is not None and _search(condition.said, moment.said) is None:
        return False
    about_results = (condition.tool, condition.matches, condition.lacks, condition.is_error) != (None,) * 4
    return not about_results or any(_result_fits(condition, result) for result in moment.results)


def _result_fits(condition: Condition, result: ToolResult) -> bool:
    return (
        condition.tool in (None, result.name)
        and condition.is_error in (None, result.is_error)
        and (condition.matches is None or _search(condition.matches, result.text) is not None)
        and (condition.lacks is None or _search(condition.lacks, result.text) is None)
    )


def _parts(turn: Turn, values: Mapping[str, str], request: Request) -> tuple[Part, ...]:
    parts: list[Part] = []
    if turn.thinking and request.thinking:
        parts.append(Thinking(_filled(turn.thinking, values)))
    if turn.text:
        parts.append(Text(_filled(turn.text, values)))
    for call in turn.calls:
        if call.tool not in request.tools and not call.unknown:
            offered = ", ".join(request.tools) or "none"
            raise Stuck(f'calls the tool "{call.tool}", which the request does not offer (it offers: {offered})')
        parts.append(_filled_call(call, values))
    return tuple(parts)


def _filled_call(call: Call, values: Mapping[str, str]) -> Call:
    arguments = {name: _filled_deep(value, values) for name, value in call.arguments.items()}
    return replace(call, arguments=arguments, json=None if call.json is None else _filled(call.json, values))


def _filled_deep(value: object, values: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _filled(value, values)
    if isinstance(value, Mapping):
        return {key: _filled_deep(inner, values) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_filled_deep(inner, values) for inner in value]
    return value


def _filled(text: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        if found[2] not in values:
            raise Stuck(f"nothing was captured as ${{{found[2]}}}")
        return values[found[2]]

    return NAME.sub(value, text)


def _pace(script: Script, turn: Turn) -> Pace:
    return Pace(
        delay_s=script.pace.delay_s if turn.delay_s is None else turn.delay_s,
        chunk_s=script.pace.chunk_s if turn.chunk_s is None else turn.chunk_s,
        chunk=script.pace.chunk if turn.chunk is None else turn.chunk,
    )


def _stuck(reply: Reply, why: str) -> Reply:
    words = f"The scripted model cannot go on: {why}."
    return replace(reply, parts=(Text(words),), problem=words)


def _described(condition: Condition) -> str:
    words = [f'a result of "{condition.tool}"' if condition.tool else "a tool result"]
    if condition.is_error is not None:
        words.append("that is an error" if condition.is_error else "that is no error")
    words += [f"with /{condition.matches}/"] if condition.matches is not None else []
    words += [f"without /{condition.lacks}/"] if condition.lacks is not None else []
    said = [f"the user's words with /{condition.said}/"] if condition.said is not None else []
    return " and ".join(([" ".join(words)] if len(words) > 1 or condition.tool or not said else []) + said)


def _came(moment: Moment) -> str:
    results = [
        f'a result of "{result.name}"{" (error)" if result.is_error else ""}: {_quoted(result.text)}'
        for result in moment.results
    ]
    said = [f"the words {_quoted(moment.said)}"] if moment.said else []
    return "; ".join(results + said) or "nothing"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= QUOTED else text[:QUOTED] + "…")
