//! The functions of the registry of leases, and the reasons for which it refuses a lease.

use super::table::messages;

messages! {
    runbooks {
        wrong_clock(node, direction, reading, difference, now) "55000" "clock of node {node} is too far {direction} the registry's"
            detail "It reads {reading}, which is {difference} {direction} the registry's clock, {now}."
            hint "Correct the clock that is wrong, and keep both synchronized.";
        holds_a_lease(node, shard, ends) "55000" "node {node} holds the lease of shard {shard}"
            detail "The lease ends at {ends}, if the node does not renew it."
            hint "Stop the server. Then retire the node when its lease has ended.";
        quiet_time_goes_on(ends) "55000" "quiet time of the registry cannot end earlier"
            detail "It ends at {ends}. Until then, the registry may have lost leases that have not ended."
            hint "Wait until then. Servers that hold a lease renew it meanwhile.";
        quiet_time_after_wrong_clock(granted, now, ends) "55000" "quiet time of the registry cannot end earlier"
            detail "A lease was granted at {granted}, which is after now, {now}. The clock was ahead then, or is behind now."
            hint "Correct the registry's clock. If it is right now, wait until {ends}. Servers that hold a lease renew it meanwhile.";
        // The trigger in sql/registry/pg_snowflake_registry.sql raises it.
        table_changed(table) "55000" "cannot change table \"{table}\" of the registry"
            detail "Servers may hold leases that the change would forget. They and others would generate the same IDs."
            hint "Call snowflake_registry.take_over(), retire() or end_quiet_time(). Restore a dump into a new database, or after DROP \
                  EXTENSION pg_snowflake_registry.";
    }
    others {
        rolled_back(begin) "55000" "registry of leases was rolled back"
            detail "A server has seen a later state of its lease. New spans begin at {begin} at the earliest, when all leases that may be \
                    lost have ended."
            hint "Find out whether the registry was restored, or runs twice.";
        no_quiet_time(ended) "55000" "registry has no quiet time"
            detail "The last one ended at {ended}."
            hint "See the view snowflake_registry.leases for who has which shard.";
        no_free_shard(shards) "54000" "registry has no free shard number"
            detail "Each of the {shards} numbers of the default layout has a node."
            hint "Free the numbers of nodes that are gone, in the registry: SELECT * FROM snowflake_registry.retire('…');";
        node_of_another_role(node, role) "42501" "node {node} belongs to another role"
            detail "Role {role} was the first to claim a lease as this node."
            hint "Use another pg_snowflake.node. If the role was replaced, run in the registry: UPDATE snowflake_registry.nodes SET role = \
                  '…' WHERE node = '…';";
        no_such_node(node) "42704" "node {node} does not exist"
            detail "The registry has no lease of that node."
            hint "The view snowflake_registry.leases lists the nodes.";
        ordinary_owner(role) "55000" "registry of leases must be owned by a superuser"
            detail "Role {role} owns the schema snowflake_registry, or a table or view in it, and could run functions as its superuser."
            hint "As a superuser, run ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER, and the same for its tables and its view.";
        null_shard(name, serials) "22004" "{name} must not contain nulls"
            hint "Omit the element. In {serials}, a null means that the serial is not known.";
        not_one_dimensional(name, dimensions) "2202E" "{name} must be a one-dimensional array"
            detail "It has {dimensions} dimensions.";
        too_many_elements(name, elements, limit) "54000" "{name} has too many elements"
            detail "It has {elements}; the limit is {limit}.";
        different_lengths(shard_ids, serials, of_shard_ids, of_serials)
            "22023" "{shard_ids} and {serials} must have the same number of elements"
            detail "They have {of_shard_ids} and {of_serials}."
            hint "Pass a null in {serials} for each serial that is not known.";
        negative_shard(shard) "22023" "shard ID {shard} is out of range"
            detail "The lowest shard ID is 0.";
        duplicate_shard(name, shard) "22023" "{name} contains {shard} more than once"
            hint "Pass each shard ID once.";
        invalid_node(longest) "22023" "invalid node name"
            detail "A node name has 1 to {longest} bytes, and no control characters such as line feeds."
            hint "Set pg_snowflake.node on the server that calls.";
        infinite_end() "22023" "until must be finite"
            hint "Pass the time of the server's clock plus the length of the lease.";
        length_out_of_range(shortest, longest) "22023" "length of the lease is out of range"
            detail "The shortest lease is {shortest}, the longest {longest}."
            hint "Set pg_snowflake.lease on the server that calls.";
    }
    sentences {
        held_by_earlier_run(shard, node, until)
            "Shard {shard} is held by an earlier run or a copy of this server, node {node}, until {until}.";
        held_by(shard, node, until) "Shard {shard} is held by node {node} until {until}.";
        kept_for(shard, node, until) "Shard {shard} is kept for the server that held it last, node {node}, until {until}.";
        reserved_for(shard, node) "Shard {shard} is reserved for node {node}.";
        ends_later(shard, ends) "The span of the last holder of shard {shard} ends at {ends}.";
        taken_over(shard) "Shard {shard} was taken over from this server.";
        superseded(shard) "The lease of shard {shard} has changed since this server last renewed it.";
        copy_is_running(shard) "Another server with the name of this one claims shard {shard}, too.";
        two_servers(shard)
            "Two servers with the same data directory claim shard {shard}. The registry cannot know which one is the copy.";
        other_server(connection) "The other server {connection}.";
        other_server_started(connection, at) "The other server {connection}, and was started at {at}.";
    }
}
