"""One request to one model: adapters over the vendors' SDKs and wrappers around them.

Owns the wire formats and prices; may import `domain`, `settings.catalogue` and `errors`, never tools or the agent.
A new vendor is one file that holds a `Model`, a row in `config/models.yaml` and a row in
`tests/contract/models.py`.
"""
