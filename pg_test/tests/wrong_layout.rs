//! IDs of another layout than the default one are noticed: by a conversion, by new partitions, and by the view of columns.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, run, server};
use pg_snowflake_harness::copied::PLPGSQL;
use pg_snowflake_harness::sequence::take_one;
use postgres::Client;

/// The table of Instagram's user: 1,000 IDs of shard 5 by the PL/pgSQL function, whose sequence holds a plain count.
fn instagrams_table(client: &mut Client) {
    run(
        client,
        &format!(
            "{PLPGSQL}; CREATE SEQUENCE photos_id_seq;
             CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT copied_nextval('photos_id_seq', 5), n int);
             INSERT INTO photos (n) SELECT generate_series(1, 1000)"
        ),
    );
}

/// Every preset but the default one, with a shard that it has.
fn other_presets(client: &mut Client) -> Vec<(String, i32)> {
    let sql = "SELECT name FROM snowflake_layouts WHERE name <> 'postgres'";
    let names = printed(client, sql);
    let presets: Vec<_> = names
        .lines()
        .map(|name| (name.to_owned(), if name == "mastodon" { 0 } else { 5 }))
        .collect();
    assert!(presets.len() >= 8, "{presets:?}");
    presets
}

/// Creates a table `of_PRESET` with 1,000 IDs of a preset, and a sequence that is not theirs.
fn table_of(client: &mut Client, preset: &str, shard: i32) {
    run(
        client,
        &format!(
            "CREATE SEQUENCE made_{preset}; CREATE SEQUENCE s_{preset}; CREATE TABLE of_{preset} (id bigint PRIMARY KEY);
             INSERT INTO of_{preset} SELECT snowflake_nextvals('made_{preset}', {shard}, 1000, '{preset}')"
        ),
    );
}

/// Converts a column without a layout, which is refused with the preset in the hint, and with it, and checks that the next ID is above.
fn converts_only_with(client: &mut Client, table: &str, shard: i32, preset: &str) {
    let convert =
        |layout: &str| format!("SELECT snowflake_convert_column('{table}', 'id', {shard}{layout})");
    let error = assert_refused(
        client,
        &convert(""),
        Refusal {
            sqlstate: "55000",
            message: &format!(
                "newest value of column id of table public.{table} is probably an ID of layout \"{preset}\""
            ),
            hint: &format!("Pass layout => '{preset}'."),
        },
    );
    let last = take_one(client, &format!("SELECT max(id) FROM {table}"));
    let detail = error.detail().unwrap_or_default();
    assert!(detail.contains(&last.to_string()) && detail.contains("\"postgres\""), "{detail}");
    assert!(detail.contains(&format!("in layout \"{preset}\"")), "{detail}");

    run(client, &convert(&format!(", layout => '{preset}'")));
    let next = take_one(client, &format!("INSERT INTO {table} DEFAULT VALUES RETURNING id"));
    assert!(next > last, "{preset}: {next} after {last}");
    let shard_of = format!("SELECT snowflake_shard_id({next}, '{preset}')");
    assert_eq!(printed(client, &shard_of), shard.to_string(), "{preset}");
}

#[test]
fn the_ids_of_every_other_preset_convert_only_with_their_layout() {
    let (_cluster, mut client) = server();
    instagrams_table(&mut client);
    converts_only_with(&mut client, "photos", 5, "instagram");
    for (preset, shard) in other_presets(&mut client) {
        table_of(&mut client, &preset, shard);
        converts_only_with(&mut client, &format!("of_{preset}"), shard, &preset);
    }
}

