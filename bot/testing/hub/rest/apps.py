"""Apps, their webhook and its deliveries, installations and tokens."""

from __future__ import annotations

from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.permissions import ANYBODY, APP, INSTALLATION
from bot.testing.hub.records import App, Delivery, Installation, Repository
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import PER_PAGE, Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.common import Json, app_json, installation_json, stamp
from bot.testing.hub.shapes.repositories import full_repository_json, repository_json

REDELIVERABLE_DAYS = 3
"""Older deliveries cannot be sent again (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks)."""


def _app(call: Call) -> App:
    if call.caller.app is None:
        raise not_found()
    return call.caller.app


def get_app(call: Call) -> Answer:
    """Return the App of the JSON web token."""
    app = _app(call)
    alive = [i for i in call.hub.installations.values() if i.app is app and not i.deleted]
    return Answer({**app_json(call.hub, app), "installations_count": len(alive)})


def _config(app: App) -> Json:
    secret = {"secret": "********"} if app.webhook_secret else {}
    return {"content_type": "json", "insecure_ssl": "0", "url": app.webhook_url or "", **secret}


def get_config(call: Call) -> Answer:
    """Return the webhook configuration, its secret masked."""
    return Answer(_config(_app(call)))


def patch_config(call: Call) -> Answer:
    """Change URL or secret of the webhook."""
    app, body = _app(call), Body(call.raw)
    app.webhook_url = body.optional_text("url") or app.webhook_url
    app.webhook_secret = body.optional_text("secret") or app.webhook_secret
    return Answer(_config(app))


def _delivery_item(delivery: Delivery) -> Json:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": stamp(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": None,
    }


def list_deliveries(call: Call) -> Answer:
    """List deliveries that were sent, newest first, by cursor."""
    app = _app(call)
    sent = [d for d in reversed(call.hub.hooks.deliveries) if d.app is app and d.status != "pending"]
    wanted = call.query.get("status")
    if wanted in ("success", "failure"):
        sent = [d for d in sent if (d.status == "OK") is (wanted == "success")]
    cursor = call.query.get("cursor")
    if cursor is not None:
        if not cursor.removeprefix("v1_").isdecimal():
            raise HubError(400, "Invalid cursor")
        sent = [d for d in sent if d.id <= int(cursor.removeprefix("v1_"))]
    asked = call.query.get("per_page", "")
    size = max(1, min(int(asked) if asked.isdecimal() else PER_PAGE, 100))
    headers = {}
    if len(sent) > size:
        headers["Link"] = f'<{call.link({"cursor": f"v1_{sent[size].id}"})}>; rel="next"'
    return Answer([_delivery_item(delivery) for delivery in sent[:size]], headers=headers)


def get_delivery(call: Call) -> Answer:
    """Return one delivery with request and response."""
    delivery = call.hub.hooks.get(_app(call), call.number("delivery_id"))
    payload = Body(delivery.body).fields
    return Answer(
        {
            **_delivery_item(delivery),
            "url": delivery.app.webhook_url or "",
            "request": {"headers": delivery.request_headers, "payload": payload},
            "response": {"headers": delivery.response_headers, "payload": delivery.response_body},
        }
    )


def redeliver(call: Call) -> Answer:
    """Send a delivery again under its GUID."""
    delivery = call.hub.hooks.get(_app(call), call.number("delivery_id"))
    if (call.hub.clock() - delivery.created_at).days >= REDELIVERABLE_DAYS:
        raise HubError(422, "Delivery is too old to be redelivered")
    call.hub.hooks.redeliver(delivery.app, delivery.id)
    return Answer({}, 202)


def list_installations(call: Call) -> Answer:
    """List the App's installations."""
    app = _app(call)
    alive = [i for i in call.hub.installations.values() if i.app is app and not i.deleted]
    return call.paged(alive, lambda installation: installation_json(call.hub, installation))


def _installation(call: Call) -> Installation:
    installation = call.hub.installations.get(call.number("installation_id"))
    if installation is None or installation.app is not _app(call) or installation.deleted:
        raise not_found()
    return installation


