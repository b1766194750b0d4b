-- The registry of leases: which server generates IDs for which shard, in which span of ID time.

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
