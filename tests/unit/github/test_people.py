import pytest

from bot.github import comments
from bot.github.people import co_author

BY = "Co-authored-by: mona-lisa <583231+mona-lisa@users.noreply.github.com>"


def test_a_person_is_named_by_number_and_login() -> None:
    """The address is the one by which GitHub knows an account, also one that a company manages."""
    assert co_author("mona-lisa", 583231) == BY
    assert co_author("mona_acme", 7) == "Co-authored-by: mona_acme <7+mona_acme@users.noreply.github.com>"


@pytest.mark.parametrize(
    "login",
    [
        "",
        "mona\nSigned-off-by: x <x@example.org>",
        "mona\n",
        "mona <x@example.org>",
        "a b",
        "-mona",
        "mona-",
        "möna",
        "\uff11\uff12",
        "wright[bot]",
        "m" * 101,
    ],
)
def test_what_is_no_login_signs_nothing(login: str) -> None:
    """A name that GitHub does not give brings no lines, no address and nobody else's name into a commit."""
    assert co_author(login, 583231) == ""


def test_nobody_is_named_without_a_number() -> None:
    """At the terminal, and where a request came without one, the commit names its author alone."""
    assert co_author("mona", 0) == ""


def test_it_stands_with_the_other_trailers() -> None:
    """Git reads trailers from the last paragraph alone; a model's own are taken out."""
    said = "Done.\n\nCo-authored-by: other <other@example.org>"
    written = comments.commit_message("Fix it", said, number=7, task_id="ab" * 16, by=BY)
    paragraphs = written.rstrip("\n").split("\n\n")
    assert paragraphs[-1].split("\n") == [f"Issuewright-Task: {'ab' * 16}", "Issuewright-Thread: #7", BY]
    assert "other" not in written