#[test]
fn numbers_that_are_not_ids_convert_without_a_layout() {
    let (_cluster, mut client) = server();
    for (table, id) in [
        ("of_serials", "n"),
        ("of_seconds", "1795392000 + n"),
        ("of_microseconds", "1795392000000000 + n"),
        ("of_negatives", "-n"),
        ("of_ids", "snowflake_min_id(now() - n * interval '1 min') + n"),
    ] {
        run(
            &mut client,
            &format!(
                "CREATE TABLE {table} (id bigint PRIMARY KEY); INSERT INTO {table} SELECT {id} FROM generate_series(1, 1000) AS n;
                 SELECT snowflake_convert_column('{table}', 'id', 5)"
            ),
        );
    }
}

/// IDs of the layout postgres of 350 days ago read as those of now in twitter.
const IDLE: &str = "CREATE SEQUENCE idle_id_seq; CREATE TABLE idle (id bigint PRIMARY KEY);
    INSERT INTO idle SELECT snowflake_encode(now() - interval '350 days', 5, n) FROM generate_series(1, 10) AS n;";

#[test]
fn an_idle_table_converts_with_its_layout_or_with_its_sequence() {
    let (cluster, mut client) = server();
    run(&mut client, IDLE);
    let convert = "SELECT snowflake_convert_column('idle', 'id', 5)";
    let hint = "If the IDs are of layout \"postgres\", pass layout => 'postgres'.";
    let refusal = Refusal { sqlstate: "55000", message: "of layout \"twitter\"", hint };
    assert_refused(&mut client, convert, refusal);

    // Its own sequence has come to the newest ID.
    run(
        &mut client,
        &format!(
            "BEGIN; ALTER SEQUENCE idle_id_seq OWNED BY idle.id;
             ALTER TABLE idle ALTER id SET DEFAULT snowflake_nextval('idle_id_seq', 5);
             SELECT setval('idle_id_seq', (SELECT max(id) >> 12 FROM idle)); {convert}; ROLLBACK"
        ),
    );

    run(&mut client, "SELECT snowflake_convert_column('idle', 'id', 5, 'postgres')");
    let warned = cluster.log();
    assert!(
        warned.contains("WARNING:  newest value of column id of table public.idle is probably"),
        "{warned}"
    );
}

/// The error of each column in the view.
const ERRORS: &str =
    "SELECT table_name, left(error, 43) FROM snowflake_columns ORDER BY table_name::text";

#[test]
fn a_default_of_another_layout_than_the_ids_is_reported_before_its_first_id() {
    let (_cluster, mut client) = server();
    instagrams_table(&mut client);
    let set_default = |client: &mut Client, layout: &str| {
        let default = format!("snowflake_nextval('photos_id_seq', 5{layout})");
        run(client, &format!("ALTER TABLE photos ALTER id SET DEFAULT {default}"));
    };
    let reported = "photos|newest ID is probably of layout \"instagram\"";

    set_default(&mut client, "");
    assert_eq!(printed(&mut client, ERRORS), reported);
    let error = printed(&mut client, "SELECT error FROM snowflake_columns");
    assert!(error.contains("in layout \"postgres\", but 20"), "{error}");

    set_default(&mut client, ", 'instagram'");
    assert_eq!(printed(&mut client, ERRORS), "photos|");
    run(&mut client, "INSERT INTO photos DEFAULT VALUES");
    assert_eq!(printed(&mut client, ERRORS), "photos|");

    // The IDs of the wrong layout are below the others.
    run(&mut client, "ALTER SEQUENCE photos_id_seq RESTART");
    set_default(&mut client, "");
    run(&mut client, "INSERT INTO photos DEFAULT VALUES");
    assert_eq!(printed(&mut client, ERRORS), reported);
}

#[test]
fn the_ids_of_every_other_preset_are_reported() {
    let (_cluster, mut client) = server();
    for (preset, shard) in other_presets(&mut client) {
        table_of(&mut client, &preset, shard);
        for (layout, reported) in [("postgres", preset.as_str()), (&preset, "")] {
            let seen = printed(
                &mut client,
                &format!(
                    "ALTER TABLE of_{preset} ALTER id SET DEFAULT snowflake_nextval('s_{preset}', {shard}, '{layout}');
                     SELECT substring(error, 'newest ID is probably of layout \"(.*?)\"'), error IS NULL FROM snowflake_columns"
                ),
            );
            let is_null = if reported.is_empty() { "t" } else { "f" };
            assert_eq!(seen, format!("{reported}|{is_null}"), "{preset} in {layout}");
        }
        run(&mut client, &format!("DROP TABLE of_{preset}"));
    }
}

