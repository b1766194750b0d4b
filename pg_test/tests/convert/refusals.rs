//! What is refused, with which error, and that it changes nothing.

use super::{database, dump, run};
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{
    Bad, Refusal, assert_each_refused, assert_refused, printed, server,
};

const fn bad<'a>(sql: &'a str, sqlstate: &'a str, message: &'a str, allowed: &'a str) -> Bad<'a> {
    Bad { sql, sqlstate, message, allowed }
}

const TABLES: &str = "
    CREATE TABLE posts (id serial PRIMARY KEY, body text, gone int, twice int GENERATED ALWAYS AS (7 * 2) STORED);
    ALTER TABLE posts DROP COLUMN gone;
    INSERT INTO posts (body) VALUES ('old');
    CREATE TABLE wide (id bigint PRIMARY KEY); INSERT INTO wide VALUES (4711), (5000000000000000000);
    CREATE VIEW seen AS SELECT * FROM wide;
    CREATE MATERIALIZED VIEW kept AS SELECT * FROM wide;
    CREATE TYPE pair AS (id bigint);
    CREATE SEQUENCE s;
    CREATE FOREIGN DATA WRAPPER w; CREATE SERVER elsewhere FOREIGN DATA WRAPPER w;
    CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
    CREATE TABLE parted (id bigserial, n int) PARTITION BY LIST (n);
    CREATE TABLE part PARTITION OF parted DEFAULT;
    CREATE TABLE by_id (id int) PARTITION BY LIST (id);
    CREATE TABLE child () INHERITS (posts);
    CREATE TABLE texts (id text); CREATE TABLE uuids (id uuid); CREATE TABLE numerics (id numeric(20));
    CREATE DOMAIN small AS int; CREATE TABLE smalls (id small);
    CREATE TABLE referred (id bigint PRIMARY KEY); CREATE TABLE referring (referred_id small REFERENCES referred);
    CREATE TABLE shared (id bigserial); CREATE TABLE sharing (id bigint DEFAULT nextval('shared_id_seq'));
    CREATE SCHEMA other; CREATE SEQUENCE other.s; CREATE TABLE apart (id bigint DEFAULT nextval('other.s'));
    CREATE TABLE bounded (id int CONSTRAINT small_ids CHECK (id < 2000000000));
    CREATE TABLE blocked (id serial, n int);
    CREATE TABLE blocking (blocked_id int);
    CREATE VIEW on_blocked AS SELECT id FROM blocked;
    CREATE FUNCTION count_blocked() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(id) FROM blocked; END;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER on_id BEFORE UPDATE OF id ON blocked FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE POLICY by_id ON blocked USING (id > 3);
    CREATE TABLE computed (id serial, twice int GENERATED ALWAYS AS (id * 2) STORED);
    CREATE TABLE seen_from (id serial PRIMARY KEY); CREATE TABLE refers (seen_id int REFERENCES seen_from);
    CREATE VIEW on_refers AS SELECT seen_id FROM refers;
    CREATE DOMAIN low AS bigint CONSTRAINT is_low CHECK (value < 1000); CREATE TABLE lows (id low);
    CREATE TABLE far (id int, n int) PARTITION BY LIST (n);
    CREATE FOREIGN TABLE farther PARTITION OF far DEFAULT SERVER elsewhere;
    CREATE TABLE near (id bigint PRIMARY KEY);
    CREATE TABLE of_near (near_id int REFERENCES near); CREATE FOREIGN TABLE of_near_too () INHERITS (of_near) SERVER elsewhere;";

