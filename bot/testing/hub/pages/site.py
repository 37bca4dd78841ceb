"""What all pages share: templates, addresses, headers and refusals."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.testing.hub.errors import HubError
from bot.testing.hub.hub import Hub
from bot.testing.hub.pages.markdown import Place, render
from bot.testing.hub.records import Issue, Label, Reaction, Repository, User

POLICY = (
    "default-src 'none'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
EMOJI = {
    "+1": "👍",
    "-1": "👎",
    "laugh": "😄",
    "confused": "😕",
    "heart": "❤️",
    "hooray": "🎉",
    "eyes": "👀",
    "rocket": "🚀",
}
View = Callable[["Site", Request], Response]


class Site:
    """The pages of one hub.

    Args:
        hub: what is shown.
    """

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        loader = PackageLoader("bot.testing.hub.pages")
        self._env = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._env.filters |= {"moment": moment, "segment": segment, "counted": counted}
        self._env.globals |= {"user_url": self.user_url, "is_bot": is_bot, "emoji": EMOJI, "rolled": rolled}

    def endpoint(self, view: View) -> Callable[[Request], Response]:
        """Return a view as an endpoint: under the hub's lock, its refusals as pages."""

        def answer(request: Request) -> Response:
            with self.hub.lock:
                try:
                    return view(self, request)
                except HubError as refusal:
                    return self.refuse(refusal)

        return answer

    def page(self, template: str, status: int = 200, /, **values: object) -> Response:
        """Return a page made of a template."""
        nonce = secrets.token_urlsafe(16)
        text = self._env.get_template(template).render(nonce=nonce, **values)
        headers = {**HEADERS, "Content-Security-Policy": POLICY.format(nonce=nonce)}
        return Response(text, status, headers, "text/html; charset=utf-8")

    def refuse(self, refusal: HubError) -> Response:
        """Return the page of a refusal; whatever git could not find is not found."""
        message = "There is no such page." if refusal.status in (404, 422) else refusal.message
        return self.page("missing.html", 404, message=message)

    def repository(self, request: Request) -> Repository:
        """Return the repository of a page.

        Raises:
            HubError: 404 when there is none.
        """
        return self.hub.repository(request.path_params["owner"], request.path_params["repo"])

    def url(self, repository: Repository) -> str:
        """Return the path of a repository's page."""
        return f"/{segment(repository.full_name)}"

    def issue_url(self, issue: Issue) -> str:
        """Return the path of the page of an issue or pull request."""
        return f"{self.url(issue.repository)}/{'pull' if issue.pull else 'issues'}/{issue.number}"

    def user_url(self, user: User) -> str:
        """Return the path of the page of an account."""
        app = self.hub.app_of(user)
        return f"/apps/{segment(app.slug)}" if app else f"/{segment(user.login)}"

    def text(self, repository: Repository, body: str | None) -> Markup:
        """Return the HTML of a comment."""
        return render(body or "", Place(self._login, lambda number: self._number(repository, number)))

    def document(self, repository: Repository, body: str, folder: str) -> Markup:
        """Return the HTML of a file; `folder` is where its relative links lead."""
        place = Place(self._login, lambda number: self._number(repository, number), folder, breaks=False)
        return render(body, place)

    def _login(self, login: str) -> str | None:
        user = self.hub.users.get(login.lower()) or self.hub.users.get(f"{login.lower()}[bot]")
        return self.user_url(user) if user else None

    def _number(self, repository: Repository, number: int) -> str | None:
        issue = repository.issues.get(number)
        return self.issue_url(issue) if issue else None


def redirect(path: str) -> Response:
    """Return a redirection within the site."""
    return RedirectResponse(path, 302, HEADERS)


def style_sheet(_: Request) -> Response:
    """Return the style sheet."""
    text = (resources.files("bot.testing.hub.pages") / "static" / "hub.css").read_text(encoding="utf-8")
    return Response(text, headers=HEADERS, media_type="text/css")


def moment(when: datetime) -> Markup:
    """Return a time as people read it."""
    utc = when.astimezone(UTC)
    exact, shown = f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc.day} {utc:%b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(exact, shown)


def segment(text: str) -> str:
    """Return text quoted for a path, slashes kept."""
    return quote(text, safe="/")


def counted(count: int, noun: str) -> str:
    """Return `1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_bot(user: User) -> bool:
    """Tell whether an account is that of an App."""
    return user.type == "Bot"


def rolled(reactions: Sequence[Reaction]) -> Mapping[str, int]:
    """Return how often each reaction was given."""
    return Counter(reaction.content for reaction in reactions)


def label_classes(labels: Sequence[Label]) -> Mapping[str, str]:
    """Return the ink (black or white) for each colour of labels; what is no colour is left out."""
    colours = {label.color.lower() for label in labels}
    return {colour: _ink(colour) for colour in sorted(colours) if _is_colour(colour)}


def _is_colour(text: str) -> bool:
    return len(text) == 6 and all(c in "0123456789abcdef" for c in text)  # noqa: PLR2004 -- rrggbb


def _ink(colour: str) -> str:
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (0, 2, 4))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    # where black and white have the same contrast (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)
    return "000" if luminance > 0.179 else "fff"  # noqa: PLR2004


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 -- of sRGB
