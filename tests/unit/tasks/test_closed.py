"""What is said on a pull request that is closed: who asks hears so, and who only reviews hears nothing."""

from dataclasses import replace

from bot.domain.refs import Actor
from tests.unit.tasks.made import World
from tests.unit.tasks.test_repairs import Ours, opened

FLORA = {"id": 1, "login": "flora", "type": "User"}
LATER = "2026-11-30T13:00:00Z"


async def reviews(ours: Ours, text: str) -> str:
    """Let the requester review with two comments, and say what came of it."""
    number = ours.number
    review = ours.reviews.review(number, Actor(1, "flora"), "COMMENTED", text)
    for line in (1, 1):
        ours.reviews.begin(number, review, "rose.txt", line, "Why?")
    handled = await ours.door.play(
        "pull_request_review",
        action="submitted",
        sender=FLORA,
        pull_request={"number": number, "title": "T", "user": FLORA},
        review={"id": review.id, "state": "commented", "body": text, "user": FLORA, "submitted_at": LATER},
    )
    return handled.note


async def test_a_review_of_what_is_merged_is_passed_over(world: World) -> None:
    """It asks for nothing that could be done; a command is answered in words that hold for what is merged, too."""
    ours = await opened(world)
    github, number = world.github, ours.number
    github.pulls[number] = replace(github.pulls[number], state="closed", merged=True)
    before = github.bodies(number)
    assert await reviews(ours, "Well done.") == "a review of a closed pull request"
    assert github.bodies(number) == before
    await ours.door.comment("/agent update", number=number, pr=True)
    assert github.bodies(number)[-1].startswith("This thread is closed. Reopen it or begin another one, and ask there.")
    assert len(await ours.runs()) == 1


async def test_a_review_of_what_is_open_begins_a_round(world: World) -> None:
    """The very same one."""
    ours = await opened(world)
    await reviews(ours, "Well done.")
    assert len(await ours.runs()) == 2
