"""People: accounts, roles in repositories and personal tokens."""

from __future__ import annotations

import secrets
from typing import Literal

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.records import Repository, Role, Token, User
from bot.testing.hub.state.events import Events

ACTIONS_BOT_ID = 41898282
"""The real id of `github-actions[bot]`."""

GHOST_ID = 10137
"""The real id of `ghost`, whose name what deleted accounts said goes by."""


class Accounts(Events):
    """Accounts and what they may do."""

    @locked
    def create_user(
        self,
        login: str,
        *,
        kind: Literal["User", "Bot", "Organization"] = "User",
        name: str | None = None,
        user_id: int | None = None,
    ) -> User:
        """Create an account; its e-mail is GitHub's no-reply address.

        Raises:
            HubError: 422 when the login is taken.
        """
        if login.lower() in self.users:
            raise HubError(422, f"Login {login} is already taken")
        number, node = self.new_ids("BOT" if kind == "Bot" else "O" if kind == "Organization" else "U")
        number = user_id or number
        email = f"{number}+{login}@users.noreply.github.com"
        user = User(number, node, login, self.now(), kind, name or login, email)
        self.users[login.lower()] = user
        self.nodes[node] = user
        return user

    @locked
    def user(self, login: str) -> User:
        """Return an account by login, in any case.

        Raises:
            HubError: 404 when there is none.
        """
        user = self.users.get(login.lower())
        if user is None:
            raise not_found()
        return user

    @locked
    def delete_user(self, user: User) -> None:
        """Delete an account; what it said stays, in the name of `ghost`."""
        del self.users[user.login.lower()]
        del self.nodes[user.node_id]
        for token in self.tokens.values():
            token.revoked = token.revoked or token.user is user
        user.id, user.login, user.name, user.email, user.deleted = GHOST_ID, "ghost", "Deleted user", None, True

    @locked
    def actions_bot(self) -> User:
        """Return `github-actions[bot]`, as whom job tokens act."""
        login = "github-actions[bot]"
        return self.users.get(login) or self.create_user(login, kind="Bot", user_id=ACTIONS_BOT_ID)

    @locked
    def add_collaborator(self, repository: Repository, user: User, role: Role = "write") -> None:
        """Give a person a role in a repository; `none` takes it away."""
        repository.roles[user.id] = role

    @locked
    def create_user_token(self, user: User) -> Token:
        """Create a personal token: HTTP calls with it act as the person, as far as their roles reach."""
        return self.keep(Token(f"ghp_{secrets.token_hex(18)}", "person", user, self.clock()))

    @locked
    def keep(self, token: Token) -> Token:
        """Store a token and return it."""
        self.tokens[token.value] = token
        return token
