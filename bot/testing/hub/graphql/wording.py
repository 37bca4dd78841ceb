"""Errors of validation in GitHub's words, with the path that it gives them."""

from __future__ import annotations

import re
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    InlineFragmentNode,
    Node,
    OperationDefinitionNode,
    Visitor,
    visit,
)

from bot.testing.hub.shapes.common import Json

UNKNOWN_FIELD = re.compile(r"Cannot query field '(\w+)' on type '(\w+)'")
UNKNOWN_ARGUMENT = re.compile(r"Unknown argument '(\w+)' on field '\w+\.(\w+)'")


def invalid_json(document: DocumentNode, error: GraphQLError) -> Json:
    """Return one error of validation; those that clients rarely meet keep the words of graphql-core."""
    code, message = _worded(error.message)
    body: Json = {"path": _path(document, error.nodes[0])} if error.nodes else {}
    if code:
        body["extensions"] = code
    body["locations"] = [{"line": place.line, "column": place.column} for place in error.locations or []]
    return {**body, "message": message}


def _worded(message: str) -> tuple[Json, str]:
    if found := UNKNOWN_FIELD.match(message):
        field, kind = found.groups()
        code: Json = {"code": "undefinedField", "typeName": kind, "fieldName": field}
        return code, f"Field '{field}' doesn't exist on type '{kind}'"
    if found := UNKNOWN_ARGUMENT.match(message):
        argument, field = found.groups()
        code = {"code": "argumentNotAccepted", "name": field, "typeName": "Field", "argumentName": argument}
        return code, f"Field '{field}' doesn't accept argument '{argument}'"
    return {}, message


class _Finder(Visitor):
    """Notes the path at which it meets a node."""

    def __init__(self, wanted: Node) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: list[str] = []

    # Any: ancestors are nodes and lists of nodes
    def enter(self, node: Node, _key: Any, _parent: Any, _path: Any, ancestors: list[Any]) -> None:
        if node is self.wanted:
            steps = [_step(each) for each in [*ancestors, node] if isinstance(each, Node)]
            self.found = [step for step in steps if step]


def _path(document: DocumentNode, wanted: Node) -> list[str]:
    finder = _Finder(wanted)
    visit(document, finder)
    return finder.found


def _step(node: Node) -> str | None:
    match node:
        case OperationDefinitionNode():
            return f"{node.operation.value} {node.name.value}" if node.name else node.operation.value
        case FragmentDefinitionNode():
            return f"fragment {node.name.value}"
        case InlineFragmentNode():
            return f"... on {node.type_condition.name.value}" if node.type_condition else "..."
        case FieldNode():
            return node.alias.value if node.alias else node.name.value
    return None
