"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "deliveries_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "deliveries",
        sa.Column("guid", sa.Text(), nullable=False),
        sa.Column("event_key", sa.Text(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("guid", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("event_key", name=op.f("uq_deliveries_event_key")),
    )
    op.create_index(
        "ix_deliveries_waiting",
        "deliveries",
        ["received_at"],
        unique=False,
        sqlite_where=sa.text("state = 'received'"),
        postgresql_where=sa.text("state = 'received'"),
    )
