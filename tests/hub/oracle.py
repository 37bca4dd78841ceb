"""GitHub's own descriptions as judges of what the hub answers and sends."""

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import httpx
import jsonschema_rs
import pytest

ROOT = Path(__file__).parents[2]
WIDE = {"ref", "path", "basehead", "branch"}
ROOT_FOLDER = {
    "/repos/{owner}/{repo}/contents": "/repos/{owner}/{repo}/contents/{path}",
    "/repos/{owner}/{repo}/contents/": "/repos/{owner}/{repo}/contents/{path}",
}
"""Paths that GitHub serves and describes by another template only: an empty `{path}`, with and without its slash."""

Seen = set[tuple[str, str]]


def place(name: str) -> Path:
    """Return where a file of the shared material has to be."""
    return Path(os.environ.get("SHARED_DIR", ROOT.parent / "shared")) / "data" / "github" / name


def judging() -> bool:
    """Whether answers and payloads are judged: where there is nothing to judge by, behaviour is still tested.

    Decided before a test begins, since a skip inside a test's own thread would only end the thread.
    """
    return os.environ.get("REQUIRE_SHARED") == "1" or place("openapi-subset.json").exists()


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail under REQUIRE_SHARED=1."""
    if os.environ.get("REQUIRE_SHARED") == "1":
        pytest.fail(f"{reason}, and REQUIRE_SHARED=1")
    pytest.skip(reason)


def material(name: str) -> Path:
    """Return a file of the shared material; see `unavailable` for where it is absent."""
    path = place(name)
    if not path.exists():
        unavailable(f"{path} is absent: set SHARED_DIR to the folder with GitHub's descriptions")
    return path


def nullable_to_type(node: object) -> object:
    """Turn OpenAPI 3.0's `nullable` into JSON Schema."""
    if isinstance(node, list):
        return [nullable_to_type(item) for item in node]
    if not isinstance(node, dict):
        return node
    done: dict[str, Any] = {key: nullable_to_type(value) for key, value in node.items()}
    events = done.get("enum")
    if isinstance(events, list) and "branch_protection_rule" in events:
        # one list of an App's events in the webhooks' description is older than this event
        done["enum"] = [*events, "pull_request_review_thread"]
    if done.pop("nullable", None) is not True:
        return done
    if isinstance(done.get("type"), str):
        done["type"] = [done["type"], "null"]
        if isinstance(done.get("enum"), list):
            done["enum"] = [*done["enum"], None]
        return done
    return {"anyOf": [done, {"type": "null"}]}


@lru_cache(maxsize=4)
def load(description: Path) -> dict[str, Any]:
    """Return a description with `nullable` converted."""
    loaded = nullable_to_type(json.loads(description.read_text()))
    assert isinstance(loaded, dict)
    comment = loaded["components"]["schemas"].get("pull-request-review-comment")
    if comment is not None:
        # an outdated comment has null here, as the webhooks' description says and the REST one forgets
        for key in ("line", "position"):
            comment["properties"][key] = {"type": ["integer", "null"]}
    return loaded


@lru_cache(maxsize=2)
def operations(description: Path) -> list[tuple[str, str, re.Pattern[str]]]:
    """Return (method, template, pattern) of each operation, those with most fixed text first."""
    found = []
    for template, methods in load(description)["paths"].items():
        written = [template, *(other for other, described in ROOT_FOLDER.items() if described == template)]
        found += [(method.upper(), template, _pattern(one)) for method in methods for one in written]
    return sorted(found, key=lambda row: -len(re.sub(r"\{\w+\}", "", row[1])))


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    return re.compile(
        "".join(
            re.escape(part) if index % 2 == 0 else (".+" if part in WIDE else "[^/]+")
            for index, part in enumerate(parts)
        )
    )


def operation(description: Path, method: str, path: str) -> str | None:
    """Return the template of a request."""
    return next((t for m, t, pattern in operations(description) if m == method and pattern.fullmatch(path)), None)


