"""The output of `makemigrations`, and the sequences, which it does not know."""

import django.db.models.deletion
from django.db import migrations, models

import blog.models


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.RunSQL(
            "CREATE SEQUENCE posts_id_seq; CREATE SEQUENCE comments_id_seq",
            "DROP SEQUENCE posts_id_seq; DROP SEQUENCE comments_id_seq",
        ),
        migrations.CreateModel(
            name="Post",
            fields=[
                (
                    "id",
                    blog.models.SnowflakeField(
                        db_default=blog.models.SnowflakeNextval("posts_id_seq"),
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("body", models.TextField()),
            ],
            options={"db_table": "posts"},
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    blog.models.SnowflakeTypeField(
                        db_default=blog.models.SnowflakeNextval("comments_id_seq"),
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "post",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="blog.post"
                    ),
                ),
                ("body", models.TextField()),
            ],
            options={"db_table": "comments"},
        ),
        # Dropped tables take their sequences with them.
        migrations.RunSQL(
            "ALTER SEQUENCE posts_id_seq OWNED BY posts.id;"
            "ALTER SEQUENCE comments_id_seq OWNED BY comments.id",
            "ALTER SEQUENCE posts_id_seq OWNED BY NONE; ALTER SEQUENCE comments_id_seq OWNED BY NONE",
        ),
    ]
