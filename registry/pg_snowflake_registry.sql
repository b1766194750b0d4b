-- The registry of leases: which server generates IDs for which shard, in which span of ID time.

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_snowflake_registry" to load this file. \quit

-- Fails if the schema exists: its owner could put other tables in place of these.
CREATE SCHEMA snowflake_registry;

COMMENT ON SCHEMA snowflake_registry IS 'registry of the leases by which servers generate Snowflake IDs';

-- The row is made at the first call, not here: a restored dump brings the row of the registry that was dumped.
CREATE TABLE snowflake_registry.identity (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    id uuid NOT NULL,
    server text NOT NULL,
    timeline text NOT NULL,
    storage text NOT NULL,
    started_at timestamptz NOT NULL,
    quiet_until timestamptz NOT NULL,
    longest_lease interval NOT NULL);

COMMENT ON TABLE snowflake_registry.identity IS
'identity of the registry; one row, created by the first call of claim() or take_over()';
COMMENT ON COLUMN snowflake_registry.identity.single IS 'true';
COMMENT ON COLUMN snowflake_registry.identity.id IS 'identifies the registry, also after a restore';
COMMENT ON COLUMN snowflake_registry.identity.server IS 'system identifier of the server at the last call';
COMMENT ON COLUMN snowflake_registry.identity.timeline IS 'timeline of the server at the last call';
COMMENT ON COLUMN snowflake_registry.identity.storage IS 'file of the table shards at the last call';
COMMENT ON COLUMN snowflake_registry.identity.started_at IS 'start of the server at the last call';
COMMENT ON COLUMN snowflake_registry.identity.quiet_until IS
'earliest start of new spans; a registry that was restarted, restored or failed over may have lost leases';
COMMENT ON COLUMN snowflake_registry.identity.longest_lease IS 'longest lease that a server has requested';

CREATE TABLE snowflake_registry.shards (
    shard_id integer PRIMARY KEY CHECK (shard_id >= 0),
    node text NOT NULL,
    incarnation uuid,
    serial bigint NOT NULL,
    nonce uuid,
    starts timestamptz NOT NULL,
    ends timestamptz NOT NULL,
    released boolean NOT NULL,
    barred uuid,
    renewed_at timestamptz NOT NULL);

COMMENT ON TABLE snowflake_registry.shards IS 'the lease of each shard, with what only its holder may know; see the view leases';
COMMENT ON COLUMN snowflake_registry.shards.shard_id IS 'shard';
COMMENT ON COLUMN snowflake_registry.shards.node IS 'server that holds the lease, held it last, or has it reserved; empty if it was retired';
COMMENT ON COLUMN snowflake_registry.shards.incarnation IS 'run of that server; null if the lease is reserved';
COMMENT ON COLUMN snowflake_registry.shards.serial IS 'increased by each change of the row';
COMMENT ON COLUMN snowflake_registry.shards.nonce IS 'last request that was granted';
COMMENT ON COLUMN snowflake_registry.shards.starts IS 'start of the span of ID time';
COMMENT ON COLUMN snowflake_registry.shards.ends IS 'end of the span, exclusive';
COMMENT ON COLUMN snowflake_registry.shards.released IS 'whether the holder has released the lease';
COMMENT ON COLUMN snowflake_registry.shards.barred IS 'run of a server from which take_over() took the lease';
COMMENT ON COLUMN snowflake_registry.shards.renewed_at IS 'time of the last grant, by the clock of the registry';

CREATE TABLE snowflake_registry.nodes (
    node text PRIMARY KEY,
    role name NOT NULL);

COMMENT ON TABLE snowflake_registry.nodes IS 'the role of each node: no other role can claim or release leases as the node';
COMMENT ON COLUMN snowflake_registry.nodes.node IS 'server';
COMMENT ON COLUMN snowflake_registry.nodes.role IS 'role that was the first to claim a lease as the node';

SELECT pg_extension_config_dump('snowflake_registry.identity', '');
SELECT pg_extension_config_dump('snowflake_registry.nodes', '');
SELECT pg_extension_config_dump('snowflake_registry.shards', '');

CREATE VIEW snowflake_registry.leases AS
SELECT shard_id, nullif(node, '') AS node, starts, ends,
    CASE
        WHEN node = '' THEN 'retired'
        WHEN incarnation IS NULL THEN 'reserved'
        WHEN released THEN 'released'
        WHEN ends <= clock_timestamp() THEN 'ended'
        ELSE 'held'
    END AS state,
    renewed_at
FROM snowflake_registry.shards;

COMMENT ON VIEW snowflake_registry.leases IS 'the lease of each shard: its node, its span of ID time, and its state';
COMMENT ON COLUMN snowflake_registry.leases.shard_id IS 'shard';
COMMENT ON COLUMN snowflake_registry.leases.node IS 'server that holds the lease, held it last, or has it reserved; null if it was retired';
COMMENT ON COLUMN snowflake_registry.leases.starts IS 'start of the span of ID time';
COMMENT ON COLUMN snowflake_registry.leases.ends IS 'end of the span, exclusive';
COMMENT ON COLUMN snowflake_registry.leases.state IS 'held, ended, released, reserved for the node by take_over(), or retired';
COMMENT ON COLUMN snowflake_registry.leases.renewed_at IS 'time of the last grant, by the clock of the registry';

-- The functions run as their owner, a superuser. With core's search path alone, they resolve no other names.
CREATE FUNCTION snowflake_registry.id()
RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN (SELECT i.id FROM snowflake_registry.identity AS i);

COMMENT ON FUNCTION snowflake_registry.id() IS
'identity of the registry, or null before the first call of claim() or take_over(); called by servers';

CREATE FUNCTION snowflake_registry.claim(
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
AS 'MODULE_PATHNAME', 'registry_claim_wrapper';

COMMENT ON FUNCTION snowflake_registry.claim(integer[], text, uuid, bigint[], uuid, timestamptz, interval) IS
'grants or renews the leases of shards, or assigns a shard if none is passed; called by servers';

CREATE FUNCTION snowflake_registry.release(incarnation uuid, shard_ids integer[], serials bigint[], mark timestamptz)
RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'registry_release_wrapper';

COMMENT ON FUNCTION snowflake_registry.release(uuid, integer[], bigint[], timestamptz) IS
'releases leases, and returns their number; called by servers that stop';

CREATE FUNCTION snowflake_registry.take_over(shard_id integer, node text)
RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'registry_take_over_wrapper';

COMMENT ON FUNCTION snowflake_registry.take_over(integer, text) IS
'reserves a shard for a node, ends the renewals of its holder, and returns when the node can begin';

CREATE FUNCTION snowflake_registry.retire(node text, OUT shard_id integer, OUT free_at timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'registry_retire_wrapper';

COMMENT ON FUNCTION snowflake_registry.retire(text) IS
'takes its shards from a node that is gone, and returns when other nodes can have them';

-- Default privileges may have granted some to PUBLIC or to roles. TRIGGER on a table is enough to run a function as its owner.
DO $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN SELECT 'PUBLIC' UNION ALL SELECT quote_ident(rolname) FROM pg_roles WHERE rolname <> current_user LOOP
        EXECUTE 'REVOKE ALL ON SCHEMA snowflake_registry FROM ' || grantee;
        EXECUTE 'REVOKE ALL ON ALL TABLES IN SCHEMA snowflake_registry FROM ' || grantee;
        EXECUTE 'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM ' || grantee;
    END LOOP;
END
$$;
