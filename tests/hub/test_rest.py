"""What holds for every REST answer: pages, ETags, rate limits, bodies, prefixes."""

import httpx

from tests.hub.world import World


def follow(client: httpx.Client, url: str, **query: str | int) -> list[list[int]]:
    """Return the numbers on each page, following `next`."""
    pages = []
    answer = client.get(url, params=query)
    while True:
        pages.append([issue["number"] for issue in answer.json()])
        if "next" not in answer.links:
            return pages
        answer = client.get(answer.links["next"]["url"])


def test_lists_come_in_pages_with_links(world: World) -> None:
    """`next` and `last` lead through all pages, by repository id as GitHub does, keeping other parameters."""
    for index in range(7):
        world.hub.open_issue(world.repository, world.owner, f"Issue {index}")
    bot = world.as_bot()
    assert follow(bot, f"{world.path}/issues", per_page=3, state="all") == [[7, 6, 5], [4, 3, 2], [1]]
    first = bot.get(f"{world.path}/issues", params={"per_page": 3})
    assert set(first.links) == {"next", "last"}
    assert f"/repositories/{world.repository.id}/issues?" in first.links["next"]["url"]
    second = bot.get(first.links["next"]["url"])
    assert set(second.links) == {"next", "last", "prev", "first"}
    assert "Link" not in bot.get(f"{world.path}/issues").headers
    assert bot.get(f"{world.path}/issues", params={"per_page": 3, "page": 9}).json() == []
    assert len(bot.get(f"{world.path}/issues", params={"per_page": 1000}).json()) == 7


def test_an_unchanged_answer_is_304_and_costs_nothing(world: World) -> None:
    """A weak ETag names the body; the same one again is 304 without a body and without a request of the limit."""
    issue = world.hub.open_issue(world.repository, world.owner, "Bug")
    bot, url = world.as_bot(), f"{world.path}/issues/{issue.number}"
    first = bot.get(url)
    etag = first.headers["ETag"]
    assert etag.startswith('W/"')
    again = bot.get(url, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    world.hub.edit_issue(issue, world.owner, title="Other")
    changed = bot.get(url, headers={"If-None-Match": etag})
    assert (changed.status_code, changed.json()["title"]) == (200, "Other")


def test_the_primary_limit_refuses_until_the_hour_is_over(world: World) -> None:
    """Headers count down, then 403 with nothing remaining; the clock brings it back; `/rate_limit` costs nothing."""
    world.hub.meter.limit = 3
    bot = world.as_bot()
    remaining = [bot.get(world.path).headers["x-ratelimit-remaining"] for _ in range(3)]
    assert remaining == ["2", "1", "0"]
    refused = bot.get(world.path)
    assert (refused.status_code, refused.headers["x-ratelimit-remaining"]) == (403, "0")
    assert "API rate limit exceeded" in refused.json()["message"]
    assert bot.get("/rate_limit").json()["rate"]["remaining"] == 0
    assert int(refused.headers["x-ratelimit-reset"]) == int(world.clock().timestamp()) + 3600
    assert world.as_person(world.owner).get(world.path).status_code == 200
    world.clock.forward(hours=1)
    assert world.client(world.hub.create_installation_token(world.installation)).get(world.path).status_code == 200


def test_bad_bodies_are_refused_in_github_s_words(world: World) -> None:
    """400 for no JSON, 422 for missing and wrongly typed fields."""
    bot, url = world.as_bot(), f"{world.path}/issues"
    assert bot.post(url, content=b"{").json()["message"] == "Problems parsing JSON"
    assert bot.post(url, content=b"[1]").status_code == 400
    assert bot.post(url, json={}).json()["message"].endswith("wasn't supplied.")
    assert "is not a string" in bot.post(url, json={"title": 5}).json()["message"]
    empty = bot.post(url, json={"title": " "}).json()
    assert empty["errors"][0]["field"] == "title"


def test_answers_are_dated_by_the_hub_s_clock(world: World) -> None:
    """So that a client can correct its own clock."""
    assert world.as_bot().get(world.path).headers["Date"] == "Mon, 30 Nov 2026 12:00:00 GMT"


def test_unknown_paths_are_not_found(world: World) -> None:
    """404 with GitHub's body, and every answer has a request id."""
    answer = world.as_bot().get("/nothing/here")
    assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")
    assert answer.json()["documentation_url"].startswith("https://docs.github.com/")
    assert answer.headers["X-GitHub-Request-Id"]


def test_the_api_is_at_the_root_too(world: World) -> None:
    """The same routes answer with and without `/api/v3`."""
    with httpx.Client(base_url=world.server.url, trust_env=False) as client:
        assert client.get(world.path).json()["url"] == f"{world.server.api_url}{world.path}"


def test_files_come_raw_when_asked_for(world: World) -> None:
    """The raw media type gives the bytes; a folder is a list; a missing path or ref is 404."""
    bot, url = world.as_bot(), f"{world.path}/contents"
    raw = bot.get(f"{url}/README.md", headers={"Accept": "application/vnd.github.raw+json"})
    assert raw.text == "# Web\n\nA shop.\n"
    assert [item["type"] for item in bot.get(url).json()] == ["file", "dir"]
    assert bot.get(f"{url}/src").json()[0]["path"] == "src/app.py"
    for missing in ("nothing", "src/nothing", "README.md/x"):
        assert bot.get(f"{url}/{missing}").status_code == 404
    assert bot.get(f"{url}/README.md", params={"ref": "nope"}).status_code == 404
    empty = world.hub.create_repository(world.owner, "empty")
    assert bot.get(f"/repos/{empty.full_name}/contents/").json()["message"] == "This repository is empty."


def test_a_reaction_is_one_for_each_person_and_content(world: World) -> None:
    """The same again is 200 with the old id; another person's is new; only one's own can be taken back."""
    issue = world.hub.open_issue(world.repository, world.owner, "Bug")
    url = f"{world.path}/issues/{issue.number}/reactions"
    bob, eve = world.as_person(world.person("bob")), world.as_person(world.person("eve"))
    first, again, other = (who.post(url, json={"content": "eyes"}) for who in (bob, bob, eve))
    assert [answer.status_code for answer in (first, again, other)] == [201, 200, 201]
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    assert bob.post(url, json={"content": "smile"}).status_code == 422
    assert eve.delete(f"{url}/{first.json()['id']}").status_code == 403
    assert bob.delete(f"{url}/{first.json()['id']}").status_code == 204
    assert bob.delete(f"{url}/{first.json()['id']}").status_code == 404
    assert bob.get(f"{world.path}/issues/{issue.number}").json()["reactions"]["eyes"] == 1
