"""What is sent to GitHub holds no secret, and every token is known from the moment it exists."""

from collections.abc import Callable, Iterator

import pytest

from bot import redaction
from bot.domain.refs import RepositoryRef
from bot.errors import Conflict
from bot.github.client import GitHubAppClient, GitHubClient
from tests.unit.github.fake import INSTALLATION_ID, FakeGitHub, fail

REPOSITORY = RepositoryRef(5, "ada/engine", "main")
TOKEN = "ghs_" + "aB3" * 12
SECRET = "correct-horse-battery-staple"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Leave no secret behind."""
    redaction.forget_secrets()
    yield
    redaction.forget_secrets()


async def test_bodies_are_masked_on_their_way(hub: FakeGitHub, github: GitHubClient) -> None:
    """Comments and pull requests, titles included, whoever wrote them; the rest arrives as it is."""
    redaction.register_secret(SECRET)
    await github.comment(REPOSITORY, 1, f"It is {SECRET} and {TOKEN}, `a` & b")
    assert hub.seen[-1].body == {"body": "It is *** and ***, `a` & b"}
    await github.open_pull(REPOSITORY, head="agent/1-a", base="main", title=TOKEN, body=SECRET, draft=True)
    sent = {"head": "agent/1-a", "base": "main", "title": "***", "body": "***", "draft": True}
    assert hub.seen[-1].body == sent
    await github.update_pull(REPOSITORY, 1, body=f"x {SECRET}")
    assert hub.seen[-1].body == {"body": "x ***"}
    await github.edit_comment(REPOSITORY, 1, TOKEN)
    assert hub.seen[-1].body == {"body": "***"}


async def test_tokens_are_known_when_they_are_minted(github: GitHubClient) -> None:
    """An installation's token is masked from then on."""
    assert redaction.mask("ghs_1") == "ghs_1"
    assert await github.git_token(REPOSITORY) == "ghs_1"
    assert redaction.mask("it is ghs_1") == "it is ***"


async def test_a_given_token_is_known(make_app: Callable[..., GitHubAppClient]) -> None:
    """A job's own token is masked, whatever it looks like."""
    app = make_app("http://127.0.0.1:9/api/v3", token="v1.0123456789abcdef")
    assert redaction.mask_known("v1.0123456789abcdef") == "***"
    await app.close()


async def test_what_github_says_of_a_failure_is_masked(hub: FakeGitHub, app: GitHubAppClient) -> None:
    """An error may quote what it refused."""
    hub.plan("POST", "/repos/*", lambda _: fail(422, f"bad token {TOKEN}"))
    with pytest.raises(Conflict, match=r"bad token \*\*\*$"):
        await app.installation(INSTALLATION_ID).comment(REPOSITORY, 1, "x")
