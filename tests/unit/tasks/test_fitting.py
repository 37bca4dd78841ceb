"""How much of a review is told: bounded, writers first, and nothing lost."""

from bot.agent.threads import threads_told
from bot.domain.review import OpenThread, Said
from bot.tasks.fitting import COMMENT_CHARS, HUNK_CHARS, ROUND_CHARS, THREAD_CHARS, fitted

TASK = "0123456789abcdef" * 2


def thread(number: int, *said: Said, hunk: str = "@@") -> OpenThread:
    """Make a thread."""
    return OpenThread(f"T{number}", f"PRRT_{number}", "a.py", 3, None, False, False, hunk, said)  # noqa: FBT003


def by(author: str, text: str = "Hm.") -> Said:
    """Let somebody say something; Maria may write here."""
    return Said(author, author == "maria", text, ours=author == "")


def test_long_texts_say_how_much_is_left_out() -> None:
    """The beginning of a comment, the end of a hunk."""
    [made] = fitted([thread(1, by("maria", "x" * 65_000), hunk="@" + "h" * 5_000 + "\n+last")])
    left = 65_000 - COMMENT_CHARS
    assert made.said[0].text == f"{'x' * COMMENT_CHARS}\n[left out for length: {left} more characters]"
    assert made.hunk.endswith("h\n+last")
    assert made.hunk.startswith(f"[left out for length: {5_007 - HUNK_CHARS} characters before this]\nhhh")
    short = thread(1, by("maria"), by("stranger"))
    assert fitted([short])[0].said == [*short.said]


def test_a_flood_hides_no_writer() -> None:
    """In the same thread, and in others."""
    flood = [by("stranger", "x" * 65_000)] * 30
    mixed = thread(501, *flood, by("maria", "Check the token."), *flood)
    made = fitted([*(thread(number, *flood) for number in range(1, 501)), mixed])
    assert made[0].name == "T501"
    assert by("maria", "Check the token.") in made[0].said
    assert made[0].omitted + len(made[0].said) == 61
    assert sum(len(one.text) for one in made[0].said) <= THREAD_CHARS
    assert sorted(one.name for one in made) == sorted(f"T{number}" for number in range(1, 502))
    assert all(one.told or (not one.said and not one.hunk) for one in made)
    told = threads_told(TASK, 8, made)
    assert len(told) < ROUND_CHARS * 1.2
    assert "and 398 more\n" in told


def test_what_was_left_comes_sooner_or_later() -> None:
    """Threads that we have answered give way to those that we have not."""
    long = [by("maria", "x" * 4_000)] * 4
    first = fitted([thread(number, *long) for number in range(1, 6)])
    told = {one.name for one in first if one.told}
    assert 0 < len(told) < 5
    second = fitted([thread(n, *long, *([by("", "No.")] if f"T{n}" in told else [])) for n in range(1, 6)])
    assert {f"T{number}" for number in range(1, 6)} - told <= {one.name for one in second if one.told}


def test_the_newest_of_what_a_writer_asks_counts_most() -> None:
    """Where even that is too much; the order stays."""
    said = [by("maria", f"{number:02} {'x' * 3_900}") for number in range(10)]
    [made] = fitted([thread(1, *said)])
    assert [one.text[:2] for one in made.said] == ["06", "07", "08", "09"]
    assert made.omitted == 6


def test_our_answer_stays_the_last_word() -> None:
    """Where writers said more than there is room for."""
    said = [by("maria", "x" * 3_850)] * 10
    [made] = fitted([thread(1, *said, by("", "No."))])
    assert made.omitted
    assert not made.is_due
