//! `snowflake_convert_column`.

use super::table::messages;

messages! {
    others {
        distributed(table, recipe) "0A000" "cannot convert a column of table {table}, which Citus manages"
            detail "Nothing has been changed."
            hint "{recipe}";
        identity_of_distributed(table) "0A000" "cannot convert a column of table {table}, which Citus manages"
            detail "Nothing has been changed."
            hint "Create a new table without IDENTITY, and copy the rows. See docs/engines.md.";
        shard_of_distributed(table) "0A000" "cannot convert a column of table {table}, which is a shard of Citus"
            detail "Nothing has been changed."
            hint "Change the default of the distributed table, on the coordinator. See docs/engines.md.";
        no_shard_field(layout) "22023" "layout \"{layout}\" has no shard field"
            hint "Omit check_shard, or pass a layout with a shard field.";
        view(name) "42809" "cannot convert a column of view {name}"
            hint "Pass the table that the view selects from.";
        foreign_table(name) "42809" "cannot convert a column of foreign table {name}"
            hint "Call snowflake_convert_column() on the server that has the table.";
        sequence(name) "42809" "cannot convert a column of sequence {name}"
            hint "Pass the table whose column uses the sequence.";
        not_a_table(name) "42809" "cannot convert a column of relation {name}"
            hint "Pass a table or a partitioned table.";
        inherited_column(column, parent) "42809" "cannot convert inherited {column}"
            detail "The column is inherited from {parent}."
            hint "Pass {parent}. Its partitions and children are converted with it.";
        generated_column(column) "42809" "cannot convert generated {column}"
            hint "ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION turns a stored generated column into an ordinary one.";
        no_such_column(column, table) "42703" "column \"{column}\" of table {table} does not exist"
            hint "The column name is case-sensitive.";
        system_column(column) "0A000" "cannot convert system column {column}"
            hint "Pass a user-defined column.";
        not_owner(kind, name, why) "42501" "must be owner of {kind} {name}"
            detail "{why}"
            hint "Call snowflake_convert_column() as its owner, or as a superuser.";
        unsuitable_type(data_type, column, why) "42804" "type {data_type} of {column} cannot hold IDs"
            detail "{why}"
            hint "Change the column to bigint first, or its domain to one over bigint. Only smallint and integer are changed \
                  automatically. For UUIDs, see docs/migrate.md.";
        has_dependent_objects(column, objects) "0A000" "cannot change {column} to bigint because other objects depend on it"
            detail "These objects depend on its type: {objects}."
            hint "Drop them, call snowflake_convert_column(), and create them again, all in one transaction. A partition key of a narrower \
                  type needs a new table.";
        detach_pending(column, partition, table) "55000" "cannot change {column} to bigint while partition {partition} is being detached"
            detail "The detachment could not be completed afterwards."
            hint "Convert the column when it is complete. If no session detaches the partition, run: ALTER TABLE {table} DETACH PARTITION \
                  {partition} FINALIZE;";
        has_foreign_tables(column, table, foreign) "0A000" "cannot change column {column} of table {table} to bigint on other servers"
            detail "These foreign tables inherit the column: {foreign}."
            hint "Change the column on those servers first, then on this one: ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint;";
        lacks_privilege(privilege, schema, owner) "42501" "role {owner} lacks {privilege} on schema {schema}"
            detail "A table is converted with the privileges of its owner."
            hint "Run: GRANT {privilege} ON SCHEMA {schema} TO {owner};";
        other_owner(column, converting, table, owner, hint) "42501" "cannot convert {column} because its tables have different owners"
            detail "Constraints are evaluated with the privileges of role {converting}, but table {table} belongs to role {owner}."
            hint "{hint}";
        shared_sequence(sequence, column, users) "55000" "sequence {sequence} of {column} is also used by other objects"
            detail "The conversion would change the values that these objects get: {users}."
            hint "If IDs must be unique across these objects, give them one new sequence: see docs/migrate.md. Otherwise, drop the \
                  column's default, so that snowflake_convert_column() creates a sequence. If the column owns this one, also run: ALTER \
                  SEQUENCE {sequence} OWNED BY NONE;";
        cannot_own_sequence(sequence, table) "55000" "sequence {sequence} must have the same owner and schema as table {table}"
            detail "A table can own only sequences of its own owner and schema."
            hint "Run ALTER SEQUENCE {sequence} with SET SCHEMA or OWNER TO. Or drop the column's default, so that \
                  snowflake_convert_column() creates a sequence.";
        detached_identity_sequence(sequence, column) "55000" "sequence {sequence} belongs to an identity column, but {column} is not one"
            detail "The column's pg_attribute.attidentity was changed by hand, as pgEdge's extension does. The column and the sequence can \
                    be neither altered nor dumped in this state."
            hint "See the section about pgEdge in docs/migrate.md for the statement that undoes the change.";
        layout_not_known(column) "55000" "could not determine the layout of the IDs of {column}"
            detail "Its default has several layouts, or one that is not a constant."
            hint "Pass the layout of the IDs.";
        value_too_high(column, highest, layout, next, query) "55000" "{column} has a value above the next ID"
            detail "The only value above it is {highest}. The next ID of layout \"{layout}\" would be about {next}."
            hint "If the value is an ID of another layout, pass that layout. If it is an ID from the near future, wait until then, or as a superuser \
                  run ALTER DATABASE with SET pg_snowflake.max_lead, at most 24.8 days, and reconnect. Otherwise, change it or delete the row. To see the row, run: {query}";
        values_too_high(column, highest, layout, next) "55000" "{column} has a value above the next ID"
            detail "The highest value is {highest}. The next ID of layout \"{layout}\" would be about {next}."
            hint "If the values are IDs of another layout, pass that layout; snowflake_find_layout() finds it. If they are IDs from the \
                  near future, wait until then, or as a superuser run ALTER DATABASE with SET pg_snowflake.max_lead, at most 24.8 days, \
                  and reconnect. Otherwise, lower the values of those rows.";
        not_compiled_again(commands) "01000" "functions of other roles have the old type of the column in open sessions"
            detail "They fail there until the sessions reconnect."
            hint "To let the sessions compile the functions again, run as their owners: {commands}";
        older_values(column, first, highest, what, hint) "00000" "new IDs of {column} begin at {first}"
            detail "The highest existing value is {highest}. {what}"
            hint "{hint}";
        shard_of_other_generator(column, shard, id) "01000" "existing IDs of {column} have shard number {shard}, which new IDs get"
            detail "One of them is {id}."
            hint "If the generator of these IDs can still run, it and this server can return the same ID: roll back and pass a shard number \
                  that no generator has. See docs/from-generators.md.";
        violates_constraint(constraint, table, id) "55000" "new IDs would violate constraint {constraint} of table {table}"
            detail "The next ID would be about {id}."
            hint "Run: ALTER TABLE {table} DROP CONSTRAINT {constraint};";
    }
    sentences {
        time_of_highest(layout, time) "Its time in layout \"{layout}\" is {time}.";
        highest_is_not_an_id(layout) "It is not an ID of layout \"{layout}\".";
        former_boundary(first, layout) "Before, new IDs had layout \"{layout}\" and began at {first}.";
        continue_in_likely_layout(layout) "It is probably an ID of a generator with layout \"{layout}\". To continue in the generator's \
            layout, in which the time and the shard of all IDs can be read, roll back and pass that layout: see docs/generators.md. \
            Otherwise, search by time as in docs/time.md.";
        continue_in_layout(first) "If it is an ID of another generator, roll back and pass the generator's layout, in which the time and the \
            shard of all IDs can be read: see docs/generators.md. Otherwise, add the condition id >= {first} to searches by time.";
        references(converted) "The column references {converted} and must hold its IDs.";
        must_become_bigint(column, converted) "Its {column} references {converted} and has to become bigint.";
        pass_layout(likely) "Pass layout => '{likely}', or the layout that snowflake_find_layout() finds.";
    }
}