#[test]
fn an_idle_column_is_not_reported_if_its_sequence_generated_the_ids() {
    let (_cluster, mut client) = server();
    run(&mut client, IDLE);
    run(&mut client, "ALTER TABLE idle ALTER id SET DEFAULT snowflake_nextval('idle_id_seq', 5)");
    assert_eq!(printed(&mut client, ERRORS), "idle|newest ID is probably of layout \"twitter\": ");
    run(&mut client, "SELECT setval('idle_id_seq', (SELECT max(id) >> 12 FROM idle))");
    assert_eq!(printed(&mut client, ERRORS), "idle|");
}

#[test]
fn the_newest_id_is_read_from_an_index_of_all_rows_that_begins_with_the_column() {
    let (_cluster, mut client) = server();
    instagrams_table(&mut client);
    run(
        &mut client,
        "ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5); ALTER TABLE photos DROP CONSTRAINT photos_pkey;
         ALTER TABLE photos ALTER id DROP NOT NULL",
    );
    let cases = [
        ("", false),
        ("CREATE INDEX i ON photos (id) WHERE n > 0", false),
        ("CREATE INDEX i ON photos ((id + 0))", false),
        ("CREATE INDEX i ON photos (n, id)", false),
        ("CREATE INDEX i ON photos USING hash (id)", false),
        ("CREATE INDEX i ON photos USING brin (id)", false),
        ("CREATE INDEX i ON photos (id)", true),
        ("CREATE INDEX i ON photos (id DESC)", true),
        ("CREATE INDEX i ON photos (id DESC NULLS LAST, n)", true),
        ("CREATE UNIQUE INDEX i ON photos (id) INCLUDE (n)", true),
        // At the end, nulls and rows that are deleted.
        ("CREATE INDEX i ON photos (id); INSERT INTO photos SELECT NULL, n FROM generate_series(1, 50) AS n", true),
        ("CREATE INDEX i ON photos (id); INSERT INTO photos SELECT 9223372036854775807 - n FROM generate_series(1, 50) AS n;
          DELETE FROM photos WHERE id > 5000000000000000000", true),
        ("CREATE INDEX i ON photos (id); INSERT INTO photos SELECT NULL, n FROM generate_series(1, 1000) AS n", false),
    ];
    for (index, is_read) in cases {
        run(&mut client, &format!("BEGIN; {index}"));
        let error = printed(&mut client, "SELECT error IS NOT NULL FROM snowflake_columns");
        assert_eq!(error, if is_read { "t" } else { "f" }, "{index}");
        run(&mut client, "ROLLBACK");
    }
}

#[test]
fn a_partitioned_table_is_reported_once() {
    let (_cluster, mut client) = server();
    run(&mut client, &format!("{PLPGSQL}; CREATE SEQUENCE s"));
    for (table, key) in [("by_id", "RANGE (id)"), ("by_hash", "HASH (id)")] {
        run(
            &mut client,
            &format!(
                "CREATE TABLE {table} (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)) PARTITION BY {key}"
            ),
        );
    }
    run(
        &mut client,
        "CREATE TABLE old PARTITION OF by_id FOR VALUES FROM (0) TO (1000000000000000000);
         CREATE TABLE recent PARTITION OF by_id FOR VALUES FROM (1000000000000000000) TO (5000000000000000000);
         CREATE TABLE rest PARTITION OF by_id DEFAULT;
         CREATE TABLE even PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE odd PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1) PARTITION BY HASH (id);
         CREATE TABLE odder PARTITION OF odd FOR VALUES WITH (MODULUS 1, REMAINDER 0);
         INSERT INTO by_id SELECT copied_nextval('s', 5) FROM generate_series(1, 10);
         INSERT INTO by_id VALUES (1), (2);
         INSERT INTO by_hash SELECT id FROM by_id",
    );
    let reported = "SELECT table_name FROM snowflake_columns WHERE error LIKE 'newest ID is probably of layout \"instagram\"%'
         ORDER BY table_name::text";
    assert_eq!(printed(&mut client, reported), "by_hash\nby_id");
}