def get_installation(call: Call) -> Answer:
    """Return one installation."""
    return Answer(installation_json(call.hub, _installation(call)))


def create_token(call: Call) -> Answer:
    """Mint an installation token."""
    installation, body = _installation(call), Body(call.raw)
    wanted = body.nested("permissions")
    permissions = {name: str(level) for name, level in wanted.fields.items()} if wanted else None
    ids = body.numbers("repository_ids")
    if "repositories" in body:
        ids = [*(ids or []), *_ids_of(call, installation, body.texts("repositories"))]
    token = call.hub.create_installation_token(installation, repository_ids=ids, permissions=permissions)
    selected = ids is not None or installation.selection == "selected"
    answer: Json = {
        "token": token.value,
        "expires_at": stamp(token.expires_at or token.created_at),
        "permissions": dict(token.permissions),
        "repository_selection": "selected" if selected else "all",
    }
    if ids is not None:
        answer["repositories"] = [repository_json(call.hub, call.hub.repositories[number]) for number in ids]
    return Answer(answer, 201)


def _ids_of(call: Call, installation: Installation, names: list[str]) -> list[int]:
    known = {r.name.lower(): r.id for r in call.hub.repositories.values() if call.hub.covers(installation, r)}
    return [known.get(name.lower(), 0) for name in names]


def repository_installation(call: Call) -> Answer:
    """Return the App's installation on a repository."""
    app = _app(call)
    repository = call.repository
    for installation in call.hub.installations.values():
        if (
            installation.app is app
            and not installation.deleted
            and call.hub.covers(installation, repository, always=True)
        ):
            return Answer(installation_json(call.hub, installation))
    raise not_found()


def installation_repositories(call: Call) -> Answer:
    """List what a token reaches."""
    token, installation = call.caller.token, call.caller.installation
    if token is None or installation is None:
        raise not_found()
    ids = token.repository_ids
    reached: list[Repository] = [
        repository
        for repository in call.hub.repositories.values()
        if call.hub.covers(installation, repository) and (ids is None or repository.id in ids)
    ]

    def wrap(page: list[object]) -> Json:
        return {
            "total_count": len(reached),
            "repository_selection": installation.selection,
            "repositories": page,
        }

    return call.paged(reached, lambda repository: full_repository_json(call.hub, repository, call.user), wrap)


def revoke_token(call: Call) -> Answer:
    """Make the token of this call useless."""
    if call.caller.token is not None:
        call.caller.token.revoked = True
    return Answer(status=204)


def convert_manifest(call: Call) -> Answer:
    """Turn the code of a manifest flow into an App with its secrets; a code works once."""
    app = call.hub.manifest_codes.pop(call.params["code"], None)
    if app is None:
        raise not_found()
    secrets = {
        "client_secret": app.client_secret,
        "webhook_secret": app.webhook_secret,
        "pem": app.private_key,
    }
    return Answer({**app_json(call.hub, app), **secrets}, 201)


ROUTES = [
    Route("GET", "/app", APP, get_app),
    Route("GET", "/app/hook/config", APP, get_config),
    Route("PATCH", "/app/hook/config", APP, patch_config),
    Route("GET", "/app/hook/deliveries", APP, list_deliveries),
    Route("GET", "/app/hook/deliveries/{delivery_id}", APP, get_delivery),
    Route("POST", "/app/hook/deliveries/{delivery_id}/attempts", APP, redeliver),
    Route("GET", "/app/installations", APP, list_installations),
    Route("GET", "/app/installations/{installation_id}", APP, get_installation),
    Route("POST", "/app/installations/{installation_id}/access_tokens", APP, create_token),
    Route("GET", "/repos/{owner}/{repo}/installation", APP, repository_installation),
    Route("GET", "/installation/repositories", INSTALLATION, installation_repositories),
    Route("DELETE", "/installation/token", INSTALLATION, revoke_token),
    Route("POST", "/app-manifests/{code}/conversions", ANYBODY, convert_manifest),
]
"""Routes of Apps."""
