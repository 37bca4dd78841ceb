"""What the pages show."""

import re

import httpx
import pytest

from bot.testing.hub.pages.app import TAKEN
from bot.testing.hub.pages.site import label_classes
from bot.testing.hub.records import Label
from bot.testing.hub.rest.table import ROUTES
from tests.hub.pages.shop import MENDED, Elements, Shop

BANNER = "Local GitHub of Issuewright: everything here is on this machine"


def test_an_issue_shows_its_conversation_in_order(shop: Shop) -> None:
    """Title, state, labels, description, events and comments are there, the oldest first."""
    text = Elements(shop.page("issues/1")).text
    parts = ["Discount is ignored #1", "Open", "A cart with 10 percent", "added the label agent", "Working on it"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert BANNER in text
    assert "👀 1" in text


def test_markdown_of_github_is_rendered(shop: Shop) -> None:
    """Tables with alignment, task lists, details, struck and coloured code; hidden comments stay hidden."""
    page = shop.page("issues/1")
    elements = Elements(page)
    assert "secret-marker" not in page
    assert [cell.attributes.get("align") for cell in elements.all("th")] == [None, "right", "center"]
    assert [("checked" in box.attributes, "disabled" in box.attributes) for box in elements.all("input")] == [
        (True, True),
        (False, True),
    ]
    assert "Log of the last command" in elements.text
    assert '<span class="hl-n">cart</span>' in page
    assert "<s>failed</s>" in page


def test_mentions_and_numbers_lead_to_their_pages(shop: Shop) -> None:
    """A mention links the account, a number the issue or pull request at its own address."""
    links = [link.attributes.get("href") for link in Elements(shop.page("issues/1")).all("a")]
    assert "/bob" in links
    assert "/corner-shop/cart/pull/2" in links


def test_a_minimised_comment_is_folded_with_its_reason(shop: Shop) -> None:
    """Its text is inside closed details."""
    assert "hidden: outdated" in shop.page("issues/1")


def test_a_pull_request_shows_reviews_threads_checks_and_commits(shop: Shop) -> None:
    """Everything of a review is on one page, the answer under the question."""
    text = Elements(shop.page("pull/2")).text
    for part in (
        "wants to merge 1 commit into main from agent/1-0a1b2c3d",
        "marked this as ready for review",
        "requested changes",
        "One question.",
        "src/cart.py:7",
        "bob approved these changes",
        "3 tests pass",
        "ci/build",
        "The build broke",
    ):
        assert part in text
    assert text.index("Does this round half up?") < text.index("It rounds down.")


def test_files_are_shown_with_line_numbers_and_signs(shop: Shop) -> None:
    """A removed line has an old number, an added one a new number."""
    page = re.sub(r"\s*\n\s*", "", shop.page("pull/2/files"))
    removed = '<tr class="del"><td class="n">7</td><td class="n"></td><td class="code"><span class="sign">-</span>'
    added = '<tr class="add"><td class="n"></td><td class="n">7</td><td class="code"><span class="sign">+</span>'
    assert removed in page
    assert added in page
    assert '<span class="plus">+1</span> <span class="minus">\N{MINUS SIGN}1</span>' in page


def test_an_issues_address_of_a_pull_request_leads_there_and_back(shop: Shop) -> None:
    """GitHub redirects between the two, by what the number is."""
    answer = shop.client.get("/corner-shop/cart/issues/2")
    assert (answer.status_code, answer.headers["location"]) == (302, "/corner-shop/cart/pull/2")
    answer = shop.client.get("/corner-shop/cart/pull/1")
    assert (answer.status_code, answer.headers["location"]) == (302, "/corner-shop/cart/issues/1")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/", "corner-shop/cart"),
        ("/corner-shop", "Organization"),
        ("/apps/issuewright-demo", "pull_requests"),
        ("/corner-shop/cart", "See the code"),
        ("issues", "Discount is ignored"),
        ("issues?state=closed", "None."),
        ("pulls", "Subtract the discount"),
        ("pull/2/commits", "Subtract the discount"),
        ("tree/main", "README.md"),
        ("tree/agent/1-0a1b2c3d/src", "cart.py"),
        ("blob/agent/1-0a1b2c3d/src/cart.py", "return sum(self.prices) * (100 - self.discount) // 100"),
        ("compare/main...agent/1-0a1b2c3d", "Subtract the discount"),
    ],
)
def test_each_page_shows_what_it_is_for(shop: Shop, path: str, part: str) -> None:
    """One fact of each page that is not looked at elsewhere; branches may hold slashes."""
    text = Elements(shop.page(path)).text
    assert part in text
    assert BANNER in text


