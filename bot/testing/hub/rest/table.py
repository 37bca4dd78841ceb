"""All routes of the REST API."""

from __future__ import annotations

from bot.testing.hub.rest import actions, apps, checks, comments, contents, git_data, issues, people, pulls, reviews
from bot.testing.hub.rest.routing import Route

ROUTES: list[Route] = [
    *apps.ROUTES,
    *people.ROUTES,
    *issues.ROUTES,
    *comments.ROUTES,
    *pulls.ROUTES,
    *reviews.ROUTES,
    *git_data.ROUTES,
    *contents.ROUTES,
    *checks.ROUTES,
    *actions.ROUTES,
]
