-- From 0.1.0 to the next version.
-- Make every change of the SQL objects here too; a test compares the result with a fresh installation.

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0-dev'" to load this file. \quit

-- Rename functions and views in place, so that they keep their privileges and their dependents.
ALTER FUNCTION snowflake_shard_id() RENAME TO snowflake_current_shard;

CREATE OR REPLACE FUNCTION snowflake_current_shard()
RETURNS integer
LANGUAGE c STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_current_shard_wrapper';

ALTER FUNCTION snowflake_adopt(regclass, name, integer, snowflake_layout, boolean) RENAME TO snowflake_convert_column;

-- No command renames an argument, and DROP FUNCTION would fail if a view calls the function. Views name the
-- result columns of a function themselves, so theirs do not change.
UPDATE pg_catalog.pg_proc
SET proargnames = '{table_name,column_name,shard_id,layout,check_shard}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_convert_column(pg_catalog.regclass, pg_catalog.name, pg_catalog.int4, snowflake_layout, pg_catalog.bool)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{table_name,id,layout,shard_id,partition,server,host,port,dbname}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_locate(pg_catalog.regclass, pg_catalog.int8, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid;

-- A view that calls the function has stored its columns by number, so one more at the end does not affect it.
UPDATE pg_catalog.pg_proc
SET proargnames = '{layout,spec,time_bits,shard_bits,seq_bits,unit,epoch,ends_at,shards,ids_per_second,distinct_folds}'::pg_catalog.text[],
    proallargtypes = pg_catalog.array_append(proallargtypes, 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid),
    proargmodes = pg_catalog.array_append(proargmodes, 'o'::pg_catalog."char")
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_layout_info(snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{seq,layout,last_id_at,lead,ids_left,ends_at,last_value,is_called,cache,logged,error}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_sequence_status(pg_catalog.regclass, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{expression,function,sequence,shard_id,shard_from_setting,layout,last_id_at,lead,ids_left,ends_at,error}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_generator_calls(pg_catalog.pg_node_tree)'::pg_catalog.regprocedure::pg_catalog.oid;

CREATE OR REPLACE FUNCTION snowflake_convert_column(
    table_name regclass,
    column_name name,
    shard_id integer DEFAULT NULL,
    layout snowflake_layout DEFAULT 'instagram',
    check_shard boolean DEFAULT false)
RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_convert_column_wrapper';

ALTER VIEW snowflake_layouts RENAME COLUMN ends TO ends_at;

-- The view reads the presets from the library, so that a new one needs no change of SQL.
CREATE FUNCTION snowflake_presets()
RETURNS SETOF snowflake_layout
LANGUAGE c STABLE STRICT PARALLEL SAFE ROWS 10
AS 'MODULE_PATHNAME', 'snowflake_presets_wrapper';

COMMENT ON FUNCTION snowflake_presets() IS 'preset layouts of the library; used by snowflake_layouts';

-- Whoever reads the view calls it, also where default privileges withhold EXECUTE on new functions.
GRANT EXECUTE ON FUNCTION snowflake_presets() TO PUBLIC;

CREATE OR REPLACE FUNCTION snowflake_layout_info(
    layout snowflake_layout DEFAULT 'instagram',
    OUT spec text,
    OUT time_bits integer,
    OUT shard_bits integer,
    OUT seq_bits integer,
    OUT unit interval,
    OUT epoch timestamptz,
    OUT ends_at timestamptz,
    OUT shards bigint,
    OUT ids_per_second bigint,
    OUT distinct_folds bigint)
RETURNS record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_layout_info_with_folds_wrapper';

CREATE OR REPLACE VIEW snowflake_layouts AS
SELECT preset.layout::pg_catalog.text AS name, info.*
FROM snowflake_presets() AS preset (layout), snowflake_layout_info(preset.layout) AS info;

CREATE FUNCTION snowflake_nextval_homed(
    seq regclass,
    shard_id integer,
    modulus integer,
    layout snowflake_layout DEFAULT 'instagram',
    generators integer DEFAULT 1)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_homed_wrapper';

COMMENT ON FUNCTION snowflake_nextval_homed(regclass, integer, integer, snowflake_layout, integer) IS
'next homed ID from a sequence: an ID that hash partitioning with this modulus puts into partition shard_id mod modulus';

CREATE FUNCTION snowflake_nextval_homed(
    seq regclass, shard_id integer, ranges int8multirange, layout snowflake_layout DEFAULT 'instagram')
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_homed_in_ranges_wrapper';

COMMENT ON FUNCTION snowflake_nextval_homed(regclass, integer, int8multirange, snowflake_layout) IS
'next homed ID of a shard from a sequence: an ID whose hash, by hashint8, is in the ranges';

CREATE FUNCTION snowflake_nextvals_homed(
    seq regclass,
    shard_id integer,
    modulus integer,
    count integer,
    layout snowflake_layout DEFAULT 'instagram',
    generators integer DEFAULT 1)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_homed_wrapper';

COMMENT ON FUNCTION snowflake_nextvals_homed(regclass, integer, integer, integer, snowflake_layout, integer) IS
'next homed IDs from a sequence: IDs that hash partitioning with this modulus puts into partition shard_id mod modulus';

CREATE FUNCTION snowflake_nextvals_homed(
    seq regclass,
    shard_id integer,
    ranges int8multirange,
    count integer,
    layout snowflake_layout DEFAULT 'instagram')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_homed_in_ranges_wrapper';

COMMENT ON FUNCTION snowflake_nextvals_homed(regclass, integer, int8multirange, integer, snowflake_layout) IS
'next homed IDs of a shard from a sequence: IDs whose hashes, by hashint8, are in the ranges';

CREATE FUNCTION snowflake_shard_hash_postgres(id bigint, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_postgres_wrapper';

CREATE FUNCTION snowflake_shard_hash_postgres(id integer, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_postgres_of_integer_wrapper';

COMMENT ON FUNCTION snowflake_shard_hash_postgres(bigint, bigint) IS 'hash';
COMMENT ON FUNCTION snowflake_shard_hash_postgres(integer, bigint) IS 'hash';

CREATE OPERATOR CLASS snowflake_shard_ops_postgres
FOR TYPE bigint USING hash AS
    OPERATOR 1 pg_catalog.= (bigint, bigint),
    OPERATOR 1 pg_catalog.= (bigint, integer),
    OPERATOR 1 pg_catalog.= (integer, bigint),
    OPERATOR 1 pg_catalog.= (integer, integer),
    FUNCTION 1 pg_catalog.hashint8(bigint),
    FUNCTION 2 snowflake_shard_hash_postgres(bigint, bigint),
    FUNCTION 1 (integer, integer) pg_catalog.hashint4(integer),
    FUNCTION 2 (integer, integer) snowflake_shard_hash_postgres(integer, bigint);

COMMENT ON OPERATOR CLASS snowflake_shard_ops_postgres USING hash IS
'partitioning by the shard of an ID in layout postgres: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_postgres USING hash IS 'partitioning by the shard of an ID in layout postgres';

-- PARALLEL UNSAFE, because it sees metadata that the calling statement does not.
CREATE FUNCTION snowflake_citus_ranges(table_name regclass)
RETURNS int8multirange
LANGUAGE c STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_citus_ranges_wrapper';

COMMENT ON FUNCTION snowflake_citus_ranges(regclass) IS
'hash ranges of the shards of a distributed table on this Citus node; all hashes if the node has no shard of it';

ALTER VIEW snowflake_columns RENAME COLUMN tab TO table_name;
ALTER VIEW snowflake_columns RENAME COLUMN col TO column_name;
ALTER VIEW snowflake_columns RENAME COLUMN ends TO ends_at;
ALTER VIEW snowflake_columns RENAME COLUMN fault TO error;

-- Not STRICT: the sequence and the shard may be unknown.
CREATE FUNCTION snowflake_citus_error(
    table_name regclass, sequence regclass, shard_id integer, shard_from_setting boolean)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_citus_error_wrapper';

COMMENT ON FUNCTION snowflake_citus_error(regclass, regclass, integer, boolean) IS
'reason why a column default returns duplicates or fails under Citus; used by snowflake_columns';

-- Whoever reads the view calls it, also where default privileges withhold EXECUTE on new functions.
GRANT EXECUTE ON FUNCTION snowflake_citus_error(regclass, regclass, integer, boolean) TO PUBLIC;

-- Which operators the view of 0.1.0 calls depends on the search path of its creation.
CREATE OR REPLACE VIEW snowflake_columns AS
WITH generating AS (
    SELECT DISTINCT classid, objid
    FROM pg_catalog.pg_depend
    WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
        AND refobjid OPERATOR(pg_catalog.=) ANY (ARRAY[
            'snowflake_nextval(pg_catalog.regclass)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval(pg_catalog.regclass, pg_catalog.int4, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval_homed(pg_catalog.regclass, pg_catalog.int4, pg_catalog.int4, snowflake_layout, pg_catalog.int4)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval_homed(pg_catalog.regclass, pg_catalog.int4, pg_catalog.int8multirange, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid])
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
)
SELECT c.oid::pg_catalog.regclass AS table_name,
    a.attname AS column_name,
    call.function,
    call.sequence,
    call.shard_id,
    call.shard_from_setting,
    call.layout,
    call.last_id_at,
    call.lead,
    call.ids_left,
    call.ends_at,
    COALESCE(
        call.error,
        snowflake_citus_error(
            c.oid::pg_catalog.regclass,
            call.sequence,
            call.shard_id,
            call.shard_from_setting)) AS error
FROM generating_columns AS g
JOIN pg_catalog.pg_class AS c ON g.relid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_attribute AS a
    ON g.relid OPERATOR(pg_catalog.=) a.attrelid AND g.attnum OPERATOR(pg_catalog.=) a.attnum
CROSS JOIN LATERAL snowflake_generator_calls(g.expression) AS call
WHERE NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace);

-- The descriptions of this version.
COMMENT ON FUNCTION snowflake_convert_column(regclass, name, integer, snowflake_layout, boolean) IS
'converts a serial, identity or plain integer column to one that generates IDs, and returns its sequence';
COMMENT ON FUNCTION snowflake_decode(bigint, snowflake_layout) IS 'time, shard and counter bits of an ID';
COMMENT ON FUNCTION snowflake_created_at(bigint, snowflake_layout) IS 'time at which an ID was generated';
COMMENT ON FUNCTION snowflake_shard_id(bigint, snowflake_layout) IS 'shard that an ID was generated for';
COMMENT ON FUNCTION snowflake_seq(bigint, snowflake_layout) IS 'counter bits of an ID';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, snowflake_layout) IS
'ID composed of a time, a shard and counter bits';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, snowflake_layout) IS 'smallest ID at or after a time';
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, snowflake_layout) IS
'whether an ID was generated at or after one time and before another; can use an index on the ID';
COMMENT ON FUNCTION snowflake_explain(bigint, snowflake_layout) IS 'diagram of the bits of an ID';
COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'encodes an ID as 13 characters of Crockford''s base 32, which sort in the order of the IDs';
COMMENT ON FUNCTION snowflake_from_base32(text) IS 'decodes an ID from 13 characters of Crockford''s base 32';
COMMENT ON FUNCTION snowflake_to_uuid(bigint, snowflake_layout) IS
'converts an ID to a version 7 UUID of the same time and order';
COMMENT ON FUNCTION snowflake_from_uuid(uuid, snowflake_layout) IS 'ID contained in a UUID of snowflake_to_uuid()';
COMMENT ON TYPE snowflake_layout IS
'layout of the bits of an ID: the name of a preset, or ''time:41 shard:13 seq:10 epoch:2024-01-01 unit:1ms''';
COMMENT ON OPERATOR = (snowflake_layout, snowflake_layout) IS 'equal';
COMMENT ON OPERATOR <> (snowflake_layout, snowflake_layout) IS 'not equal';
COMMENT ON FUNCTION snowflake_layout_info(snowflake_layout) IS
'properties of a layout: field widths, time range, number of shards, IDs per second of one sequence, and distinct folds';
COMMENT ON VIEW snowflake_layouts IS 'preset layouts';
COMMENT ON FUNCTION snowflake_nextval(regclass, integer, snowflake_layout) IS 'next ID of a shard from a sequence';
COMMENT ON FUNCTION snowflake_nextval(regclass) IS
'next ID of this database''s shard from a sequence';
COMMENT ON FUNCTION snowflake_nextvals(regclass, integer, integer, snowflake_layout) IS
'next IDs of a shard from a sequence, in increasing order';
COMMENT ON FUNCTION snowflake_currval(regclass) IS 'last ID that this session generated from a sequence';
COMMENT ON FUNCTION snowflake_current_shard() IS
'shard ID of this database: pg_snowflake.shard_id, else the shard that the registry of leases assigned, else the node''s group in Citus';
COMMENT ON TYPE snowflake IS 'ID: a bigint in storage, order, indexes and arithmetic, and a string in JSON';
COMMENT ON CAST (snowflake AS bigint) IS 'converts an ID to bigint';
COMMENT ON CAST (bigint AS snowflake) IS 'converts a bigint to an ID';
COMMENT ON FUNCTION snowflake(smallint) IS 'converts a smallint to an ID';
COMMENT ON CAST (smallint AS snowflake) IS 'converts a smallint to an ID';
COMMENT ON FUNCTION snowflake(integer) IS 'converts an integer to an ID';
COMMENT ON CAST (integer AS snowflake) IS 'converts an integer to an ID';
COMMENT ON FUNCTION snowflake_clock() IS
'clock of this session: current reading, highest reading and observed steps';
COMMENT ON FUNCTION snowflake_sequence_status(regclass, snowflake_layout) IS
'time of the last ID, lead over the clock, IDs left, and current error of a sequence';
COMMENT ON FUNCTION snowflake_generator_calls(pg_node_tree) IS
'calls of functions that generate IDs in a stored expression; used by snowflake_columns';
COMMENT ON VIEW snowflake_columns IS
'columns whose default generates IDs, and the status of their sequences; one row for each call in a default';
COMMENT ON COLUMN snowflake_columns.table_name IS 'table, partition, foreign table or view';
COMMENT ON COLUMN snowflake_columns.column_name IS 'column';
COMMENT ON COLUMN snowflake_columns.function IS 'function called by the default of the column or its domain';
COMMENT ON COLUMN snowflake_columns.sequence IS 'sequence; null unless the call names it by a constant';
COMMENT ON COLUMN snowflake_columns.shard_id IS
'shard; null if it is not a constant, or if the call uses the shard of the database and the database has no shard';
COMMENT ON COLUMN snowflake_columns.shard_from_setting IS 'whether the call uses the shard of the database, which snowflake_current_shard() returns';
COMMENT ON COLUMN snowflake_columns.layout IS 'layout; null if it is not a constant';
COMMENT ON COLUMN snowflake_columns.last_id_at IS
'time of the last ID of the sequence; null if it has not generated one, or if the privilege to read it is missing';
COMMENT ON COLUMN snowflake_columns.ids_left IS
'number of IDs up to the end of the layout or the MAXVALUE of the sequence';
COMMENT ON COLUMN snowflake_columns.ends_at IS 'time at which the layout ends';
COMMENT ON COLUMN snowflake_columns.error IS
'error that an INSERT would raise now, ignoring missing privileges, read-only transactions and standbys; or the error that the default causes on other nodes of Citus; or the reason why the row is incomplete';
COMMENT ON FUNCTION snowflake_locate(regclass, bigint, snowflake_layout) IS
'partition of a table that contains an ID, and its server if the partition is a foreign table';
COMMENT ON OPERATOR CLASS snowflake_shard_ops USING hash IS
'partitioning by the shard of an ID in layout instagram: remainder = shard mod modulus';
COMMENT ON OPERATOR CLASS snowflake_shard_ops_twitter USING hash IS
'partitioning by the shard of an ID in layout twitter, or another with 10 shard bits above 12: remainder = shard mod modulus';
COMMENT ON OPERATOR CLASS snowflake_shard_ops_sonyflake USING hash IS
'partitioning by the shard of an ID in layout sonyflake: remainder = shard mod modulus';
COMMENT ON OPERATOR CLASS snowflake_shard_ops_js53 USING hash IS
'partitioning by the shard of an ID in layout js53: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops USING hash IS 'partitioning by the shard of an ID in layout instagram';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_twitter USING hash IS
'partitioning by the shard of an ID in layout twitter, or another with 10 shard bits above 12';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_sonyflake USING hash IS
'partitioning by the shard of an ID in layout sonyflake';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_js53 USING hash IS 'partitioning by the shard of an ID in layout js53';

-- The registry of leases, as in a fresh installation.
-- The row is made at the first call, not here: a restored dump brings the row of the registry that was dumped.
CREATE TABLE snowflake_registry (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    id uuid NOT NULL,
    server text NOT NULL,
    timeline text NOT NULL,
    storage text NOT NULL,
    started_at timestamptz NOT NULL,
    quiet_until timestamptz NOT NULL,
    longest_lease interval NOT NULL);

COMMENT ON TABLE snowflake_registry IS
'identity of the registry of leases; one row, created by the first call of snowflake_lease() or snowflake_take_over()';
COMMENT ON COLUMN snowflake_registry.single IS 'true';
COMMENT ON COLUMN snowflake_registry.id IS 'identifies the registry, also after a restore';
COMMENT ON COLUMN snowflake_registry.server IS 'system identifier of the server at the last call';
COMMENT ON COLUMN snowflake_registry.timeline IS 'timeline of the server at the last call';
COMMENT ON COLUMN snowflake_registry.storage IS 'file of snowflake_lease_rows at the last call';
COMMENT ON COLUMN snowflake_registry.started_at IS 'start of the server at the last call';
COMMENT ON COLUMN snowflake_registry.quiet_until IS
'earliest start of new spans; a registry that was restarted, restored or failed over may have lost leases';
COMMENT ON COLUMN snowflake_registry.longest_lease IS 'longest lease that a server has requested';

CREATE TABLE snowflake_lease_rows (
    shard_id integer PRIMARY KEY CHECK (shard_id OPERATOR(pg_catalog.>=) 0),
    node text NOT NULL,
    incarnation uuid,
    serial bigint NOT NULL,
    nonce uuid,
    starts timestamptz NOT NULL,
    ends timestamptz NOT NULL,
    released boolean NOT NULL,
    barred uuid,
    renewed_at timestamptz NOT NULL);

COMMENT ON TABLE snowflake_lease_rows IS 'the lease of each shard; see snowflake_leases';
COMMENT ON COLUMN snowflake_lease_rows.shard_id IS 'shard';
COMMENT ON COLUMN snowflake_lease_rows.node IS 'server that holds the lease, held it last, or has it reserved';
COMMENT ON COLUMN snowflake_lease_rows.incarnation IS 'run of that server; null if the lease is reserved';
COMMENT ON COLUMN snowflake_lease_rows.serial IS 'increased by each change of the row';
COMMENT ON COLUMN snowflake_lease_rows.nonce IS 'last request that was granted';
COMMENT ON COLUMN snowflake_lease_rows.starts IS 'start of the span of ID time';
COMMENT ON COLUMN snowflake_lease_rows.ends IS 'end of the span, exclusive';
COMMENT ON COLUMN snowflake_lease_rows.released IS 'whether the holder has released the lease';
COMMENT ON COLUMN snowflake_lease_rows.barred IS 'run of a server from which snowflake_take_over() took the lease';
COMMENT ON COLUMN snowflake_lease_rows.renewed_at IS 'time of the last grant, by the clock of the registry';

SELECT pg_catalog.pg_extension_config_dump('snowflake_registry', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_lease_rows', '');

-- The functions run as their owner, a superuser. With core's search path alone, they resolve no other names.
CREATE FUNCTION snowflake_lease(
    shard_ids integer[],
    node text,
    incarnation uuid,
    serials bigint[],
    nonce uuid,
    until timestamptz,
    length interval,
    OUT shard_id integer,
    OUT granted boolean,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT serial bigint,
    OUT reason text,
    OUT registry uuid,
    OUT server text,
    OUT read_at timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_lease_wrapper';

COMMENT ON FUNCTION snowflake_lease(integer[], text, uuid, bigint[], uuid, timestamptz, interval) IS
'grants or renews the leases of shards, or assigns a shard if none is passed; called by servers';

CREATE FUNCTION snowflake_release(incarnation uuid, shard_ids integer[], serials bigint[], mark timestamptz)
RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_release_wrapper';

COMMENT ON FUNCTION snowflake_release(uuid, integer[], bigint[], timestamptz) IS
'releases leases, and returns their number; called by servers that stop';

CREATE FUNCTION snowflake_take_over(shard_id integer, node text)
RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'snowflake_take_over_wrapper';

COMMENT ON FUNCTION snowflake_take_over(integer, text) IS
'reserves a shard for a node, ends the renewals of its holder, and returns when the node can begin';

CREATE VIEW snowflake_leases AS
SELECT shard_id, node, starts, ends,
    CASE
        WHEN incarnation IS NULL THEN 'reserved'
        WHEN released THEN 'released'
        WHEN ends OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp() THEN 'ended'
        ELSE 'held'
    END AS state,
    renewed_at, incarnation, serial
FROM snowflake_lease_rows;

COMMENT ON VIEW snowflake_leases IS 'the lease of each shard: its node, its span of ID time, and its state';
COMMENT ON COLUMN snowflake_leases.shard_id IS 'shard';
COMMENT ON COLUMN snowflake_leases.node IS 'server that holds the lease, held it last, or has it reserved';
COMMENT ON COLUMN snowflake_leases.starts IS 'start of the span of ID time';
COMMENT ON COLUMN snowflake_leases.ends IS 'end of the span, exclusive';
COMMENT ON COLUMN snowflake_leases.state IS 'held, ended, released, or reserved for the node by snowflake_take_over()';
COMMENT ON COLUMN snowflake_leases.renewed_at IS 'time of the last grant, by the clock of the registry';
COMMENT ON COLUMN snowflake_leases.incarnation IS 'run of the server; null if the lease is reserved';
COMMENT ON COLUMN snowflake_leases.serial IS 'increased by each change of the lease';

REVOKE ALL ON FUNCTION snowflake_lease(integer[], text, uuid, bigint[], uuid, timestamptz, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION snowflake_release(uuid, integer[], bigint[], timestamptz) FROM PUBLIC;
REVOKE ALL ON FUNCTION snowflake_take_over(integer, text) FROM PUBLIC;
REVOKE ALL ON snowflake_registry, snowflake_lease_rows, snowflake_leases FROM PUBLIC;

-- pg_dump reads these tables as the role that dumps the database, and a restore writes them as the role that creates the extension.
-- Without these rights, an owner who is not a superuser could do neither, even if the registry is not used.
GRANT SELECT ON snowflake_registry, snowflake_lease_rows TO PUBLIC;
GRANT INSERT ON snowflake_registry, snowflake_lease_rows TO @extowner@;

-- The leases of this server.

CREATE FUNCTION snowflake_lease_status(
    OUT shard_id integer,
    OUT node text,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT remaining interval,
    OUT state text,
    OUT incarnation uuid,
    OUT last_answer_at timestamptz,
    OUT registry_error text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_lease_status_wrapper';

COMMENT ON FUNCTION snowflake_lease_status() IS
'leases of this server, one row for each shard; no row if pg_snowflake.registry is not set';

-- The errors name hosts and users of the registry.
REVOKE ALL ON FUNCTION snowflake_lease_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_lease_status() TO pg_monitor;

-- Partitions by time of a table that is partitioned by RANGE of its IDs.

-- With core's search path alone, the functions resolve no other names. If row security would hide rows of the default partition,
-- the query fails instead of missing them.
CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    step interval,
    ahead integer DEFAULT 4,
    layout snowflake_layout DEFAULT NULL,
    OUT table_name regclass,
    OUT partition text,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT action text,
    OUT message text)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_create_partitions_wrapper';

COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, integer, snowflake_layout) IS
'creates the partitions of a table by time for now and the next steps, and reports them, gaps and the default partition';

CREATE FUNCTION snowflake_drop_partitions(
    parent regclass,
    older_than interval,
    detach_only boolean DEFAULT false,
    layout snowflake_layout DEFAULT NULL,
    OUT table_name regclass,
    OUT partition text,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT action text,
    OUT message text)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_drop_partitions_wrapper';

COMMENT ON FUNCTION snowflake_drop_partitions(regclass, interval, boolean, snowflake_layout) IS
'drops or detaches the partitions of a table that are proved to be older than an interval, and reports them and the others';
