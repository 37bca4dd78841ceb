"""When something was said to an open run by GitHub's clock: what follows from it knows the threads as of then."""

import sqlalchemy as sa
from alembic import op

revision = "tasks_0007"
down_revision = "tasks_0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("inbox", sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True))
