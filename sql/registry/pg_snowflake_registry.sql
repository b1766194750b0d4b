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

-- Each renewal writes all rows of a node. With room for them on their pages, the updates are HOT, and the table stays small.
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
    renewed_at timestamptz NOT NULL,
    former_end timestamptz NOT NULL,
    kept_until timestamptz NOT NULL,
    known_serial bigint,
    address text,
    started_at timestamptz,
    copy_address text,
    copy_started_at timestamptz,
    copy_seen_at timestamptz)
    WITH (fillfactor = 40);

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
COMMENT ON COLUMN snowflake_registry.shards.former_end IS
'end of the span before this one, or of the quiet time in which this one was granted';
COMMENT ON COLUMN snowflake_registry.shards.kept_until IS
'until when only the server that held the lease last can claim it, once it has ended or was released';
COMMENT ON COLUMN snowflake_registry.shards.known_serial IS 'serial that the data directory of the server had when it claimed the lease';
COMMENT ON COLUMN snowflake_registry.shards.address IS 'client address of the server; empty for a Unix-domain socket';
COMMENT ON COLUMN snowflake_registry.shards.started_at IS 'start of the server; null if it is not known';
COMMENT ON COLUMN snowflake_registry.shards.copy_address IS 'client address of another server with this name that was refused';
COMMENT ON COLUMN snowflake_registry.shards.copy_started_at IS 'start of that server';
COMMENT ON COLUMN snowflake_registry.shards.copy_seen_at IS 'time of its last claim';

CREATE TABLE snowflake_registry.nodes (
    node text PRIMARY KEY,
    role name,
    lost_serial bigint NOT NULL DEFAULT 0);

COMMENT ON TABLE snowflake_registry.nodes IS 'the role of each node: no other role can claim or release leases as the node';
COMMENT ON COLUMN snowflake_registry.nodes.node IS 'server';
COMMENT ON COLUMN snowflake_registry.nodes.role IS 'role that was the first to claim a lease as the node; null if the node was retired';
COMMENT ON COLUMN snowflake_registry.nodes.lost_serial IS
'highest serial that the node had seen and the registry had lost; 0 if it has lost none';

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
    known_shard_ids integer[] DEFAULT NULL,
    known_serials bigint[] DEFAULT NULL,
    started_at timestamptz DEFAULT NULL,
    OUT shard_id integer,
    OUT granted boolean,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT serial bigint,
    OUT reason text,
    OUT other_server text,
    OUT registry uuid,
    OUT server text,
    OUT read_at timestamptz,
    OUT retry_at timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'registry_claim_wrapper';

COMMENT ON FUNCTION snowflake_registry.claim(integer[], text, uuid, bigint[], uuid, timestamptz, interval, integer[], bigint[],
    timestamptz) IS
'grants or renews the leases of shards, or assigns a shard if none is passed; called by servers';

CREATE FUNCTION snowflake_registry.release(
    incarnation uuid,
    shard_ids integer[],
    serials bigint[],
    mark timestamptz,
    keep boolean DEFAULT false)
RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'registry_release_wrapper';

COMMENT ON FUNCTION snowflake_registry.release(uuid, integer[], bigint[], timestamptz, boolean) IS
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

CREATE FUNCTION snowflake_registry.end_quiet_time()
RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'registry_end_quiet_time_wrapper';

COMMENT ON FUNCTION snowflake_registry.end_quiet_time() IS
'shortens a quiet time that began while the clock of the registry was ahead, and returns its end';

-- A restore that goes back behind leases that servers hold would repeat IDs. A dump can be restored into a registry that has not been
-- called yet.
CREATE FUNCTION snowflake_registry.is_own_change()
RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE STRICT
AS 'MODULE_PATHNAME', 'registry_is_own_change_wrapper';

COMMENT ON FUNCTION snowflake_registry.is_own_change() IS
'whether a function of the registry is changing its tables; called by their triggers';

CREATE FUNCTION snowflake_registry.refuse_change()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The first call of a function after a restore stores this server and this file. A file on another server can have the same name.
    IF TG_OP = 'INSERT' AND NOT EXISTS (
        SELECT FROM snowflake_registry.identity
        WHERE storage = pg_relation_filepath('snowflake_registry.shards')
            AND server = (SELECT system_identifier::text FROM pg_control_system())) THEN
        RETURN NULL;
    END IF;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('cannot change table "%s" of the registry', TG_TABLE_NAME),
        DETAIL = 'Servers may hold leases that the change would forget. They and others would generate the same IDs.',
        HINT = 'Call snowflake_registry.take_over(), retire() or end_quiet_time(). Restore a dump into a new database, or after DROP '
            'EXTENSION pg_snowflake_registry.';
END
$$;

COMMENT ON FUNCTION snowflake_registry.refuse_change() IS
'trigger function that refuses changes of the registry by others than its functions';

CREATE TRIGGER refuse_change BEFORE INSERT OR UPDATE OR DELETE ON snowflake_registry.shards
FOR EACH STATEMENT WHEN (NOT snowflake_registry.is_own_change()) EXECUTE FUNCTION snowflake_registry.refuse_change();

CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON snowflake_registry.shards
FOR EACH STATEMENT EXECUTE FUNCTION snowflake_registry.refuse_change();

-- All but longest_lease. Of the nodes, a person may add a row, and change the role.
CREATE TRIGGER refuse_change
BEFORE INSERT OR UPDATE OF single, id, server, timeline, storage, started_at, quiet_until OR DELETE
ON snowflake_registry.identity
FOR EACH STATEMENT WHEN (NOT snowflake_registry.is_own_change()) EXECUTE FUNCTION snowflake_registry.refuse_change();

CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON snowflake_registry.identity
FOR EACH STATEMENT EXECUTE FUNCTION snowflake_registry.refuse_change();

CREATE TRIGGER refuse_change BEFORE UPDATE OF node, lost_serial OR DELETE ON snowflake_registry.nodes
FOR EACH STATEMENT WHEN (NOT snowflake_registry.is_own_change()) EXECUTE FUNCTION snowflake_registry.refuse_change();

CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON snowflake_registry.nodes
FOR EACH STATEMENT EXECUTE FUNCTION snowflake_registry.refuse_change();

-- Also where session_replication_role is replica.
ALTER TABLE snowflake_registry.shards ENABLE ALWAYS TRIGGER refuse_change, ENABLE ALWAYS TRIGGER refuse_truncate;
ALTER TABLE snowflake_registry.identity ENABLE ALWAYS TRIGGER refuse_change, ENABLE ALWAYS TRIGGER refuse_truncate;
ALTER TABLE snowflake_registry.nodes ENABLE ALWAYS TRIGGER refuse_change, ENABLE ALWAYS TRIGGER refuse_truncate;

-- Default privileges may have granted some to PUBLIC or to roles. TRIGGER on a table is enough to run a function as its owner.
DO $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN SELECT 'PUBLIC' UNION ALL SELECT quote_ident(rolname) FROM pg_roles WHERE rolname <> current_user LOOP
        BEGIN
            EXECUTE 'REVOKE ALL ON SCHEMA snowflake_registry FROM ' || grantee;
            EXECUTE 'REVOKE ALL ON ALL TABLES IN SCHEMA snowflake_registry FROM ' || grantee;
            EXECUTE 'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM ' || grantee;
        EXCEPTION WHEN undefined_object THEN
            -- The role has been dropped meanwhile, so it has no privilege.
        END;
    END LOOP;
END
$$;
