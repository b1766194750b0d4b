"""The same column with a snowflake default. The model does not change: Django sends no id and reads the generated one."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("blog", "0002_tag")]

    operations = [
        # Not OWNED BY tags.id: `loaddata` sets the sequence of every AutoField that owns one to max(id).
        migrations.RunSQL(
            """
            ALTER TABLE tags ALTER id DROP IDENTITY;
            CREATE SEQUENCE tags_id_seq;
            ALTER TABLE tags ALTER id SET DEFAULT snowflake_nextval('tags_id_seq', 5);
            """
        ),
    ]
