"""GitHub Apps: registering, installing, suspending them, and the tokens they act with."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.records import App, Installation, Repository, Token, User
from bot.testing.hub.shapes.common import Json, installation_json, user_json
from bot.testing.hub.shapes.repositories import brief_json
from bot.testing.hub.state.checks import Checks

TOKEN_LIFE = timedelta(hours=1)
"""How long an installation token works."""

JOB_LIFE = timedelta(hours=6)
"""How long the token of an Actions job works at most: a job ends after six hours."""

ACTIONS_APP_ID = 15368
"""The real id of the App `github-actions`."""

LEVELS = ("read", "write", "admin")
"""Weakest first."""

DEFAULT_PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "read",
    "statuses": "write",
}

DEFAULT_EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "check_run",
    "workflow_run",
    "status",
)


class Apps(Checks):
    """Apps and installations."""

    @locked
    def create_app(  # noqa: PLR0913 -- each is a field of the registration form
        self,
        owner: User,
        name: str,
        *,
        permissions: Mapping[str, str] | None = None,
        events: Sequence[str] = DEFAULT_EVENTS,
        webhook_url: str | None = None,
        webhook_secret: str | None = None,
        private_key: str | None = None,
    ) -> App:
        """Register an App with a webhook, a key and a `[bot]` account.

        Args:
            owner: the account it belongs to.
            name: its slug is the name in lower case with dashes.
            permissions: None is `DEFAULT_PERMISSIONS`; `metadata: read` is always there.
            events: that its webhook hears, besides those of installations and checks.
            webhook_url: None sends nothing.
            webhook_secret: None sends no signature.
            private_key: PEM to use instead of a fresh key (which takes a tenth of a second).
        """
        slug = "-".join(name.lower().split())
        number, node = self.new_ids("A")
        app = App(
            id=number,
            node_id=node,
            slug=slug,
            name=name,
            client_id=f"Iv23li{number:014d}",
            client_secret=secrets.token_hex(20),
            owner=owner,
            bot=self.create_user(f"{slug}[bot]", kind="Bot"),
            permissions={"metadata": "read", **(DEFAULT_PERMISSIONS if permissions is None else permissions)},
            events=list(events),
            private_key=private_key or new_key(),
            created_at=self.now(),
            hook_id=self.next_id(),
            webhook_url=webhook_url,
            webhook_secret=webhook_secret,
        )
        self.apps[number] = app
        self.nodes[node] = app
        self.ping(app)
        return app

    @locked
    def create_manifest_code(self, app: App) -> str:
        """Return the code with which `POST /app-manifests/{code}/conversions` gives out an App's secrets once."""
        code = secrets.token_hex(20)
        self.manifest_codes[code] = app
        return code

    @locked
    def install(
        self,
        app: App,
        repository_ids: Sequence[int] | None = None,
        *,
        account: User | None = None,
        permissions: Mapping[str, str] | None = None,
    ) -> Installation:
        """Install an App.

        Args:
            app: what.
            repository_ids: of one owner; None is all of the account's repositories, now and later.
            account: where; may be left out when repositories are named.
            permissions: what was granted; None is all that the App asks for.
        """
        ids = set(repository_ids or ())
        owner = account or self.repositories[min(ids)].owner
        granted = dict(app.permissions if permissions is None else permissions)
        selection: str = "selected" if repository_ids is not None else "all"
        installation = Installation(self.next_id(), app, owner, ids, granted, self.now())
        installation.selection = "all" if selection == "all" else "selected"
        self.installations[installation.id] = installation
        self.emit_installation(installation, "created", owner)
        return installation

    @locked
    def change_repositories(
        self, installation: Installation, by: User, *, add: Sequence[Repository] = (), remove: Sequence[Repository] = ()
    ) -> None:
        """Add repositories to an installation or take them away, each with its event."""
        for action, repositories in (("added", add), ("removed", remove)):
            if not repositories:
                continue
            ids = {repository.id for repository in repositories}
            installation.selection = "selected"
            installation.repository_ids = (
                installation.repository_ids | ids if action == "added" else installation.repository_ids - ids
            )
            payload: Json = {
                "action": action,
                "installation": installation_json(self, installation),
                "repository_selection": installation.selection,
                "repositories_added": [brief_json(r) for r in repositories] if action == "added" else [],
                "repositories_removed": [brief_json(r) for r in repositories] if action == "removed" else [],
                "requester": None,
                "sender": user_json(self, by),
            }
            self.hooks.send(installation.app, "installation_repositories", payload, installation_id=installation.id)

    @locked
    def suspend(self, installation: Installation, by: User) -> None:
        """Suspend an installation: its tokens stop working and no token is made."""
        installation.suspended_at, installation.suspended_by = self.now(), by
        self.emit_installation(installation, "suspend", by)

    @locked
    def unsuspend(self, installation: Installation, by: User) -> None:
        """Let a suspended installation work again."""
        installation.suspended_at = installation.suspended_by = None
        self.emit_installation(installation, "unsuspend", by)

    @locked
    def uninstall(self, installation: Installation, by: User) -> None:
        """Remove an installation: its tokens are bad credentials from now on."""
        installation.deleted = True
        self.emit_installation(installation, "deleted", by)

    @locked
    def create_installation_token(
        self,
        installation: Installation,
        *,
        repository_ids: Sequence[int] | None = None,
        permissions: Mapping[str, str] | None = None,
    ) -> Token:
        """Mint an installation token for one hour.

        Raises:
            HubError: 403 suspended, 404 removed, 422 when more is asked for than was granted.
        """
        if installation.deleted:
            raise not_found()
        if installation.suspended_at is not None:
            raise HubError(403, "This installation has been suspended")
        wanted = dict(installation.permissions if permissions is None else permissions)
        for name, level in wanted.items():
            granted = installation.permissions.get(name)
            if granted is None or level not in LEVELS or LEVELS.index(level) > LEVELS.index(granted):
                raise HubError(422, "The permissions requested are not granted to this installation.")
        covered = {r.id for r in self.repositories.values() if self.covers(installation, r)}
        if repository_ids is not None and not covered.issuperset(repository_ids):
            raise HubError(
                422,
                "There is at least one repository that does not exist or is not accessible to the parent installation.",
            )
        now = self.clock()
        return self.keep(
            Token(
                value=token_value(installation.app.id),
                kind="installation",
                user=installation.app.bot,
                created_at=now,
                expires_at=now + TOKEN_LIFE,
                installation=installation,
                permissions={**wanted, "metadata": "read"},
                repository_ids=frozenset(repository_ids) if repository_ids is not None else None,
            )
        )

    @locked
    def actions_app(self) -> App:
        """Return `github-actions`, the App behind the tokens of jobs."""
        known = self.apps.get(ACTIONS_APP_ID)
        if known is not None:
            return known
        owner = self.users.get("github") or self.create_user("github", kind="Organization")
        bot = self.actions_bot()
        app = App(
            id=ACTIONS_APP_ID,
            node_id=f"A_{ACTIONS_APP_ID}",
            slug="github-actions",
            name="GitHub Actions",
            client_id="Iv1.05c79e9ad1f6bdfa",
            client_secret="",
            owner=owner,
            bot=bot,
            permissions={},
            events=[],
            private_key="",
            created_at=self.now(),
            hook_id=0,
        )
        self.apps[app.id] = app
        return app

    @locked
    def create_job_token(self, repository: Repository, permissions: Mapping[str, str]) -> Token:
        """Make the `GITHUB_TOKEN` of an Actions job: acts as `github-actions[bot]` in one repository."""
        now = self.clock()
        return self.keep(
            Token(
                value=f"ghs_{secrets.token_hex(18)}",
                kind="job",
                user=self.actions_app().bot,
                created_at=now,
                expires_at=now + JOB_LIFE,
                permissions={"metadata": "read", **permissions},
                repository_ids=frozenset({repository.id}),
            )
        )


def new_key() -> str:
    """Return a fresh RSA key of 2048 bits as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def token_value(app_id: int) -> str:
    """Return a token of the length and alphabet that GitHub's have since 2026, about 520 characters."""
    parts = [secrets.token_urlsafe(length) for length in (60, 240, 84)]
    return f"ghs_{app_id}_{'.'.join(parts)}"
