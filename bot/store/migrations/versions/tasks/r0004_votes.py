"""Who approved a single action, where more than one person has to."""

import sqlalchemy as sa
from alembic import op

revision = "tasks_0004"
down_revision = "tasks_0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "votes",
        sa.Column("decision_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("actor_id", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("event_key", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("pattern", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["decision_id"], ["decisions.id"], name=op.f("fk_votes_decision_id")),
        sa.PrimaryKeyConstraint("decision_id", "actor_id", name=op.f("pk_votes")),
        sa.UniqueConstraint("event_key", name=op.f("uq_votes_event_key")),
    )
