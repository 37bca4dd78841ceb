"""What people ask for beside work: plans, questions, budgets, models, a fresh beginning."""

import sqlalchemy as sa
from alembic import op

revision = "tasks_0003"
down_revision = "tasks_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("tasks", sa.Column("model", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("commanded", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE runs SET commanded = true WHERE comment_id IS NOT NULL")
    op.add_column("runs", sa.Column("intent", sa.String(length=16), server_default="fix", nullable=False))
    op.add_column("inbox", sa.Column("author_id", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("inbox", sa.Column("commanded", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("inbox", sa.Column("model", sa.Text(), nullable=True))
    op.execute("UPDATE inbox SET commanded = true WHERE comment_id IS NOT NULL")
    op.add_column("runs", sa.Column("usd", sa.Float(), nullable=True))
    op.add_column("runs", sa.Column("fresh", sa.Boolean(), server_default=sa.false(), nullable=False))
