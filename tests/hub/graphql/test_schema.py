"""Our schema is a part of GitHub's: nothing in it is of our own invention, and all of it is served."""

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    build_schema,
    is_required_argument,
    is_required_input_field,
    validate_schema,
)

from bot.testing.hub.graphql.engine import schema
from bot.testing.hub.graphql.fields import FIELDS
from tests.hub.graphql.asker import theirs

Composite = GraphQLObjectType | GraphQLInterfaceType


def own_types() -> dict[str, GraphQLNamedType]:
    """Return our types, without those of introspection."""
    return {name: kind for name, kind in schema().type_map.items() if not name.startswith("__")}


def described(kind: GraphQLNamedType) -> set[str]:
    """Return all that a type says, a line each: fields, arguments, defaults, interfaces, values."""
    lines = {f"{type(kind).__name__} {kind.name}"}
    match kind:
        case GraphQLObjectType() | GraphQLInterfaceType():
            lines |= {f"{kind.name} is {one.name}" for one in kind.interfaces}
            for name, field in kind.fields.items():
                lines.add(f"{kind.name}.{name}: {field.type}")
                lines |= {f"{kind.name}.{name}({key}: {arg.type})" for key, arg in field.args.items()}
        case GraphQLInputObjectType():
            lines |= {f"{kind.name}.{name}: {field.type}" for name, field in kind.fields.items()}
        case GraphQLEnumType():
            lines |= {f"{kind.name}.{value}" for value in kind.values}
    return lines


def invented(own: dict[str, GraphQLNamedType]) -> list[str]:
    """Return what GitHub's schema does not have, or has otherwise."""
    known = theirs().type_map
    lines: list[str] = []
    for name, kind in own.items():
        lines += sorted(described(kind) - (described(known[name]) if name in known else set()))
    return lines


def test_every_type_field_and_argument_is_github_s() -> None:
    """By name and type, and interfaces and enum values too."""
    assert len(own_types()) > 30
    assert invented(own_types()) == []


def test_the_comparison_sees_inventions() -> None:
    """A wrong type, an unknown field, argument, value and type are all found."""
    wrong = build_schema("""
      type Query { viewer: User, rateLimit(fast: Boolean): RateLimit }
      type User { login: String!, mood: String }
      type RateLimit { limit: Int! }
      type Mood { id: ID! }
      enum IssueState { OPEN ASLEEP }
    """)
    found = {line for line in invented(dict(wrong.type_map)) if not line.split()[-1].startswith("__")}
    assert {
        "Query.viewer: User",
        "Query.rateLimit(fast: Boolean)",
        "User.mood: String",
        "GraphQLObjectType Mood",
        "Mood.id: ID!",
        "IssueState.ASLEEP",
    } <= found


def test_required_arguments_of_github_are_ours() -> None:
    """A query that our schema takes is complete on GitHub: nothing that is required there is missing here."""
    missing = []
    for name, kind in own_types().items():
        known = theirs().type_map[name]
        if isinstance(kind, GraphQLInputObjectType) and isinstance(known, GraphQLInputObjectType):
            missing += [
                f"{name}.{key}"
                for key, one in known.fields.items()
                if is_required_input_field(one) and key not in kind.fields
            ]
        if isinstance(kind, Composite) and isinstance(known, Composite):
            for field in kind.fields:
                args = known.fields[field].args
                missing += [
                    f"{name}.{field}({key})"
                    for key, one in args.items()
                    if is_required_argument(one) and key not in kind.fields[field].args
                ]
    assert missing == []


def test_the_schema_is_valid_and_every_field_is_served() -> None:
    """Each field of each object type has a line in a table, except mappings that read themselves."""
    assert validate_schema(schema()) == []
    for name, kind in own_types().items():
        if isinstance(kind, GraphQLObjectType) and name != "RateLimit" and not name.endswith("Payload"):
            assert [field for field, one in kind.fields.items() if one.resolve is None] == [], name
    assert set(FIELDS) <= set(own_types())
    assert {name for name, kind in own_types().items() if isinstance(kind, GraphQLScalarType)} == {
        "BigInt",
        "Boolean",
        "DateTime",
        "GitObjectID",
        "ID",
        "Int",
        "String",
        "URI",
    }
