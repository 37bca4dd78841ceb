"""Reviews through the client, against the local GitHub over HTTP."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import parse, validate

from bot.domain.refs import Actor, RepositoryRef
from bot.domain.trigger import Edited, Reviewed, ThreadCommented
from bot.errors import Conflict, Forbidden, GitHubError, GitHubUnavailable, NotFound, RateLimited
from bot.github import markers, review_client
from bot.github.base import GitHub
from bot.github.client import GitHubAppClient
from bot.github.review_payloads import number
from bot.github.reviews import Reviews
from bot.github.webhooks import decode, to_trigger
from bot.testing.hub.faults import Fault
from bot.testing.hub.graphql.app import routes
from bot.testing.hub.graphql.engine import schema
from bot.testing.hub.hub import Hub
from bot.testing.hub.records import Issue, Thread, User
from bot.testing.hub.server import HubServer
from bot.testing.hub.state.reviews import LineComment
from tests.hub.graphql.asker import theirs
from tests.hub.world import Clock
from tests.unit.github.on_hub import OnHub

KEY = b"k" * 32
TASK = "0a" * 16
BEFORE = "".join(f"line {index}\n" for index in range(1, 13))
AFTER = BEFORE.replace("line 3\n", "line three\n").replace("line 9\n", "line nine\n")


def marked(text: str, slot: str = "review.1") -> str:
    """End a text with a mark of ours."""
    return f"{text}\n\n{markers.make(TASK, slot, KEY)}"


@dataclass
class Scene(OnHub):
    """A pull request of ours, and Grace, who reviews it."""

    clock: Clock
    grace: User
    pull: Issue
    reviews: Reviews
    app_client: GitHubAppClient

    @property
    def head(self) -> str:
        """The head of the pull request."""
        assert self.pull.pull
        return self.pull.pull.head_sha

    @property
    def threads(self) -> list[Thread]:
        """The hub's own threads."""
        assert self.pull.pull
        return self.pull.pull.threads

    def states(self) -> list[tuple[str, str, int]]:
        """Who reviewed how with how many comments, as the hub has it."""
        assert self.pull.pull
        return [
            (one.user.login, one.state, sum(c.review is one for t in self.threads for c in t.comments))
            for one in self.pull.pull.reviews
        ]

    def say(self, by: User, *comments: LineComment, body: str = "", state: Any = "COMMENTED") -> None:
        """Let somebody review."""
        self.hub.review(self.pull, by, state, body, comments)

    def fail(self, nth: int, kind: Any = "reset_after") -> None:
        """Let the connection break after the nth call of GraphQL from now on has had its effect."""
        self.hub.faults.add(Fault(kind, "POST", "*/graphql", nth=nth))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Hub, HubServer, Clock]]:
    """A hub with GraphQL whose clock stands."""
    clock = Clock()
    clock.now = datetime.now(UTC).replace(microsecond=0)
    hub = Hub(tmp_path, clock=clock)
    with HubServer(hub, extra_routes=routes(hub)) as server:
        yield hub, server, clock


