//! The shards that a server may generate IDs for, its host name, its settings, its library, and the transaction.

use super::table::messages;

messages! {
    runbooks {
        shard_out_of_range(shard, layout, highest, hint) "22023" "shard ID {shard} is out of range for layout \"{layout}\""
            detail "The layout has shard IDs from 0 to {highest}."
            hint "{hint}";
        shard_unset(function, command) "55000" "pg_snowflake.shard_id is not set"
            detail "The call names no shard, and this database has no shard ID."
            hint "Pass a shard ID to {function}(), or have a superuser run this command with a number that no other server uses, and \
                  reconnect: {command}";
        shard_unset_on_node(function) "55000" "pg_snowflake.shard_id is not set"
            detail "The call names no shard, this database has no shard ID, and this server is not a node of Citus. \
                    citus_set_coordinator_host() makes it the coordinator, and citus_add_node() a worker."
            hint "Make this server a node of Citus first. If it is not meant to be a node, pass a shard ID that no node has to \
                  {function}().";
        host_not_allowed(host, allowed, hint) "55000" "host {host} is not allowed to generate IDs"
            detail "pg_snowflake.allowed_hosts is \"{allowed}\". This server is likely a copy of one of these hosts, from a snapshot or a \
                    base backup. Two servers that generate IDs for the same shard return duplicates."
            hint "{hint}";
        shard_not_owned(shard, owned, hint) "55000" "shard {shard} is not owned by this server"
            detail "pg_snowflake.owned_shards is \"{owned}\". Two servers that generate IDs for the same shard return duplicates."
            hint "{hint}";
        class_not_owned(shard, class, owned, query) "55000" "shard {shard} is not owned by this server"
            detail "{class} pg_snowflake.owned_shards is \"{owned}\". Two servers that generate IDs for the same shard return duplicates."
            hint "If the call is a column default that was restored from a dump, change its shard. If no other server generates IDs for \
                  these shards, set pg_snowflake.owned_shards to a list with them: {query}";
        invalid_value(setting, value, why, cure, command) "55000" "cannot generate IDs because {setting} has an invalid value"
            detail "The value is \"{value}\". {why}"
            hint "{cure} {command}";
        value_lost(setting) "55000" "cannot generate IDs because the value of {setting} was lost"
            detail "When this session loaded the library, PostgreSQL had too little memory for the value."
            hint "Reconnect, or add pg_snowflake to shared_preload_libraries.";
        setting_masked(setting) "42501" "cannot generate IDs because connection options set {setting}"
            detail "The role lacks permission to set this parameter, it cannot be set there, or the value is invalid. The attempt masks \
                    the server's value in this session."
            hint "Remove the setting from the client's connection options (PGOPTIONS, \"options\"), the database or the role, and \
                  reconnect.";
        unrecognized_parameter(name, place, hint) "42704" "unrecognized configuration parameter {name}"
            detail "It is set {place}. pg_snowflake cannot be loaded, because the parameter may be meant to forbid IDs."
            hint "{hint}";
        unrecognized_at_start(name, place, hint) "42704" "unrecognized configuration parameter {name}"
            detail "It is set {place}. The server generates no IDs, because the parameter may be meant to forbid them."
            hint "{hint}";
        loaded_in_parallel() "25000" "cannot load pg_snowflake during a parallel operation"
            detail "This minor release of PostgreSQL would drop the values of its parameters."
            hint "Update PostgreSQL to its latest minor release, or add pg_snowflake to session_preload_libraries.";
        during_recovery(function, only) "25006" "cannot execute {function}() during recovery"
            detail "This server is a standby. {only}"
            hint "Run it on the primary. A proxy that sends queries to standbys must send this one to the primary.";
        read_only(function) "25006" "cannot execute {function}() in a read-only transaction"
            hint "Start the transaction with BEGIN READ WRITE.";
        parallel_mode(function) "25000" "cannot execute {function}() during a parallel operation"
            hint "Mark every function that calls {function}() as PARALLEL UNSAFE.";
        out_of_memory(bytes) "53200" "out of memory"
            detail "Failed on request of size {bytes}.";
        wrong_version(declared, library, returned) "42804" "pg_snowflake library is incompatible with the installed extension version"
            detail "The function is declared with {declared} result columns, but library version {library} returns {returned}."
            hint "Install the library of the version in pg_extension.extversion. Or install a newer one and run: ALTER EXTENSION \
                  pg_snowflake UPDATE;";
    }
    others {
        not_read_committed(function, why) "25000" "cannot execute {function}() in a REPEATABLE READ or SERIALIZABLE transaction"
            detail "{why}"
            hint "Start the transaction with BEGIN ISOLATION LEVEL READ COMMITTED.";
        no_random_values() "XX000" "could not generate random values";
        same_shard_on_nodes() "00000" "shard is the same on every node of Citus"
            detail "Several nodes evaluate the default, and two nodes that generate IDs for the same shard return duplicates.";
        same_setting_on_nodes() "00000" "pg_snowflake.shard_id is the same on every node of Citus"
            detail "Citus copies what ALTER DATABASE and ALTER ROLE set to every node, and two nodes that generate IDs for the same shard \
                    return duplicates.";
        distributed_sequence() "00000" "sequence is distributed by Citus"
            detail "On the workers, Citus assigns it a range of its own, in which no IDs fit.";
    }
    sentences {
        // A session that has not loaded the library does not know the setting. Patroni sets parameters itself, on all members.
        set_on_this_server(parameter, value)
            "LOAD 'pg_snowflake'; ALTER SYSTEM SET {parameter} = {value}; SELECT pg_reload_conf(); Under Patroni, use patronictl \
             edit-config instead.";
        set_shard_in_range() "Set pg_snowflake.shard_id to a shard ID in that range.";
        pass_shard_in_range() "Pass a shard ID in that range.";
        group_not_in_range(command)
            "This server's group in Citus is not in that range. On each node, have a superuser run this command with a different number: \
             {command}";
        if_host_replaced(command)
            "If this server has replaced them, and they no longer generate IDs: {command} If one of them still generates IDs, assign this \
             server its own shards first.";
        rename_host(why) "{why} Give this server another name, and restart it.";
        if_shard_moved(shard, command)
            "If shard {shard} has moved to this server, and its old server no longer generates IDs for it: {command}";
        shard_of_argument_on_node(recipe, if_moved)
            "If the call is a column default, Citus evaluates it on every node, so it must not name a shard. {recipe} {if_moved}";
        shard_of_argument(owned, if_moved)
            "If the call is a column default that was restored from a dump, change its shard: ALTER TABLE ... ALTER COLUMN ... SET DEFAULT \
             snowflake_nextval(..., {owned}); {if_moved}";
        shard_of(origin, command, if_moved) "{origin} If it is wrong, run this and reconnect: {command} {if_moved}";
        of_setting() "The shard is the value of pg_snowflake.shard_id.";
        of_registry() "The registry of leases has assigned the shard.";
        of_group() "The shard is this node's group in Citus, because pg_snowflake.shard_id is not set.";
        homed_shards(first, last, step) "These homed IDs have any shard from {first} to {last} in steps of {step}.";
        parameters_are(names) "The parameters are {names}.";
        parameter_meant(name) "Perhaps you meant the parameter {name}.";
    }
}
