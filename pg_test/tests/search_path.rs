//! The owner of a database may create the extension in their own schema and put other objects into it. The extension must
//! not run any of them: its next user may be a superuser.

use crate::upgrade::members;
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::release::{self, EXTENSIONS, SNOWFLAKE, rehearsal};
use postgres::Row;
use std::collections::BTreeSet;
use std::fs;

pub const SOW: &str = include_str!("search_path/sow.sql");

/// The metadata of Citus, which pg_snowflake queries.
const CITUS: &str = include_str!("../data/citus.sql");

/// Tables that refer to the extension in every way, with all arguments: a call that omits one may resolve to an overload that fits better.
const SCHEMA: &str = "
    CREATE SEQUENCE s; CREATE SEQUENCE of_this; CREATE SEQUENCE twitter;
    CREATE TABLE posts (
        id bigint PRIMARY KEY DEFAULT evil.snowflake_nextval('s'::regclass, 5, 'postgres'::evil.snowflake_layout),
        tweet bigint DEFAULT evil.snowflake_nextval('twitter'::regclass, evil.snowflake_current_shard(), 'twitter'::evil.snowflake_layout),
        public_id evil.snowflake,
        layout evil.snowflake_layout NOT NULL DEFAULT 'twitter',
        CHECK (evil.snowflake_shard_id(id, 'postgres'::evil.snowflake_layout) = 5));
    CREATE DOMAIN this_id AS bigint DEFAULT evil.snowflake_nextval('of_this'::regclass);
    CREATE TABLE of_domain (id this_id, body text);
    CREATE TABLE by_shard (id bigint) PARTITION BY HASH (id evil.snowflake_shard_ops);
    CREATE TABLE by_shard_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE by_shard_1 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 1);
    INSERT INTO posts (public_id) SELECT n FROM generate_series(1, 20) AS n;
    INSERT INTO of_domain (body) VALUES ('x');
    INSERT INTO by_shard SELECT id FROM posts;
    DO $$ DECLARE layout text; BEGIN
        FOREACH layout IN ARRAY ARRAY['twitter', 'sonyflake', 'js53', 'instagram'] LOOP
            EXECUTE format('CREATE TABLE by_shard_%1$s (id bigint) PARTITION BY HASH (id evil.snowflake_shard_ops_%1$s);
                CREATE TABLE by_shard_%1$s_0 PARTITION OF by_shard_%1$s FOR VALUES WITH (MODULUS 1, REMAINDER 0);
                INSERT INTO by_shard_%1$s SELECT id FROM posts', layout);
        END LOOP;
    END $$;
    CREATE INDEX by_public_id ON posts (public_id);
    CREATE INDEX by_layout ON posts USING hash (layout);
    CREATE INDEX by_class ON posts USING hash (id evil.snowflake_shard_ops);
    ANALYZE";

/// Every object of the extension in use.
const USES: [&str; 33] = [
    "TABLE evil.snowflake_columns",
    "SELECT table_name, column_name, function, sequence, layout FROM evil.snowflake_columns",
    "TABLE evil.snowflake_layouts",
    "SELECT evil.snowflake_clock()",
    "SELECT evil.snowflake_sequence_status('s'::regclass, 'postgres'::evil.snowflake_layout)",
    "SELECT evil._snowflake_generator_calls(adbin) FROM pg_attrdef",
    "INSERT INTO pg_dist_partition VALUES ('of_domain', 'h', 'id');
     INSERT INTO pg_dist_shard VALUES ('of_domain', 1, '-2147483648', '2147483647');
     INSERT INTO pg_dist_placement VALUES (1, 3); INSERT INTO pg_dist_node VALUES (1, 3, 'db-3', 5432, 'primary');
     SELECT evil._snowflake_citus_error('of_domain'::regclass, 's'::regclass, 5, false), evil.snowflake_citus_ranges('of_domain'::regclass),
         evil._snowflake_citus_error('of_domain'::regclass, 's'::regclass, 5, true),
         evil.snowflake_locate('of_domain'::regclass, 1::bigint, 'postgres'::evil.snowflake_layout)",
    "SELECT evil._snowflake_replaced_default_error('s'::regclass, adbin, true) FROM pg_attrdef",
    "SELECT evil._snowflake_layout_error('posts'::regclass, 'id'::name, 'twitter'::evil.snowflake_layout, now())",
    "CREATE TABLE of_instagram AS
         SELECT at, id, id::evil.snowflake AS public_id
         FROM generate_series(timestamptz '2020-01-01Z', '2020-01-02Z', '1 hour') AS at,
             evil.snowflake_encode(at, 5, 1, 'instagram'::evil.snowflake_layout) AS id;
     SELECT evil.snowflake_find_layout('of_instagram'::regclass, 'id'::name, 'at'::name),
         evil.snowflake_find_layout('of_instagram'::regclass, 'public_id'::name, 'at'::name),
         evil.snowflake_find_layout(array_agg(id), array_agg(at)) FROM of_instagram",
    "SELECT evil.snowflake_layout_info('twitter'::evil.snowflake_layout), evil._snowflake_presets()",
    "SELECT evil.snowflake_nextval('of_this'::regclass), evil.snowflake_nextvals('of_this'::regclass, 3), evil.snowflake_currval('of_this'::regclass), evil.snowflake_current_shard()",
    "SELECT evil.snowflake_nextval('s'::regclass, 5, 'postgres'::evil.snowflake_layout),
         evil.snowflake_nextvals('s'::regclass, 5, 3, 'postgres'::evil.snowflake_layout)",
    "SELECT evil.snowflake_nextval_homed('s'::regclass, 5, 8, 1, 'postgres'::evil.snowflake_layout),
         evil.snowflake_nextvals_homed('s'::regclass, 5, 8, 3, 1, 'postgres'::evil.snowflake_layout),
         evil.snowflake_nextval_homed_in_ranges('s'::regclass, 5, '{[0,)}'::int8multirange, 'postgres'::evil.snowflake_layout),
         evil.snowflake_nextvals_homed_in_ranges('s'::regclass, 5, '{[0,)}'::int8multirange, 3, 'postgres'::evil.snowflake_layout)",
    "SELECT evil.snowflake_decode(id, layout), evil.snowflake_created_at(id, layout), evil.snowflake_shard_id(id, layout),
         evil.snowflake_seq(id, layout), evil.snowflake_explain(id, layout), evil.snowflake_explain(id), evil.snowflake_to_base32(id),
         evil.snowflake_from_base32(evil.snowflake_to_base32(id)), evil.snowflake_to_uuid(id, layout),
         evil.snowflake_from_uuid(evil.snowflake_to_uuid(id, layout), layout) FROM posts",
    "SELECT evil.snowflake_encode(now(), 5, 6, 'postgres'::evil.snowflake_layout),
         evil.snowflake_min_id(now(), 'postgres'::evil.snowflake_layout)",
    "SELECT count(*) FROM posts
     WHERE evil.snowflake_between(id, now() - interval '1 h', now() + interval '1 h', 'postgres'::evil.snowflake_layout)",
    "SELECT evil.snowflake_locate('by_shard'::regclass, id, 'postgres'::evil.snowflake_layout) FROM by_shard",
    "CREATE TABLE by_time (id bigint PRIMARY KEY, public_id evil.snowflake) PARTITION BY RANGE (id);
     CREATE TABLE by_time_default PARTITION OF by_time DEFAULT;
     ALTER TABLE by_time REPLICA IDENTITY USING INDEX by_time_pkey;
     SELECT evil.snowflake_create_partitions('by_time'::regclass, interval '1 day', 1, 'postgres'::evil.snowflake_layout);
     SELECT evil.snowflake_drop_partitions('by_time'::regclass, interval '1 day', false, 'postgres'::evil.snowflake_layout)",
    "SELECT evil.snowflake_layout_in('twitter'::cstring), evil.snowflake_layout_out(layout), evil.snowflake_layout_send(layout),
         evil.snowflake_layout_eq(layout, layout), evil.snowflake_layout_ne(layout, layout), evil.snowflake_layout_hash(layout)
     FROM posts",
    "SELECT count(*) FROM posts AS a JOIN posts AS b ON a.layout OPERATOR(evil.=) b.layout WHERE a.layout OPERATOR(evil.<>) 'js53'",
    "SELECT layout, count(*) FROM posts GROUP BY layout UNION SELECT 'js53'::evil.snowflake_layout, 1",
    "SELECT evil.snowflake_in('5'::cstring), evil.snowflake_out(public_id), evil.snowflake_send(public_id),
         evil.snowflake(5::smallint), evil.snowflake(5::integer), 5::smallint::evil.snowflake, 5::evil.snowflake,
         5::bigint::evil.snowflake, public_id::bigint, to_json(public_id), coalesce(public_id, 5), public_id + 1
     FROM posts WHERE public_id = 5 OR public_id < 3::bigint OR public_id IN (1, 2)",
    "SELECT * FROM posts ORDER BY public_id, layout::text",
    "SELECT count(*) FROM by_shard WHERE id = 5",
    "SELECT count(*) FROM by_shard JOIN posts USING (id)",
    "SET enable_seqscan = off; SELECT count(*) FROM posts WHERE id = 5; SELECT count(*) FROM posts WHERE layout OPERATOR(evil.=) 'js53'; RESET ALL",
    "SELECT pg_get_viewdef('evil.snowflake_columns'::regclass)",
    "SELECT evil.snowflake_lease_status(), evil.snowflake_lease_mode(), evil.snowflake_forget_registry()",
    "CREATE EXTENSION pg_snowflake_registry",
    "SELECT snowflake_registry.claim('{5}'::int[], 'db-1'::text, gen_random_uuid(), '{NULL}'::bigint[], gen_random_uuid(),
         clock_timestamp() + interval '5 min', interval '5 min');
     SELECT snowflake_registry.claim(NULL::int[], 'db-2'::text, gen_random_uuid(), NULL::bigint[], gen_random_uuid(),
         clock_timestamp() + interval '5 min', interval '5 min')",
    "SELECT snowflake_registry.release(incarnation, ARRAY[shard_id], ARRAY[serial], ends) FROM snowflake_registry.shards;
     SELECT snowflake_registry.take_over(5, 'db-2'::text), snowflake_registry.id();
     SELECT snowflake_registry.retire('db-2'::text);
     TABLE snowflake_registry.leases; TABLE snowflake_registry.identity",
    "COPY posts TO PROGRAM 'cat >/dev/null' (FORMAT binary)",
];

