"""What the tests of the pages look at."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser

import httpx

from bot.testing.hub.hub import Hub
from bot.testing.hub.records import App, Issue, Repository, User
from bot.testing.hub.server import HubServer
from bot.testing.hub.state.reviews import LineComment

CART = """\
class Cart:
    def __init__(self, discount=0):
        self.discount = discount
        self.prices = []

    def total(self):
        return sum(self.prices)
"""
MENDED = CART.replace("sum(self.prices)", "sum(self.prices) * (100 - self.discount) // 100")
REPORT = """\
A cart with 10 percent discount costs too much, @bob:

```python
cart = Cart(discount=10)
```

- [x] seen
- [ ] mended
"""
PROGRESS = """\
<!-- issuewright:v1:secret-marker -->
**Working on it**: running the tests.

| check | before | after |
|---|--:|:-:|
| `pytest -q` | 1 failed | ~~failed~~ passed |

<details><summary>Log of the last command</summary>

```console
$ pytest -q
1 failed
```

</details>

See #2.
"""


@dataclass
class Shop:
    """The hub with its people and things, and a client for its pages."""

    hub: Hub
    server: HubServer
    client: httpx.Client
    repository: Repository
    app: App
    maria: User
    bob: User
    issue: Issue
    pull: Issue

    def page(self, path: str, status: int = 200) -> str:
        """Return a page; paths are below the repository unless they begin with a slash."""
        answer = self.client.get(path if path.startswith("/") else f"/corner-shop/cart/{path}")
        assert answer.status_code == status, (path, answer.status_code)
        return answer.text


@contextmanager
def furnish(hub: Hub, server: HubServer, private_key: str) -> Iterator[Shop]:
    """Fill a hub."""
    owner = hub.create_user("corner-shop", kind="Organization")
    maria, bob = hub.create_user("maria"), hub.create_user("bob")
    repository = hub.create_repository(
        owner, "cart", files={"README.md": "# Cart\n\nSee [the code](src/cart.py).\n", "src/cart.py": CART}
    )
    for person in (maria, bob):
        hub.add_collaborator(repository, person, "write")
    hub.create_label(repository, "agent", color="5319e7", description="Issuewright works on it")
    app = hub.create_app(owner, "Issuewright Demo", private_key=private_key)
    hub.install(app, [repository.id])
    issue = hub.open_issue(repository, maria, "Discount is ignored", REPORT, ["bug"])
    hub.add_label(issue, maria, "agent")
    hub.react(issue, app.bot, "eyes")
    hub.comment(issue, app.bot, PROGRESS)
    hub.minimize(hub.comment(issue, bob, "Me too"), "outdated")
    pull = _review(hub, repository, app, maria, bob)
    with httpx.Client(base_url=server.url, trust_env=False, verify=False) as client:
        yield Shop(hub, server, client, repository, app, maria, bob, issue, pull)


def _review(hub: Hub, repository: Repository, app: App, maria: User, bob: User) -> Issue:
    branch = "agent/1-0a1b2c3d"
    head = hub.commit_files(repository, app.bot, branch, {"src/cart.py": MENDED}, message="Subtract the discount")
    pull = hub.open_pull(repository, app.bot, "Subtract the discount", head=branch, body="Closes #1.", draft=True)
    hub.set_draft(pull, app.bot, draft=False)
    hub.create_check_run(repository, app, "Issuewright", head, {"conclusion": "success", "title": "3 tests pass"})
    hub.set_status(repository, maria, head, "failure", context="ci/build", description="The build broke")
    line = LineComment("src/cart.py", 7, "Does this round *half up*?")
    hub.review(pull, maria, "CHANGES_REQUESTED", "One question.", [line])
    assert pull.pull is not None
    hub.reply(pull.pull.threads[0], app.bot, "It rounds down.")
    hub.review(pull, bob, "APPROVED")
    return pull


INLINE = ("a", "b", "code", "em", "img", "span", "strong", "time")
"""Tags that part no words."""


@dataclass
class Element:
    """An opening tag."""

    tag: str
    attributes: dict[str, str]


class Elements(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Element] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.words.append("" if tag in INLINE else " ")
        self.found.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.words.append(data)

    @property
    def text(self) -> str:
        """The text with single spaces."""
        return " ".join("".join(self.words).split())

    def all(self, tag: str) -> list[Element]:
        """Return the elements of a tag."""
        return [element for element in self.found if element.tag == tag]