#[test]
fn nobody_sees_the_ids_of_a_column_that_they_may_not_read() {
    let (cluster, mut owner) = server();
    instagrams_table(&mut owner);
    run(
        &mut owner,
        "ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5); CREATE ROLE eve LOGIN; CREATE ROLE boss SUPERUSER LOGIN",
    );
    let mut eve = cluster.connect_to("eve", "postgres");
    let mut boss = cluster.connect_to("boss", "postgres");
    let mut sees = |what: &str, by_eve: bool, by_boss: bool| {
        for (client, is_seen) in [(&mut eve, by_eve), (&mut boss, by_boss)] {
            let error = printed(client, "SELECT error IS NOT NULL FROM snowflake_columns");
            assert_eq!(error, if is_seen { "t" } else { "f" }, "{what}");
        }
    };
    sees("nothing granted", false, true);
    run(&mut owner, "GRANT SELECT (n) ON photos TO eve");
    sees("another column", false, true);
    run(&mut owner, "GRANT SELECT (id) ON photos TO eve");
    sees("the column, whose IDs the sequence may explain", false, true);
    run(&mut owner, "GRANT SELECT ON SEQUENCE photos_id_seq TO eve");
    sees("the column and the sequence", true, true);
    run(&mut owner, "CREATE SCHEMA hidden; ALTER TABLE photos SET SCHEMA hidden");
    sees("another schema", false, true);
    run(&mut owner, "GRANT USAGE ON SCHEMA hidden TO eve; SET search_path = public, hidden");
    sees("the schema", true, true);
    run(
        &mut owner,
        "ALTER TABLE photos ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON photos USING (true)",
    );
    sees("row security", false, false);
}

#[test]
fn a_deeply_nested_policy_or_rule_does_not_break_the_view() {
    let (cluster, mut client) = server();
    let deep = format!("5{} = 5", "::bigint::int".repeat(1000));
    run(
        &mut client,
        &format!(
            "CREATE SEQUENCE s; CREATE TABLE a (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)); CREATE TABLE b (LIKE a INCLUDING ALL);
             CREATE TABLE c (LIKE a INCLUDING ALL); INSERT INTO a VALUES (4036363106367045632); INSERT INTO b TABLE a; INSERT INTO c TABLE a;
             CREATE POLICY p ON a USING ({deep}); ALTER TABLE a ENABLE ROW LEVEL SECURITY;
             CREATE RULE r AS ON INSERT TO b WHERE {deep} DO ALSO NOTHING"
        ),
    );
    let mut client = cluster.connect();
    run(&mut client, "SET max_stack_depth = '200kB'");
    assert_eq!(
        printed(&mut client, ERRORS),
        "a|\nb|\nc|newest ID is probably of layout \"instagram\""
    );
}