#[test]
fn planted_objects_do_not_join_the_extension_and_are_not_run() {
    let mut ground = Ground::of(&[]);
    ground.sow();
    ground.create("");
    ground.assert_untouched();

    ground.sow();
    ground.use_everything();
}

#[test]
fn an_update_frees_caught_objects_and_is_not_caught_itself() {
    for version in release::older() {
        let mut ground = Ground::of(&[&version]);
        ground.sow();
        ground.create(&format!("VERSION '{version}'"));
        ground.sow();

        ground.owner.batch_execute("ALTER EXTENSION pg_snowflake UPDATE").unwrap();

        ground.assert_untouched();
        ground.use_everything();
    }
}

#[test]
fn a_converted_column_calls_the_extension_and_not_planted_objects() {
    let mut ground = Ground::of(&[]);
    ground.create("");
    ground.sow();
    let tables = [
        ("of_snowflake", "id evil.snowflake PRIMARY KEY DEFAULT 7, n int", "5", "postgres"),
        ("of_serial", "id serial PRIMARY KEY, n int", "5", "postgres"),
        ("of_identity", "id bigint GENERATED ALWAYS AS IDENTITY, n int", "NULL::int", "twitter"),
        ("of_setting", "id bigserial, n int", "NULL::int", "postgres"),
        ("of_plain", "id int CHECK (id > 0), n int", "6", "twitter"),
        ("of_domain", "id public.key, n int", "5", "js53"),
    ];
    ground.superuser.batch_execute("CREATE DOMAIN key AS bigint DEFAULT 7 CHECK (VALUE > 0)").unwrap();
    for (table, columns, shard, layout) in tables {
        let convert = format!(
            "CREATE TABLE {table} ({columns}); INSERT INTO {table} (id, n) OVERRIDING SYSTEM VALUE VALUES (7, 1);
             SELECT evil.snowflake_convert_column('{table}'::regclass, 'id'::name, {shard}, '{layout}'::evil.snowflake_layout, true);
             INSERT INTO {table} (n) VALUES (2);
             TABLE evil.snowflake_columns"
        );
        ground.run(&convert);
        let shards =
            format!("SELECT evil.snowflake_shard_id(id::bigint, '{layout}'::evil.snowflake_layout)::bigint FROM {table} WHERE n = 2");
        let shard = shard.parse().unwrap_or(5);
        assert_eq!(take_one(&mut ground.superuser, &shards), shard, "{table}");
    }
    assert_eq!(ground.caught(), "");
}

