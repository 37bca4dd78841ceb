"""Each limit binds, and the guard decides the same at every replay."""

import ast
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent import limits
from bot.agent.limits import LimitGuard, Limits, Spent
from bot.domain.messages import Image, ToolCall, ToolResult, Usage
from bot.errors import LimitReached

BOUNDS = Limits(turns=3, tokens=100, usd=1.0, minutes=2.0)


def test_a_fresh_guard_lets_the_first_request_through() -> None:
    """Nothing is spent at the beginning."""
    guard = LimitGuard(BOUNDS)
    guard.check()
    assert guard.spent == Spent(0, Usage(), 0.0, 0.0)


@pytest.mark.parametrize(
    ("usage", "usd", "elapsed_s", "what"),
    [
        (Usage(25, 25, 25, 25), 0.1, 1.0, "tokens: 100 of 100"),
        (Usage(1), 1.0, 1.0, "usd: 1 of 1"),
        (Usage(1), 0.1, 120.0, "minutes: 2 of 2"),
    ],
)
def test_each_limit_binds(usage: Usage, usd: float, elapsed_s: float, what: str) -> None:
    """A limit that is reached stops the next request and says which it was."""
    guard = LimitGuard(BOUNDS)
    guard.replied(usage, usd, elapsed_s)
    with pytest.raises(LimitReached) as caught:
        guard.check()
    assert str(caught.value) == what
    assert caught.value.what == what.partition(":")[0]


def test_just_below_every_limit_goes_on() -> None:
    """One token, cent, second and turn below the limits the run goes on."""
    guard = LimitGuard(BOUNDS)
    guard.replied(Usage(50), 0.5, 60.0)
    guard.replied(Usage(49), 0.49, 119.0)
    guard.check()


def test_turns_bind() -> None:
    """So many replies and no more."""
    guard = LimitGuard(BOUNDS)
    for count in range(3):
        guard.check()
        guard.replied(Usage(1), 0.0, float(count))
    with pytest.raises(LimitReached, match="turns: 3 of 3"):
        guard.check()


def test_where_a_price_is_unknown_the_tokens_bind() -> None:
    """One unknown price makes the sum unknown for good; then tokens bind instead of money."""
    guard = LimitGuard(Limits(turns=100, tokens=100, usd=1.0, minutes=60))
    guard.replied(Usage(10), 0.9, 1.0)
    guard.replied(Usage(10), None, 2.0)
    guard.replied(Usage(10), 50.0, 3.0)
    assert guard.spent.usd is None
    guard.check()
    guard.replied(Usage(70), None, 4.0)
    with pytest.raises(LimitReached, match="tokens"):
        guard.check()


def test_time_is_what_was_recorded() -> None:
    """Seconds are those of the last reply, not a sum."""
    guard = LimitGuard(BOUNDS)
    guard.replied(Usage(1), 0.0, 50.0)
    guard.replied(Usage(1), 0.0, 70.0)
    assert guard.spent.seconds == 70.0


def test_there_is_no_clock_inside() -> None:
    """The module imports nothing that tells the time or rolls dice."""
    tree = ast.parse(inspect.getsource(limits))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not (names | modules) & {"time", "datetime", "random", "uuid", "secrets"}


def test_three_broken_replies_in_a_row_end_it() -> None:
    """Three replies in a row that cannot be read end the run."""
    guard = LimitGuard(BOUNDS)
    guard.formatted(well=False)
    guard.formatted(well=False)
    with pytest.raises(LimitReached, match="format_errors: 3 of 3"):
        guard.formatted(well=False)


def test_a_good_reply_forgets_the_broken_ones() -> None:
    """A good reply in between begins the count anew."""
    guard = LimitGuard(BOUNDS)
    for well in (False, False, True, False, False, True):
        guard.formatted(well=well)


def repeats(guard: LimitGuard, *pairs: tuple[str, str]) -> list[bool]:
    """Count calls with their results; the ids differ each time."""
    return [
        guard.repeated(ToolCall(f"i{count}", "run", arguments), ToolResult(f"i{count}", text))
        for count, (arguments, text) in enumerate(pairs)
    ]


def test_the_third_repetition_warns_and_the_fifth_ends_it() -> None:
    """The same call with the same result warns at three and four times and ends the run at five."""
    guard = LimitGuard(BOUNDS)
    assert repeats(guard, *[('{"command":"ls"}', "a")] * 4) == [False, False, True, True]
    with pytest.raises(LimitReached, match="repeats: 5 of 5"):
        repeats(guard, ('{"command":"ls"}', "a"))


def test_the_same_call_with_another_result_is_no_repetition() -> None:
    """A test that runs again and again with other outcomes is no repetition."""
    assert not any(repeats(LimitGuard(BOUNDS), *[("{}", str(count)) for count in range(50)]))


def test_another_picture_is_another_result() -> None:
    """A screenshot that changes is no repetition, though the words beside it are the same; the same one is."""
    guard, shot = LimitGuard(BOUNDS), ToolCall("a", "shot", "{}")
    pictures = [ToolResult("a", "taken", images=(Image("image/png", f"QUJ{count}"),)) for count in range(10)]
    assert not any(guard.repeated(shot, result) for result in pictures)
    assert [guard.repeated(shot, pictures[-1]) for _ in range(2)] == [False, True]


def test_something_new_begins_the_count_anew() -> None:
    """A linter that passes after each of many edits is no repetition."""
    pairs = [pair for count in range(20) for pair in ((f"edit {count}", "done"), ("lint", "passed"))]
    assert not any(repeats(LimitGuard(BOUNDS), *pairs))


