//! Partitions by time.

use super::table::messages;

messages! {
    others {
        unsuitable_step(most_years) "22023" "partitions cannot be aligned to this step"
            detail "A step is 1, 2, 3, 4, 6, 8 or 12 hours, a number of days or weeks, 1, 2, 3, 4 or 6 months, or a number of years, up to \
                    {most_years} years. It has one unit."
            hint "Pass such a step, for example interval '1 month'.";
        ahead_out_of_range(ahead, most) "22023" "number of partitions ahead {ahead} is out of range"
            detail "It must be between 0 and {most}."
            hint "Pass a number in that range, or a longer step.";
        older_than_not_positive() "22023" "age of partitions to drop must be positive"
            detail "No part of the interval can be negative, and one must be above 0."
            hint "Pass how long rows are kept, for example interval '24 months'.";
        older_than_out_of_range() "22015" "age of partitions to drop is out of range"
            detail "Now minus the interval is before the year -9999."
            hint "Pass how long rows are kept, for example interval '24 months'.";
        distributed(table) "0A000" "cannot manage partitions of table {table}, which Citus manages"
            detail "Nothing has been changed."
            hint "Create its partitions with CREATE TABLE ... PARTITION OF, and snowflake_min_id() as bounds.";
        not_partitioned(table) "42809" "{table} is not a partitioned table"
            hint "Pass a table that was created with PARTITION BY RANGE (id). See docs/partitions.md.";
        partitioned_by_something_else(table, key) "42809" "table {table} is not partitioned by a range of IDs"
            detail "Its partition key is {key}."
            hint "The key must be RANGE of a single column of type bigint or snowflake, with the default operator class; under HASH or \
                  LIST, that of the partitions. See docs/partitions.md.";
        not_owner(table) "42501" "must be owner of table {table}"
            hint "Call the function as its owner, or as a superuser.";
        lacks_privilege(privilege, schema, owner) "42501" "role {owner} lacks {privilege} on schema {schema}"
            detail "Partitions are created with the privileges of the table's owner."
            hint "Run: GRANT {privilege} ON SCHEMA {schema} TO {owner};";
        overlaps(partition, table, bounds, start, end, range) "42P17" "partition {partition} of table {table} overlaps a range to create"
            detail "The partition is {bounds}. The range from {start} to {end} is {range}."
            hint "Pass the step and the layout of the existing partitions. To change the step, create the partitions up to the next \
                  boundary of the new step by hand.";
        name_of_partition(name, table, bounds, start, end, range)
            "42P07" "name {name} of a new partition of table {table} is already in use"
            detail "The partition with that name is {bounds}. The range from {start} to {end} is {range}."
            hint "Pass the layout and the step of the existing partitions.";
        name_taken(name, table, start, end, range) "42P07" "name {name} of a new partition of table {table} is already in use"
            detail "The partition is for the range from {start} to {end}. A name is truncated to 63 bytes."
            hint "If the existing partitions have another layout, pass it. Otherwise rename what has the name; or if it is a table with \
                  the rows of the range, attach it: ALTER TABLE {table} ATTACH PARTITION {name} {range};";
        layout_differs(passed, table, layout) "22023" "layout \"{passed}\" is not the layout of the IDs of table {table}"
            detail "The default of the partition key's column generates IDs of layout {layout}."
            hint "Omit the layout.";
        layouts_differ(passed, table, layouts) "22023" "layout \"{passed}\" is not the layout of the IDs of table {table}"
            detail "The default of the partition key's column generates IDs of layouts {layouts}."
            hint "Pass one of these layouts.";
        several_layouts(table, layout, other) "55000" "table {table} has IDs of several layouts"
            detail "The defaults of the partition key's column generate IDs of layouts \"{layout}\" and \"{other}\"."
            hint "Look at the rows, and detach a partition by hand: ALTER TABLE {table} DETACH PARTITION ...;";
        layout_not_known(table) "55000" "could not determine the layout of the IDs of table {table}"
            detail "The defaults of the partition key's column have several layouts, or one that is not a constant."
            hint "Pass the layout of the IDs.";
        no_current_partition(table, newest, bounds) "55000" "no remaining partition of table {table} would have the IDs of now"
            detail "The newest partition is {newest}, {bounds}. Nothing has been changed."
            hint "Pass the layout of the IDs, or create the current partitions first.";
        changed_meanwhile(kind, name) "55000" "another session has changed {kind} {name}"
            hint "Call the function again.";
    }
    sentences {
        change_default(likely) "Change the default of the partition key's column to layout '{likely}'.";
        pass_layout(likely) "Pass layout => '{likely}'.";
    }
}
