"""Apps: JSON web tokens, installation tokens, suspension, removal and job tokens."""

import base64
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.hub.world import World

DECODE = "A JSON web token could not be decoded"


CLAIMS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 200, ""),
    ({"iat": None}, 401, "'Issued at' claim ('iat')"),
    ({"exp": None}, 401, "'Expiration time' claim ('exp') must be a numeric value"),
    ({"exp": "soon"}, 401, "'Expiration time' claim ('exp') must be a numeric value"),
    ({"iss": None}, 404, "Integration not found"),
    ({"iss": "999"}, 404, "Integration not found"),
]

TIMES = [(-60, 540, 200), (59, 600, 200), (61, 500, 401), (-60, 601, 401), (-60, -1, 401), (-60, 0, 401)]
"""Seconds from now: issued, expires; then the status."""


def test_the_claims_of_a_jwt_are_checked(world: World) -> None:
    """Each wrong claim has GitHub's own answer."""
    for claims, status, words in CLAIMS:
        answer = world.client(world.jwt(**claims)).get("/app")
        assert (answer.status_code, words in answer.text) == (status, True), claims


def test_the_times_of_a_jwt_are_judged_by_the_hub_s_clock(world: World) -> None:
    """At most ten minutes ahead, not expired, and issued no more than a minute in the future."""
    now = int(world.clock().timestamp())
    for issued, expires, status in TIMES:
        token = world.jwt(iat=now + issued, exp=now + expires)
        assert world.client(token).get("/app").status_code == status, (issued, expires)


def test_a_jwt_may_name_the_app_by_id_or_client_id(world: World) -> None:
    """`iss` is the App's id, as number or text, or its client id."""
    for issuer in (str(world.app.id), world.app.client_id):
        assert world.client(world.jwt(iss=issuer)).get("/app").json()["id"] == world.app.id


def test_a_jwt_of_another_key_or_algorithm_is_refused(world: World) -> None:
    """Only RS256 by the App's own key counts; `none` and HS256 with the public key do not."""
    claims = jwt.decode(world.jwt(), options={"verify_signature": False})
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).rstrip(b"=").decode()
    unsigned = f"{head}.{world.jwt().split('.')[1]}."
    for token in (
        jwt.encode(claims, stranger, algorithm="RS256"),
        jwt.encode(claims, "x" * 32, algorithm="HS256"),
        unsigned,
        "a.b.c",
    ):
        answer = world.client(token).get("/app")
        assert (answer.status_code, answer.json()["message"]) == (401, DECODE)


def test_a_jwt_opens_only_the_app_s_own_routes(world: World) -> None:
    """A JSON web token is no credential for a repository, and a token none for the App."""
    assert world.as_app().get(world.path).status_code == 401
    assert world.as_bot().get("/app").status_code == 401
    assert world.as_bot().get("/user").status_code == 403


def test_a_token_has_the_new_form_and_works_for_an_hour(world: World) -> None:
    """About 520 characters of `ghs_<app>_...`, good until the hub's clock has moved an hour."""
    token = world.as_app().post(f"/app/installations/{world.installation.id}/access_tokens").json()
    assert token["token"].startswith(f"ghs_{world.app.id}_")
    assert 500 < len(token["token"]) < 540
    assert token["expires_at"] == "2026-11-30T13:00:00Z"
    client = world.client(token["token"])
    world.clock.forward(minutes=59)
    assert client.get("/installation/repositories").status_code == 200
    world.clock.forward(minutes=1)
    answer = client.get("/installation/repositories")
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


