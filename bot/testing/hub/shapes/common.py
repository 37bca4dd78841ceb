"""JSON of people, Apps, labels and reactions, and how GitHub writes times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from bot.testing.hub.core import Core
from bot.testing.hub.records import App, Installation, Label, Reaction, Repository, User

Json = dict[str, object]

CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")
"""The reactions there are."""

USER_LINKS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}


def stamp(when: datetime) -> str:
    """Return a time as GitHub writes it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def optional_stamp(when: datetime | None) -> str | None:
    """Return a time as GitHub writes it, or None."""
    return stamp(when) if when is not None else None


def user_json(hub: Core, user: User) -> Json:
    """Return a `simple-user`."""
    url = f"{hub.api_url}/users/{quote(user.login)}"
    app = hub.app_of(user)
    return {
        "login": user.login,
        "id": user.id,
        "node_id": user.node_id,
        "avatar_url": f"{hub.base_url}/avatars/u/{user.id}?v=4",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{hub.base_url}/apps/{app.slug}" if app else f"{hub.base_url}/{user.login}",
        **{key: url + path for key, path in USER_LINKS.items()},
        "type": user.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def profile_json(hub: Core, user: User) -> Json:
    """Return a `public-user`."""
    owned = [repository for repository in hub.repositories.values() if repository.owner is user]
    return {
        **user_json(hub, user),
        "name": user.name,
        "company": None,
        "blog": "",
        "location": None,
        "email": user.email,
        "hireable": None,
        "bio": None,
        "twitter_username": None,
        "public_repos": sum(not repository.private for repository in owned),
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": stamp(user.created_at),
        "updated_at": stamp(user.created_at),
    }


def app_json(hub: Core, app: App) -> Json:
    """Return an `integration`."""
    return {
        "id": app.id,
        "client_id": app.client_id,
        "slug": app.slug,
        "node_id": app.node_id,
        "owner": user_json(hub, app.owner),
        "name": app.name,
        "description": "",
        "external_url": app.external_url,
        "html_url": f"{hub.base_url}/apps/{app.slug}",
        "created_at": stamp(app.created_at),
        "updated_at": stamp(app.created_at),
        "permissions": dict(app.permissions),
        "events": list(app.events),
    }


def performed_via(hub: Core, user: User) -> Json | None:
    """Return the App behind a `[bot]` account, or None for a person."""
    app = hub.app_of(user)
    return app_json(hub, app) if app else None


def installation_json(hub: Core, installation: Installation) -> Json:
    """Return an `installation`."""
    app = installation.app
    return {
        "id": installation.id,
        "client_id": app.client_id,
        "account": user_json(hub, installation.account),
        "repository_selection": installation.selection,
        "access_tokens_url": f"{hub.api_url}/app/installations/{installation.id}/access_tokens",
        "repositories_url": f"{hub.api_url}/installation/repositories",
        "html_url": f"{hub.base_url}/settings/installations/{installation.id}",
        "app_id": app.id,
        "app_slug": app.slug,
        "target_id": installation.account.id,
        "target_type": "Organization" if installation.account.type == "Organization" else "User",
        "permissions": dict(installation.permissions),
        "events": list(app.events),
        "created_at": stamp(installation.created_at),
        "updated_at": stamp(installation.created_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": user_json(hub, installation.suspended_by) if installation.suspended_by else None,
        "suspended_at": optional_stamp(installation.suspended_at),
    }


def label_json(hub: Core, repository: Repository, label: Label) -> Json:
    """Return a `label`."""
    return {
        "id": label.id,
        "node_id": label.node_id,
        "url": f"{hub.api_url}/repos/{repository.full_name}/labels/{quote(label.name, safe='/:')}",
        "name": label.name,
        "color": label.color,
        "default": False,
        "description": label.description,
    }


def reaction_json(hub: Core, reaction: Reaction) -> Json:
    """Return a `reaction`."""
    return {
        "id": reaction.id,
        "node_id": reaction.node_id,
        "user": user_json(hub, reaction.user),
        "content": reaction.content,
        "created_at": stamp(reaction.created_at),
    }


def rollup_json(url: str, reactions: Sequence[Reaction]) -> Json:
    """Return a `reaction-rollup`; `url` is that of the thing reacted to."""
    counts = Counter(reaction.content for reaction in reactions)
    return {"url": f"{url}/reactions", "total_count": len(reactions), **{name: counts[name] for name in CONTENTS}}
