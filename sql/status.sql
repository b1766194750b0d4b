-- Monitoring.

CREATE FUNCTION snowflake_clock(
    OUT reading timestamptz,
    OUT high_water_mark timestamptz,
    OUT regressions bigint,
    OUT largest_regression interval,
    OUT last_regression timestamptz,
    OUT forward_jumps bigint,
    OUT largest_forward_jump interval,
    OUT last_forward_jump timestamptz)
RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_clock_wrapper';

COMMENT ON FUNCTION snowflake_clock() IS
'clock of this session: current reading, highest reading at which it has generated an ID, and observed steps';

CREATE FUNCTION snowflake_sequence_status(
    seq regclass,
    layout snowflake_layout DEFAULT 'postgres',
    OUT last_id_at timestamptz,
    OUT lead interval,
    OUT ids_left bigint,
    OUT ends_at timestamptz,
    OUT last_value bigint,
    OUT is_called boolean,
    OUT cache bigint,
    OUT logged boolean,
    OUT error text)
RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_sequence_status_wrapper';

COMMENT ON FUNCTION snowflake_sequence_status(regclass, snowflake_layout) IS
'time of the last ID, lead over the clock, IDs left, and current error of a sequence';

-- The argument can only be a stored expression: its type has no other values. PARALLEL UNSAFE, because it reads
-- sequences.
CREATE FUNCTION _snowflake_generator_calls(
    expression pg_node_tree,
    OUT function regprocedure,
    OUT sequence regclass,
    OUT shard_id integer,
    OUT uses_current_shard boolean,
    OUT layout snowflake_layout,
    OUT first_id bigint,
    OUT last_id_at timestamptz,
    OUT lead interval,
    OUT ids_left bigint,
    OUT ends_at timestamptz,
    OUT error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_generator_calls_wrapper';

COMMENT ON FUNCTION _snowflake_generator_calls(pg_node_tree) IS
'calls of functions that generate IDs in a stored expression; used by snowflake_columns';

-- The view calls it as whoever reads the view, also where default privileges withhold EXECUTE.
GRANT EXECUTE ON FUNCTION _snowflake_generator_calls(pg_node_tree) TO PUBLIC;

-- Not STRICT: the sequence and the shard may be unknown.
CREATE FUNCTION _snowflake_citus_error(
    table_name regclass, sequence regclass, shard_id integer, uses_current_shard boolean)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_citus_error_wrapper';

COMMENT ON FUNCTION _snowflake_citus_error(regclass, regclass, integer, boolean) IS
'reason why a column default returns duplicates or fails under Citus; used by snowflake_columns';

-- Whoever reads the view calls it, also where default privileges withhold EXECUTE on new functions.
GRANT EXECUTE ON FUNCTION _snowflake_citus_error(regclass, regclass, integer, boolean) TO PUBLIC;

-- Not STRICT: the sequence may not have generated an ID. PARALLEL RESTRICTED: it reads temporary tables, too.
CREATE FUNCTION _snowflake_layout_error(
    table_name regclass, column_name name, layout snowflake_layout, last_id_at timestamptz)
RETURNS text
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_layout_error_wrapper';

COMMENT ON FUNCTION _snowflake_layout_error(regclass, name, snowflake_layout, timestamptz) IS
'reason why the newest ID of a column is probably not of a layout; used by snowflake_columns';

GRANT EXECUTE ON FUNCTION _snowflake_layout_error(regclass, name, snowflake_layout, timestamptz) TO PUBLIC;

-- Not STRICT: an identity column has no expression. PARALLEL UNSAFE, because it reads sequences.
CREATE FUNCTION _snowflake_replaced_default_error(sequence regclass, expression pg_node_tree, calls_nextval boolean)
RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_replaced_default_error_wrapper';

COMMENT ON FUNCTION _snowflake_replaced_default_error(regclass, pg_node_tree, boolean) IS
'reason why a column no longer gets IDs from a sequence; used by snowflake_columns';

GRANT EXECUTE ON FUNCTION _snowflake_replaced_default_error(regclass, pg_node_tree, boolean) TO PUBLIC;

-- Every operator names its schema, and every operand has exactly its type. Otherwise an operator in the
-- extension's schema that fits better would be called by whoever queries the view.
--
-- Only expressions that depend on a generator are read: a database may have a hundred thousand other defaults.
-- As in core's build_column_default(), a column's own default applies, else its domain's. A view's column may
-- have a default; a default of its domain is that of the underlying column.
CREATE VIEW snowflake_columns AS
WITH generating AS (
    SELECT DISTINCT classid, objid
    FROM pg_catalog.pg_depend
    WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
        AND refobjid OPERATOR(pg_catalog.=) ANY (ARRAY[
            'snowflake_nextval(pg_catalog.regclass)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval(pg_catalog.regclass, pg_catalog.int4, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval_homed(pg_catalog.regclass, pg_catalog.int4, pg_catalog.int4, pg_catalog.int4, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval_homed_in_ranges(pg_catalog.regclass, pg_catalog.int4, pg_catalog.int8multirange, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid])
), generating_columns AS (
    SELECT d.adrelid AS relid, d.adnum AS attnum, d.adbin AS expression
    FROM generating
    JOIN pg_catalog.pg_attrdef AS d
        ON generating.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
            AND generating.objid OPERATOR(pg_catalog.=) d.oid
    UNION ALL
    SELECT a.attrelid, a.attnum, t.typdefaultbin
    FROM generating
    JOIN pg_catalog.pg_type AS t
        ON generating.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid
            AND generating.objid OPERATOR(pg_catalog.=) t.oid
    JOIN pg_catalog.pg_attribute AS a
        ON a.atttypid OPERATOR(pg_catalog.=) t.oid
            AND NOT a.atthasdef
            AND a.attidentity OPERATOR(pg_catalog.=) ''::pg_catalog."char"
            AND NOT a.attisdropped
    JOIN pg_catalog.pg_class AS c
        ON a.attrelid OPERATOR(pg_catalog.=) c.oid
            AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,f}'::pg_catalog."char"[])
), owned_sequences AS (
    SELECT s.oid AS sequence, owner.refobjid AS relid, owner.refobjsubid AS attnum, owner.deptype
    FROM pg_catalog.pg_class AS s
    JOIN pg_catalog.pg_depend AS owner
        ON owner.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
            AND owner.objid OPERATOR(pg_catalog.=) s.oid
            AND owner.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
            AND owner.deptype OPERATOR(pg_catalog.=) ANY ('{a,i}'::pg_catalog."char"[])
    WHERE s.relkind OPERATOR(pg_catalog.=) 'S'::pg_catalog."char"
), sequence_columns AS (
    -- Columns that PostgreSQL's nextval() may fill: from the sequence of a default, or of an identity column.
    SELECT d.adrelid AS relid, d.adnum::pg_catalog.int4 AS attnum, s.oid AS sequence, d.adbin AS expression, true AS calls_nextval
    FROM pg_catalog.pg_class AS s
    JOIN pg_catalog.pg_depend AS uses
        ON uses.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
            AND uses.refobjid OPERATOR(pg_catalog.=) s.oid
            AND uses.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
    JOIN pg_catalog.pg_attrdef AS d ON uses.objid OPERATOR(pg_catalog.=) d.oid
    WHERE s.relkind OPERATOR(pg_catalog.=) 'S'::pg_catalog."char"
    UNION ALL
    SELECT o.relid, o.attnum, o.sequence, NULL, true
    FROM owned_sequences AS o
    WHERE o.deptype OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
    UNION ALL
    -- And sequences that belong to a column, and that nothing in the catalog uses.
    SELECT o.relid, o.attnum, o.sequence, NULL, false
    FROM owned_sequences AS o
    WHERE o.deptype OPERATOR(pg_catalog.=) 'a'::pg_catalog."char"
        AND NOT EXISTS (
            SELECT
            FROM pg_catalog.pg_depend AS uses
            WHERE uses.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                AND uses.refobjid OPERATOR(pg_catalog.=) o.sequence
                AND uses.deptype OPERATOR(pg_catalog.=) 'n'::pg_catalog."char")
), replaced_columns AS MATERIALIZED (
    SELECT q.relid, q.attnum, q.sequence, q.calls_nextval,
        _snowflake_replaced_default_error(q.sequence::pg_catalog.regclass, q.expression, q.calls_nextval) AS error
    FROM sequence_columns AS q
)
SELECT c.oid::pg_catalog.regclass AS table_name,
    a.attname AS column_name,
    call.function,
    call.sequence,
    call.shard_id,
    call.uses_current_shard,
    call.layout,
    call.first_id,
    call.last_id_at,
    call.lead,
    call.ids_left,
    call.ends_at,
    COALESCE(
        call.error,
        _snowflake_citus_error(
            c.oid::pg_catalog.regclass,
            call.sequence,
            call.shard_id,
            call.uses_current_shard),
        -- Without the time of the sequence, old IDs may seem to be of another layout.
        CASE WHEN call.last_id_at IS NOT NULL
            OR call.sequence IS NULL
            OR pg_catalog.has_table_privilege(call.sequence::pg_catalog.oid, 'SELECT') THEN
            _snowflake_layout_error(
                c.oid::pg_catalog.regclass,
                a.attname,
                call.layout,
                call.last_id_at)
        END) AS error
FROM generating_columns AS g
JOIN pg_catalog.pg_class AS c ON g.relid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_attribute AS a
    ON g.relid OPERATOR(pg_catalog.=) a.attrelid AND g.attnum OPERATOR(pg_catalog.=) a.attnum
CROSS JOIN LATERAL _snowflake_generator_calls(g.expression) AS call
WHERE NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
UNION ALL
SELECT c.oid::pg_catalog.regclass,
    a.attname,
    CASE WHEN r.calls_nextval THEN 'pg_catalog.nextval(pg_catalog.regclass)'::pg_catalog.regprocedure END,
    r.sequence::pg_catalog.regclass,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    r.error
FROM replaced_columns AS r
JOIN pg_catalog.pg_class AS c ON r.relid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_attribute AS a
    ON r.relid OPERATOR(pg_catalog.=) a.attrelid AND r.attnum OPERATOR(pg_catalog.=) a.attnum
WHERE r.error IS NOT NULL
    AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
    -- Only now, for the few columns that are left.
    AND NOT EXISTS (
        SELECT
        FROM generating_columns AS g
        WHERE g.relid OPERATOR(pg_catalog.=) r.relid AND g.attnum::pg_catalog.int4 OPERATOR(pg_catalog.=) r.attnum)
    -- A trigger, or a function in the default, may use the sequence.
    AND (r.calls_nextval
        OR NOT EXISTS (
            SELECT
            FROM pg_catalog.pg_attrdef AS d
            JOIN pg_catalog.pg_depend AS calls
                ON calls.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
                    AND calls.objid OPERATOR(pg_catalog.=) d.oid
                    AND calls.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
            WHERE d.adrelid OPERATOR(pg_catalog.=) r.relid AND d.adnum::pg_catalog.int4 OPERATOR(pg_catalog.=) r.attnum)
        AND NOT EXISTS (
            SELECT
            FROM pg_catalog.pg_trigger AS t
            WHERE t.tgrelid OPERATOR(pg_catalog.=) r.relid
                -- BEFORE INSERT FOR EACH ROW
                AND (t.tgtype OPERATOR(pg_catalog.&) 7::pg_catalog.int2) OPERATOR(pg_catalog.=) 7::pg_catalog.int2));

COMMENT ON VIEW snowflake_columns IS
'columns whose default generates IDs, and the status of their sequences; one row for each call in a default';
COMMENT ON COLUMN snowflake_columns.table_name IS 'table, partition, foreign table or view';
COMMENT ON COLUMN snowflake_columns.column_name IS 'column';
COMMENT ON COLUMN snowflake_columns.function IS 'function called by the default of the column or its domain';
COMMENT ON COLUMN snowflake_columns.sequence IS 'sequence; null unless the call names it by a constant';
COMMENT ON COLUMN snowflake_columns.shard_id IS
'shard; null if it is not a constant, or if the call uses the shard of the database and the database has no shard';
COMMENT ON COLUMN snowflake_columns.uses_current_shard IS 'whether the call uses the shard of the database, which snowflake_current_shard() returns';
COMMENT ON COLUMN snowflake_columns.layout IS 'layout; null if it is not a constant';
COMMENT ON COLUMN snowflake_columns.first_id IS
'lowest ID that the sequence can generate: lower values of the column can be of another layout; null if the sequence started at the epoch of the layout';
COMMENT ON COLUMN snowflake_columns.last_id_at IS
'time of the last ID of the sequence; null if it has not generated one, or if the privilege to read it is missing';
COMMENT ON COLUMN snowflake_columns.lead IS 'how far the sequence is ahead of the clock';
COMMENT ON COLUMN snowflake_columns.ids_left IS
'number of IDs up to the end of the layout or the MAXVALUE of the sequence';
COMMENT ON COLUMN snowflake_columns.ends_at IS 'time at which the layout ends';
COMMENT ON COLUMN snowflake_columns.error IS
'error that an INSERT would raise now, ignoring missing privileges, read-only transactions and standbys; or the error that the default causes on other nodes of Citus; or that the newest ID of the column is not of the layout; or the reason why the row is incomplete';

GRANT SELECT ON snowflake_columns TO PUBLIC;
