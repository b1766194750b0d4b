"""SQLAlchemy: the INSERT returns the id, for one row, for many, and for a parent and its children."""

import sys
from datetime import datetime, timedelta, timezone

import sqlalchemy
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import MetaData, Table, create_engine, event, func, select
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

import migration
from models import Comment, Post

# Of shard 5, generated at noon on 2024-05-01.
OLD_ID = 1896919282483208199


def main():
    # PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
    engine = create_engine("postgresql+psycopg://")
    with engine.begin() as connection:
        with Operations.context(MigrationContext.configure(connection)):
            migration.upgrade()
    one_row(engine)
    many_rows(engine)
    a_parent_and_its_children(engine)
    rows_of_a_time(engine)
    a_reflected_table(engine)
    print(f"SQLAlchemy {sqlalchemy.__version__}: ids arrive through RETURNING")


def one_row(engine):
    with Session(engine) as session, session.begin():
        post = Post(body="first")
        session.add(post)
        session.flush()
        expect(type(post.id), int)


def many_rows(engine):
    with Session(engine) as session, session.begin():
        posts = [Post(body=f"bulk {i}") for i in range(200)]
        session.add_all(posts)
        session.flush()
        many = select(Post.id, Post.body).where(Post.body.like("bulk%")).order_by(Post.id)
        rows = session.execute(many)
        expect([(post.id, post.body) for post in posts], [tuple(row) for row in rows])


def a_parent_and_its_children(engine):
    with Session(engine) as session, session.begin():
        post = Post(body="parent", comments=[Comment(body="one"), Comment(body="two")])
        session.add(post)
    with Session(engine) as session:
        comments = session.scalars(select(Comment).order_by(Comment.id)).all()
        expect([(c.body, c.post.body) for c in comments], [("one", "parent"), ("two", "parent")])
        expect(session.get(Comment, comments[0].id), comments[0])


def rows_of_a_time(engine):
    with Session(engine) as session, session.begin():
        session.add(Post(id=OLD_ID, body="imported"))
        session.flush()

        day = datetime(2024, 5, 1, tzinfo=timezone.utc)
        next_day = day + timedelta(days=1)
        of_that_day = select(Post).where(func.snowflake_between(Post.id, day, next_day))
        expect([post.id for post in session.scalars(of_that_day)], [OLD_ID])

        since_then = select(func.count()).where(Post.id >= func.snowflake_min_id(next_day))
        expect(session.scalar(since_then), 202)


@event.listens_for(Table, "column_reflect")
def keep_default(inspector, table, column):
    """SQLAlchemy takes a default that contains `nextval(` for that of a bigserial."""
    if "snowflake_nextval(" in (column["default"] or ""):
        column["autoincrement"] = False


def a_reflected_table(engine):
    table = Table("posts", MetaData(), autoload_with=engine)
    column = str(CreateTable(table).compile(engine)).splitlines()[2].strip()
    default = "snowflake_nextval('posts_id_seq'::regclass, 5)"
    expect(column, f"id BIGINT DEFAULT {default} NOT NULL,")


def expect(found, expected):
    if found != expected:
        sys.exit(f"found {found!r}, expected {expected!r}")


main()