@pytest.fixture
async def scene(served: tuple[Hub, HubServer, Clock]) -> AsyncIterator[Scene]:
    """Everything that a test needs."""
    hub, server, clock = served
    ada, grace = hub.create_user("ada"), hub.create_user("grace")
    repository = hub.create_repository(ada, "engine", files={"a.txt": BEFORE})
    hub.add_collaborator(repository, grace, "write")
    app = hub.create_app(ada, "Issuewright", webhook_url="http://127.0.0.1:9/", webhook_secret="s")
    installation = hub.install(app, [repository.id])
    hub.commit_files(repository, app.bot, "agent/1", {"a.txt": AFTER})
    pull = hub.open_pull(repository, app.bot, "Fix", head="agent/1", draft=True)
    plain = OnHub(hub, server, ada, repository, app, installation)
    client = plain.client()
    reviews = client.installation(installation.id).reviews
    yield Scene(hub, server, ada, repository, app, installation, clock, grace, pull, reviews, client)
    await client.close()


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_threads_come_with_all_that_is_said(scene: Scene) -> None:
    """Place, side, state, and each comment with who, when and in which review."""
    hub = scene.hub
    scene.say(scene.grace, LineComment("a.txt", 3, "Why?"), LineComment("a.txt", 9, "And old?", "LEFT"), body="Two")
    scene.say(scene.ada, LineComment("a.txt", 4, "These too", start_line=3), state="CHANGES_REQUESTED")
    hub.reply(scene.threads[0], scene.app.bot, "Because")
    scene.clock.forward(minutes=5)
    hub.edit_review_comment(scene.threads[0].comments[0], scene.grace, "Why, please?")
    hub.resolve_thread(scene.threads[1], scene.grace)
    first, second, third = await scene.reviews.review_threads(scene.ref, scene.pull.number)
    assert (first.id, first.path, first.line, first.side) == (scene.threads[0].node_id, "a.txt", 3, "RIGHT")
    assert (first.is_resolved, first.is_outdated, first.start_line, first.original_line) == (False, False, None, 3)
    assert (second.line, second.side, second.is_resolved) == (9, "LEFT", True)
    assert (third.start_line, third.line) == (3, 4)
    asked, answered = first.comments
    assert asked.author == Actor(scene.grace.id, "grace")
    assert (asked.body, asked.is_bot, asked.is_ours) == ("Why, please?", False, False)
    assert (asked.edited_at, asked.created_at) == (scene.clock.now, scene.clock.now - timedelta(minutes=5))
    assert asked.diff_hunk.splitlines()[-1] == "+line three"
    assert (asked.id, asked.node_id) == (scene.threads[0].comments[0].id, scene.threads[0].comments[0].node_id)
    assert asked.review_id == scene.threads[0].comments[0].review.id
    assert answered.author == await scene.app_client.installation(scene.installation.id).identity()
    assert (answered.is_bot, answered.is_ours, answered.edited_at) == (True, True, None)


async def test_outdated_threads_and_deleted_accounts_are_still_there(scene: Scene) -> None:
    """Without a line and without a name; a pending comment of ours is not shown as said."""
    gone = scene.hub.create_user("gone")
    scene.say(gone, LineComment("a.txt", 3, "Farewell"), body="Bye")
    scene.hub.delete_user(gone)
    scene.hub.commit_files(scene.repository, scene.app.bot, "agent/1", {"a.txt": "new\n"})
    pending = scene.hub.start_review(scene.pull, scene.app.bot, "Not yet")
    scene.hub.reply(scene.threads[0], scene.app.bot, "Nor this", pending)
    (thread,) = await scene.reviews.review_threads(scene.ref, scene.pull.number)
    assert (thread.is_outdated, thread.line, thread.original_line) == (True, None, 3)
    (comment,) = thread.comments
    assert (comment.author, comment.body, comment.is_bot, comment.is_ours) == (None, "Farewell", False, False)
    first, second = await scene.reviews.reviews(scene.ref, scene.pull.number)
    assert (first.author, first.state, first.body, first.comments) == (None, "COMMENTED", "Bye", 1)
    assert (second.state, second.submitted_at, second.is_ours) == ("PENDING", None, True)


async def test_all_pages_are_read(scene: Scene) -> None:
    """Of threads, of comments within them, and of reviews."""
    for index in range(52):
        scene.say(scene.grace, LineComment("a.txt", 3, f"Thread {index}"))
    for index in range(155):
        scene.hub.reply(scene.threads[1], scene.ada, f"Answer {index}")
    threads = await scene.reviews.review_threads(scene.ref, scene.pull.number)
    assert [thread.comments[0].body for thread in threads] == [f"Thread {index}" for index in range(52)]
    assert [comment.body for comment in threads[1].comments[1:]] == [f"Answer {index}" for index in range(155)]
    reviews = await scene.reviews.reviews(scene.ref, scene.pull.number)
    assert len({review.id for review in reviews}) == 52 + 155


async def test_reviews_tell_who_how_and_of_which_commit(scene: Scene) -> None:
    """And how many comments are left of each."""
    scene.say(
        scene.grace, LineComment("a.txt", 3, "x"), LineComment("a.txt", 9, "y"), body="No", state="CHANGES_REQUESTED"
    )
    scene.hub.delete_review_comment(scene.threads[1].comments[0], scene.grace)
    head = scene.head
    scene.hub.commit_files(scene.repository, scene.app.bot, "agent/1", {"b.txt": "b\n"})
    scene.say(scene.ada, state="APPROVED")
    scene.say(scene.ada, state="CHANGES_REQUESTED", body="On second thought")
    assert scene.pull.pull is not None
    scene.hub.dismiss_review(scene.pull.pull.reviews[-1], scene.ada)
    made = await scene.reviews.reviews(scene.ref, scene.pull.number)
    assert [(one.author and one.author.login, one.state, one.body, one.commit, one.comments) for one in made] == [
        ("grace", "CHANGES_REQUESTED", "No", head, 1),
        ("ada", "APPROVED", "", scene.head, 0),
        ("ada", "DISMISSED", "On second thought", scene.head, 0),
    ]
    assert {one.submitted_at for one in made} == {scene.clock.now}
    assert not any(one.is_ours for one in made)


