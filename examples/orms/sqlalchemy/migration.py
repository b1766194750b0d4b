"""The migration, as a revision file of Alembic has it."""

import sqlalchemy as sa
from alembic import op

from models import Snowflake


def upgrade():
    op.execute("CREATE SEQUENCE posts_id_seq")
    op.create_table(
        "posts",
        sa.Column(
            "id",
            sa.BigInteger,
            primary_key=True,
            server_default=sa.text("snowflake_nextval('posts_id_seq', 5)"),
        ),
        sa.Column("body", sa.String, nullable=False),
    )
    op.execute("ALTER SEQUENCE posts_id_seq OWNED BY posts.id")

    op.execute("CREATE SEQUENCE comments_id_seq")
    op.create_table(
        "comments",
        sa.Column(
            "id",
            Snowflake,
            primary_key=True,
            server_default=sa.text("snowflake_nextval('comments_id_seq', 5)"),
        ),
        sa.Column("post_id", sa.BigInteger, sa.ForeignKey("posts.id"), nullable=False),
        sa.Column("body", sa.String, nullable=False),
    )
    op.execute("ALTER SEQUENCE comments_id_seq OWNED BY comments.id")
