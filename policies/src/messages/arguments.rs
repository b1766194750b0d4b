//! The arguments of functions, and tables that functions read.

use super::table::messages;

messages! {
    others {
        null_argument(name, allowed) "22004" "argument \"{name}\" must not be null"
            hint "{allowed}";
        no_such_table(oid) "42P01" "table with OID {oid} does not exist"
            hint "Pass the table by name. Dropping a table invalidates its OID.";
        other_owner(quoted, owner, other, hint) "42501" "table {quoted} has another owner than the tables that use it"
            detail "Its expressions would be evaluated with the privileges of role {owner}, but it belongs to role {other}."
            hint "{hint}";
        invalid_layout(message, allowed) "22P02" "{message}"
            hint "{allowed}";
        not_a_layout() "22P03" "invalid binary representation of type snowflake_layout"
            hint "Send the layout as text.";
        not_base32(text, why) "22P02" "invalid base32 ID{text}"
            detail "{why}"
            hint "An ID has 13 characters from 0 to 9 and A to Z without U; I and L are read as 1, O as 0.";
        beyond_uuid(id) "22003" "time of ID {id} is out of range for a UUID"
            detail "The time range of a version 7 UUID ends in the year 10889."
            hint "Pass the layout that the ID was generated with.";
        not_of_an_id(uuid, layout) "22023" "UUID {uuid} does not contain an ID of layout \"{layout}\""
            detail "Only a UUID that snowflake_to_uuid() returned for the same layout can be converted back."
            hint "Pass the layout that was passed to snowflake_to_uuid().";
        not_an_id(id, layout, bits, highest) "22003" "{id} is not an ID of layout \"{layout}\""
            detail "The layout has IDs of {bits} bits, from 0 to {highest}."
            hint "Pass the layout that the ID was generated with.";
        time_out_of_range(layout, first, end) "22003" "timestamp is out of range for layout \"{layout}\""
            detail "The layout has timestamps from {first} until {end}."
            hint "Pass a timestamp in that range.";
        shard_out_of_range(shard, layout, highest) "22003" "shard ID {shard} is out of range for layout \"{layout}\""
            detail "The layout has shard IDs from 0 to {highest}."
            hint "Pass a shard ID in that range.";
        seq_out_of_range(seq, layout, highest) "22003" "seq {seq} is out of range for layout \"{layout}\""
            detail "The layout has seqs from 0 to {highest}."
            hint "Pass a seq in that range.";
        clock_out_of_range(layout) "55000" "server clock is outside the time range of layout \"{layout}\""
            detail "The clock is before the layout's epoch or after its end. snowflake_layout_info() returns both."
            hint "Correct the server's clock, or pass another layout.";
        modulus_out_of_range(modulus, layout, shards, highest) "22023" "modulus {modulus} is out of range"
            detail "Layout \"{layout}\" has {shards} shards. The modulus is from 1 to {highest}."
            hint "Pass the number of partitions or servers that the IDs are hashed to.";
        generators_out_of_range(generators, layout, shards, highest) "22023" "number of generators {generators} is out of range"
            detail "Layout \"{layout}\" has {shards} shards. With this modulus, the number of generators is from 1 to {highest}."
            hint "Pass the number of servers that generate IDs for the same partition.";
        shard_beyond_modulus(shard, highest) "22023" "shard ID {shard} is out of range for this modulus"
            detail "The shard ID is from 0 to {highest}, below modulus times generators."
            hint "Pass a different shard ID in that range on each server.";
        no_hash_range() "22023" "hash ranges must not be empty"
            detail "The multirange contains no hash."
            hint "Pass the hash ranges whose rows are on this server.";
        range_beyond_hashes() "22023" "hash range is out of range"
            detail "A hash is from -2147483648 to 2147483647."
            hint "Pass ranges of signed 32-bit hashes, as hashint8() returns them.";
        too_few_hashes(hashes, needed) "22023" "hash ranges are too small"
            detail "They contain {hashes} of 4294967296 hashes; at least {needed} are needed."
            hint "Pass all hash ranges whose rows are on this server.";
        different_lengths(ids, times) "22023" "arrays of IDs and times must have the same length"
            detail "There are {ids} IDs and {times} times.";
        too_many_ids(ids, limit) "54000" "too many IDs to find their layout"
            detail "There are {ids} IDs, and the limit is {limit}."
            hint "Pass the newest ones, or store them in a table.";
        no_rows_to_read(kind, quoted) "42809" "cannot find the layout of the IDs in {kind} {quoted}"
            hint "Pass a table. The owner can pass the IDs and the times as arrays.";
        unsuitable_column(column, table, data_type, what, types) "42804" "column {column} of table {table} is of type {data_type}"
            detail "The function reads {what} of type {types}."
            hint "The owner can pass the IDs and the times as arrays.";
        no_such_column(column, table) "42703" "column {column} of table {table} does not exist"
            hint "The column name is case-sensitive.";
        table_permission_denied(table) "42501" "permission denied for table {table}"
            detail "The function reads the two columns."
            hint "Grant SELECT on both columns, and USAGE on the schema of the table.";
        no_layout_found(ids, why) "22023" "could not find the layout of {ids}"
            detail "{why}"
            hint "Compare IDs with the times at which they were generated, hours or days apart.";
        likely_other_layout(ids, likely, mismatch, hint) "55000" "{ids} is probably an ID of layout \"{likely}\""
            detail "{mismatch}."
            hint "{hint}";
        odd_id(id, mismatch, query) "01000" "{id} does not match the other IDs"
            detail "{mismatch}."
            hint "If the ID is wrong, change it or delete the row. To see the row, run: {query}";
        not_partitioned_by_shards(table, layout, class, read, shard)
            "22023" "table {table} is not partitioned by shards of layout \"{layout}\""
            detail "Operator class {class} reads {read}. The shard of the layout is {shard}."
            hint "Pass the layout of the IDs in the table. If this is that layout, create the table with the operator class of the layout.";
        not_a_table(relation) "42809" "{relation} is not a table"
            hint "Pass a table, a partitioned table or a foreign table.";
        not_distributed_by_id(table) "42809" "cannot locate IDs in table {table} because Citus does not distribute it by the ID"
            detail "It is not distributed by the hash of a bigint."
            hint "Distribute the table by its ID, with create_distributed_table().";
        has_children(table) "42809" "cannot locate IDs in table {table} because other tables inherit from it"
            detail "An ID does not determine which of these tables has its row."
            hint "Use a partitioned table, or pass one of the children.";
        not_partitioned_by_id(table, key) "42809" "cannot locate IDs in table {table} because it is not partitioned by the ID alone"
            detail "Its partition key is ({key})."
            hint "Partition every level by the same single column, of type bigint or snowflake.";
        not_distributed(table) "42809" "table {table} is not distributed by the hash of a bigint"
            hint "Distribute it by its ID with create_distributed_table().";
        not_distributed_here(table) "42809" "table {table} is not distributed by the hash of a bigint"
            detail "This database does not have the extension citus."
            hint "Distribute it by its ID with create_distributed_table().";
    }
    sentences {
        trust_owner(table, owner)
            "Detach the table, or drop its foreign key, and add it again afterwards. Only if you trust everything that its owner has \
             written for it, such as constraints, indexes and triggers, run: ALTER TABLE {table} OWNER TO {owner};";
        undo(how, hint) "If so, {how}. {hint}";
        confirm_layout(hint, layout) "{hint} If the IDs are of layout \"{layout}\", pass layout => '{layout}'.";
        too_few_ids(needed) "There are fewer than {needed} different positive IDs with a finite time.";
        same_time() "The rows have the same time.";
        not_rising() "The IDs do not rise with the times of their rows.";
        other_ticks() "The IDs rise with the times of their rows, but no layout has ticks of this length, or this epoch. To replace the IDs, see docs/import.md.";
        consecutive() "The IDs are consecutive numbers, as of a sequence.";
    }
}
