"""The models: the database generates the ids, and SQLAlchemy's INSERT returns them."""

from sqlalchemy import BigInteger, ForeignKey, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import UserDefinedType


class Snowflake(UserDefinedType):
    """A column of type snowflake, an int in Python."""

    cache_ok = True

    def get_col_spec(self):
        return "snowflake"

    def result_processor(self, dialect, coltype):
        return lambda value: None if value is None else int(value)


class Base(DeclarativeBase):
    pass


class Post(Base):
    __tablename__ = "posts"

    # monotonic: the IDs of one INSERT rise, so many rows can be one statement.
    id: Mapped[int] = mapped_column(
        BigInteger,
        server_default=func.snowflake_nextval("posts_id_seq", 5, monotonic=True),
        primary_key=True,
    )
    body: Mapped[str]
    comments: Mapped[list["Comment"]] = relationship(back_populates="post")


class Comment(Base):
    __tablename__ = "comments"

    id: Mapped[int] = mapped_column(
        Snowflake,
        server_default=func.snowflake_nextval("comments_id_seq", 5, monotonic=True),
        primary_key=True,
    )
    post_id: Mapped[int] = mapped_column(ForeignKey(Post.id))
    body: Mapped[str]
    post: Mapped[Post] = relationship(back_populates="comments")
