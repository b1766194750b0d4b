//! The SQL objects of an older version with the library of the head, before `ALTER EXTENSION … UPDATE`.

use crate::planted::words;
use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::ask::printed;
use pg_snowflake_servertest::release::{self, rehearsal};
use postgres::Client;
use std::collections::BTreeSet;

/// A release, tables for its functions, and queries with their output.
struct Served {
    version: &'static str,
    tables: &'static str,
    queries: &'static [(&'static str, &'static str)],
}

const SERVED: [Served; 1] = [Served {
    version: rehearsal::VERSION,
    tables: "CREATE TABLE parted (id bigint PRIMARY KEY) PARTITION BY RANGE (id)",
    queries: &[
        ("SELECT snowflake_base32(id => 7)", "0000000000007"),
        ("SELECT preset FROM snowflake_layouts WHERE preset = 'twitter'", "twitter"),
        ("SELECT count(*) FROM snowflake_create_partitions('parted', interval '1 year')", "3"),
    ],
}];

#[test]
fn the_library_of_the_head_serves_the_sql_of_a_release() {
    for Served { version, tables, queries } in SERVED {
        let cluster =
            Cluster::builder().release(version).setting("pg_snowflake.shard_id", "5").start();
        let mut client = cluster.connect();
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
    let names_of_head = names(&mut Cluster::new().connect());
    for version in release::older() {
        let names = names(&mut Cluster::builder().release(&version).start().connect());
        let served = SERVED.iter().filter(|served| served.version == version);
        let queries: Vec<&str> =
            served.flat_map(|served| served.queries).map(|(query, _)| *query).collect();
        let used: BTreeSet<&str> = queries.iter().flat_map(|query| words(query)).collect();

        let forgotten: Vec<_> = names
            .difference(&names_of_head)
            .filter(|(object, name)| {
                !used.contains(object.as_str()) || !used.contains(name.as_str())
            })
            .collect();

        assert!(forgotten.is_empty(), "no query of {version} has {forgotten:?}");
    }
}

/// The functions and views of the extension, with the names of their arguments or columns.
fn names(client: &mut Client) -> BTreeSet<(String, String)> {
    let names = "
        WITH member AS (
            SELECT classid, objid FROM pg_depend
            WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
              AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake'))
        SELECT proname::text, unnest(proname::text || coalesce(proargnames, '{}'))
        FROM pg_proc JOIN member ON classid = 'pg_proc'::regclass AND objid = oid
        UNION
        SELECT relname::text, unnest(ARRAY[relname::text, attname::text])
        FROM pg_class JOIN member ON classid = 'pg_class'::regclass AND objid = oid
        JOIN pg_attribute ON attrelid = oid AND attnum > 0";
    let rows = client.query(names, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