const BADS: [Bad; 36] = [
    bad("NULL, 'id', 5", "22004", "\"table_name\" must not be null", "pg_snowflake.shard_id"),
    bad("'posts', NULL, 5", "22004", "\"column_name\" must not be null", "pg_snowflake.shard_id"),
    bad(
        "'posts', 'id', 5, 'twitter', NULL",
        "22004",
        "\"check_shard\" must not be null",
        "pg_snowflake.shard_id",
    ),
    bad("'posts', 'id'", "55000", "pg_snowflake.shard_id is not set", "ALTER DATABASE"),
    bad("'posts', 'id', 4096", "22023", "shard ID 4096 is out of range", "0 to 4095"),
    bad("'posts', 'id', -1", "22023", "shard ID -1 is out of range", "0 to 4095"),
    bad(
        "'posts', 'id', 0, 'mastodon', true",
        "22023",
        "layout \"mastodon\" has no shard field",
        "check_shard",
    ),
    bad("99999::oid, 'id', 5", "42P01", "OID 99999 does not exist", "by name"),
    bad("'posts', 'nope', 5", "42703", "nope", "case-sensitive"),
    bad("'posts', 'ID', 5", "42703", "ID", "case-sensitive"),
    bad("'posts', '........pg.dropped.3........', 5", "42703", "dropped", "case"),
    bad("'posts', 'ctid', 5", "0A000", "system column ctid", "user-defined column"),
    bad(
        "'posts', 'body', 5",
        "42804",
        "type text of column body of table public.posts cannot hold IDs",
        "bigint",
    ),
    bad("'posts', 'twice', 5", "42809", "generated column", "DROP EXPRESSION"),
    bad(
        "'seen', 'id', 5",
        "42809",
        "cannot convert a column of view public.seen",
        "the view selects from",
    ),
    bad(
        "'kept', 'id', 5",
        "42809",
        "cannot convert a column of view public.kept",
        "the view selects from",
    ),
    bad(
        "'remote', 'id', 5",
        "42809",
        "of foreign table public.remote",
        "on the server that has the table",
    ),
    bad("'s', 'last_value', 5", "42809", "of sequence public.s", "the table"),
    bad("'pair', 'id', 5", "42809", "of relation public.pair", "Pass a table"),
    bad("'posts_pkey', 'id', 5", "42809", "of relation public.posts_pkey", "Pass a table"),
    bad(
        "'part', 'id', 5",
        "42809",
        "inherited column id of table public.part",
        "Pass public.parted",
    ),
    bad(
        "'child', 'id', 5",
        "42809",
        "inherited column id of table public.child",
        "Pass public.posts",
    ),
    bad(
        "'by_id', 'id', 5",
        "0A000",
        "cannot change column id of table public.by_id to bigint",
        "partition key of table public.by_id",
    ),
    bad("'uuids', 'id', 5", "42804", "type uuid of column", "docs/migrate.md"),
    bad("'smalls', 'id', 5", "42804", "type public.small of column id", "domain"),
    bad(
        "'referred', 'id', 5",
        "42804",
        "column referred_id of table public.referring",
        "The column references column id",
    ),
    bad(
        "'wide', 'id', 5",
        "55000",
        "has a value above the next ID",
        "highest value is 5000000000000000000",
    ),
    bad(
        "'shared', 'id', 5",
        "55000",
        "is also used by other objects",
        "column id of table public.sharing",
    ),
    bad(
        "'sharing', 'id', 5",
        "55000",
        "is also used by other objects",
        "column id of table public.shared",
    ),
    bad(
        "'apart', 'id', 5",
        "55000",
        "sequence other.s must have the same owner and schema",
        "SET SCHEMA",
    ),
    bad("'bounded', 'id', 5", "55000", "constraint small_ids", "DROP CONSTRAINT small_ids"),
    bad("'lows', 'id', 5", "23514", "violates check constraint \"is_low\"", ""),
    bad(
        "'far', 'id', 5",
        "0A000",
        "cannot change column id of table public.far to bigint on other servers",
        "public.farther. Change the column on those servers first, then on this one: ALTER TABLE public.far ",
    ),
    bad("'near', 'id', 5", "0A000", "column near_id of table public.of_near", "public.of_near_too"),
    bad(
        "'computed', 'id', 5",
        "0A000",
        "cannot change column id of table public.computed to bigint",
        "column twice of table public.computed",
    ),
    bad(
        "'seen_from', 'id', 5",
        "0A000",
        "column seen_id of table public.refers",
        "view public.on_refers",
    ),
];

