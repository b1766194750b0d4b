-- The leases of this server.

CREATE FUNCTION snowflake_lease_mode() RETURNS text
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_lease_mode_wrapper';

COMMENT ON FUNCTION snowflake_lease_mode() IS
'whether this server generates IDs only with leases: on, off, pending_restart or not_preloaded';

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

CREATE FUNCTION snowflake_forget_registry() RETURNS boolean
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_forget_registry_wrapper';

COMMENT ON FUNCTION snowflake_forget_registry() IS
'lets this server use another registry than the one that it has used, and returns whether it has used one';

REVOKE ALL ON FUNCTION snowflake_forget_registry() FROM PUBLIC;