def test_raw_files_are_never_pages(shop: Shop) -> None:
    """They come as text that no browser guesses another kind for."""
    answer = shop.client.get("/corner-shop/cart/raw/agent/1-0a1b2c3d/src/cart.py")
    assert answer.text == MENDED
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


def test_every_address_of_the_rest_api_is_a_page(shop: Shop) -> None:
    """Whatever `html_url`, `diff_url`, `avatar_url` or `blob_url` names on this server answers 200."""
    token = shop.hub.create_user_token(shop.maria).value
    found: set[str] = set()
    api = "/api/v3/repos/corner-shop/cart"
    head = shop.pull.pull.head_sha if shop.pull.pull else ""
    paths = ("", "/issues/1", "/issues/1/comments", "/issues/1/timeline", "/pulls/2", "/pulls/2/files")
    more = ("/pulls/2/comments", "/pulls/2/reviews", f"/commits/{head}", f"/commits/{head}/check-runs", "/contents/src")
    for path in (*paths, *more):
        answer = shop.client.get(api + path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, path
        found |= {url for name, url in _addresses(answer.json()) if name in PAGES and url.startswith(shop.server.url)}
    assert len(found) > 12
    for url in sorted(found):
        answer = shop.client.get(url)
        assert answer.status_code == 200, url
        if "#" in url and not url.endswith(".diff"):
            ids = {element.attributes.get("id") for element in Elements(answer.text).found}
            assert url.partition("#")[2] in ids, url


PAGES = ("html_url", "diff_url", "patch_url", "avatar_url", "blob_url", "raw_url", "details_url")


def _addresses(value: object) -> list[tuple[str, str]]:
    if isinstance(value, list):
        return [pair for item in value for pair in _addresses(item)]
    if isinstance(value, dict):
        own = [(name, item) for name, item in value.items() if isinstance(item, str)]
        return own + [pair for item in value.values() for pair in _addresses(item)]
    return []


def test_rest_and_git_stay_reachable(shop: Shop) -> None:
    """Pages take no address of the API, at the root too, nor one of git."""
    assert {route.template.split("/")[1] for route in ROUTES} <= set(TAKEN)
    for path in ("/repos/corner-shop/cart", "/repos/corner-shop/cart/issues", "/users/maria", "/meta", "/rate_limit"):
        answer = shop.client.get(path)
        assert answer.headers["content-type"].startswith("application/json"), path
    answer = shop.client.get("/corner-shop/cart.git/info/refs", params={"service": "git-upload-pack"})
    assert answer.headers["content-type"] == "application/x-git-upload-pack-advertisement"
    answer = shop.client.get("/corner-shop/cart.git")
    assert (answer.status_code, answer.headers["location"]) == (302, "/corner-shop/cart")


@pytest.mark.parametrize(
    "path",
    [
        "/nobody",
        "/nobody/nothing",
        "/corner-shop/cart/issues/99",
        "/corner-shop/cart/pull/99/files",
        "/corner-shop/cart/pull/1/files",
        "/corner-shop/cart/commit/0000000000000000000000000000000000000000",
        "/corner-shop/cart/commit/--help",
        "/corner-shop/cart/blob/main/../../secret",
        "/corner-shop/cart/blob/main/%2e%2e/%2e%2e/etc/passwd",
        "/corner-shop/cart/blob/main/nothing",
        "/corner-shop/cart/tree/main/src/cart.py/x",
        "/corner-shop/cart/blob/main/%00",
        "/corner-shop/cart/commit/%00",
        "/corner-shop/cart/compare/main",
        "/corner-shop/cart/compare/--output=x...main",
        "/corner-shop/cart/settings",
        "/apps/unknown",
        "/settings/installations/1",
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(shop: Shop, path: str) -> None:
    """404 with the banner and a way on."""
    answer = shop.client.get(httpx.URL(shop.server.url).copy_with(raw_path=path.encode()))
    assert answer.status_code == 404, path
    assert "Not found" in answer.text
    assert "All repositories" in answer.text


def test_pages_change_nothing(shop: Shop) -> None:
    """There is no page to post to."""
    for path in ("/", "/corner-shop/cart/issues/1", "/-/hub.css"):
        assert shop.client.post(path).status_code in (404, 405)


def test_states_have_their_badges(fresh: Shop) -> None:
    """Draft, merged and closed are told apart, and a merge closes the issue it names."""
    hub = fresh.hub
    hub.set_draft(fresh.pull, fresh.maria, draft=True)
    assert '<span class="badge draft">Draft</span>' in fresh.page("pull/2")
    hub.set_draft(fresh.pull, fresh.maria, draft=False)
    sha = hub.merge_pull(fresh.pull, fresh.maria)
    page = fresh.page("pull/2")
    assert '<span class="badge merged">Merged</span>' in page
    assert f"/corner-shop/cart/commit/{sha}" in page
    assert '<span class="badge closed">Closed</span>' in fresh.page("issues/1")
    assert "Subtract the discount" in Elements(fresh.page("pull/2/commits")).text
    assert '<span class="plus">+1</span>' in fresh.page("pull/2/files")
    assert "Merge pull request #2" in fresh.page(f"commit/{sha}")


def test_resolved_and_outdated_threads_are_folded(fresh: Shop) -> None:
    """They are still there, closed."""
    assert fresh.pull.pull is not None
    thread = fresh.pull.pull.threads[0]
    assert '<details class="thread" open>' in fresh.page("pull/2")
    fresh.hub.resolve_thread(thread, fresh.maria)
    page = fresh.page("pull/2")
    assert '<details class="thread" open>' not in page
    assert "resolved by maria" in page


def test_answers_of_a_review_stand_in_their_threads(fresh: Shop) -> None:
    """Pending ones are shown to nobody; outdated threads say so, with their answers, on both pages."""
    hub, bot, pull = fresh.hub, fresh.app.bot, fresh.pull
    assert pull.pull is not None
    thread = pull.pull.threads[0]
    pending = hub.start_review(pull, bot, "What I did about it")
    hub.reply(thread, bot, "It rounds half up now", pending)
    for part in ("pull/2", "pull/2/files"):
        assert "rounds half up now" not in fresh.page(part)
    hub.submit_review(pending, "COMMENTED")
    hub.commit_files(fresh.repository, bot, "agent/1-0a1b2c3d", {"src/cart.py": "x = 1\n"})
    assert "What I did about it" in fresh.page("pull/2")
    for part in ("pull/2", "pull/2/files"):
        page = fresh.page(part)
        assert "It rounds half up now" in page
        assert '<span class="mark">outdated</span>' in page
        assert page.count(f'id="pullrequestreview-{pending.id}"') == (part == "pull/2")


def test_private_and_empty_repositories_are_shown(fresh: Shop) -> None:
    """This is a look into one's own machine."""
    owner = fresh.hub.create_user("eve")
    fresh.hub.create_repository(owner, "diary", private=True)
    text = Elements(fresh.page("/eve/diary")).text
    assert "private" in text
    assert "This repository is empty." in text
    assert "eve/diary" in fresh.page("/")


def test_a_large_diff_is_cut_with_a_note(fresh: Shop) -> None:
    """A thousand lines of a file, and the number of those left out."""
    long = "".join(f"line {number}\n" for number in range(2500))
    sha = fresh.hub.commit_files(fresh.repository, fresh.maria, "main", {"long.txt": long, "wide.txt": "x" * 5000})
    page = fresh.page(f"commit/{sha}")
    assert "1501 of its 2501 lines are not shown" in page
    assert "x" * 1001 not in page


def test_binary_files_are_named_only(fresh: Shop) -> None:
    """Neither their diff nor their content is shown; pictures are sent as what they are."""
    sha = fresh.hub.commit_files(fresh.repository, fresh.maria, "main", {"a.png": b"\x89PNG\0\xff", "b.bin": b"\0\1"})
    assert "No lines to show" in fresh.page(f"commit/{sha}")
    assert "is large or binary" in fresh.page("blob/main/b.bin")
    assert fresh.client.get("/corner-shop/cart/raw/main/a.png").headers["content-type"] == "image/png"


def test_labels_keep_contrast() -> None:
    """Dark ink on light colours, light ink on dark ones; what is no colour makes no style."""
    labels = [Label(1, "a", name, color) for name, color in (("x", "FBCA04"), ("y", "5319e7"), ("z", "red}*{"))]
    assert label_classes(labels) == {"fbca04": "000", "5319e7": "fff"}


def test_browsers_hear_that_there_is_no_icon(shop: Shop) -> None:
    """The icon that every browser asks for is answered without content, so that no page seems broken."""
    answer = httpx.get(f"{shop.hub.base_url}/favicon.ico")
    assert (answer.status_code, answer.content) == (204, b"")
