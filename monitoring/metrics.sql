-- What Prometheus reads about pg_snowflake. Run this as a superuser, with psql, in each database that has the extension, and again
-- after an update: psql -d DATABASE -f metrics.sql. DROP SCHEMA snowflake_metrics CASCADE removes it.
--
-- The role of the exporter can call four functions, and has no other privilege. The functions run as a role that can read what
-- the figures are made of, but cannot log in, and has no privilege to write, or to generate IDs, other than what PUBLIC has. Nobody
-- has to grant anything when a table is created.

\set ON_ERROR_STOP on
BEGIN;

-- The functions are parsed here, once, and keep the objects that they name. No object in another schema can take their place.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

DO $$
DECLARE
    stranger name;
    details text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_snowflake') THEN
        RAISE 'extension "pg_snowflake" is not installed in database "%"', current_database()
            USING ERRCODE = 'undefined_object', HINT = 'Run this script in the databases that have the extension.';
    END IF;

    SELECT rolname INTO stranger
    FROM pg_namespace JOIN pg_roles ON pg_roles.oid = nspowner
    WHERE nspname = 'snowflake_metrics' AND NOT rolsuper AND rolname <> current_user;
    IF FOUND THEN
        RAISE 'schema "snowflake_metrics" belongs to role "%"', stranger
            USING ERRCODE = 'duplicate_schema', HINT = 'Drop or rename the schema, and run this script again.';
    END IF;

    -- Whoever may create roles could have made these, to get the privileges that this script grants.
    SELECT rolname, string_agg(format('It %s.', finding), ' ' ORDER BY finding) INTO stranger, details
    FROM pg_roles AS role
    CROSS JOIN LATERAL (
        SELECT finding
        FROM (VALUES
            (rolcanlogin AND rolname = 'snowflake_metrics', 'can log in'),
            (rolsuper, 'has SUPERUSER'),
            (rolcreaterole, 'has CREATEROLE'),
            (rolcreatedb, 'has CREATEDB'),
            (rolreplication, 'has REPLICATION'),
            (rolbypassrls, 'has BYPASSRLS')) AS attributes (is_set, finding)
        WHERE is_set
        UNION ALL
        -- A superuser gains nothing by a membership.
        SELECT format('has the member %I', other.rolname)
        FROM pg_auth_members JOIN pg_roles AS other ON other.oid = member
        WHERE roleid = role.oid AND role.rolname = 'snowflake_metrics' AND NOT other.rolsuper
        UNION ALL
        SELECT 'is a member of ' || roleid::regrole
        FROM pg_auth_members
        WHERE member = role.oid AND role.rolname = 'snowflake_metrics'
            AND roleid NOT IN ('pg_read_all_data'::regrole, 'pg_read_all_stats'::regrole)
        UNION ALL
        -- A function of the role would read all data for its callers. Once the role is a member, it owns the functions below.
        SELECT format('owns %s objects', count(*))
        FROM pg_shdepend
        WHERE refclassid = 'pg_authid'::regclass AND refobjid = role.oid AND deptype = 'o'
            AND NOT (rolname = 'snowflake_metrics' AND EXISTS (
                SELECT FROM pg_auth_members WHERE member = role.oid AND roleid = 'pg_read_all_data'::regrole))
        HAVING count(*) > 0
    ) AS findings
    WHERE rolname IN ('snowflake_exporter', 'snowflake_metrics')
    GROUP BY rolname
    LIMIT 1;
    IF FOUND THEN
        RAISE 'role "%" has more privileges than this script gives it', stranger
            USING ERRCODE = 'duplicate_object', DETAIL = details,
                HINT = 'Find out who created the role. Drop it, or revoke what the detail lists, and run this script again.';
    END IF;

    IF to_regrole('snowflake_exporter') IS NULL THEN
        CREATE ROLE snowflake_exporter LOGIN;
    END IF;
    IF to_regrole('snowflake_metrics') IS NULL THEN
        CREATE ROLE snowflake_metrics NOLOGIN;
    END IF;
END $$;
ALTER ROLE snowflake_exporter SET statement_timeout = '20s';
-- The sequences and the newest ID of each column; what other sessions wait for.
GRANT pg_read_all_data, pg_read_all_stats TO snowflake_metrics;
SELECT extnamespace::regnamespace AS extension, format('%s.snowflake', extnamespace::regnamespace) AS id_type
FROM pg_extension WHERE extname = 'pg_snowflake' \gset
GRANT EXECUTE ON FUNCTION :extension.snowflake_lease_status() TO snowflake_metrics;

CREATE SCHEMA IF NOT EXISTS snowflake_metrics;
-- Without CASCADE, which would drop what others have built on them.
DROP FUNCTION IF EXISTS
    snowflake_metrics.columns(), snowflake_metrics.server(), snowflake_metrics.leases(), snowflake_metrics.partitions();