async def test_what_is_not_there(scene: Scene) -> None:
    """NotFound, as over REST."""
    for call in (scene.reviews.reviews, scene.reviews.review_threads, scene.reviews.ready_for_review):
        with pytest.raises(NotFound, match="PullRequest with the number of 99"):
            await call(scene.ref, 99)
    with pytest.raises(NotFound, match="global id"):
        await scene.reviews.resolve_thread(scene.ref, "PRRT_none")


# --- answering --------------------------------------------------------------------------------------------------------


async def answer(scene: Scene, text: str = "Done", slot: str = "review.1") -> int:
    """Answer in each thread with its number."""
    replies = [(thread.node_id, f"Answer {index}") for index, thread in enumerate(scene.threads)]
    return await scene.reviews.reply_in_review(scene.ref, scene.pull.number, scene.head, marked(text, slot), replies)


def ask(scene: Scene) -> None:
    """Let Grace begin two threads."""
    scene.say(scene.grace, LineComment("a.txt", 3, "One"), LineComment("a.txt", 9, "Two"))


async def test_all_answers_are_one_review(scene: Scene) -> None:
    """That only comments, on the commit named; each stands in its thread; calling it again changes nothing."""
    ask(scene)
    made = await answer(scene)
    assert scene.states() == [("grace", "COMMENTED", 2), ("issuewright[bot]", "COMMENTED", 2)]
    assert [[c.body for c in thread.comments] for thread in scene.threads] == [["One", "Answer 0"], ["Two", "Answer 1"]]
    assert scene.pull.pull is not None
    review = scene.pull.pull.reviews[-1]
    assert (review.id, review.commit_id, review.body) == (made, scene.head, marked("Done"))
    events = [json.loads(each.body) for each in scene.hub.deliveries("pull_request_review")]
    assert [event["review"]["state"] for event in events] == ["commented", "commented"]
    assert await answer(scene, "Done, said again") == made
    assert len(scene.states()) == 2
    assert await answer(scene, slot="review.2") != made
    assert [state for *state, _ in scene.states()][1:] == [["issuewright[bot]", "COMMENTED"]] * 2


@pytest.mark.parametrize("nth", range(1, 6))
async def test_whatever_breaks_there_is_one_review_in_the_end(scene: Scene, nth: int) -> None:
    """The nth call has its effect and its answer is lost: looking, beginning, two answers, submitting."""
    ask(scene)
    scene.fail(nth)
    if nth == 1:
        await answer(scene)  # looking is repeated at once
    else:
        with pytest.raises(GitHubUnavailable):
            await answer(scene)
        assert await answer(scene) == await answer(scene)
    assert scene.states() == [("grace", "COMMENTED", 2), ("issuewright[bot]", "COMMENTED", 2)]
    assert [[c.body for c in thread.comments] for thread in scene.threads] == [["One", "Answer 0"], ["Two", "Answer 1"]]


async def test_what_an_earlier_task_left_behind_is_deleted(scene: Scene) -> None:
    """Also where the deletion's answer is lost; what has no mark is somebody else's, and stays."""
    ask(scene)
    left = scene.hub.start_review(scene.pull, scene.app.bot, marked("Half", "review.0"))
    scene.hub.reply(scene.threads[0], scene.app.bot, "Never said", left)
    scene.fail(2)
    await answer(scene)
    assert scene.states() == [("grace", "COMMENTED", 2), ("issuewright[bot]", "COMMENTED", 2)]
    assert [len(thread.comments) for thread in scene.threads] == [2, 2]
    scene.hub.start_review(scene.pull, scene.app.bot, "Another job's under the same account")
    with pytest.raises(Conflict, match="one pending review"):
        await answer(scene, slot="review.2")
    assert scene.states()[-1] == ("issuewright[bot]", "PENDING", 0)


