"""Who calls: credentials become a caller with permissions, or GitHub's 401."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot.testing.hub.errors import HubError
from bot.testing.hub.records import App, Installation, Repository, Token, User
from bot.testing.hub.state.apps import Apps

SKEW_S = 60
"""How far ahead of the hub's clock an `iat` may be."""

LONGEST_JWT_S = 600
"""How far ahead an `exp` may be."""

UNREADABLE = "A JSON web token could not be decoded"
BAD_EXP = (
    "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion "
    "expires"
)
LATE_EXP = "'Expiration time' claim ('exp') is too far in the future"
BAD_IAT = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request."""

    kind: Literal["anonymous", "person", "app", "installation", "job"]
    user: User | None = None
    app: App | None = None
    token: Token | None = None
    permissions: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What rate limits are counted by."""
        if self.installation is not None:
            return f"installation {self.installation.id}"
        return f"{self.kind} {self.user.login if self.user else ''}"

    @property
    def installation(self) -> Installation | None:
        """The installation that the token belongs to."""
        return self.token.installation if self.token else None


ANONYMOUS = Caller("anonymous")


def bad_credentials() -> HubError:
    """Return the answer to an unknown, expired or revoked token."""
    return HubError(401, "Bad credentials")


def identify(hub: Apps, authorization: str | None) -> Caller:
    """Turn an `Authorization` header into a caller.

    Accepts `Bearer` and `token` with a JWT or token, and `Basic` with a token as password under any user name.

    Raises:
        HubError: 401 in GitHub's words; 403 for a suspended installation.
    """
    if not authorization:
        return ANONYMOUS
    scheme, _, value = authorization.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        value = _password(value)
    elif scheme.lower() not in ("bearer", "token"):
        raise bad_credentials()
    with hub.lock:
        if value.count(".") == 2 and not value.startswith("gh"):  # noqa: PLR2004 -- header.claims.signature
            app = check_jwt(hub, value)
            return Caller("app", app.bot, app)
        return _holder(hub, value)


def _password(value: str) -> str:
    try:
        name, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise bad_credentials() from None
    return password if password not in ("", "x-oauth-basic") else name


def _holder(hub: Apps, value: str) -> Caller:
    token = hub.tokens.get(value)
    if token is None or token.revoked or (token.expires_at is not None and token.expires_at <= hub.clock()):
        raise bad_credentials()
    if token.installation is not None:
        if token.installation.deleted:
            raise bad_credentials()
        if token.installation.suspended_at is not None:
            raise HubError(403, "This installation has been suspended")
    return Caller(token.kind, token.user, hub.app_of(token.user), token, token.permissions)


def check_jwt(hub: Apps, value: str) -> App:
    """Return the App that signed a JSON web token.

    Raises:
        HubError: 401 in GitHub's words.
    """
    try:
        claims = jwt.decode(value, options={"verify_signature": False})
        header = jwt.get_unverified_header(value)
    except jwt.PyJWTError:
        raise HubError(401, UNREADABLE) from None
    issuer = str(claims.get("iss", ""))
    app = next((app for app in hub.apps.values() if issuer in (str(app.id), app.client_id)), None)
    if app is None or not app.private_key:
        raise HubError(404, "Integration not found")
    if header.get("alg") != "RS256":
        raise HubError(401, UNREADABLE)
    try:
        jwt.decode(
            value,
            _public_key(app.private_key),
            algorithms=["RS256"],
            # the times are judged below by the hub's own clock
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False},
        )
    except jwt.PyJWTError:
        raise HubError(401, UNREADABLE) from None
    _check_times(claims, hub.clock().timestamp())
    return app


def _check_times(claims: Mapping[str, object], now: float) -> None:
    exp, iat = claims.get("exp"), claims.get("iat")
    if not isinstance(exp, int | float) or isinstance(exp, bool) or exp <= now:
        raise HubError(401, BAD_EXP)
    if exp - now > LONGEST_JWT_S:
        raise HubError(401, LATE_EXP)
    if not isinstance(iat, int | float) or isinstance(iat, bool) or iat > now + SKEW_S:
        raise HubError(401, BAD_IAT)


@lru_cache(maxsize=64)
def _public_key(private_key: str) -> RSAPublicKey:
    key = load_pem_private_key(private_key.encode(), None)
    if not isinstance(key, RSAPrivateKey):
        raise TypeError("the key of an App is an RSA key")
    return key.public_key()


def sees(hub: Apps, caller: Caller, repository: Repository) -> bool:
    """Tell whether a caller may know that a repository exists."""
    return not repository.private or reaches(hub, caller, repository)


def reaches(hub: Apps, caller: Caller, repository: Repository) -> bool:
    """Tell whether the permissions of a token, or a role of a person, count in a repository."""
    if caller.kind == "person":
        return hub.role(repository, caller.user) != "none"
    token = caller.token
    if token is None or (token.repository_ids is not None and repository.id not in token.repository_ids):
        return False
    return token.installation is None or hub.covers(token.installation, repository)
