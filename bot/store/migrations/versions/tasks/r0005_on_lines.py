"""Whether what people decide about stands on a line of a pull request: the ids of such comments are counted apart."""

import sqlalchemy as sa
from alembic import op

revision = "tasks_0005"
down_revision = "tasks_0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("decisions", sa.Column("on_line", sa.Boolean(), nullable=False, server_default=sa.false()))
