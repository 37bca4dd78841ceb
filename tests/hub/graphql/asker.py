"""Asking GraphQL over HTTP, each query first judged by GitHub's own schema."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx
from graphql import GraphQLSchema, build_schema, parse, validate

from bot.testing.hub.records import Issue, Thread
from tests.hub.oracle import material
from tests.hub.world import World

THREADS = """
query($owner: String!, $name: String!, $number: Int!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: $first, after: $after) {
        totalCount
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved isOutdated path line
          comments(first: 50) {
            totalCount
            pageInfo { hasNextPage endCursor }
            nodes { id databaseId body createdAt author { __typename login } }
          }
        }
      }
    }
  }
}
"""


@lru_cache(maxsize=1)
def theirs() -> GraphQLSchema:
    """Return GitHub's own schema, where it is at hand."""
    # validating the schema itself would take most of the time, and it is GitHub's to be right
    text = material("schema.graphql").read_text(encoding="utf-8")
    return build_schema(text, assume_valid=True, assume_valid_sdl=True)


@dataclass
class Scene:
    """The world, an issue, and a pull request with two threads."""

    world: World
    issue: Issue
    pull: Issue

    @property
    def threads(self) -> list[Thread]:
        """The threads of the pull request."""
        assert self.pull.pull
        return self.pull.pull.threads

    @property
    def pull_id(self) -> str:
        """Node id of the pull request."""
        assert self.pull.pull
        return self.pull.pull.node_id

    def post(self, client: httpx.Client, query: str, **variables: object) -> dict[str, Any]:
        """Return the answer to a query as it is."""
        url = self.world.server.graphql_url
        answer = client.post(url, json={"query": query, "variables": variables})
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def ask(self, client: httpx.Client, query: str, **variables: object) -> dict[str, Any]:
        """Return the answer to a query that GitHub would execute too."""
        assert validate(theirs(), parse(query)) == []
        return self.post(client, query, **variables)

    def data(self, client: httpx.Client, query: str, **variables: object) -> dict[str, Any]:
        """Return the data of an answer without errors."""
        body = self.ask(client, query, **variables)
        assert "errors" not in body, body["errors"]
        data: dict[str, Any] = body["data"]
        return data

    def mutate(self, client: httpx.Client, name: str, payload: str, **given: object) -> dict[str, Any]:
        """Return the answer to a mutation; its input comes by a variable, as clients do."""
        kind = f"{name[0].upper()}{name[1:]}Input"
        query = f"mutation($input: {kind}!) {{ {name}(input: $input) {{ clientMutationId {payload} }} }}"
        return self.ask(client, query, input={"clientMutationId": "m1", **given})

    def page(self, client: httpx.Client, first: int, after: str | None = None) -> dict[str, Any]:
        """Return one page of the review threads."""
        found = self.data(client, THREADS, owner="acme", name="web", number=self.pull.number, first=first, after=after)
        threads: dict[str, Any] = found["repository"]["pullRequest"]["reviewThreads"]
        return threads