async def test_a_mark_in_others_words_hides_nothing(scene: Scene) -> None:
    """Quoted by a person, or by us before another mark, it is not taken for a review that was made."""
    ask(scene)
    scene.say(scene.grace, body=marked("I am you"))
    scene.say(scene.app.bot, body=marked(f"They said: {marked('Quoted')}", "review.9"))
    made = await answer(scene)
    assert scene.states()[-1] == ("issuewright[bot]", "COMMENTED", 2)
    assert scene.pull.pull is not None
    assert scene.pull.pull.reviews[-1].id == made


async def test_a_thread_that_is_gone_is_passed_over(scene: Scene) -> None:
    """The others are answered; without a mark nothing is sent at all."""
    ask(scene)
    gone = scene.threads[0]
    scene.hub.delete_review_comment(gone.comments[0], scene.grace)
    replies = [(gone.node_id, "x"), (scene.threads[0].node_id, "y")]
    await scene.reviews.reply_in_review(scene.ref, scene.pull.number, scene.head, marked("Done"), replies)
    assert [comment.body for comment in scene.threads[0].comments] == ["Two", "y"]
    with pytest.raises(ValueError, match="mark"):
        await scene.reviews.reply_in_review(scene.ref, scene.pull.number, scene.head, "Done", replies)
    with pytest.raises(Conflict, match="not part of the pull request"):
        await scene.reviews.reply_in_review(scene.ref, scene.pull.number, "f" * 40, marked("x", "review.3"), replies)
    assert len(scene.states()) == 2


async def test_an_answer_that_is_refused_leaves_nothing_behind(scene: Scene) -> None:
    """No pending review, which would swallow what we say next; nor one where deleting it fails at first."""
    ask(scene)
    replies = [(scene.threads[0].node_id, "Good"), (scene.threads[1].node_id, " ")]
    for nth in (5, 99):
        scene.hub.faults.add(Fault("status", "POST", "*/graphql", nth=nth))
        with pytest.raises(Conflict, match="blank"):
            await scene.reviews.reply_in_review(scene.ref, scene.pull.number, scene.head, marked("Done"), replies)
        assert scene.states() == [("grace", "COMMENTED", 2)]
    await answer(scene, slot="review.2")
    assert scene.states()[1:] == [("issuewright[bot]", "COMMENTED", 2)]


async def test_a_secret_in_an_answer_is_masked(scene: Scene) -> None:
    """Whoever wrote it."""
    ask(scene)
    token = "ghp_" + "a1B2" * 9
    await scene.reviews.reply_in_review(
        scene.ref, scene.pull.number, scene.head, marked(f"See {token}"), [(scene.threads[0].node_id, token)]
    )
    assert scene.pull.pull is not None
    assert token not in scene.pull.pull.reviews[-1].body + scene.threads[0].comments[-1].body


# --- the rest ---------------------------------------------------------------------------------------------------------


async def test_threads_are_resolved_and_drafts_end(scene: Scene) -> None:
    """With a token of their own, which may write contents; twice is once."""
    ask(scene)
    for _ in range(2):
        await scene.reviews.resolve_thread(scene.ref, scene.threads[1].node_id)
        await scene.reviews.ready_for_review(scene.ref, scene.pull.number)
    assert [thread.is_resolved for thread in scene.threads] == [False, True]
    assert scene.pull.pull is not None
    assert not scene.pull.pull.draft
    assert [event.action for event in scene.hub.deliveries("pull_request_review_thread")] == ["resolved"]
    assert [event.action for event in scene.hub.deliveries("pull_request")].count("ready_for_review") == 1
    granted = [token.permissions for token in scene.hub.tokens.values() if token.kind == "installation"]
    assert {"contents": "write", "metadata": "read", "pull_requests": "write"} in granted
    assert [one["contents"] for one in granted if "issues" in one] == ["read"]


async def test_an_app_without_the_permission_hears_of_it(scene: Scene) -> None:
    """Forbidden, and nothing is resolved."""
    ask(scene)
    scene.installation.permissions["contents"] = "read"
    with pytest.raises(Forbidden):
        await scene.reviews.resolve_thread(scene.ref, scene.threads[0].node_id)
    assert not scene.threads[0].is_resolved