/// A function that whoever may create one could put where a reader of the table calls it.
#[test]
fn no_function_of_the_tables_owner_is_called() {
    let (cluster, mut superuser) = server();
    run(
        &mut superuser,
        "CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner; GRANT CREATE ON DATABASE postgres TO owner",
    );
    let mut owner = cluster.connect_to("owner", "postgres");
    run(
        &mut owner,
        "CREATE PLPGSQL trap(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
             $$ BEGIN IF current_user <> 'owner' THEN RAISE 'called by %', current_user; END IF; RETURN n; END $$;
         CREATE SEQUENCE s;
         CREATE TABLE plain (id bigint DEFAULT snowflake_nextval('s', 5));
         INSERT INTO plain VALUES (4036363106367045632);
         CREATE INDEX ON plain (id) WHERE id > trap(5);
         CREATE TABLE secured (LIKE plain INCLUDING DEFAULTS); INSERT INTO secured TABLE plain; CREATE INDEX ON secured (id);
         CREATE POLICY p ON secured USING (trap(id) > 0); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
         CREATE INDEX ON plain (trap(id), id);
         CREATE TABLE parted (id bigint DEFAULT snowflake_nextval('s', 5)) PARTITION BY LIST ((id % trap(2)));
         CREATE TABLE part PARTITION OF parted FOR VALUES IN (0);
         INSERT INTO parted VALUES (4036363106367045632); CREATE INDEX ON parted (id)",
    );
    let mut superuser = cluster.connect();
    let reported =
        "SELECT table_name, error IS NOT NULL FROM snowflake_columns ORDER BY table_name::text";
    assert_eq!(printed(&mut superuser, reported), "part|f\nparted|t\nplain|f\nsecured|f");
}

#[test]
fn a_lock_of_another_session_does_not_block_the_view() {
    let (cluster, mut owner) = server();
    instagrams_table(&mut owner);
    run(
        &mut owner,
        "ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5)",
    );
    let mut client = cluster.connect();
    run(&mut client, "SET statement_timeout = '20s'");
    for (statement, reported) in [
        ("LOCK TABLE photos IN ACCESS EXCLUSIVE MODE", "photos|"),
        ("REINDEX INDEX photos_pkey", "photos|"),
        (
            "LOCK TABLE photos IN EXCLUSIVE MODE",
            "photos|newest ID is probably of layout \"instagram\"",
        ),
    ] {
        run(&mut owner, &format!("BEGIN; {statement}"));
        assert_eq!(printed(&mut client, ERRORS), reported, "{statement}");
        run(&mut owner, "ROLLBACK");
    }
    run(&mut client, "BEGIN");
    printed(&mut client, ERRORS);
    let left = "SELECT count(*) FROM pg_locks WHERE relation IN ('photos'::regclass, 'photos_pkey'::regclass)";
    assert_eq!(printed(&mut client, left), "0");
}

