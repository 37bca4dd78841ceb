"""How people stand in commits."""

import re

_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?", re.ASCII)
"""Letters, digits and single hyphens; accounts that a company manages end in `_` and its short name.

Source: https://docs.github.com/en/enterprise-cloud@latest/admin/concepts/identity-and-access-management/username-considerations-for-external-authentication
"""


def co_author(login: str, user_id: int) -> str:
    """Write the trailer that names a person beside the author; empty where GitHub would know nobody by it.

    Args:
        login: of the person; one that is none of GitHub's cannot bring lines of its own.
        user_id: their number; 0 where it is not known.

    Source of the address: https://docs.github.com/en/account-and-profile/reference/email-addresses-reference
    """
    if user_id <= 0 or not _LOGIN.fullmatch(login):
        return ""
    return f"Co-authored-by: {login} <{user_id}+{login}@users.noreply.github.com>"
