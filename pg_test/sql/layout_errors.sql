-- A text that is not a layout is refused with what is allowed.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

SELECT error_of(format('SELECT %L::snowflake_layout', layout)) FROM unnest(ARRAY[
    -- neither a preset nor a specification
    'instagramm', 'Twitter', '',
    -- the generators that snowflake_explain() names
    'tsid', 'cockroachdb',
    -- a part is missing
    'shard:13 seq:10 epoch:2024-01-01 unit:1ms', 'time:41 seq:10 epoch:2024-01-01 unit:1ms', 'time:41 shard:13 epoch:2024-01-01 unit:1ms',
    'time:41 shard:13 seq:10 unit:1ms', 'time:41 shard:13 seq:10 epoch:2024-01-01',
    -- a part is specified more than once
    'time:41 time:41 shard:13 seq:10 epoch:2024-01-01 unit:1ms', 'time:41 shard:13 seq:10 unit:1s epoch:2024-01-01 unit:1ms',
    -- the width of a field
    'time:0 shard:13 seq:10 epoch:2024-01-01 unit:1ms', 'time:49 shard:5 seq:10 epoch:2024-01-01 unit:1ms',
    'time:30 shard:32 seq:0 epoch:2024-01-01 unit:1ms', 'time:30 shard:0 seq:32 epoch:2024-01-01 unit:1ms',
    'time:30 shard:-1 seq:2 epoch:2024-01-01 unit:1ms', 'time:41.5 shard:1 seq:2 epoch:2024-01-01 unit:1ms',
    'time:+41 shard:13 seq:10 epoch:2024-01-01 unit:1ms', 'time:41 shard:013 seq:10 epoch:2024-01-01 unit:1ms',
    'time:41 shard:13 seq:11 epoch:2024-01-01 unit:1ms',
    -- the order of the fields, and the unit
    'shard:13 time:41 seq:10 epoch:2024-01-01 unit:1ms', 'time:41 shard:13 seq:10 epoch:2024-01-01 unit:3ms',
    -- the epoch
    'time:41 shard:13 seq:10 epoch:2924-01-01 unit:1ms', 'time:41 shard:13 seq:10 epoch:1969-12-31 unit:1ms',
    'time:41 shard:13 seq:10 epoch:2024-02-30 unit:1ms', 'time:41 shard:13 seq:10 epoch:2024-01-01T00:00:00.0001Z unit:1ms',
    -- other parts
    'time:41 shard:13 seq:10 worker:1 epoch:2024-01-01 unit:1ms', 'time:41 shard seq:10 epoch:2024-01-01 unit:1ms']) AS layout;

\echo -- an epoch is in the future until it is past
SELECT replace(error_of(format('SELECT ''time:40 shard:5 seq:5 epoch:%s unit:1s''::snowflake_layout', epoch)), epoch, '<epoch>')
FROM unnest(ARRAY['1 hour', '-1 hour']::interval[]) AS ahead,
    LATERAL (SELECT to_char(clock_timestamp() + ahead, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS e (epoch);