#[test]
fn a_refusal_states_the_reason_and_changes_nothing() {
    let cluster = Cluster::new();
    let mut client = database(&cluster, "refusals", TABLES);
    let before = dump(&cluster, "refusals");

    for case in BADS {
        let sql = format!("SELECT snowflake_convert_column({})", case.sql);
        assert_each_refused(&mut client, &[Bad { sql: &sql, ..case }]);
    }

    assert_eq!(dump(&cluster, "refusals"), before);
}

#[test]
fn every_obstacle_is_named_and_conversion_succeeds_without_them() {
    let (_cluster, mut client) = server();
    run(&mut client, TABLES);
    let convert = "SELECT snowflake_convert_column('blocked', 'id', 5)";
    let error = assert_refused(
        &mut client,
        convert,
        Refusal {
            sqlstate: "0A000",
            message: "cannot change column id of table public.blocked to bigint",
            hint: "in one transaction",
        },
    );
    let detail = error.detail().unwrap();
    for object in ["view public.on_blocked", "count_blocked()", "trigger on_id", "policy by_id"] {
        assert!(detail.contains(object), "{object} is not in {detail}");
    }

    run(
        &mut client,
        &format!(
            "BEGIN; DROP VIEW on_blocked; DROP FUNCTION count_blocked(); DROP TRIGGER on_id ON blocked;
             DROP POLICY by_id ON blocked; {convert}; CREATE VIEW on_blocked AS SELECT id FROM blocked; COMMIT"
        ),
    );
}

#[test]
fn a_shared_sequence_can_be_left_to_the_others() {
    let (_cluster, mut client) = server();
    run(&mut client, TABLES);
    let ways = [
        ("sharing", "ALTER TABLE sharing ALTER COLUMN id DROP DEFAULT"),
        (
            "shared",
            "ALTER TABLE sharing ALTER COLUMN id SET DEFAULT nextval('shared_id_seq');
             ALTER TABLE shared ALTER COLUMN id DROP DEFAULT; ALTER SEQUENCE shared_id_seq OWNED BY NONE",
        ),
    ];
    for (table, way) in ways {
        run(&mut client, way);
        let sequence =
            printed(&mut client, &format!("SELECT snowflake_convert_column('{table}', 'id', 5)"));
        assert_ne!(sequence, "shared_id_seq", "{table}");
    }
}

#[test]
fn a_transaction_that_cannot_see_or_write_is_refused() {
    let (cluster, mut client) = server();
    run(&mut client, "CREATE TABLE posts (id serial)");
    let convert = "SELECT snowflake_convert_column('posts', 'id', 5)";
    let modes = [
        ("READ ONLY", "25006", "BEGIN READ WRITE"),
        ("ISOLATION LEVEL REPEATABLE READ", "25000", "READ COMMITTED"),
        ("ISOLATION LEVEL SERIALIZABLE", "25000", "READ COMMITTED"),
    ];
    for (mode, sqlstate, hint) in modes {
        run(&mut client, &format!("BEGIN {mode}"));
        assert_refused(
            &mut client,
            convert,
            Refusal { sqlstate, message: "snowflake_convert_column()", hint },
        );
        run(&mut client, "ROLLBACK");
    }
    let standby = Refusal {
        sqlstate: "25006",
        message: "snowflake_convert_column() during recovery",
        hint: "primary",
    };
    assert_refused(&mut cluster.standby().connect(), convert, standby);
}

#[test]
fn a_table_in_use_by_its_own_transaction_is_refused_by_core() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id serial); BEGIN; DECLARE c CURSOR FOR SELECT * FROM posts",
    );

    let in_use = Refusal { sqlstate: "55006", message: "being used by active queries", hint: "" };
    assert_refused(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5)", in_use);
}