def described_wrongly(method: str, template: str) -> dict[str, Any] | None:
    """Return what to judge by where the description cannot be met, or None.

    The list of installations wants an account to be a person AND an enterprise; the single one has it right.
    """
    if (method, template) == ("GET", "/app/installations"):
        return {"type": "array", "items": {"$ref": "#/components/schemas/installation"}}
    return None


@lru_cache(maxsize=512)
def validator(description: Path, method: str, template: str, status: int) -> jsonschema_rs.Draft202012Validator | None:
    """Return the judge of one answer, or None when it must have no body."""
    spec = load(description)
    answer = spec["paths"][template][method.lower()]["responses"].get(str(status))
    if answer is None:
        # GitHub does not list the refusals that every operation shares
        assert status >= 400, f"{method} {template} may not answer {status}"
        schema = {"$ref": "#/components/schemas/basic-error"}
    else:
        if "$ref" in answer:
            answer = spec["components"]["responses"][answer["$ref"].rpartition("/")[2]]
        content = answer.get("content", {})
        if not content and status < 400:
            return None
        content = content or {"application/json": {"schema": {"$ref": "#/components/schemas/basic-error"}}}
        schema = content.get("application/json", next(iter(content.values())))["schema"]
        schema = (status == 200 and described_wrongly(method, template)) or schema
    whole = {"allOf": [schema], "components": spec["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


class RestJudge:
    """Checks each answer of a client against GitHub's description; use `hook` as an httpx response hook.

    Args:
        description: a file of operations; without one, the shared subset where it is there.
    """

    def __init__(self, description: Path | None = None) -> None:
        self._description = description or (material("openapi-subset.json") if judging() else None)
        self.seen: Seen = set()
        """(method, template) of answers below 400 that were judged."""

    def hook(self, response: httpx.Response) -> None:
        """Judge one answer."""
        response.read()
        if self._description is None:
            return
        path = response.request.url.raw_path.decode().partition("?")[0].removeprefix("/api/v3")
        method = response.request.method
        template = operation(self._description, method, path)
        if template is None or "raw" in response.headers.get("content-type", ""):
            return
        if "diff" in response.headers.get("content-type", ""):
            return
        judge = validator(self._description, method, template, response.status_code)
        if response.status_code < 400:
            self.seen.add((method, template))
        if judge is None:
            assert response.status_code in (204, 302, 304) or response.json() == {}
            return
        errors = [
            f"{'/'.join(map(str, e.instance_path))}: {e.message[:300]}" for e in judge.iter_errors(response.json())
        ]
        assert not errors, f"{method} {path} -> {response.status_code}: {errors}"


BY_EXAMPLE = frozenset({"status"})
"""Events that the description leaves out."""


@lru_cache(maxsize=128)
def webhook_validator(event: str, action: str | None) -> jsonschema_rs.Draft202012Validator:
    """Return the judge of one webhook payload."""
    spec = load(material("openapi-webhooks-subset.json"))
    name = "-".join(part.replace("_", "-") for part in (event, action) if part)
    schema = spec["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator({"allOf": [schema], "components": spec["components"]})


def unlike_examples(event: str, payload: dict[str, Any]) -> list[str]:
    """Return the fields in which a payload is unlike all of GitHub's own examples of an event."""
    given = json.loads((place("").parent / "webhooks/api.github.com.json").read_bytes())
    examples = [example for one in given if one["name"] == event for example in one["examples"]]
    lacking = [name for name in examples[0] if name not in payload and all(name in one for one in examples)]
    kinds = {name: {type(one[name]) for one in examples if name in one} for example in examples for name in example}
    odd = [name for name, value in payload.items() if type(value) not in {*kinds.get(name, ()), str, type(None)}]
    return [*(f"{name} is missing" for name in lacking), *(f"{name} is odd" for name in odd)]


def webhook_errors(event: str, action: str | None, body: bytes) -> list[str]:
    """Return what GitHub's description finds wrong with a payload; nothing where there is none to judge by."""
    if not judging():
        return []
    if event in BY_EXAMPLE:
        return unlike_examples(event, json.loads(body))
    judge = webhook_validator(event, action)
    return [f"{'/'.join(map(str, e.instance_path))}: {e.message[:300]}" for e in judge.iter_errors(json.loads(body))]
