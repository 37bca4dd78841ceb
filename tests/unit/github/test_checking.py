"""What people read of checks without work, and the mark on evidence that is old."""

import pytest

from bot.github import comments, text
from bot.github.checking import comment, marked
from bot.github.evidence import CheckResult, CheckRow, Counted, EvidenceView, evidence_check, section
from tests.unit.github.test_evidence import EVIL

OURS, THEIRS, TREE = "a" * 40, "b" * 40, "d" * 40
TAIL = "<!-- issuewright:evidence:v1 {} -->\n<!-- issuewright:v1:x -->"
BODY = f"Closes #7\n\n> ### Evidence\n> \n> quoted\n\n### Evidence\n\nThese checks were run.\n\n| a |\n\n{TAIL}"
RAN = CheckRow("tests", "make test", None, CheckResult(1, 2.0, TREE, Counted("tests", 2, 1, 1, 0), "one failed"))
VIEW = EvidenceView(checks=[RAN], head=OURS, tree=TREE, alone=True)


def test_a_head_alone_has_one_state() -> None:
    """One column of ends, the whole commit, its tree, and the log; the check run says the same."""
    said = section(VIEW)
    assert f"on the files of `{OURS}`, whose tree is `dddddddd`." in said
    assert "| Check | Command | Exit | Tests | Seconds | Tree |" in said
    assert "| tests | `make test` | 1 | 1 passed, 1 failed | 2.0 | `dddddddd` |" in said
    assert "before" not in said
    assert "one failed" in said
    check = evidence_check(VIEW, "t")
    assert (check.head_sha, check.conclusion, check.title) == (OURS, "failure", "0 of 1 checks pass")
    assert f"{check.summary}\n\n{check.text}" == said
    assert comment(VIEW) == f"**0 of 1 checks pass** on `aaaaaaaa`.\n\n{said}"


def test_words_of_others_have_no_power_there() -> None:
    """A check's name and why it was not run are anybody's."""
    row = CheckRow(EVIL, "make test", None, CheckResult(0, 1.0), found=True)
    said = comment(EvidenceView(checks=[row, CheckRow("b", "b", skipped=EVIL)], head=OURS, alone=True))
    assert "@maria" not in said
    assert "<!--" not in said
    assert "closes #9" not in said
    assert said.startswith("**1 of 2 checks pass**")


def test_old_evidence_is_marked_once_and_the_mark_goes() -> None:
    """Right below our own heading, not one in a quote; marked again it names the new head, and nothing else changes."""
    once = marked(BODY, OURS, THEIRS)
    mark = "**Stale:** recorded on `aaaaaaaa`; the head is `bbbbbbbb` by now"
    assert once.count(mark) == 1
    assert "\n\n### Evidence\n\n" + mark in once
    assert marked(once, OURS, THEIRS) == once
    again = marked(once, OURS, "c" * 40)
    assert again == once.replace("bbbbbbbb", "cccccccc")
    assert marked(again, OURS, OURS) == BODY
    assert marked(BODY, OURS, OURS) == BODY


@pytest.mark.parametrize("body", ["", "My own words.", BODY.replace("### Evidence", "### Proof")])
def test_a_text_without_our_heading_stays(body: str) -> None:
    """Nothing is put where nobody looks for it."""
    assert marked(body, OURS, THEIRS) == body


def test_a_text_that_a_person_edited_has_other_line_ends() -> None:
    """GitHub's own editor saves CRLF; the mark comes and goes all the same."""
    body = BODY.replace("\n", "\r\n")
    once = marked(body, OURS, THEIRS)
    assert "### Evidence\r\n\r\n**Stale:** " in once
    assert "**Stale:**" not in marked(once, OURS, OURS)
    assert once.endswith(TAIL.replace("\n", "\r\n"))


def test_a_full_text_keeps_its_marks() -> None:
    """Where the mark does not fit any more, lines at the end go and what we are known by stays."""
    body = text.cut("### Evidence\n\n" + "words of a table\n" * 5_000, tail=TAIL)
    once = marked(body, OURS, THEIRS)
    assert len(once) <= text.LIMIT
    assert once.endswith(TAIL)
    assert once.startswith("### Evidence\n\n**Stale:** ")


def test_our_own_text_has_the_heading() -> None:
    """The mark is put where `pull_body` begins its evidence."""
    body = comments.pull_body(
        comments.PullView(
            marker="<!-- issuewright:v1:x -->",
            requester="maria",
            request="### Evidence\n\nof the person",
            summary="### Evidence\n\nof the model",
            meter=comments.Meter(1, 2, 3, None, "m", None),
            sandbox="",
            evidence=EvidenceView(checks=[RAN], head=OURS, base=THEIRS),
        )
    )
    once = marked(body, OURS, THEIRS)
    assert "\n\n### Evidence\n\n**Stale:** " in once
    assert marked(once, OURS, OURS) == body
