-- IDs of other layouts than the default one.

\i :folder/data/original.sql

-- Every preset but the default one, with a shard that it has, and a table `of_PRESET` with 1,000 IDs of it.
CREATE TABLE presets AS
SELECT name AS preset, CASE shards WHEN 1 THEN 0 ELSE 5 END AS shard FROM snowflake_layouts WHERE name <> 'postgres';
DO $$
DECLARE
    p presets;
BEGIN
    FOR p IN SELECT * FROM presets LOOP
        EXECUTE format('CREATE SEQUENCE made_%1$s; CREATE SEQUENCE s_%1$s; CREATE TABLE of_%1$s (id bigint PRIMARY KEY);
                        INSERT INTO of_%1$s SELECT snowflake_nextvals(''made_%1$s'', %2$s, 1000, %1$L)', p.preset, p.shard);
    END LOOP;
END $$;
