"""Refusals of the local GitHub, in GitHub's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DOCS = "https://docs.github.com/rest"


class HubError(Exception):
    """A request or change that GitHub would refuse.

    Args:
        status: HTTP status of the answer.
        message: GitHub's wording.
        errors: the `errors` list of a 422; reviews have sentences there, everything else objects.
        headers: extra headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[Mapping[str, object] | str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = list(errors)
        self.headers = dict(headers or {})

    def body(self) -> dict[str, object]:
        """Return the JSON body of the answer."""
        body: dict[str, object] = {"message": self.message, "documentation_url": DOCS, "status": str(self.status)}
        if self.errors:
            body["errors"] = self.errors
        return body


def not_found() -> HubError:
    """Return the answer for what is not there or may not be seen."""
    return HubError(404, "Not Found")


def not_supplied(field: str) -> HubError:
    """Return the 422 for a required field that is absent."""
    quoted = f'"{field}"'
    return HubError(422, f"Invalid request.\n\n{quoted} wasn't supplied.")


def invalid(resource: str, field: str, code: str = "invalid", message: str | None = None) -> HubError:
    """Return a 422 about one field.

    Args:
        resource: `Issue`, `PullRequest`, `Label`, ...
        field: the field at fault.
        code: `invalid`, `missing`, `missing_field`, `already_exists` or `custom`.
        message: GitHub's sentence, which makes the code `custom`.
    """
    error = {"resource": resource, "field": field, "code": code}
    if message is not None:
        error = {"resource": resource, "code": "custom", "message": message}
    return HubError(422, "Validation Failed", errors=[error])
