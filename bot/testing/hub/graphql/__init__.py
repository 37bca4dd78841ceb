"""GraphQL of the local GitHub: only what REST cannot do, on a schema of its own pruned from GitHub's.

Owns `schema.graphql` and its execution; `app.routes` is given to `HubServer(extra_routes=...)`. Imports nothing of
`bot` outside the hub. A new field is a line in `schema.graphql`, as GitHub has it, and a line in the table of
`fields.py`; a new mutation is its input and payload there and a function in the table of `mutations.py`.
"""