def test_a_token_can_be_narrowed_but_not_widened(world: World) -> None:
    """Fewer repositories and permissions are given, more are a 422."""
    other = world.hub.create_repository(world.owner, "other", files={"a": "b"}, private=True)
    world.hub.change_repositories(world.installation, world.owner, add=[other])
    app, url = world.as_app(), f"/app/installations/{world.installation.id}/access_tokens"
    narrow = app.post(url, json={"repository_ids": [world.repository.id], "permissions": {"issues": "read"}}).json()
    assert narrow["permissions"] == {"issues": "read", "metadata": "read"}
    client = world.client(narrow["token"])
    assert [r["name"] for r in client.get("/installation/repositories").json()["repositories"]] == ["web"]
    assert client.get("/repos/acme/other").status_code == 404
    assert client.post(f"{world.path}/issues", json={"title": "No"}).status_code == 403
    assert world.as_bot().get("/repos/acme/other").status_code == 200
    for more in (
        {"permissions": {"administration": "read"}},
        {"permissions": {"actions": "write"}},
        {"repository_ids": [1]},
        {"repositories": ["nowhere"]},
    ):
        assert app.post(url, json=more).status_code == 422, more


def test_a_suspended_installation_is_refused_until_it_is_let_go(world: World) -> None:
    """Old tokens and new ones are 403 while suspended."""
    client, app = world.as_bot(), world.as_app()
    url = f"/app/installations/{world.installation.id}/access_tokens"
    world.hub.suspend(world.installation, world.owner)
    assert client.get(world.path).status_code == 403
    assert "suspended" in app.post(url).json()["message"]
    assert app.get(f"{world.path}/installation").json()["suspended_at"] == "2026-11-30T12:00:00Z"
    world.hub.unsuspend(world.installation, world.owner)
    assert client.get(world.path).status_code == 200
    assert app.post(url).status_code == 201


def test_an_uninstalled_app_has_nothing(world: World) -> None:
    """Tokens are bad credentials, the installation is not found."""
    client, app = world.as_bot(), world.as_app()
    world.hub.uninstall(world.installation, world.owner)
    assert client.get(world.path).status_code == 401
    assert app.post(f"/app/installations/{world.installation.id}/access_tokens").status_code == 404
    assert app.get(f"{world.path}/installation").status_code == 404
    assert app.get("/app/installations").json() == []


def test_another_app_cannot_mint_for_this_installation(world: World) -> None:
    """An installation belongs to its App."""
    other = world.hub.create_app(world.owner, "Other", private_key=world.app.private_key)
    client = world.client(world.jwt(iss=str(other.id)))
    assert client.post(f"/app/installations/{world.installation.id}/access_tokens").status_code == 404


def test_a_job_token_acts_as_github_actions_in_one_repository(world: World) -> None:
    """It comments and makes check runs as `github-actions[bot]`, within its permissions."""
    other = world.hub.create_repository(world.owner, "other", files={"a": "b"})
    token = world.hub.create_job_token(world.repository, {"issues": "write", "checks": "write"})
    client = world.client(token)
    issue = client.post(f"{world.path}/issues", json={"title": "From a job"}).json()
    assert (issue["user"]["login"], issue["user"]["id"]) == ("github-actions[bot]", 41898282)
    head = client.get(f"{world.path}/git/ref/heads/main").json()["object"]["sha"]
    run = client.post(f"{world.path}/check-runs", json={"name": "ci", "head_sha": head})
    assert (run.status_code, run.json()["app"]["slug"]) == (201, "github-actions")
    assert client.post(f"{world.path}/pulls", json={"title": "x", "head": "a", "base": "b"}).status_code == 403
    assert client.post(f"/repos/{other.full_name}/issues", json={"title": "No"}).status_code == 403
    assert world.as_bot().patch(f"{world.path}/check-runs/{run.json()['id']}", json={}).status_code == 403


def test_a_manifest_code_works_once(world: World) -> None:
    """The second conversion of a code is not found."""
    code = world.hub.create_manifest_code(world.app)
    first = world.client().post(f"/app-manifests/{code}/conversions").json()
    assert (first["webhook_secret"], first["client_id"]) == ("s3cret", world.app.client_id)
    assert world.client().post(f"/app-manifests/{code}/conversions").status_code == 404
