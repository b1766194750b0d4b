#!/usr/bin/env bash
# Django 5.2.19 takes a default of my_nextval('posts_id_seq') for that of a serial, because it contains `nextval`: `inspectdb` writes a
# BigAutoField, which is an identity column in another database. Expected: a BigIntegerField.
# shellcheck source=findings/server.sh
source "$(dirname "$0")/server.sh"
python3 -m venv venv
venv/bin/pip -q install 'Django==5.2.19' 'psycopg[binary]==3.3.9'
cat >inspect_posts.py <<'PY'
import os
import django
from django.conf import settings
from django.core.management import call_command
database = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": os.environ["PGHOST"]}
settings.configure(DATABASES={"default": database | {"PORT": os.environ["PGPORT"]}})
django.setup()
call_command("inspectdb", "posts")
PY
expect "inspectdb" "$(venv/bin/python inspect_posts.py | sed -n 's/^ *id = //p')" "models.BigAutoField(primary_key=True)"