async def test_people_are_asked_for_a_review(scene: Scene) -> None:
    """Once; nobody where one cannot be asked."""
    for _ in range(2):
        await scene.reviews.request_review(scene.ref, scene.pull.number, ["grace"])
    await scene.reviews.request_review(scene.ref, scene.pull.number, [])
    scene.hub.create_user("stranger")
    with pytest.raises(Conflict):
        await scene.reviews.request_review(scene.ref, scene.pull.number, ["ada", "stranger"])
    assert scene.pull.pull is not None
    assert scene.pull.pull.requested_reviewers == [scene.grace]


async def test_a_line_is_commented_on(scene: Scene) -> None:
    """On either side; elsewhere than in the diff it is a conflict; where the answer is lost, it is not made again."""
    reviews, place = scene.reviews, (scene.ref, scene.pull.number, scene.head)
    right = await reviews.review_comment(*place, path="a.txt", line=3, side="RIGHT", body="May I?")
    left = await reviews.review_comment(*place, path="a.txt", line=3, side="LEFT", body="And here?")
    assert [(thread.comments[0].id, thread.side) for thread in scene.threads] == [(right, "RIGHT"), (left, "LEFT")]
    for wrong in ({"line": 99}, {"path": "b.txt"}):
        with pytest.raises(Conflict):
            await reviews.review_comment(*place, **{"path": "a.txt", "line": 3, "side": "LEFT", "body": "x", **wrong})  # type: ignore[arg-type]  # by name
    scene.hub.faults.add(Fault("reset_after", "POST", "*/comments"))
    with pytest.raises(GitHubUnavailable):
        await reviews.review_comment(*place, path="a.txt", line=4, side="RIGHT", body="Once")
    assert len(scene.threads) == 3


async def test_what_we_said_on_a_line_is_changed_and_reactions_are_put(scene: Scene) -> None:
    """Once each."""
    place = (scene.ref, scene.pull.number, scene.head)
    made = await scene.reviews.review_comment(*place, path="a.txt", line=3, side="RIGHT", body="May I?")
    for _ in range(2):
        await scene.reviews.edit_review_comment(scene.ref, made, "I was allowed to.")
        await scene.reviews.react_on_line(scene.ref, made, "eyes")
    comment = scene.threads[0].comments[0]
    assert (comment.body, [one.content for one in comment.reactions]) == ("I was allowed to.", ["eyes"])
    with pytest.raises(NotFound):
        await scene.reviews.edit_review_comment(scene.ref, made + 99, "x")


async def test_what_the_hub_sends_becomes_triggers(scene: Scene) -> None:
    """A review, its comments, an answer, an edit; what we did ourselves is left out by the App's account."""
    hub, grace = scene.hub, scene.grace
    scene.say(grace, LineComment("a.txt", 3, "Why?"), body="No", state="CHANGES_REQUESTED")
    thread = scene.threads[0]
    hub.reply(thread, scene.ada, "Indeed")
    hub.edit_review_comment(thread.comments[0], scene.ada, "Why not?")
    hub.edit_comment(hub.comment(scene.pull, grace, "Hm"), grace, "Hm!")
    hub.reply(thread, scene.app.bot, "Ours")
    own = {scene.app.bot.id}
    found = [to_trigger(each.event, decode(each.body), own_user_ids=own) for each in hub.deliveries()]
    said = [one for one in found if isinstance(one, Reviewed | ThreadCommented | Edited)]
    review, first, alone, second, on_line, spoken = said
    assert isinstance(review, Reviewed)
    assert (review.state, review.text, review.commit) == ("CHANGES_REQUESTED", "No", scene.head)
    assert isinstance(alone, Reviewed)
    assert (alone.state, alone.text) == ("COMMENTED", "")
    assert isinstance(first, ThreadCommented)
    assert isinstance(second, ThreadCommented)
    assert (first.comment_id, first.review_id) == (first.thread_root_id, review.review_id)
    assert (second.thread_root_id, second.review_id, second.text) == (first.comment_id, alone.review_id, "Indeed")
    assert (first.path, first.line, first.context.thread.kind) == ("a.txt", 3, "pull")
    assert isinstance(on_line, Edited)
    assert (on_line.comment_id, on_line.on_line, on_line.before) == (first.comment_id, True, "Why?")
    assert on_line.context.actor == Actor(scene.ada.id, "ada")
    assert isinstance(spoken, Edited)
    assert (spoken.on_line, spoken.before, spoken.text) == (False, "Hm", "Hm!")
    assert len({one.context.event_key for one in said}) == len(said)


