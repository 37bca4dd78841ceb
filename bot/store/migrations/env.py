"""What Alembic runs: one branch over the connection and the transaction that `bot.store.migrate` hands in."""

from alembic import context

from bot.store.migrate import version_table
from bot.store.schema import DELIVERIES, TASKS


def run() -> None:
    """Run the revisions that Alembic chose."""
    attributes = context.config.attributes
    context.configure(
        connection=attributes["connection"],
        target_metadata={"deliveries": DELIVERIES, "tasks": TASKS}[attributes["which"]],
        version_table=version_table(attributes["which"]),
        transactional_ddl=True,
        render_as_batch=True,
    )
    context.run_migrations()


# Alembic loads this file under this name; importing it as a module does nothing.
if __name__ == "env_py":
    run()
