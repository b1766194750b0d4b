//! Sequences, counters and clocks.

use super::table::messages;

messages! {
    runbooks {
        no_such_sequence(oid) "42P01" "sequence with OID {oid} does not exist"
            hint "Pass the sequence by name. Dropping a sequence invalidates its OID.";
        not_a_sequence(relation, function) "42809" "{relation} is not a sequence"
            hint "Pass a sequence to {function}(). CREATE SEQUENCE creates one, and pg_get_serial_sequence() returns the one that a column \
                  owns.";
        permission_denied(sequence, function, grant, other, role) "42501" "permission denied for sequence {sequence}"
            detail "{function}() requires the privilege {grant} or {other} on the sequence."
            hint "Run: GRANT {grant} ON SEQUENCE {sequence} TO {role};";
        bad_magic(sequence, magic) "XX001" "bad magic number in sequence {sequence}: {magic}"
            detail "The file of the sequence is damaged."
            hint "Look for the cause in the server log and on the disk. Then, in one transaction, drop the column's default and the \
                  sequence, and call snowflake_convert_column() with the shard and the layout of that default.";
        currval_undefined(function, sequence) "55000" "{function} of sequence {sequence} is not yet defined in this session"
            hint "Call snowflake_nextval() in this session first, or use INSERT ... RETURNING.";
        unusable_type(quoted, sequence, data_type) "55000" "sequence {quoted} cannot be used to generate IDs"
            detail "Its data type is {data_type}, not bigint."
            hint "Run: ALTER SEQUENCE {sequence} AS bigint;";
        unusable_increment(quoted, sequence, increment) "55000" "sequence {quoted} cannot be used to generate IDs"
            detail "Its increment is {increment}, not 1."
            hint "Run: ALTER SEQUENCE {sequence} INCREMENT 1;";
        unusable_cycle(quoted, sequence) "55000" "sequence {quoted} cannot be used to generate IDs"
            detail "It is defined with CYCLE, which would repeat IDs."
            hint "Run: ALTER SEQUENCE {sequence} NO CYCLE;";
        unusable_max_value(quoted, sequence, max_value, counter) "55000" "sequence {quoted} cannot be used to generate IDs"
            detail "Its MAXVALUE is {max_value}, below the next counter, {counter}."
            hint "Run: ALTER SEQUENCE {sequence} NO MAXVALUE;";
        unusable_range_of_node(quoted, group, recipe) "55000" "sequence {quoted} cannot be used to generate IDs"
            detail "Citus manages it, and has limited it to the numbers of node group {group}, because the default of a distributed table \
                    refers to it."
            hint "{recipe}";
        too_far_ahead_by_little(sequence, lead, wait, raise_max_lead) "55000" "sequence {sequence} is too far ahead of the server clock"
            detail "It is {lead} ahead: its last IDs were generated before the clock stepped back, or faster than the layout allows. The \
                    next ID is due in {wait}, which is longer than pg_snowflake.max_wait."
            hint "{raise_max_lead}";
        too_far_ahead_by_much(sequence, lead, wait, restart) "55000" "sequence {sequence} is too far ahead of the server clock"
            detail "It is {lead} ahead: it was used with another layout, was set to a number that is not its counter, or was used while \
                    the clock was wrong by that much. The next ID is due in {wait}, which is longer than pg_snowflake.max_wait."
            hint "{restart}";
        too_far_ahead_by_another_number(sequence, lead, held, wait, restart)
            "55000" "sequence {sequence} is too far ahead of the server clock"
            detail "It is {lead} ahead: {held}. The next ID is due in {wait}, which is longer than pg_snowflake.max_wait."
            hint "{restart}";
        stepped_back_a_little(step, wait, raise_max_lead) "55000" "server clock stepped back too far"
            detail "It is {step} behind its reading at the last ID of this session, which generates no IDs below that reading. The next ID \
                    is due in {wait}, which is longer than pg_snowflake.max_wait."
            hint "{raise_max_lead}";
        stepped_back_far(step, wait) "55000" "server clock stepped back too far"
            detail "It is {step} behind its reading at the last ID of this session, which generates no IDs below that reading. The next ID \
                    is due in {wait}, which is longer than pg_snowflake.max_wait."
            hint "If the clock is wrong, correct it; no other action is needed. If it is right, reconnect.";
        before_epoch(layout, behind) "55000" "server clock is before the epoch of layout \"{layout}\""
            detail "The clock is {behind} behind the epoch."
            hint "Correct the server's clock.";
        layout_used_up(sequence, layout, max_tick) "2200H" "sequence {sequence} has reached the end of layout \"{layout}\""
            detail "The last tick of the layout is {max_tick}. A later ID would be negative or would not fit."
            hint "If the server's clock is right, convert the column to a layout that ends later.";
        not_home(shard, counters) "54000" "could not find a homed ID of shard {shard}"
            detail "None of the next {counters} counters yields one."
            hint "Pass a lower modulus, fewer generators or larger hash ranges.";
        negative_count(count) "22023" "number of IDs must not be negative"
            detail "The number requested is {count}."
            hint "Pass a count of 0 or more.";
        too_many_ranges(count, limit) "54000" "too many hash ranges"
            detail "The multirange has {count} ranges; the limit is {limit}."
            hint "Pass the hash ranges of the shards on this server, not single hashes.";
        replaced_default(detail) "00000" "column default was replaced"
            detail "{detail}";
        set_back(sequence, from, to) "00000" "sequence {sequence} was set back from {from} to {to}"
            detail "{from} is the counter of the last ID, after which IDs go on."
            hint "Do not set a sequence that generates IDs, by setval() or by replication.";
        clock_stepped_back(by) "00000" "pg_snowflake: the clock stepped back by {by}"
            detail "IDs stay unique: this session generates none below its reading at its last ID.";
        clock_jumped_forward(by) "00000" "pg_snowflake: the clock jumped forward by {by}"
            detail "If the clock steps back again, sequences that were used in the meantime are ahead of it.";
    }
    others {
        sequence_locked() "00000" "sequence is locked by another transaction"
            detail "See pg_locks.";
    }
    sentences {
        gives_counters(sequence)
            "Sequence {sequence} holds the counter of Snowflake IDs, and new rows get the counter itself, from nextval().";
        gives_nothing(sequence)
            "The column owns sequence {sequence}, which holds the counter of Snowflake IDs, but no default generates IDs from it.";
        raise_max_lead(command)
            "If the clock is wrong, correct it; no other action is needed. If it is right, have a superuser let new sessions run ahead of \
             it, with IDs still unique: {command}";
        restart_after_another_layout()
            "Correct the call or the column default that named the wrong layout. Then call snowflake_convert_column() with the shard and \
             the layout of the column, which restarts the sequence above its IDs.";
        restart_after_setval()
            "Call snowflake_convert_column() with the shard and the layout of the column, which restarts the sequence above its IDs. Do \
             not set the sequence with setval() or RESTART.";
    }
}