# --- errors of GraphQL ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("errors", "headers", "raised"),
    [
        ([{"type": "NOT_FOUND", "message": "no"}], {}, NotFound),
        ([{"type": "FORBIDDEN", "message": "no"}], {}, Forbidden),
        ([{"type": "UNPROCESSABLE", "message": "no"}], {}, Conflict),
        ([{"type": "NEW_KIND", "message": "no"}], {}, GitHubError),
        ([{"message": "Parse error"}], {}, GitHubError),
        ([{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}], {"x-ratelimit-remaining": "0"}, RateLimited),
        ([{"message": "You have exceeded a secondary rate limit"}], {"retry-after": "70"}, RateLimited),
        ([{"message": "Something went wrong while executing your query."}], {}, GitHubUnavailable),
        (None, {}, GitHubUnavailable),
    ],
)
async def test_errors_of_graphql_become_ours(
    errors: list[dict[str, str]] | None, headers: dict[str, str], raised: type[GitHubError]
) -> None:
    """Although their status is 200; a failure of theirs is tried again where that is harmless."""
    seen = 0

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        nonlocal seen
        seen += 1
        body = b"<html>" if errors is None else json.dumps({"data": None, "errors": errors}).encode()
        given = [(b"content-type", b"application/json"), *((k.encode(), v.encode()) for k, v in headers.items())]
        await send({"type": "http.response.start", "status": 200, "headers": given})
        await send({"type": "http.response.body", "body": body})

    from tests.unit.github.fake import serve  # noqa: PLC0415 - only this test needs a server that is no GitHub

    async for url in serve(app):
        client = GitHubAppClient(
            api_url=url,
            token="t0ken",
            clock=lambda: datetime.now(UTC),
            random=lambda: 0.0,
            sleep=lambda _: asyncio.sleep(0),
            write_interval_s=0.0,
        )
        reviews = client.installation(None).reviews
        with pytest.raises(raised) as caught:
            await reviews.reviews(RepositoryRef(5, "ada/engine"), 1)
        assert type(caught.value) is raised
        assert caught.value.__cause__ is not caught.value
        assert seen == (5 if raised is GitHubUnavailable else 1)
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_after_s >= 60
            with pytest.raises(RateLimited):
                await reviews.reviews(RepositoryRef(5, "ada/engine"), 1)
            assert seen == 1
        await client.close()


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "²"])
def test_an_id_is_a_number(text: str) -> None:
    """Anything else is an error of GitHub's, and no crash."""
    with pytest.raises(GitHubError):
        number(text)


# --- what we never do -------------------------------------------------------------------------------------------------

DOCUMENTS = {
    name: value
    for name, value in vars(review_client).items()
    if isinstance(value, str) and value.startswith(("query", "mutation"))
}


def test_every_document_is_good_for_github() -> None:
    """Each query and mutation validates against GitHub's own schema, and against the hub's."""
    assert len(DOCUMENTS) == 10
    for text in DOCUMENTS.values():
        assert validate(theirs(), parse(text)) == []
        assert validate(schema(), parse(text)) == []


ROOM = Path(review_client.__file__).parent
VERDICTS = re.compile(
    r"\bAPPROVE\b|\bREQUEST_CHANGES\b|\bDISMISS\b|/merges?\b|/reviews\b|/dismissals|merge(?:PullRequest|Branch)"
    r"|(?:approve|dismiss|enqueue|update)PullRequest\w*|PullRequestAutoMerge|createCommitOnBranch"
)
"""Events, paths and mutations that would decide something; over REST no review is made at all."""
DECIDES = re.compile(r"event: *(\w+)")
PROSE = re.compile(r'"""(?:.|\n)*?"""|#[^\n]*')
"""Docstrings and comments, which may say what is not done."""


def code_of(path: Path) -> str:
    """Return the code of a module without its prose; documents of GraphQL are no prose."""
    text = path.read_text(encoding="utf-8")
    return text if path.name == "review_client.py" else PROSE.sub("", text)


