"""Django: the INSERT returns the id, for one row, for many, and for a parent and its children."""

import os
import sys
from datetime import datetime, timedelta, timezone

import django
from django.core.management import call_command
from django.db import transaction

# Of shard 5, generated at noon on 2024-05-01.
OLD_ID = 1896919282483208199


def main():
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    django.setup()
    call_command("migrate", verbosity=0)
    # The migrations create what the models declare.
    call_command("makemigrations", "--check", verbosity=0)
    one_row()
    many_rows()
    a_parent_and_its_children()
    a_column_that_was_identity()
    rows_of_a_time()
    print(f"Django {django.__version__}: ids arrive through RETURNING")


def one_row():
    from blog.models import Post

    post = Post.objects.create(body="first")
    expect(type(post.id), int)
    expect(Post.objects.get(pk=post.pk).body, "first")


def many_rows():
    from blog.models import Post

    posts = Post.objects.bulk_create(Post(body=f"bulk {i}") for i in range(200))
    rows = Post.objects.filter(body__startswith="bulk").order_by("id")
    expect([(post.id, post.body) for post in posts], list(rows.values_list("id", "body")))


def a_parent_and_its_children():
    from blog.models import Comment, Post

    with transaction.atomic():
        post = Post.objects.create(body="parent")
        Comment.objects.bulk_create(Comment(post=post, body=body) for body in ["one", "two"])
    comments = Comment.objects.order_by("id").select_related("post")
    expect([(c.body, c.post.body) for c in comments], [("one", "parent"), ("two", "parent")])
    expect(Comment.objects.get(pk=comments[0].pk), comments[0])


def a_column_that_was_identity():
    from blog.models import Tag

    tags = [Tag.objects.create(body="one")]
    tags += Tag.objects.bulk_create([Tag(body="two"), Tag(body="three")])
    # In between, `loaddata` does what it does to sequences.
    call_command("dumpdata", "blog.tag", output="tags.json", verbosity=0)
    call_command("loaddata", "tags.json", verbosity=0)
    tags.append(Tag.objects.create(body="four"))
    rows = Tag.objects.order_by("id")
    expect([(tag.id, tag.body) for tag in tags], list(rows.values_list("id", "body")))


def rows_of_a_time():
    from blog.models import Post, SnowflakeBetween

    Post.objects.create(id=OLD_ID, body="imported")

    day = datetime(2024, 5, 1, tzinfo=timezone.utc)
    next_day = day + timedelta(days=1)
    of_that_day = Post.objects.filter(SnowflakeBetween("id", day, next_day))
    expect([post.id for post in of_that_day], [OLD_ID])
    expect(Post.objects.exclude(pk__in=of_that_day).count(), 202)


def expect(found, expected):
    if found != expected:
        sys.exit(f"found {found!r}, expected {expected!r}")


main()
