-- The table `posts` of a script about partitions, and what the two functions return, without times.
\set created 'SELECT action, partition, message FROM snowflake_create_partitions'
\set dropped 'SELECT action, partition, message FROM snowflake_drop_partitions'
SET client_min_messages = 'warning';

-- Creates the table again. Its default generates IDs of shard 5.
CREATE PROCEDURE create_posts(layout text DEFAULT 'postgres') LANGUAGE plpgsql AS $$ BEGIN
    DROP TABLE IF EXISTS posts CASCADE;
    DROP SEQUENCE IF EXISTS ids CASCADE;
    CREATE SEQUENCE ids;
    EXECUTE format('CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(''ids'', 5, %L), body text)
        PARTITION BY RANGE (id)', layout);
END $$;

-- A partition with the IDs from one day to another.
CREATE PROCEDURE add_partition(name text, starts timestamptz, ends timestamptz, layout text DEFAULT 'postgres', parent text DEFAULT 'posts')
LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', name, parent,
        snowflake_min_id(starts, layout::snowflake_layout), snowflake_min_id(ends, layout::snowflake_layout));
END $$;

-- A partition of these months, each with a row of its 15th.
CREATE PROCEDURE add_months(VARIADIC months text[]) LANGUAGE plpgsql AS $$
DECLARE
    month text;
BEGIN
    FOREACH month IN ARRAY months LOOP
        CALL add_partition('posts_p' || replace(month, '-', '') || '01', (month || '-01')::date, (month || '-01')::date + interval '1 month');
        EXECUTE 'INSERT INTO posts VALUES ($1, $2)' USING snowflake_min_id((month || '-15')::timestamptz), month;
    END LOOP;
END $$;

-- The partitions of a table in the order of their bounds.
CREATE FUNCTION partitions_of(name text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(c.relname, ' ' ORDER BY substring(pg_get_expr(relpartbound, c.oid) FROM '\d+')::bigint, c.relname)
    FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid WHERE inhparent = name::regclass $$;