-- All columns that generate IDs, in groups: a few series, however many columns there are. A column with an error, or whose lead is
-- above max_lead, is a group of its own, so that an alert can name it; at most 20 of them. The others of a layout are one group,
-- which has no names. Beyond the 20 layouts with the most columns, all others are the layout "other".
CREATE FUNCTION snowflake_metrics.columns(
    OUT database name,
    OUT layout text,
    OUT table_name text,
    OUT column_name text,
    OUT sequence text,
    OUT count bigint,
    OUT with_error bigint,
    OUT max_lead_seconds float8,
    OUT min_ids_left float8,
    OUT ids_per_second float8,
    OUT min_seconds_left float8)
RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH status AS (
        SELECT *,
            COALESCE(error IS NOT NULL OR lead > current_setting('pg_snowflake.max_lead')::interval, false) AS deviates,
            COALESCE(c.layout::text, '') AS spec
        FROM :extension.snowflake_columns AS c
    ), rates AS (
        SELECT spec, (:extension.snowflake_layout_info(layouts.layout)).ids_per_second AS rate
        FROM (SELECT DISTINCT status.layout, spec FROM status) AS layouts
    ), numbered AS (
        SELECT *,
            row_number() OVER (PARTITION BY deviates ORDER BY table_name::oid, column_name, sequence::oid) AS number,
            count(*) OVER (PARTITION BY spec) AS columns_of_layout
        FROM status
    ), ranked AS (
        SELECT *,
            CASE WHEN deviates AND number <= 20 THEN table_name END AS named_table,
            dense_rank() OVER (ORDER BY columns_of_layout DESC, spec) AS layout_rank
        FROM numbered
    ), named AS (
        SELECT *, CASE WHEN named_table IS NOT NULL OR layout_rank <= 20 THEN spec ELSE 'other' END AS named_layout
        FROM ranked JOIN rates USING (spec)
    )
    SELECT
        current_database(),
        named_layout,
        COALESCE(named_table::text, ''),
        COALESCE(CASE WHEN named_table IS NOT NULL THEN named.column_name END, ''),
        COALESCE(CASE WHEN named_table IS NOT NULL THEN named.sequence END::text, ''),
        count(*),
        count(error),
        -- Null if no sequence of the group has been used.
        COALESCE(extract(epoch FROM max(lead)), 0),
        -- Both exporters read NaN, but not null.
        COALESCE(min(ids_left), 'NaN'::float8),
        COALESCE(max(rate), 'NaN'::float8),
        -- Not a difference of timestamps: the end of a layout may be infinity.
        COALESCE(extract(epoch FROM min(ends_at)) - extract(epoch FROM now()), 'NaN'::float8)
    FROM named
    GROUP BY named_layout, named_table, 4, 5;
END;

-- The settings, leases and clock of this server, as a session of this database sees them. The clock's steps are those since the
-- session began.
CREATE FUNCTION snowflake_metrics.server(
    OUT database name,
    OUT max_lead_seconds float8,
    OUT max_wait_seconds float8,
    OUT owned_shards_set int,
    OUT allowed_hosts_set int,
    OUT leases_on int,
    OUT restart_needed int,
    OUT sessions_waiting bigint,
    OUT clock_seconds float8,
    OUT clock_regressions_total bigint,
    OUT clock_largest_regression_seconds float8,
    OUT clock_forward_jumps_total bigint,
    OUT clock_largest_forward_jump_seconds float8)
RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT
        current_database(),
        extract(epoch FROM current_setting('pg_snowflake.max_lead')::interval),
        extract(epoch FROM current_setting('pg_snowflake.max_wait')::interval),
        (current_setting('pg_snowflake.owned_shards') <> '')::int,
        (current_setting('pg_snowflake.allowed_hosts') <> '')::int,
        (mode = 'on')::int,
        (mode IN ('pending_restart', 'not_preloaded'))::int,
        -- Until PostgreSQL 16, the waits of all extensions have one name.
        (SELECT count(*) FROM pg_stat_activity
         WHERE pg_stat_activity.datname = current_database()
            AND backend_type = 'client backend'
            AND wait_event_type = 'Extension'
            AND wait_event IN ('SnowflakeClock', 'Extension')),
        extract(epoch FROM clock_timestamp()),
        regressions,
        extract(epoch FROM largest_regression),
        forward_jumps,
        extract(epoch FROM largest_forward_jump)
    FROM :extension.snowflake_clock(), :extension.snowflake_lease_mode() AS mode;
END;

-- The leases of this server; no row without a registry, or on a standby.
CREATE FUNCTION snowflake_metrics.leases(
    OUT database name,
    OUT shards bigint,
    OUT not_held bigint,
    OUT min_remaining_seconds float8,
    OUT max_starts_in_seconds float8,
    OUT registry_answer_age_seconds float8,
    OUT length_seconds float8)
RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT
        current_database(),
        count(shard_id),
        count(*) FILTER (WHERE state <> 'held'),
        COALESCE(extract(epoch FROM min(remaining)), 'NaN'::float8),
        COALESCE(extract(epoch FROM GREATEST(max(starts) - clock_timestamp(), '0')), 0),
        COALESCE(extract(epoch FROM clock_timestamp() - max(last_answer_at)), 'NaN'::float8),
        extract(epoch FROM current_setting('pg_snowflake.lease')::interval)
    FROM :extension.snowflake_lease_status()
    HAVING count(*) > 0;
