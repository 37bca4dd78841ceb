"""The history of the schema: one branch for deliveries, one for everything else.

Alembic runs `env.py`; the program calls `bot.store.migrate`. A new revision is a module in `versions/<branch>/` whose
`down_revision` is the newest one there, and the same change in `bot/store/schema.py`.
"""