/// Each alone: if several fit a call equally well, or have further arguments with defaults, PostgreSQL runs none.
#[test]
fn an_overload_that_fits_a_conversion_better_is_not_run() {
    let overloads = [
        ("evil.snowflake", "evil.snowflake_shard_id(evil.snowflake) RETURNS int"),
        ("public.key", "evil.snowflake_shard_id(public.key) RETURNS int"),
        ("bigint", "evil.snowflake_shard_id(bigint) RETURNS int"),
        ("bigint", "evil.snowflake_nextval(regclass, int) RETURNS bigint"),
    ];
    let mut ground = Ground::of(&[]);
    ground.create("");
    ground.superuser.batch_execute("CREATE DOMAIN key AS bigint").unwrap();
    for (column, overload) in overloads {
        let planted = format!("CREATE FUNCTION {overload} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$");
        ground.owner.batch_execute(&planted).unwrap();

        ground.run(&format!(
            "CREATE TABLE posts (id {column}, n int); INSERT INTO posts VALUES (7, 1);
             SELECT evil.snowflake_convert_column('posts'::regclass, 'id'::name, 5, 'postgres'::evil.snowflake_layout, true);
             INSERT INTO posts (n) VALUES (2)"
        ));

        assert_eq!(ground.caught(), "", "{overload}");
        let (function, _) = overload.split_once(" RETURNS").unwrap();
        ground.run(&format!("DROP TABLE posts; DROP FUNCTION {function}"));
    }
    ground.run(
        "CREATE TABLE posts (id bigserial); CREATE FUNCTION evil.snowflake_nextval(regclass, int, evil.snowflake_layout, int DEFAULT 0)
         RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$",
    );
    let convert = "SELECT evil.snowflake_convert_column('posts', 'id', 5, 'postgres', false)";
    assert_eq!(refused(&mut ground.superuser, convert).code().code(), "42725");
}

