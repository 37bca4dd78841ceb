"""Run the revisions that a database lacks; what is new or up to date never needs this."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy import Connection

from bot.errors import OperatorError
from bot.store.schema import Which


def upgrade(connection: Connection, which: Which) -> None:
    """Run what is missing inside the connection's transaction.

    Raises:
        OperatorError: a later version of the program wrote the database.
    """
    try:
        command.upgrade(_config(connection, which), "head")
    except CommandError as error:
        if not isinstance(error.__cause__, ResolutionError):
            raise
        raise OperatorError(f"A later version of issuewright wrote the {which} database; install that one") from error


def _config(connection: Connection, which: Which) -> Config:
    home = Path(__file__).parent / "migrations"
    config = Config(attributes={"connection": connection, "which": which})
    # A percent sign in a path would be taken for an interpolation.
    config.set_main_option("script_location", str(home).replace("%", "%%"))
    config.set_main_option("version_locations", str(home / "versions" / which).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    return config
