"""The models: the database generates the ids, and Django's INSERT returns them."""

from django.db import models
from django.db.models.expressions import DatabaseDefault


class SnowflakeNextval(models.Func):
    """The next id of a sequence, of shard 5."""

    function = "snowflake_nextval"
    output_field = models.BigIntegerField()

    def __init__(self, sequence):
        super().__init__(models.Value(sequence), models.Value(5))


class SnowflakeBetween(models.Func):
    """Whether an ID is of that time, from `since` to before `until`."""

    function = "snowflake_between"
    output_field = models.BooleanField()


class SnowflakeField(models.BigIntegerField):
    """An id that the database generates: None until the INSERT has returned it.

    With `db_default` alone Django 5.2 forgets the ids that bulk_create got.
    """

    db_returning = True

    def get_default(self):
        return None

    def pre_save(self, model_instance, add):
        value = super().pre_save(model_instance, add)
        return DatabaseDefault(self.db_default, output_field=self) if value is None else value


class SnowflakeTypeField(SnowflakeField):
    """The same in a column of type snowflake, which psycopg returns as a str."""

    def db_type(self, connection):
        return "snowflake"

    def from_db_value(self, value, expression, connection):
        return None if value is None else int(value)


class Post(models.Model):
    id = SnowflakeField(primary_key=True, db_default=SnowflakeNextval("posts_id_seq"))
    body = models.TextField()

    class Meta:
        db_table = "posts"


class Comment(models.Model):
    id = SnowflakeTypeField(primary_key=True, db_default=SnowflakeNextval("comments_id_seq"))
    post = models.ForeignKey(Post, on_delete=models.CASCADE)
    body = models.TextField()

    class Meta:
        db_table = "comments"


class Tag(models.Model):
    """Its id is a BigAutoField, and migration 0003 changed where it comes from."""

    body = models.TextField()

    class Meta:
        db_table = "tags"
