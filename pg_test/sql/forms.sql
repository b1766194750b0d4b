-- An ID as a text in base 32 and as a UUID.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

\echo -- base 32, in lower case too; I and L are 1, and O is 0
SELECT id, snowflake_to_base32(id) FROM unnest('{2235219950664999947,0,-1}'::bigint[]) AS id;
SELECT form, snowflake_from_base32(form) FROM unnest('{1Y18RPF941S0B,1y18rpf941s0b,Ly18rpf94Is0b,oOOO00000000O}'::text[]) AS form;

\echo -- a text that is not base 32
SELECT error_of(format('SELECT snowflake_from_base32(%L)', form))
FROM unnest(ARRAY['', '000000000000', '00000000000000', '000000000000U', '000000-000000', ' 000000000000', 'G000000000000']) AS form;

\echo -- an error repeats only the beginning of a long text
SELECT error_of(format('SELECT ' || call, repeat('a', length)))
FROM unnest(ARRAY['snowflake_from_base32(%L)', '%L::snowflake_layout', '''%s:5''::snowflake_layout',
                  '''time:%s''::snowflake_layout']) AS call, unnest('{900,100000}'::int[]) AS length
ORDER BY call COLLATE "C", length;

\echo -- UUID, and a time beyond the 48 bits that it has for the time
SELECT uuid, snowflake_from_uuid(uuid) FROM snowflake_to_uuid(2235219950664999947) AS uuid;
SELECT error_of($$SELECT snowflake_to_uuid(281474976710655, 'time:48 shard:0 seq:0 epoch:1970-01-01 unit:10ms')$$);

\echo -- a UUID that does not contain an ID
SELECT why, error_of(format('SELECT snowflake_from_uuid(%L, %L)', uuid, layout)) FROM (VALUES
    ('an example of RFC 9562', '017f22e2-79b0-7cc3-98c4-dc0c0c07398f', 'instagram'),
    ('the lowest', '00000000-0000-0000-0000-000000000000', 'instagram'),
    ('the highest', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'instagram'),
    ('of version 4', '0194d3b8-1c00-4000-8000-000000000000', 'instagram'),
    ('of another variant', '0194d3b8-1c00-7000-c000-000000000000', 'instagram'),
    ('a bit above the shard', '0194d3b8-1c00-7000-8000-000000800000', 'instagram'),
    ('before the epoch', '00000000-0001-7000-8000-000000000000', 'instagram'),
    ('a bit within the millisecond', '0194d3b8-1c00-7001-8000-000000000000', 'instagram'),
    ('between two ticks', '0194d3b8-1c01-7000-8000-000000000000', 'sonyflake')) AS uuids (why, uuid, layout);
