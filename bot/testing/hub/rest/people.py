"""People, the rate limit and the facts about the server."""

from __future__ import annotations

from bot.testing.hub.errors import not_found
from bot.testing.hub.permissions import ANYBODY, METADATA, PERSON
from bot.testing.hub.records import Role
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.common import Json, profile_json, user_json
from bot.testing.hub.shapes.repositories import full_repository_json

OLD_NAMES: dict[Role, str] = {"maintain": "write", "triage": "read"}
"""What `permission` says of roles that are younger than it."""

RANGES = ("hooks", "web", "api", "git", "pages", "importer", "actions", "dependabot")


def get_user(call: Call) -> Answer:
    """Return a person."""
    return Answer(profile_json(call.hub, call.hub.user(call.params["username"])))


def me(call: Call) -> Answer:
    """Return the person of the token."""
    private = {
        "collaborators": 0,
        "disk_usage": 0,
        "owned_private_repos": 0,
        "private_gists": 0,
        "total_private_repos": 0,
        "two_factor_authentication": True,
    }
    return Answer({**profile_json(call.hub, call.user), **private})


def permission(call: Call) -> Answer:
    """Return what a person may do in a repository."""
    user = call.hub.user(call.params["username"])
    role = call.hub.role(call.repository, user)
    rank: Json = {
        "admin": role == "admin",
        "maintain": role in ("admin", "maintain"),
        "push": role in ("admin", "maintain", "write"),
        "triage": role not in ("none", "read"),
        "pull": role != "none",
    }
    shown = {**user_json(call.hub, user), "permissions": rank, "role_name": role}
    return Answer({"permission": OLD_NAMES.get(role, role), "user": shown, "role_name": role})


def get_repository(call: Call) -> Answer:
    """Return a repository."""
    return Answer(full_repository_json(call.hub, call.repository, call.caller.user))


def rate_limit(call: Call) -> Answer:
    """Return the rate limits; asking costs nothing."""
    overview = call.hub.meter.overview(call.caller.key)
    return Answer({"resources": {"core": overview, "search": overview, "graphql": overview}, "rate": overview})


def meta(_: Call) -> Answer:
    """Return the facts about the server."""
    ranges: Json = {name: ["127.0.0.0/8"] for name in RANGES}
    return Answer({"verifiable_password_authentication": False, **ranges})


def membership(_: Call) -> Answer:
    """Answer that somebody is no member: organisations have no members here."""
    raise not_found()


ROUTES = [
    Route("GET", "/users/{username}", ANYBODY, get_user),
    Route("GET", "/user", PERSON, me),
    Route("GET", "/rate_limit", ANYBODY, rate_limit),
    Route("GET", "/meta", ANYBODY, meta),
    Route("GET", "/repos/{owner}/{repo}", METADATA, get_repository),
    Route("GET", "/repos/{owner}/{repo}/collaborators/{username}/permission", METADATA, permission),
    Route("GET", "/orgs/{org}/memberships/{username}", ANYBODY, membership),
]
"""Routes of people and repositories."""
