"""An index over when runs ended, for what a day cost."""

from alembic import op

revision = "tasks_0002"
down_revision = "tasks_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index."""
    op.create_index(op.f("ix_runs_finished_at"), "runs", ["finished_at"], unique=False)
