//! The SQL objects of an older version with the library of the head, before `ALTER EXTENSION … UPDATE`.

use super::server_of;
use crate::search_path::words;
use pg_snowflake_harness::ask::printed;
use pg_snowflake_harness::release::{self, EXTENSIONS};
use std::collections::BTreeSet;

/// A release, tables for its functions, and queries with their output.
struct Served {
    version: &'static str,
    tables: &'static str,
    queries: &'static [(&'static str, &'static str)],
}

const SERVED: [Served; 1] = [Served {
    version: release::REHEARSED,
    tables: "CREATE TABLE parted (id bigint PRIMARY KEY) PARTITION BY RANGE (id)",
    queries: &[
        ("SELECT snowflake_base32(id => 7)", "0000000000007"),
        ("SELECT preset FROM snowflake_layouts WHERE preset = 'twitter'", "twitter"),
        ("SELECT count(*) FROM snowflake_create_partitions('parted', interval '1 year')", "3"),
        (
            "SELECT granted FROM snowflake_registry.claim(NULL, 'db-1', gen_random_uuid(), NULL, gen_random_uuid(),
                 clock_timestamp() + interval '10 s', interval '10 s')",
            "t",
        ),
        ("SELECT status <> 'reserved' FROM snowflake_registry.leases", "t"),
    ],
}];

#[test]
fn the_library_of_the_head_serves_the_sql_of_a_release() {
    for Served { version, tables, queries } in SERVED {
        let (_cluster, mut client) = server_of(version);
        client.batch_execute(tables).unwrap();
        for (query, answer) in queries {
            assert_eq!(printed(&mut client, query), *answer, "{version}: {query}");
        }
    }
}

/// No other test calls what a release has and the head does not. Compares names only: for functions with the same name it
/// does not check whether each is called.
#[test]
fn every_renamed_object_is_called_by_its_old_name() {
    let names_of_head = names_in(&release::head());
    for version in release::older() {
        let names = names_in(&version);
        let served = SERVED.iter().filter(|served| served.version == version);
        let queries: Vec<&str> = served.flat_map(|served| served.queries).map(|(query, _)| *query).collect();
        let used: BTreeSet<&str> = queries.iter().flat_map(|query| words(query)).collect();

        let forgotten: Vec<_> = names
            .difference(&names_of_head)
            .filter(|(object, name)| !used.contains(object.as_str()) || !used.contains(name.as_str()))
            .collect();

        assert!(forgotten.is_empty(), "no query of {version} has {forgotten:?}");
    }
}

/// The functions, tables and views of both extensions in that version, with the names of their arguments or columns.
fn names_in(version: &str) -> BTreeSet<(String, String)> {
    let (_cluster, mut client) = server_of(version);
    let names = "
        WITH member AS (
            SELECT classid, objid FROM pg_depend
            WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
              AND refobjid IN (SELECT oid FROM pg_extension WHERE extname = ANY ($1)))
        SELECT proname::text, unnest(proname::text || coalesce(proargnames, '{}'))
        FROM pg_proc JOIN member ON classid = 'pg_proc'::regclass AND objid = oid
        UNION
        SELECT relname::text, unnest(ARRAY[relname::text, attname::text])
        FROM pg_class JOIN member ON classid = 'pg_class'::regclass AND objid = oid
        JOIN pg_attribute ON attrelid = oid AND attnum > 0";
    let extensions = EXTENSIONS.map(|extension| extension.name);
    client.query(names, &[&extensions.as_slice()]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}