def test_going_to_and_fro_is_a_repetition() -> None:
    """Two calls in turn that give nothing new are warned of from the fourth on, and end the run at the sixth."""
    guard = LimitGuard(BOUNDS)
    assert repeats(guard, *[("a", "x"), ("b", "y")] * 2, ("a", "x")) == [False, False, False, True, True]
    with pytest.raises(LimitReached, match="repeats: 6 of 6"):
        repeats(guard, ("b", "y"))


def test_a_circle_of_three_calls_is_a_repetition() -> None:
    """Longer circles end by the count of each call: the fifth of one is too many."""
    guard = LimitGuard(BOUNDS)
    warned = repeats(guard, *[("a", "x"), ("b", "y"), ("c", "z")] * 4)
    assert warned.index(True) == 8
    with pytest.raises(LimitReached, match="repeats: 5 of 5"):
        repeats(guard, *[("a", "x"), ("b", "y"), ("c", "z")] * 2)


def edits(guard: LimitGuard, *steps: str) -> list[bool]:
    """Count calls that give nothing new but in what they ask for; a capital letter edits."""
    return [guard.repeated(ToolCall("i", one, "{}"), ToolResult("i", "same"), changed=one.isupper()) for one in steps]


def test_behind_a_change_of_the_work_tree_a_look_is_another_one() -> None:
    """The same look with the same result counts anew behind each edit, though the edit itself is an old one."""
    assert edits(LimitGuard(BOUNDS), *"tABtttAttB") == [*[False] * 5, True, *[False] * 4]


def test_to_and_fro_of_one_edit_is_a_circle() -> None:
    """An edit made and taken back again and again ends the run, whatever is looked at between."""
    guard = LimitGuard(BOUNDS)
    assert edits(guard, *"AtBtAtBtAtBt") == [False] * 10 + [True, False]
    with pytest.raises(LimitReached, match="repeats: 5 of 5"):
        edits(guard, *"AtBtAtBt")


@pytest.mark.parametrize(
    ("usage", "usd", "elapsed_s", "words"),
    [
        (Usage(75), 0.1, 1.0, "75 of 100 tokens"),
        (Usage(1), 0.75, 1.0, "0.75 of 1.00 US dollars"),
        (Usage(1), 0.1, 90.0, "2 of 2 minutes"),
    ],
)
def test_at_three_quarters_of_a_limit_the_model_is_told_once(
    usage: Usage, usd: float, elapsed_s: float, words: str
) -> None:
    """One line for the limit that comes near, and none for it again."""
    guard = LimitGuard(BOUNDS)
    assert guard.nearing("finish") == []
    guard.replied(usage, usd, elapsed_s)
    (line,) = guard.nearing("finish")
    assert line.startswith(f"The harness: {words} are used.")
    assert guard.nearing("finish") == []


def test_each_limit_is_told_of() -> None:
    """A further limit that comes near has a line of its own; where the price is unknown there is none for money."""
    guard = LimitGuard(Limits(turns=4, tokens=1_000_000, usd=1.0, minutes=60))
    for count in range(2):
        guard.replied(Usage(10), None, float(count))
    assert guard.nearing("finish") == []
    guard.replied(Usage(800_000), None, 3.0)
    assert [line.split(" are")[0] for line in guard.nearing("finish")] == [
        "The harness: 3 of 4 turns",
        "The harness: 800K of 1M tokens",
    ]
    assert guard.budget == "Used so far: 3 of 4 turns, 800K of 1M tokens, 0 of 60 minutes."


def test_another_spelling_of_the_same_arguments_is_a_repetition() -> None:
    """Order of names and blanks do not make another call."""
    spellings = ('{"a":1,"b":2}', '{"b": 2, "a": 1}', '{ "a" : 1, "b" : 2 }')
    assert repeats(LimitGuard(BOUNDS), *[(one, "x") for one in spellings]) == [False, False, True]


def test_arguments_that_are_no_json_count_too() -> None:
    """Arguments that cannot be read are compared as they stand; odd characters do no harm."""
    pairs = [("{broken \ud800", "x \udfff")] * 3
    assert repeats(LimitGuard(BOUNDS), *pairs) == [False, False, True]


STEPS = st.one_of(
    st.tuples(st.just("reply"), st.integers(0, 40), st.one_of(st.none(), st.floats(0, 1)), st.floats(0, 200)),
    st.tuples(st.just("format"), st.booleans()),
    st.tuples(st.just("call"), st.sampled_from(["{}", "[1]", "x"]), st.sampled_from(["a", "b"]), st.booleans()),
)


@given(st.lists(STEPS, max_size=30))
def test_a_replay_decides_the_same(steps: list[tuple[object, ...]]) -> None:
    """The same records lead to the same decisions, whenever they are played."""

    def life() -> list[str]:
        guard, decided = LimitGuard(BOUNDS), []
        for step in steps:
            try:
                match step:
                    case ("reply", int(tokens), (float() | None) as usd, float(elapsed)):
                        guard.check()
                        guard.replied(Usage(tokens), usd, elapsed)
                    case ("format", bool(well)):
                        guard.formatted(well=well)
                    case ("call", str(arguments), str(text), bool(changed)):
                        call = ToolCall("i", "n", arguments)
                        decided.append(str(guard.repeated(call, ToolResult("i", text), changed=changed)))
                decided += guard.nearing("finish")
            except LimitReached as limit:
                decided.append(str(limit))
        return [*decided, repr(guard.spent)]

    assert life() == life()