/// A function: its name, the types of its arguments, and its result type.
type Signature = (String, Vec<String>, String);

const SIGNATURES: &str = "
    SELECT proname::text, (SELECT coalesce(array_agg(a::regtype::text ORDER BY n), '{}')
        FROM unnest(proargtypes) WITH ORDINALITY AS u (a, n)), prorettype::regtype::text
    FROM pg_proc WHERE pronargs <= 7 AND provariadic = 0 AND ";

fn signatures(rows: &[Row]) -> BTreeSet<Signature> {
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

fn functions_in_evil(client: &mut Client) -> BTreeSet<Signature> {
    signatures(&client.query(&format!("{SIGNATURES} pronamespace = 'evil'::regnamespace"), &[]).unwrap())
}

/// A database of an ordinary role, who plants objects, and a superuser, who uses the extension.
struct Ground {
    _cluster: Cluster,
    owner: Client,
    superuser: Client,
    /// The extension's objects in a schema of the same name without planted objects.
    clean: Vec<String>,
}

impl Ground {
    /// Also for these releases, which have functions that the head does not have.
    fn of(releases: &[&str]) -> Self {
        // The first server that needs an older version installs the SQL of all.
        let oldest = release::older().remove(0);
        let cluster = Cluster::builder().release(&oldest).setting("pg_snowflake.shard_id", "5").start();
        for statement in [
            "CREATE ROLE owner LOGIN",
            "CREATE DATABASE clean OWNER owner TEMPLATE template0",
            "CREATE DATABASE hostile OWNER owner TEMPLATE template0",
        ] {
            cluster.connect().batch_execute(statement).unwrap();
        }
        let mut clean = cluster.connect_to("owner", "clean");
        clean.batch_execute("CREATE SCHEMA evil; CREATE EXTENSION pg_snowflake SCHEMA evil").unwrap();
        let members_of_head = members(&mut clean, &SNOWFLAKE);
        let mut owner = cluster.connect_to("owner", "hostile");
        owner.batch_execute(SOW).unwrap();
        let superuser = cluster.connect_to(SUPERUSER, "hostile");
        let mut ours = functions_in_evil(&mut clean);
        for version in releases {
            let older = format!("DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake SCHEMA evil VERSION '{version}'");
            clean.batch_execute(&older).unwrap();
            ours.extend(functions_in_evil(&mut clean));
        }
        let mut ground = Ground { owner, superuser, clean: members_of_head, _cluster: cluster };
        ground.choose_seed(&ours);
        ground
    }

    /// What the extension's SQL names, and its own functions.
    fn choose_seed(&mut self, ours: &BTreeSet<Signature>) {
        let mut sql = text_of(&["sql", "sql/registry"]);
        let rehearsed = EXTENSIONS.iter().flat_map(rehearsal::scripts);
        sql.extend(rehearsed.map(|script| without_comments(&script)));
        if !release::versions(top()).is_empty() {
            sql += &text_of(&["sql/releases"]);
        }
        let in_rust = text_of(&["src/convert", "src/convert/column", "src/distributed", "src/lease", "src/partitions", "src/registry"]);
        assert!(ours.len() > 40, "{}", ours.len());
        choose_seed_named_in(&mut self.owner, &sql, &words(&in_rust));
        for (name, args, result) in ours {
            self.owner.execute("INSERT INTO plant.functions VALUES ($1, $2, $3, true)", &[name, args, result]).unwrap();
        }
    }

    fn sow(&mut self) {
        let planted = take_one(&mut self.owner, "SELECT plant.sow()");
        let casts = take_one(&mut self.owner, "SELECT plant.casts()");
        assert!(planted > 100, "{planted}");
        assert_eq!(casts, 0, "the owner can create none");
    }

    fn create(&mut self, version: &str) {
        self.owner.batch_execute(&format!("CREATE EXTENSION pg_snowflake SCHEMA evil {version}")).unwrap();
    }

    /// Checks that every object of the extension equals that without planted objects.
    fn assert_untouched(&mut self) {
        assert_eq!(self.caught(), "");
        assert_eq!(members(&mut self.superuser, &SNOWFLAKE), self.clean, "left: planted; right: clean");
    }

    fn use_everything(&mut self) {
        self.run(CITUS);
        self.run(SCHEMA);
        for sql in USES {
            self.run(sql);
        }
        let (hashes, others): (Vec<String>, Vec<String>) =
            self.own_functions().into_iter().partition(|name| name.starts_with("_snowflake_shard_hash"));
        assert!(!hashes.is_empty());
        for hash in hashes {
            self.run(&format!("SELECT evil.{hash}(5::bigint, 0::bigint), evil.{hash}(5, 0::bigint)"));
        }
        self.superuser.batch_execute("SET search_path = evil").unwrap();
        self.run("TABLE evil.snowflake_columns; TABLE evil.snowflake_layouts");
        self.superuser.batch_execute("RESET search_path").unwrap();
        assert_eq!(self.caught(), "");
        let used: BTreeSet<&str> = USES.iter().flat_map(|sql| words(sql)).collect();
        let forgotten: Vec<String> = others.into_iter().filter(|name| !used.contains(name.as_str())).collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }

    fn run(&mut self, sql: &str) {
        self.superuser.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// What depends on a planted object and is not planted itself: it was caught, whether or not it has run.
    fn caught(&mut self) -> String {
        // A catalog, the tables of its objects, and the prefix of the columns with their schema and owner.
        let planted = [
            ("pg_proc", "pg_proc AS o", "pro"),
            ("pg_operator", "pg_operator AS o", "opr"),
            ("pg_class", "pg_class AS o", "rel"),
            ("pg_type", "pg_type AS o", "typ"),
            ("pg_rewrite", "pg_rewrite AS o JOIN pg_class AS c ON c.oid = ev_class", "rel"),
            ("pg_constraint", "pg_constraint AS o JOIN pg_type AS t ON t.oid = contypid", "typ"),
        ]
        .map(|(catalog, tables, prefix)| {
            let is_planted = format!("{prefix}namespace = 'evil'::regnamespace AND {prefix}owner = 'owner'::regrole");
            format!("SELECT '{catalog}'::regclass::oid AS classid, o.oid AS objid FROM {tables} WHERE {is_planted}")
        })
        .join(" UNION ALL ");
        // In a table, so that the planner knows how many there are.
        self.run(&format!("CREATE TEMP TABLE planted AS {planted}; ANALYZE planted"));
        let caught = printed(
            &mut self.superuser,
            "SELECT pg_describe_object(d.classid, d.objid, d.objsubid), pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
            FROM pg_depend AS d JOIN planted AS p ON (p.classid, p.objid) = (d.refclassid, d.refobjid)
            WHERE NOT EXISTS (SELECT FROM planted AS other WHERE (other.classid, other.objid) = (d.classid, d.objid))",
        );
        self.run("DROP TABLE planted");
        caught
    }

    /// The names of the extension's functions that can be called.
    fn own_functions(&mut self) -> Vec<String> {
        let names = "SELECT DISTINCT proname FROM pg_proc
            JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
            WHERE NOT 'internal'::regtype = ANY (proargtypes) AND proname <> 'snowflake_convert_column'
              AND pronamespace = 'evil'::regnamespace";
        printed(&mut self.superuser, names).lines().map(str::to_owned).collect()
    }
}

/// The operators, relations and functions of core that the SQL names, or that have one of these other names.
pub fn choose_seed_named_in(owner: &mut Client, sql: &str, others: &BTreeSet<&str>) {
    let words: Vec<&str> = words(sql).union(others).copied().collect();
    let symbols: Vec<&str> = symbols(sql).into_iter().collect();
    let operators = "INSERT INTO plant.operators SELECT DISTINCT oprname FROM pg_operator WHERE oprname = ANY ($1) AND oprleft <> 0";
    owner.execute(operators, &[&symbols]).unwrap();
    let relations = "INSERT INTO plant.relations SELECT relname FROM pg_class
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relname = ANY ($1) AND relkind IN ('r', 'v')";
    owner.execute(relations, &[&words]).unwrap();
    let named = format!("{SIGNATURES} pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ($1)");
    let named = signatures(&owner.query(&named, &[&words]).unwrap());
    assert!(named.len() > 20, "{}", named.len());
    for (name, args, result) in &named {
        owner.execute("INSERT INTO plant.functions VALUES ($1, $2, $3, false)", &[name, args, result]).unwrap();
    }
}

/// The contents of the files in folders of the repository, without SQL comments.
fn text_of(folders: &[&str]) -> String {
    let mut text = String::new();
    for folder in folders {
        for entry in fs::read_dir(top().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "sql" || end == "rs") {
                text += &without_comments(&fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

pub fn without_comments(sql: &str) -> String {
    sql.lines().flat_map(|line| [line.split("--").next().unwrap(), "\n"]).collect()
}

pub fn words(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).collect()
}

/// Operators, and everything else that consists of the same characters.
fn symbols(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !"+-*/<>=~!@#%^&|`?".contains(letter)).collect()
}
