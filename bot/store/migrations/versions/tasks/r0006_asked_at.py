"""When a run was asked for by GitHub's clock, which is also that of what people say and edit."""

import sqlalchemy as sa
from alembic import op

revision = "tasks_0006"
down_revision = "tasks_0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("runs", sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True))
