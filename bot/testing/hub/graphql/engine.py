"""From a query to GitHub's answer: schema, parsing, validation, execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    execute_sync,
    parse,
    validate,
)

from bot.testing.hub.errors import HubError
from bot.testing.hub.graphql.asking import Ask, translated, type_name
from bot.testing.hub.graphql.fields import FIELDS
from bot.testing.hub.graphql.mutations import MUTATIONS, Mutation
from bot.testing.hub.graphql.resolver import Resolver
from bot.testing.hub.graphql.wording import invalid_json
from bot.testing.hub.records import CheckRun, CommitStatus
from bot.testing.hub.shapes.common import Json

CHECKS: dict[type[object], str] = {CheckRun: "CheckRun", CommitStatus: "StatusContext"}
"""Types of what is listed among the checks of a commit, and is no node here."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a client sent."""

    text: str
    variables: Mapping[str, object]
    operation: str | None = None


def answer(ask: Ask, query: Query) -> Json:
    """Return the body of the answer; take the hub's lock before.

    Raises:
        Exception: whatever a resolver did not expect, so that a mistake of the hub is seen as one.
    """
    try:
        document = parse(query.text)
    except GraphQLError as error:
        return {"errors": [_json(error)]}
    errors = validate(schema(), document)
    if errors:
        return {"errors": [invalid_json(document, error) for error in errors]}
    return _execute(ask, query, document)


def _execute(ask: Ask, query: Query, document: DocumentNode) -> Json:
    result = execute_sync(
        schema(),
        document,
        context_value=ask,
        variable_values=dict(query.variables),
        operation_name=query.operation,
    )
    errors = result.errors or []
    for error in errors:
        if error.original_error is not None and not isinstance(error.original_error, GraphQLError):
            raise error.original_error
    if any(error.path is None for error in errors):  # nothing was executed
        return {"errors": [_json(error) for error in errors]}
    body: Json = {"data": result.data}
    return {**body, "errors": [_json(error) for error in errors]} if errors else body


def _json(error: GraphQLError) -> Json:
    extensions = dict(error.extensions or {})
    body: Json = {}
    if "type" in extensions:
        body["type"] = extensions.pop("type")
    if error.path is not None:
        body["path"] = error.path
    if extensions:
        body["extensions"] = extensions
    if error.locations:
        body["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    return {**body, "message": error.message}


@cache
def schema() -> GraphQLSchema:
    """Return the schema with its resolvers, built at the first request."""
    text = (resources.files("bot.testing.hub.graphql") / "schema.graphql").read_text(encoding="utf-8")
    built = build_schema(text)
    tables = {**FIELDS, "Mutation": {name: _mutating(mutation) for name, mutation in MUTATIONS.items()}}
    for kind, fields in tables.items():
        known = built.type_map[kind]
        if not isinstance(known, GraphQLObjectType):
            raise TypeError(f"{kind} is no object type")
        for name, resolver in fields.items():
            known.fields[name].resolve = _resolving(resolver)
    for known in built.type_map.values():
        if isinstance(known, GraphQLInterfaceType | GraphQLUnionType):
            known.resolve_type = _resolve_type
    return built


def _resolve_type(record: object, *_: object) -> str | None:
    return CHECKS.get(type(record)) or type_name(record)


# Any: graphql-core hands over records and arguments untyped.
def _resolving(resolver: Resolver) -> Callable[..., object]:
    def resolve(record: Any, info: GraphQLResolveInfo[Ask], **args: Any) -> object:
        ask = info.context
        try:
            return resolver(record, ask, args)
        except HubError as refusal:
            raise translated(refusal, ask.caller, info.field_name) from None

    return resolve


def _mutating(mutation: Mutation) -> Resolver:
    def resolve(_: object, ask: Ask, args: Mapping[str, Any]) -> Json:
        given = args["input"]
        return {"clientMutationId": given.get("clientMutationId"), **mutation(ask, given)}

    return resolve
