"""Scripts in YAML: what is read, and where an error is said to be."""

from pathlib import Path

import pytest

from bot.testing.model.load import ScriptError, load_script, parse_script
from bot.testing.model.reply import Call, Fault, Pace
from bot.testing.model.script import Choose, Condition, Conversation, Script, Turn

WHOLE = """
script: all
window: 1000
values: {a: "1"}
pace: {delay_s: 0.5, chunk_s: 1, chunk: 7}
conversations:
  - name: one
    match: /x+/
    match_last: more
    turns:
      - text: Hi ${a}
        thinking: Hm
        stop: refusal
        calls:
          - read: {path: x}
          - {tool: run, json: "{"}
          - {tool: fly, arguments: {n: 1}, unknown: true}
        expect: [{tool: read}, {said: y}]
        capture: {b: "z"}
        faults:
          - {status: 429, retry_after_s: 1.5, times: 2, message: slow, error: rate_limit_error}
          - {kind: stall, seconds: 2, after: 5}
        delay_s: 1
        chunk_s: 2
        chunk: 3
        repeat: 2
      - choose:
          - {when: {tool: run, matches: a, lacks: b, is_error: true}, text: "${b}"}
          - {}
"""
TURN = Turn(
    text="Hi ${a}",
    thinking="Hm",
    stop="refusal",
    calls=(Call("read", {"path": "x"}), Call("run", json="{"), Call("fly", {"n": 1}, unknown=True)),
    expect=(Condition(tool="read"), Condition(said="y")),
    capture={"b": "z"},
    faults=(
        Fault(status=429, retry_after_s=1.5, times=2, message="slow", error="rate_limit_error"),
        Fault("stall", seconds=2, after=5),
    ),
    delay_s=1,
    chunk_s=2,
    chunk=3,
    repeat=2,
)
CHOICE = Choose((Turn(when=Condition("run", "a", "b", is_error=True), text="${b}"), Turn()))


def test_every_key_is_read(tmp_path: Path) -> None:
    """A YAML script is the same value as the one written in Python."""
    file = tmp_path / "all.yaml"
    file.write_text(WHOLE)
    assert load_script(file) == Script(
        (Conversation("one", (TURN, CHOICE), match="/x+/", match_last="more"),),
        name="all",
        values={"a": "1"},
        window=1000,
        pace=Pace(0.5, 1, 7),
    )


HEAD = "script: s\nconversations:\n  - name: c\n    turns:\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.yaml:1:1: the script is empty"),
        ("[1]", "s.yaml:1:1: a mapping is needed here"),
        ("script: s", 's.yaml:1:1: the script needs "conversations"'),
        ("script: s\nconversation: []", 's.yaml:2:1: the script has no "conversation"; did you mean "conversations"?'),
        ("script: s\nscript: t", 's.yaml:2:1: "script" is there twice'),
        ("script: 5\nconversations: []", "s.yaml:1:9: a text is needed here, not 5; put it in quotes"),
        ("script: s\nconversations: {}", "s.yaml:2:16: a list is needed here"),
        ("script: [", "s.yaml:1:10: "),
        ("a: !!python/object:os.system x", 's.yaml:1:1: the script has no "a"'),
        ("script: !thing x\nconversations: []", "s.yaml:1:9: could not determine a constructor"),
        (HEAD + "      - txt: a", 's.yaml:5:9: a turn has no "txt"; did you mean "text"?'),
        (HEAD + "      - bananas: a", 's.yaml:5:9: a turn has no "bananas"; it has: text, thinking'),
        (HEAD + "      - text: ${nope}", "s.yaml:5:15: ${nope} is captured nowhere"),
        (HEAD + "      - calls: [{run: {a: [{b: '${nope}'}]}}]", "s.yaml:5:32: ${nope} is captured nowhere"),
        (HEAD + "      - calls: [{arguments: {}}]", 's.yaml:5:17: a call needs "tool"'),
        (HEAD + "      - calls: [{tool: a, arguments: {}, json: ''}]", "s.yaml:5:17: a call has either"),
        (HEAD + "      - calls: [{run: x}]", "s.yaml:5:23: a mapping is needed here"),
        (HEAD + "      - stop: later", 's.yaml:5:15: "later" is none of: end_turn'),
        (HEAD + "      - when: {tool: x}", "s.yaml:5:9: `when` belongs to an alternative"),
        (HEAD + "      - expect: {matches: '('}", "s.yaml:5:27: bad regular expression"),
        (HEAD + "      - faults: [{kind: explode}]", 's.yaml:5:25: "explode" is none of: status'),
        (HEAD + "      - faults: [{times: -1}]", "s.yaml:5:26: a whole number from 0"),
        (HEAD + "      - delay_s: fast", "s.yaml:5:18: a number from 0"),
        (HEAD + "      - expect: {is_error: 1}", "s.yaml:5:28: true or false"),
        ("script: s\nconversations: [{turns: []}]", 's.yaml:2:17: a conversation needs "name"'),
        ("script: s\nconversations: [{name: a, match: /(/, turns: []}]", "s.yaml:2:34: bad regular expression"),
    ],
)
def test_an_error_has_file_line_and_column(text: str, message: str) -> None:
    """Whatever is wrong, the message begins with the place, and says what is possible there."""
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "s.yaml")
    assert str(caught.value).startswith(message)
