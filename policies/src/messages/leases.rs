//! IDs for which this server has no lease.

use super::table::messages;

messages! {
    runbooks {
        ended(shard, ago) "55000" "lease of shard {shard} has ended"
            detail "It ended {ago} ago."
            hint "Make the registry reachable; the server then renews its lease automatically. See the server log and \
                  snowflake_lease_status().";
        begins_later(shard, time) "55000" "lease of shard {shard} has not begun"
            detail "It begins in {time}, when the shard's former span or the registry's quiet time has ended."
            hint "Try again then. If the time is long, compare the clocks of this server and the registry.";
        past_end(sequence, shard, lead) "55000" "sequence {sequence} is past the end of the lease of shard {shard}"
            detail "It is {lead} ahead of the clock."
            hint "Try again when the clock has caught up with the sequence.";
        past_end_by_another_number(sequence, shard, lead, held, restart)
            "55000" "sequence {sequence} is past the end of the lease of shard {shard}"
            detail "It is {lead} ahead of the clock: {held}."
            hint "{restart}";
        stepped_back(step, shard) "55000" "server clock stepped back too far"
            detail "It is {step} behind its reading at the last ID of this session, which generates no IDs below that reading. The lease \
                    of shard {shard} ends before."
            hint "If the clock is wrong, correct it; no other action is needed. If it is right, reconnect.";
        not_preloaded() "55000" "cannot generate IDs because pg_snowflake is not in shared_preload_libraries"
            detail "pg_snowflake.registry is set, so each shard needs a lease. Leases need the library from the start of the server."
            hint "Add pg_snowflake to shared_preload_libraries, and restart the server.";
        no_shard_assigned() "55000" "registry has not assigned a shard to this server"
            detail "Neither pg_snowflake.owned_shards nor pg_snowflake.shard_id is set."
            hint "Try again in a moment. If the error persists, see the server log and snowflake_lease_status().";
        too_short(lease, tick) "55000" "lease is too short for the layout"
            detail "A lease lasts {lease}, a tick of the layout {tick}."
            hint "Set pg_snowflake.lease to at least two ticks on this server.";
        not_granted(shard) "55000" "server has no lease for shard {shard}"
            detail "The registry has not granted it, or this server has released it."
            hint "Try again in a moment. If the error persists, see the server log and snowflake_lease_status().";
        not_claimed_yet(shard) "55000" "server has no lease for shard {shard}"
            detail "The server has just started, or its lease worker is not running."
            hint "Try again in a moment. If the error persists, see the server log and snowflake_lease_status().";
        not_claimed(shard, command) "55000" "server has no lease for shard {shard}"
            detail "The server's configuration does not name the shard, so the server does not claim its lease. Settings of a database or \
                    a role do not count."
            hint "If no other server generates IDs for it: {command}";
        class_not_claimed(shard, class, query) "55000" "server has no lease for shard {shard}"
            detail "{class} The server needs the lease of each. Its configuration does not name shard {shard}. Settings of a database or a \
                    role do not count."
            hint "If no other server generates IDs for these shards, set pg_snowflake.owned_shards of this server to a list with them: \
                  {query}";
    }
    others {
        holds_leases(shards) "55000" "cannot forget the registry while this server holds leases"
            detail "It holds the lease of {shards}."
            hint "Set pg_snowflake.registry to the other registry, and restart the server first.";
    }
    sentences {
        no_answer_yet() "The registry has not answered yet.";
        last_answer(answer) "The lease worker reports: {answer}";
    }
}
