//! What the lease worker writes into the server log. The log has `pg_snowflake: ` before each problem.

use super::table::messages;

messages! {
    runbooks {
        invalid_conninfo(error) "55000" "pg_snowflake.registry is not a connection string"
            detail "{error}"
            hint "Correct it in the server's configuration, and restart the server.";
        no_answer(error) "55000" "no answer from the registry"
            detail "{error}"
            hint "Check that the registry is running and accepts connections of this server. See pg_snowflake.registry and the password \
                  file here, and pg_hba.conf there.";
        warning(warning) "55000" "registry's answer is ignored because of a warning"
            detail "{warning}"
            hint "Fix the cause in the registry, such as a synchronous standby that is down.";
        error(message, detail, hint) "55000" "registry reported an error: {message}"
            detail "{detail}"
            hint "{hint}";
        error_without_hint(message, detail) "55000" "registry reported an error: {message}"
            detail "{detail}"
            hint "If a privilege is missing, run in the registry's database, for the role of pg_snowflake.registry: GRANT USAGE ON SCHEMA \
                  snowflake_registry TO role; GRANT EXECUTE ON FUNCTION snowflake_registry.id, snowflake_registry.claim, \
                  snowflake_registry.release TO role;";
        standby_down(seconds) "55000" "registry waits for its synchronous standby"
            detail "An earlier request has waited for synchronous_standby_names for {seconds} s, and keeps the rows of its leases locked."
            hint "Start the standby. If that takes longer, remove it from synchronous_standby_names on the registry's server, and reload \
                  there.";
        no_extension() "55000" "registry does not have the extension pg_snowflake_registry"
            hint "In a new registry, run as a superuser, in the database that pg_snowflake.registry names: CREATE EXTENSION \
                  pg_snowflake_registry; If somebody has dropped the extension, restore the registry.";
        incompatible_version(of_registry, own) "55000" "registry has an incompatible version of pg_snowflake_registry"
            detail "The registry has {of_registry}, this server {own}. The registry lacks a function that this server calls, \
                    or a column of its result."
            hint "Install this server's version on the registry's server, and run in the registry's database: ALTER EXTENSION \
                  pg_snowflake_registry UPDATE;";
        unexpected_answer() "55000" "cannot read the registry's answer"
            hint "Install the same version of pg_snowflake on the registry and on this server.";
        own_registry() "55000" "registry is on this server or on a copy of it"
            detail "The system identifiers are equal. A copy of this server would also be a copy of the registry."
            hint "Use a database of another server, and restart this server.";
        other_registry(found, known) "55000" "registry is not the one that this server has used"
            detail "Its identity is {found}; this server has used {known}. Another registry may grant spans that have been used."
            hint "Correct pg_snowflake.registry. If all servers change to this registry, stop them, wait until their leases have ended, \
                  and call snowflake_forget_registry() on each.";
        unusable(error) "XX001" "cannot read or write what this server knows of its registry"
            detail "It is in the file global/9437 of the data directory: {error}"
            hint "Free space on the disk, or correct the permissions of the file. If it is damaged, pg_snowflake.registry is right, and the \
                  leases of this server have ended, stop the server, move the file away, and start the server.";
        foreign_host() "55000" "pg_snowflake.allowed_hosts does not allow this server to generate IDs"
            hint "If this server is a copy, leave the list as it is. Otherwise, add the host name to pg_snowflake.allowed_hosts.";
        too_many_shards(limit) "55000" "pg_snowflake.owned_shards lists too many shards for leases"
            detail "The limit is {limit}."
            hint "List only the shards that this server generates IDs for.";
        refused(shards, reasons) "55000" "registry refused the lease of {shards}"
            detail "{reasons}"
            hint "If this server is meant to have the shard, stop the holder, or call snowflake_registry.take_over() in the registry. \
                  Otherwise, remove the shard from the configuration of this server. A server whose shard is assigned needs a \
                  pg_snowflake.node of its own.";
        lost(shards, reasons) "55000" "lost the lease of {shards}"
            detail "{reasons}"
            hint "Find the cause: snowflake_registry.take_over() was called, the registry was restored from a backup, or a clone of this \
                  server's virtual machine is running. A clone with this server's memory may have repeated IDs.";
        copied(reasons) "55000" "a copy of this server is running"
            detail "{reasons}"
            hint "Stop the copy, or list other shards in its pg_snowflake.owned_shards. This server holds the leases.";
        granted(shards, begin) "00000" "pg_snowflake: holding the lease of {shards}"
            detail "{begin}";
        other_version(of_registry, own) "00000" "pg_snowflake: registry has another version of pg_snowflake_registry"
            detail "The registry has {of_registry}, this server {own}. Leases work."
            hint "Once the same version is installed everywhere, run in the registry's database: ALTER EXTENSION pg_snowflake_registry \
                  UPDATE;";
        ended(shards, error) "55000" "pg_snowflake: the lease of {shards} has ended"
            detail "{error}"
            hint "The server generates no IDs for it until the lease is renewed.";
    }
    sentences {
        spans_begin(at) "The spans begin at {at} at the latest, when the former ones or the registry's quiet time have ended.";
    }
}