END;

-- How long the partitions of each table that is partitioned by ranges of its IDs last from now, without a gap, and the length of the
-- last of them. The default partition does not count. At most the 100 tables that run out first.
CREATE FUNCTION snowflake_metrics.partitions(
    OUT database name,
    OUT table_name text,
    OUT ahead_seconds float8,
    OUT step_seconds float8)
RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH tables AS (
        SELECT DISTINCT ON (partrelid)
            partrelid, c.layout,
            :extension.snowflake_min_id(now(), c.layout) AS now_id,
            :extension.snowflake_min_id('infinity', c.layout) AS end_id
        FROM pg_partitioned_table
        JOIN :extension.snowflake_columns AS c ON c.table_name::oid = partrelid
        JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0] AND attname = c.column_name
        WHERE partstrat = 'r' AND partnatts = 1
            -- Before the view reads the sequences of other tables.
            AND c.table_name::oid = ANY (ARRAY(SELECT partrelid FROM pg_partitioned_table))
            AND atttypid IN ('int8'::regtype, :'id_type'::regtype) AND c.layout IS NOT NULL
    ), partitions AS (
        SELECT tables.*, bounds[1]::numeric AS lower, bounds[2]::numeric AS upper
        FROM tables
        JOIN pg_inherits ON inhparent = partrelid
        JOIN pg_class ON pg_class.oid = inhrelid
        CROSS JOIN regexp_match(
            -- With the partition instead of 0, pg_get_expr() would wait for its lock.
            replace(replace(pg_get_expr(relpartbound, 0), 'MINVALUE', '-Infinity'), 'MAXVALUE', 'Infinity'),
            -- The whole text: a bound of another table may be any text.
            '^FOR VALUES FROM \(''?(-?\d{1,19}|-Infinity)''?\) TO \(''?(-?\d{1,19}|Infinity)''?\)$') AS bounds
        WHERE bounds IS NOT NULL
    ), present_and_later AS (
        SELECT *, lower > COALESCE(max(upper) OVER earlier, now_id) AS is_after_gap
        FROM partitions
        WHERE upper > now_id
        WINDOW earlier AS (PARTITION BY partrelid ORDER BY lower ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ), covered AS (
        SELECT *, bool_or(is_after_gap) OVER (PARTITION BY partrelid ORDER BY lower) AS is_beyond_gap
        FROM present_and_later
    ), last AS (
        SELECT DISTINCT ON (partrelid) * FROM covered WHERE NOT is_beyond_gap ORDER BY partrelid, upper DESC
    )
    SELECT
        current_database(),
        partrelid::regclass::text,
        CASE
            WHEN upper IS NULL THEN 0
            WHEN upper >= end_id THEN 'Infinity'
            ELSE extract(epoch FROM :extension.snowflake_created_at(upper::bigint, layout) - now())
        END,
        CASE
            WHEN lower >= 0 AND upper < end_id THEN extract(epoch FROM
                :extension.snowflake_created_at(upper::bigint, layout) - :extension.snowflake_created_at(lower::bigint, layout))
            ELSE 'NaN'
        END
    FROM (SELECT partrelid, layout, end_id FROM tables) AS tables
    LEFT JOIN (SELECT partrelid, lower, upper FROM last) AS last USING (partrelid)
    ORDER BY 3, 2
    LIMIT 100;
END;

DO $$
DECLARE
    functions CONSTANT oid[] := ARRAY[
        'snowflake_metrics.columns()', 'snowflake_metrics.server()', 'snowflake_metrics.leases()', 'snowflake_metrics.partitions()'
    ]::regprocedure[];
    function regprocedure;
    revoke text;
BEGIN
    FOREACH function IN ARRAY functions LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO snowflake_metrics', function);
    END LOOP;
    -- From PUBLIC, and from whom the default privileges of the role that runs this name.
    FOR revoke IN
        SELECT format('REVOKE ALL ON %s FROM %s CASCADE', object, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
        FROM (
            SELECT format('FUNCTION %s', oid::regprocedure), proowner, COALESCE(proacl, acldefault('f', proowner))
            FROM pg_proc WHERE oid = ANY (functions)
            UNION ALL
            SELECT format('SCHEMA %I', nspname), nspowner, nspacl
            FROM pg_namespace WHERE nspname = 'snowflake_metrics'
        ) AS objects (object, owner, acl), aclexplode(acl)
        WHERE grantee <> owner
    LOOP
        EXECUTE revoke;
    END LOOP;
    GRANT USAGE ON SCHEMA snowflake_metrics TO snowflake_exporter;
    FOREACH function IN ARRAY functions LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO snowflake_exporter', function);
    END LOOP;
END $$;

COMMENT ON SCHEMA snowflake_metrics IS 'figures of pg_snowflake for Prometheus';

COMMIT;
