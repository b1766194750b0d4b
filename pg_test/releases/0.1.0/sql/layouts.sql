-- The type of a layout, and what follows from one.
--
-- Of an error the SQLSTATE is promised and the words are not.
\set VERBOSITY sqlstate
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres';

\x
TABLE snowflake_layouts;
SELECT * FROM snowflake_layout_info();
SELECT * FROM snowflake_layout_info('time:48 shard:8 seq:7 epoch:2024-01-01 unit:1s');
SELECT * FROM snowflake_layout_info('time:41 shard:0 seq:22 epoch:2024-02-29T12:34:56.789Z unit:10us');
SELECT * FROM snowflake_layout_info(layout => 'time:1 seq:0 shard:0 epoch:1970-01-01 unit:100ms');
SELECT snowflake_layout_info(NULL) IS NULL AS is_null;
\x

--
-- Text
--
SELECT text, text::snowflake_layout AS layout
FROM (VALUES
        ('instagram'),
        ('twitter'),
        ('discord'),
        ('mastodon'),
        ('sonyflake'),
        ('pgedge'),
        ('js53'),
        ('time:41 shard:13 seq:10 epoch:2011-08-24T21:07:01.721Z unit:1ms'),
        ('time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms'),
        ('time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms'),
        ('time:41 seq:14 shard:8 epoch:2024-01-01 unit:1ms'),
        ('time:40 shard:8 seq:14 epoch:2024-01-01T00:00:00Z unit:100us'),
        ('time:48 shard:0 seq:16 epoch:1970-01-01 unit:1ms'),
        ('time:33 shard:31 seq:0 epoch:2000-02-29T23:59:59.5Z unit:1s')
    ) AS texts (text);

SELECT 'twiter'::snowflake_layout;
SELECT ''::snowflake_layout;
SELECT 'time:41'::snowflake_layout;
SELECT 'time:41 shard:13 seq:11 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:49 shard:5 seq:5 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:0 shard:5 seq:5 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:20 shard:32 seq:5 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:41 shard:-1 seq:5 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:41 time:41 shard:8 seq:5 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'shard:8 time:41 seq:5 epoch:2024-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:41 shard:8 seq:5 epoch:2024-01-01 unit:3ms'::snowflake_layout;
SELECT 'time:41 shard:8 seq:5 epoch:2024-02-30 unit:1ms'::snowflake_layout;
SELECT 'time:41 shard:8 seq:5 epoch:1969-12-31 unit:1ms'::snowflake_layout;
SELECT 'time:41 shard:8 seq:5 epoch:9999-01-01 unit:1ms'::snowflake_layout;
SELECT 'time:41 shard:8 seq:5 epoch:2024-01-01 unit:1ms node:3'::snowflake_layout;

-- what the type calls, called by hand
SELECT snowflake_layout_in('twitter') AS twitter, snowflake_layout_out('twitter') AS twitter_out;

--
-- Equality, and what needs it
--
SELECT a, b, a = b AS eq, a <> b AS ne, snowflake_layout_eq(a, b), snowflake_layout_ne(a, b),
       snowflake_layout_hash(a) = snowflake_layout_hash(b) AS same_hash
FROM (VALUES
        ('instagram'::snowflake_layout, 'time:41 shard:13 seq:10 epoch:2011-08-24T21:07:01.721Z unit:1ms'::snowflake_layout),
        ('instagram', 'twitter')
    ) AS pairs (a, b);
SELECT name, snowflake_layout_hash(name::snowflake_layout) FROM snowflake_layouts;

SET enable_sort = off;
SELECT layout, count(*) FROM (VALUES ('twitter'::snowflake_layout), ('js53'), ('twitter')) AS v (layout)
GROUP BY layout ORDER BY layout::text;
SELECT DISTINCT layout FROM (VALUES ('twitter'::snowflake_layout), ('twitter')) AS v (layout);
CREATE TABLE tables (name text, layout snowflake_layout);
INSERT INTO tables VALUES ('posts', 'instagram'), ('tweets', 'twitter'), ('more_tweets', 'twitter'),
    ('events', 'time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms');
CREATE INDEX ON tables USING hash (layout);
CREATE INDEX ON tables USING hash (layout snowflake_layout_ops);
SELECT name, shards FROM tables CROSS JOIN snowflake_layout_info(layout) ORDER BY name;
SET enable_seqscan = off;
SELECT name FROM tables WHERE layout = 'twitter' ORDER BY name;
RESET enable_seqscan;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT a.name FROM tables AS a JOIN tables AS b USING (layout) WHERE b.name = 'tweets' ORDER BY a.name;
RESET enable_mergejoin;
RESET enable_nestloop;
RESET enable_sort;

--
-- Binary, as drivers send it and as it is stored
--
SELECT name, snowflake_layout_send(layout) FROM tables;
SELECT name, snowflake_layout_send(name::snowflake_layout) FROM snowflake_layouts;
SELECT current_setting('data_directory') || '/layouts' AS file \gset
COPY tables TO :'file' (FORMAT binary);
CREATE TABLE received (LIKE tables);
COPY received FROM :'file' (FORMAT binary);
TABLE received;
CREATE TABLE numbers (n bigint);
INSERT INTO numbers VALUES (0);
COPY numbers TO :'file' (FORMAT binary);
CREATE TABLE layouts_received (layout snowflake_layout);
COPY layouts_received FROM :'file' (FORMAT binary);
