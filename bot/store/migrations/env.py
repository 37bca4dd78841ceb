"""What Alembic runs: one branch over the connection and the transaction that `bot.store.revisions` hands in."""

from alembic import context

from bot.store.schema import BRANCHES, VERSIONS


def run() -> None:
    """Run the revisions that Alembic chose."""
    attributes = context.config.attributes
    which = attributes["which"]
    context.configure(
        connection=attributes["connection"],
        target_metadata=BRANCHES[which],
        version_table=VERSIONS[which].name,
        transactional_ddl=True,
        render_as_batch=True,
    )
    context.run_migrations()


# Alembic loads this file under this name; importing it as a module does nothing.
if __name__ == "env_py":
    run()