#[test]
fn relations_without_rows_of_their_own_are_not_read() {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").start();
    let mut client = cluster.connect();
    run(
        &mut client,
        "CREATE SEQUENCE s; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;
         CREATE FOREIGN TABLE elsewhere (id bigint DEFAULT snowflake_nextval('s')) SERVER far;
         CREATE TABLE empty (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'));
         CREATE TABLE narrow (id int PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO narrow VALUES (5);
         CREATE TABLE texts (id text PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO texts VALUES ('4036363106367045632');
         CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO typed VALUES (4036363106367045632);
         CREATE UNLOGGED TABLE unlogged (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO unlogged VALUES (4036363106367045632);
         CREATE VIEW shown AS SELECT * FROM empty; ALTER VIEW shown ALTER id SET DEFAULT snowflake_nextval('s')",
    );
    let reported =
        "SELECT string_agg(table_name::text, ' ' ORDER BY table_name::text) FROM snowflake_columns
         WHERE error LIKE 'newest ID%'";
    assert_eq!(printed(&mut client, reported), "typed unlogged");
    assert_eq!(printed(&mut cluster.standby().connect(), reported), "typed");
}

const PARTED: &str = "CREATE TABLE photos (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE photos_rest PARTITION OF photos DEFAULT;
    INSERT INTO photos SELECT copied_nextval('made', 5) FROM generate_series(1, 1000)";

#[test]
fn partitions_of_another_layout_than_that_of_the_ids_are_refused() {
    let (cluster, mut client) = server();
    run(&mut client, &format!("{PLPGSQL}; CREATE SEQUENCE s; CREATE SEQUENCE made; {PARTED}"));
    let create = |layout: &str| {
        format!("SELECT * FROM snowflake_create_partitions('photos', '1 year', 0{layout})")
    };
    let refusal = |hint| Refusal {
        sqlstate: "55000",
        message: "newest ID of table public.photos is probably an ID of layout \"instagram\"",
        hint,
    };
    assert_refused(&mut client, &create(""), refusal("Pass layout => 'instagram'."));
    run(&mut client, &create(", 'instagram'"));

    run(&mut client, "ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('s', 5)");
    let change = "Change the default of the partition key's column to layout 'instagram'.";
    assert_refused(&mut client, &create(""), refusal(change));
    run(&mut client, &create(", 'postgres'"));
    assert!(cluster.log().contains("WARNING:  newest ID of table public.photos is probably"));

    run(
        &mut client,
        "CREATE TABLE below (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE below_rest PARTITION OF below DEFAULT;
         INSERT INTO below SELECT id FROM photos;
         DELETE FROM photos;
         ALTER TABLE photos DETACH PARTITION photos_rest;
         ALTER TABLE photos ATTACH PARTITION below DEFAULT;
         ALTER TABLE photos ALTER id DROP DEFAULT",
    );
    assert_refused(&mut client, &create(""), refusal("Pass layout => 'instagram'."));

    let default = "snowflake_nextval('s', 5, 'instagram')";
    run(
        &mut client,
        &format!(
            "DROP TABLE photos, photos_rest; {PARTED}; ALTER TABLE photos ALTER id SET DEFAULT {default}"
        ),
    );
    run(&mut client, &create(""));
}

#[test]
fn partitions_of_an_idle_table_are_created_if_its_sequence_generated_the_ids() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE SEQUENCE s; CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id);
         CREATE TABLE posts_old PARTITION OF posts FOR VALUES FROM (0) TO (snowflake_min_id(now() - interval '1 year'));
         CREATE TABLE posts_last PARTITION OF posts
             FOR VALUES FROM (snowflake_min_id(now() - interval '1 year')) TO (snowflake_min_id(now() - interval '340 days'));
         INSERT INTO posts VALUES (snowflake_encode(now() - interval '350 days', 5, 1))",
    );
    let create = "SELECT * FROM snowflake_create_partitions('posts', '1 day', 0)";
    let refusal = Refusal { sqlstate: "55000", message: "\"twitter\"", hint: "'postgres'" };
    assert_refused(&mut client, create, refusal);
    run(&mut client, "SELECT setval('s', (SELECT max(id) >> 12 FROM posts))");
    run(&mut client, create);
}

#[test]
fn an_id_is_explained_in_the_presets_from_the_most_likely_one() {
    let (_cluster, mut client) = server();
    run(&mut client, "CREATE SEQUENCE s");
    let mut presets = other_presets(&mut client);
    presets.push(("postgres".to_owned(), 5));
    for (preset, shard) in presets {
        run(&mut client, "ALTER SEQUENCE s RESTART");
        let call = format!("SELECT snowflake_nextval('s', {shard}, '{preset}')");
        let id = take_one(&mut client, &call);
        let listed = printed(&mut client, &format!("SELECT snowflake_explain({id})"));
        let words: Vec<&str> = listed.lines().nth(2).unwrap().split_whitespace().collect();
        let created = printed(
            &mut client,
            &format!(
                "SELECT to_char(snowflake_created_at({id}, '{preset}') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS'),
                     snowflake_shard_id({id}, '{preset}'), snowflake_seq({id}, '{preset}')"
            ),
        );
        let (time, fields) = created.split_once('|').unwrap();
        assert_eq!(words[0], preset, "{listed}");
        assert!(words[1].starts_with(time), "{listed}");
        assert_eq!(words[2..].join("|"), fields, "{listed}");
    }
}