def test_no_code_of_the_room_can_approve_refuse_dismiss_or_merge() -> None:
    """No such event, path or mutation stands anywhere in the room that speaks to GitHub."""
    found = {(path.name, match) for path in sorted(ROOM.glob("*.py")) for match in VERDICTS.findall(code_of(path))}
    assert found == set()
    assert DECIDES.findall("".join(DOCUMENTS.values())) == ["COMMENT"]
    assert [path.name for path in ROOM.glob("*.py") if "mutation(" in path.read_text()] == ["review_client.py"]
    mutations = {name for text in DOCUMENTS.values() for name in re.findall(r"(\w+)\(\s*input:", text)}
    assert mutations == {
        "addPullRequestReview",
        "addPullRequestReviewThreadReply",
        "submitPullRequestReview",
        "deletePullRequestReview",
        "resolveReviewThread",
        "markPullRequestReadyForReview",
    }


def test_the_search_would_see_them() -> None:
    """It is no search that finds nothing."""
    for bad in (
        "event: APPROVE",
        '{"event": "REQUEST_CHANGES"}',
        "/pulls/1/reviews",
        "event: DISMISS",
        "/pulls/1/merge",
        "/reviews/2/dismissals",
        "mergePullRequest(input: $i)",
        "enablePullRequestAutoMerge",
        "enqueuePullRequest",
    ):
        assert VERDICTS.search(bad), bad
    assert not VERDICTS.search("markPullRequestReadyForReview(input: {event: COMMENT}) approved")


async def test_whatever_we_do_our_reviews_only_comment(scene: Scene) -> None:
    """Every operation in turn, on a pull request that is not even ours: nothing is approved, refused or merged."""
    hub, ada = scene.hub, scene.ada
    hub.commit_files(scene.repository, ada, "theirs", {"a.txt": AFTER})
    scene.pull = hub.open_pull(scene.repository, ada, "Theirs", head="theirs", draft=True)
    ask(scene)
    await answer(scene)
    await answer(scene, "APPROVE", slot="review.2")
    place = (scene.ref, scene.pull.number, scene.head)
    await scene.reviews.review_comment(*place, path="a.txt", line=3, side="RIGHT", body="REQUEST_CHANGES")
    await scene.reviews.edit_review_comment(scene.ref, scene.threads[2].comments[0].id, "APPROVE")
    await scene.reviews.react_on_line(scene.ref, scene.threads[2].comments[0].id, "+1")
    await scene.reviews.resolve_thread(scene.ref, scene.threads[0].node_id)
    await scene.reviews.ready_for_review(scene.ref, scene.pull.number)
    await scene.reviews.request_review(scene.ref, scene.pull.number, ["grace"])
    operations = {name for name in vars(Reviews) if not name.startswith("_")}
    assert operations == {
        "reviews",
        "review_threads",
        "reply_in_review",
        "review_comment",
        "edit_review_comment",
        "react_on_line",
        "resolve_thread",
        "ready_for_review",
        "request_review",
    }
    assert {state for login, state, _ in scene.states() if login == "issuewright[bot]"} == {"COMMENTED"}
    assert len(scene.states()) == 4
    assert scene.pull.pull is not None
    assert (scene.pull.state, scene.pull.pull.merged_at, scene.pull.pull.auto_merge_by) == ("open", None, None)
    done = {event.event for issue in scene.repository.issues.values() for event in issue.timeline}
    assert done <= {"reviewed", "ready_for_review", "review_requested"}


async def test_queries_wait_for_no_write(scene: Scene) -> None:
    """Only what changes something is spaced out; a query is a POST too, and is not."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    client = scene.client(write_interval_s=3600.0, sleep=sleep)
    github: GitHub = client.installation(scene.installation.id)
    ask(scene)
    await github.reviews.resolve_thread(scene.ref, scene.threads[0].node_id)
    await github.reviews.review_threads(scene.ref, scene.pull.number)
    await github.reviews.reviews(scene.ref, scene.pull.number)
    assert slept == []
    await github.reviews.resolve_thread(scene.ref, scene.threads[1].node_id)
    assert len(slept) == 1
    await client.close()


def test_graphql_stands_where_github_has_it() -> None:
    """Beside `/api/v3` on a server of one's own."""
    from bot.github.transport import graphql_url  # noqa: PLC0415 - beside what it is about

    for api, expected in (
        ("https://api.github.com/", "https://api.github.com/graphql"),
        ("https://ghe.example/api/v3/", "https://ghe.example/api/graphql"),
        ("https://api.acme.ghe.com/", "https://api.acme.ghe.com/graphql"),
        ("http://127.0.0.1:8000/gh/api/v3/", "http://127.0.0.1:8000/gh/api/graphql"),
    ):
        assert str(graphql_url(httpx.URL(api))) == expected
