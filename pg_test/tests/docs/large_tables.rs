//! The steps of docs/migrate.md for large tables with integer keys, and the script that lists what they would lose or fail on.

use super::page::{between, page};
use pg_snowflake_harness::installation::has_major;
use pg_snowflake_harness::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::scope;

const SCRIPT: &str = include_str!("../../../docs/migrate/dependents.sql");
const STEPS: [&str; 6] = ["1", "2", "3", "4 first", "4 last", "5"];

/// What the script prints about an object: commands, or a comment.
#[derive(Debug)]
struct Row {
    step: &'static str,
    title: String,
    what: String,
}

impl Row {
    fn is_command(&self) -> bool {
        !self.what.starts_with("--")
    }
}

/// What the script has printed.
fn rows(printed: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in printed.lines() {
        let header = STEPS.iter().find_map(|step| {
            let title = line.strip_prefix("-- ")?.strip_prefix(step)?.strip_prefix(": ")?;
            Some(Row { step, title: title.to_owned(), what: String::new() })
        });
        match header {
            Some(row) => rows.push(row),
            None => {
                let what = &mut rows.last_mut().expect("a title").what;
                *what += line;
                *what += "\n";
            }
        }
    }
    rows
}

/// In a session with unusual settings.
fn list(psql: &dyn Fn(&str) -> String, table: &str, column: &str) -> Vec<Row> {
    const SETTINGS: &str = r"SET datestyle = 'SQL, DMY'; SET intervalstyle = sql_standard;
        SELECT set_config('standard_conforming_strings', 'off', false) WHERE current_setting('server_version_num')::int < 190000 \g /dev/null";
    rows(&psql(&format!("{SETTINGS}\n\\set table {table}\n\\set column {column}\n{SCRIPT}")))
}

/// What the script has printed for a step.
fn of_step(rows: &[Row], step: &str) -> String {
    rows.iter().filter(|row| row.step == step).map(|row| &*row.what).collect()
}

/// The block with the steps.
fn block() -> String {
    page("docs/migrate.md").block_with("-- 1. ")
}

/// A text of the page with the names of another table and column.
fn with_names(text: &str, table: &str, column: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let text = text.replace("public.events", table);
    let words = text.split_inclusive(|c| !is_word(c)).map(|word| match word.strip_prefix("id") {
        Some(rest) if !rest.starts_with(is_word) => format!("{column}{rest}"),
        _ => word.to_owned(),
    });
    words.collect()
}

/// The steps of the page for a column, with what the script has printed.
struct Steps<'a> {
    psql: Box<dyn Fn(&str) -> String + 'a>,
    client: Client,
    page: String,
    rows: Vec<Row>,
}

impl<'a> Steps<'a> {
    fn new(psql: impl Fn(&str) -> String + 'a, client: Client, table: &str, column: &str) -> Self {
        let rows = list(&psql, table, column);
        Steps { psql: Box::new(psql), client, page: with_names(&block(), table, column), rows }
    }

    fn step_1(&mut self) {
        run_again(&mut self.client, between(&self.page, "-- 1. ", "-- 2. "));
    }

    fn steps_2_and_3(&self) {
        (self.psql)(between(&self.page, "-- 2. ", "-- 3. "));
        (self.psql)(&of_step(&self.rows, "3"));
    }

    /// With more commands at the beginning and the end of step 4.
    fn steps_4_and_5(&mut self, first: &str, last: &str) {
        let page = &self.page;
        let [before, after] = ["4 first", "4 last"].map(|step| of_step(&self.rows, step));
        let begin = between(page, "-- 4. ", "-- 4 first");
        let exchange = between(page, "-- the exchange", "-- 4 last");
        let end = between(page, "-- the end", "COMMIT;");
        let is_key = self.rows.iter().any(|row| row.what.contains("PRIMARY KEY"));
        let end = if is_key { end } else { end.split_once('\n').expect("the conversion").1 };
        run_again(&mut self.client, &format!("{begin}{before}{first}{exchange}{after}{end}{last} COMMIT"));
        let drop = page.lines().find(|line| line.starts_with("DROP FUNCTION"));
        run(&mut self.client, drop.expect("it drops its function"));
        (self.psql)(&of_step(&self.rows, "5"));
    }

    /// Does something before, between and after them.
    fn all_among(mut self, mut other: impl FnMut()) {
        other();
        self.step_1();
        other();
        self.steps_2_and_3();
        other();
        self.steps_4_and_5("", "");
        other();
    }

    fn all(self) {
        self.all_among(|| ());
    }
}

/// Runs a transaction until it gets its locks, as the page says.
fn run_again(client: &mut Client, transaction: &str) {
    while let Err(error) = client.batch_execute(transaction) {
        let code = error.code().map_or("", |code| code.code());
        assert!(["55P03", "40P01"].contains(&code), "{transaction}: {error:?}");
        run(client, "ROLLBACK");
    }
}

#[test]
fn the_page_shows_what_the_script_prints_for_its_table() {
    let database = Database::new();
    database.psql("CREATE TABLE events (id serial PRIMARY KEY, body text)");
    let rows = list(&|sql| database.psql(sql), "public.events", "id");
    let page = block();
    let commands = |step| -> String {
        let commands = rows.iter().filter(|row| row.step == step && row.is_command());
        commands.map(|row| &*row.what).collect()
    };
    assert_eq!(between(&page, "-- 3. ", "\n-- 4. "), commands("3"));
    assert_eq!(between(&page, "-- 4 first", "-- the exchange"), commands("4 first"));
    assert_eq!(between(&page, "-- 4 last", "-- the end"), commands("4 last"));
    assert!(!rows.iter().any(|row| row.step == "5"), "{rows:?}");
}

/// What refers to the column, and is restored by commands that the script prints. `deferred` is another table with a key.
const CARRIED: &str = r#"
    ALTER TABLE events ADD CONSTRAINT positive CHECK (id > 0), ADD CHECK (id <> 70000) NO INHERIT NOT VALID;
    ALTER TABLE events ADD CHECK (id > 0 OR now() > date '2020-02-01' + interval '-1 day 2 hours' AND body ~ '\d');
    ALTER TABLE events ADD CONSTRAINT id_and_body UNIQUE (id, body) DEFERRABLE;
    ALTER TABLE deferred ADD PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE events ADD PRIMARY KEY (id) INCLUDE (body) WITH (fillfactor = 70); COMMENT ON CONSTRAINT events_pkey ON events IS 'key';
    CREATE UNIQUE INDEX kind_and_id ON events ("Kind", id DESC NULLS LAST);
    CREATE INDEX expression ON events ((id % 10), body) WHERE id > 5; ALTER INDEX expression ALTER COLUMN 1 SET STATISTICS 50;
    CREATE INDEX included ON events (body) INCLUDE (id); COMMENT ON INDEX included IS 'id';
    CREATE INDEX hashed ON events USING hash (id);
    ALTER TABLE events REPLICA IDENTITY USING INDEX kind_and_id;
    ALTER TABLE events CLUSTER ON kind_and_id;
    ALTER TABLE refs ADD FOREIGN KEY (event_id) REFERENCES events ON DELETE CASCADE DEFERRABLE;
    GRANT SELECT (id) ON events TO reader WITH GRANT OPTION; GRANT UPDATE (id) ON events TO PUBLIC;
    COMMENT ON COLUMN events.id IS E'a \\ key''s';
    ALTER TABLE events ALTER id SET STATISTICS 500;
    ALTER TABLE events ALTER id SET (n_distinct = -1, n_distinct_inherited = -0.5);
    CREATE STATISTICS extended (ndistinct) ON id, body FROM events;
    ALTER STATISTICS extended SET STATISTICS 9;
    ALTER STATISTICS extended OWNER TO reader;
    COMMENT ON STATISTICS extended IS 'two';
    CREATE POLICY mine ON events FOR INSERT TO reader WITH CHECK (id > 0);
    CREATE POLICY theirs ON refs USING (event_id IN (SELECT id FROM events));
    CREATE RULE none AS ON DELETE TO events WHERE OLD.id = 3 DO INSTEAD NOTHING; ALTER TABLE events ENABLE ALWAYS RULE none;
    CREATE TRIGGER on_few BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.id < 100) EXECUTE FUNCTION note();
    ALTER TABLE events ENABLE REPLICA TRIGGER on_few;
    CREATE TRIGGER of_id AFTER UPDATE OF id ON events FOR EACH ROW EXECUTE FUNCTION note(); ALTER TABLE events DISABLE TRIGGER of_id;
    CREATE CONSTRAINT TRIGGER at_end AFTER UPDATE OF id ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
    COMMENT ON TRIGGER at_end ON events IS 'end';
    CREATE TRIGGER writes BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION note();
    CREATE PUBLICATION of_columns FOR TABLE events (id, "Kind") WHERE (id > 0), refs;
    CREATE PUBLICATION filtered FOR TABLE events WHERE (id > 0) WITH (publish = 'insert');
    CREATE FUNCTION body_of(bigint) RETURNS SETOF text SECURITY DEFINER BEGIN ATOMIC SELECT body FROM events WHERE id = $1; END;"#;

/// The lines of a dump in order, since the key becomes the last column. Without rows, and without what differs from dump to dump.
fn schema(database: &Database) -> Vec<String> {
    let dump = database.dump();
    let mut is_row = false;
    let mut lines: Vec<String> = Vec::new();
    for line in dump.lines() {
        is_row = line.starts_with("COPY ") || is_row && line != "\\.";
        let differs = ["restrict ", "setval(", "START WITH ", "\\."].iter().any(|word| line.contains(word));
        if !is_row && !differs && !line.starts_with("--") {
            lines.push(line.trim().trim_end_matches(',').to_owned());
        }
    }
    lines.sort_unstable();
    lines
}

/// Also, a session that has already called the function of a trigger goes on.
#[test]
fn the_steps_keep_all_that_refers_to_the_column() {
    let setup = "CREATE TABLE events (id serial, \"Kind\" text NOT NULL DEFAULT 'a', body text); CREATE TABLE refs (event_id bigint);
        CREATE TABLE deferred (id serial);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.body := NEW.id || 'x'; RETURN NEW; END $$;
        INSERT INTO events (body) SELECT n FROM generate_series(1, 2000) AS n";
    let (database, mut client) = database_with(setup);
    run(&mut client, CARRIED);
    if has_major(18, "constraints that are not enforced") {
        let setup = "ALTER TABLE events ADD CONSTRAINT planned CHECK (id < 0) NOT ENFORCED;
            CREATE TABLE planned (event_id bigint REFERENCES events NOT ENFORCED); INSERT INTO planned VALUES (0);
            CREATE TABLE named (id int CONSTRAINT filled NOT NULL)";
        run(&mut client, setup);
        Steps::new(|sql| database.psql(sql), database.connect(), "public.named", "id").all();
        let named = "SELECT conname FROM pg_constraint WHERE conrelid = 'named'::regclass AND contype = 'n'";
        assert_eq!(printed(&mut client, named), "filled");
    }
    let before = schema(&database);
    let key = "SELECT string_agg(id || body, ',' ORDER BY id) FROM events WHERE id < 2001";
    let keys = printed(&mut client, key);
    let insert = "INSERT INTO events (body) VALUES ('new') RETURNING body = id || 'x'";
    assert_eq!(printed(&mut client, insert), "t");

    for table in ["public.events", "public.deferred"] {
        Steps::new(|sql| database.psql(sql), database.connect(), table, "id").all();
    }

    assert_eq!(printed(&mut client, key), keys);
    assert_eq!(printed(&mut client, insert), "t");
    let after = schema(&database);
    let only =
        |lines: &[String], others: &[String]| -> Vec<String> { lines.iter().filter(|line| !others.contains(line)).cloned().collect() };
    assert_eq!(only(&before, &after), OLD);
    assert_eq!(only(&after, &before), NEW);
}

/// What a dump has before and after the steps, other than what the conversion grants: the column is a `bigint` and the last one.
const OLD: [&str; 9] = [
    "ALTER PUBLICATION of_columns ADD TABLE ONLY public.events (id, \"Kind\") WHERE ((id > 0));",
    "ALTER TABLE ONLY public.deferred ALTER COLUMN id SET DEFAULT nextval('public.deferred_id_seq'::regclass);",
    "ALTER TABLE ONLY public.events ALTER COLUMN id SET DEFAULT nextval('public.events_id_seq'::regclass);",
    "AS integer",
    "AS integer",
    "CREATE INDEX expression ON public.events USING btree (((id % 10)), body) WHERE (id > 5);",
    "CREATE STATISTICS public.extended (ndistinct) ON id, body FROM public.events;",
    "id integer NOT NULL",
    "id integer NOT NULL",
];
const NEW: [&str; 7] = [
    "ALTER PUBLICATION of_columns ADD TABLE ONLY public.events (\"Kind\", id) WHERE ((id > 0));",
    "ALTER TABLE ONLY public.deferred ALTER COLUMN id SET DEFAULT public.snowflake_nextval('public.deferred_id_seq'::regclass, 5, 'postgres'::public.snowflake_layout);",
    "ALTER TABLE ONLY public.events ALTER COLUMN id SET DEFAULT public.snowflake_nextval('public.events_id_seq'::regclass, 5, 'postgres'::public.snowflake_layout);",
    "CREATE INDEX expression ON public.events USING btree (((id % (10)::bigint)), body) WHERE (id > 5);",
    "CREATE STATISTICS public.extended (ndistinct) ON body, id FROM public.events;",
    "id bigint NOT NULL",
    "id bigint NOT NULL",
];

/// What no command restores, a line each: the table, statements that make it, and parts of what the script prints.
const NAMED: &str = r#"
    n1: CREATE TABLE n1 (id int) PARTITION BY RANGE (id) => 1: public.n1|a partitioned table
    n2: CREATE TABLE n2 PARTITION OF n1 DEFAULT => 1: public.n2|a parent or children
    n3: CREATE TABLE n3 (id int); CREATE TABLE child () INHERITS (n3) => 1: public.n3|a parent or children
    n4: CREATE TYPE of_n4 AS (id int); CREATE TABLE n4 OF of_n4 => 1: public.n4|a table OF a type
    n5: CREATE TABLE n5 (id text) => 1: public.n5|the type text
    n6: CREATE VIEW n6 AS SELECT 1 AS id => 1: public.n6|this kind of table
    n7: CREATE TABLE n7 (id int, wide int) => 1: column wide of public.n7|Rename
    n8: CREATE TABLE n8 (id int); CREATE TRIGGER zzzzz BEFORE INSERT ON n8 FOR EACH ROW EXECUTE FUNCTION counts() => 1: trigger zzzzz on public.n8|Rename
    n9: CREATE TABLE n9 (id int); CREATE TRIGGER fills BEFORE INSERT ON n9 FOR EACH ROW EXECUTE FUNCTION counts() => 1: trigger fills on public.n9|nextval
    n10: CREATE TABLE n10 (id int, twice int GENERATED ALWAYS AS (id * 2) STORED) => column twice of table public.n10|generated
    n11: CREATE TABLE n11 (id int PRIMARY KEY); CREATE TABLE of_n11 (n11 int REFERENCES n11) => 1: column n11 of public.of_n11|first run all steps
    n12: CREATE TABLE n12 (id int PRIMARY KEY, parent int REFERENCES n12) => 1: column parent of public.n12|first run all steps
    n13: CREATE TABLE n13 (id int PRIMARY KEY); CREATE TABLE of_n13 (n13 bigint REFERENCES n13) PARTITION BY LIST (n13) => 1: constraint of_n13_n13_fkey on public.of_n13|while it locks
    n14: CREATE TABLE n14 (id int); CREATE PUBLICATION whole FOR TABLE n14 => 1: publication whole|ALTER TABLE public.n14 ADD COLUMN wide
    n15: CREATE TABLE n15 (id int); CREATE TABLE of_n15 (old n15[]) => 1: column old of public.of_n15|will be null
    n16: CREATE TABLE n16 (id serial); CREATE TABLE of_n16 (id int DEFAULT nextval('n16_id_seq')) => column id of table public.of_n16|n16_id_seq
    n17: CREATE TABLE n17 (id int); CREATE TRIGGER audits AFTER UPDATE ON n17 FOR EACH ROW EXECUTE FUNCTION counts() => 2: trigger audits on public.n17|session_replication_role
    n18: CREATE TABLE n18 (id int); CREATE RULE changes AS ON UPDATE TO n18 DO INSTEAD NOTHING => 2: rule changes on public.n18|Disable
    n24: CREATE TABLE n24 (id int); ALTER TABLE n24 ADD CONSTRAINT later CHECK (false) NOT VALID => 2: constraint later on public.n24|fails
    n19: CREATE TABLE n19 (id int); ALTER TABLE n19 FORCE ROW LEVEL SECURITY => 2: row security of public.n19|BYPASSRLS
    n20: CREATE TABLE n20 (id int, kind text); CREATE INDEX n20_kind ON n20 (id) WHERE kind = 'id' => 3: index public.n20_kind|WHERE (kind = 'id'::text)
    n21: CREATE TABLE n21 (id int, CONSTRAINT alone EXCLUDE (id WITH =)) => 3: index public.alone|EXCLUDE USING btree (id WITH =)
    n22: CREATE TABLE n22 (id int PRIMARY KEY) => 3: INSERT INTO public.n22 … ON CONFLICT (id)|23505
    n25: CREATE TABLE n25 (id int, "x id" int NOT NULL, PRIMARY KEY (id, "x id")); ALTER TABLE n25 REPLICA IDENTITY USING INDEX n25_pkey; COMMENT ON CONSTRAINT n25_pkey ON n25 IS 'key' => 4 last: comment on CONSTRAINT n25_pkey ON public.n25|after DROP COLUMN and the rename: COMMENT ON CONSTRAINT
    n25: SELECT => 4 last: replica identity|after DROP COLUMN
    n26: CREATE TABLE n26 (id int CONSTRAINT low CHECK (id < 1000)) => 1: constraint low on public.n26|2^31
    n23: CREATE TABLE n23 (id int PRIMARY KEY, body text); CREATE VIEW U&"of\000ADROP TABLE n23;--" AS SELECT body FROM n23 GROUP BY id; CREATE MATERIALIZED VIEW stored AS SELECT id FROM n23 => 4 first: materialized view public.stored|create it again"#;

#[test]
fn the_script_names_what_the_steps_cannot_keep() {
    let (database, mut client) = database();
    run(&mut client, "CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := nextval('s'); RETURN NEW; END $$");
    for line in NAMED.lines().skip(1) {
        let (table, case) = line.trim().split_once(": ").expect("a table");
        let (sql, expected) = case.split_once(" => ").expect("statements");
        let (title, what) = expected.split_once('|').expect("two parts");
        run(&mut client, sql);
        let rows = list(&|sql| database.psql(sql), &format!("public.{table}"), "id");
        let is_named =
            rows.iter().any(|row| format!("{}: {}", row.step, row.title).ends_with(title) && row.what.contains(what) && !row.is_command());
        assert!(is_named, "{line}: {rows:#?}");
        // A reader pastes the comments together with the commands.
        assert!(rows.iter().filter(|row| !row.is_command()).all(|row| row.what.lines().count() == 1), "{line}: {rows:#?}");
    }
}

#[test]
fn an_index_keeps_its_method_and_gets_the_operator_class_of_the_wider_type() {
    let database = Database::new();
    let setup = "CREATE TABLE events (hash int); CREATE INDEX of_hash ON events USING hash (hash);
        CREATE INDEX of_ranges ON events USING brin (hash int4_minmax_multi_ops)";
    database.psql(setup);
    let rows = list(&|sql| database.psql(sql), "public.events", "hash");
    assert_eq!(
        of_step(&rows, "3"),
        "CREATE INDEX CONCURRENTLY of_hash_wide ON public.events USING hash (wide);\n\
         CREATE INDEX CONCURRENTLY of_ranges_wide ON public.events USING brin (wide int8_minmax_multi_ops);\n"
    );
}

/// The owner of the table is no superuser.
#[test]
fn the_script_names_the_roles_that_own_what_its_commands_change() {
    let cluster = Cluster::builder().start();
    let mut client = cluster.connect();
    let setup = "CREATE ROLE \"the owner\"; CREATE ROLE stranger; GRANT CREATE ON SCHEMA public TO \"the owner\", stranger;
        CREATE TABLE events (id int PRIMARY KEY, body text); ALTER TABLE events OWNER TO \"the owner\"; GRANT ALL ON events TO stranger;
        CREATE PUBLICATION theirs FOR TABLE events (id); ALTER PUBLICATION theirs OWNER TO stranger;
        SET ROLE stranger;
        CREATE FUNCTION reads() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(id) FROM events); END $$;
        CREATE FUNCTION pg_temp.passes() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(id) FROM events); END $$;
        CREATE FUNCTION body_of(bigint) RETURNS SETOF text BEGIN ATOMIC SELECT body FROM events WHERE id = $1; END;
        CREATE TABLE refs (event_id bigint REFERENCES events);
        RESET ROLE;
        SET ROLE \"the owner\";
        CREATE FUNCTION mine() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(id) FROM events); END $$;
        RESET ROLE";
    run(&mut client, setup);
    let rows = |role: &str| list(&|sql| cluster.psql(SUPERUSER, &format!("SET ROLE {role};\n{sql}")), "public.events", "id");
    let owner = rows("\"the owner\"");
    let named: Vec<&str> =
        owner.iter().filter(|row| row.step == "1" && row.what.contains("belongs to the role stranger")).map(|row| &*row.title).collect();
    let others = ["function public.body_of(bigint)", "function public.reads()", "publication theirs", "table public.refs"];
    assert_eq!(named, others, "{owner:#?}");
    let compiled = |rows: &[Row]| -> String {
        let rows = rows.iter().filter(|row| row.title == "compiled in open sessions");
        rows.map(|row| &*row.what).collect()
    };
    let mine = "ALTER ROUTINE public.mine() SECURITY INVOKER;\n";
    assert_eq!(compiled(&owner), mine);
    let all = rows("postgres");
    assert!(!all.iter().any(|row| row.what.contains("belongs to")), "{all:#?}");
    assert_eq!(compiled(&all), format!("{mine}ALTER ROUTINE public.reads() SECURITY INVOKER;\n"));
}

/// The steps for a column that references another, which is not converted. Two of its indexes have long names.
#[test]
fn an_identity_column_that_is_not_converted_counts_on() {
    let (database, mut client) = database();
    let long = "ä".repeat(31);
    let setup = format!(
        "CREATE TABLE events (id int GENERATED ALWAYS AS IDENTITY
             (SEQUENCE NAME numbers START 50 INCREMENT 5 MINVALUE 40 MAXVALUE 1000 CACHE 1 CYCLE) PRIMARY KEY, body text);
         CREATE INDEX {long}a ON events (id); CREATE INDEX {long}b ON events (id);
         INSERT INTO events (body) VALUES ('a'), ('b')"
    );
    run(&mut client, &setup);
    let options = "SELECT attidentity, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle FROM pg_attribute, pg_sequence
                   WHERE attrelid = 'events'::regclass AND attname = 'id' AND seqrelid = 'numbers'::regclass";
    let indexes = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class JOIN pg_index ON indexrelid = oid WHERE indrelid = 'events'::regclass";
    let before = [options, indexes].map(|sql| printed(&mut client, sql));
    let mut steps = Steps::new(|sql| database.psql(sql), database.connect(), "public.events", "id");
    let call = "SELECT snowflake_convert_column('public.events', 'id', 5);";
    assert!(steps.page.contains(call));
    steps.page = steps.page.replace(call, "");
    steps.all();
    assert_eq!(printed(&mut client, "INSERT INTO events (body) VALUES ('c') RETURNING id, pg_typeof(id)"), "60|bigint");
    assert_eq!([options, indexes].map(|sql| printed(&mut client, sql)), before);
}

/// The table is empty, and has a view.
#[test]
fn an_identity_column_keeps_its_sequence_and_a_column_that_a_trigger_fills_is_filled() {
    let setup = "CREATE TABLE events (id int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME numbers CACHE 3) PRIMARY KEY, body text);
        GRANT SELECT ON SEQUENCE numbers TO reader;
        COMMENT ON SEQUENCE numbers IS 'of events';
        CREATE VIEW seen AS SELECT id FROM events;
        CREATE TABLE filled (id int PRIMARY KEY, body text);
        CREATE SEQUENCE counter;
        CREATE FUNCTION fills() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := nextval('counter'); RETURN NEW; END $$;
        CREATE TRIGGER fills BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION fills()";
    let (database, mut client) = database_with(setup);
    let mut steps = Steps::new(|sql| database.psql(sql), database.connect(), "public.events", "id");
    steps.step_1();
    steps.steps_2_and_3();
    steps.steps_4_and_5("DROP VIEW seen;", "CREATE VIEW seen AS SELECT id FROM events;");
    assert_eq!(printed(&mut client, "INSERT INTO events DEFAULT VALUES RETURNING snowflake_shard_id(id)"), "5");
    let sequence = "SELECT pg_get_serial_sequence('events', 'id'), has_sequence_privilege('reader', 'numbers', 'SELECT'),
                           obj_description('numbers'::regclass), seqcache FROM pg_sequence WHERE seqrelid = 'numbers'::regclass";
    assert_eq!(printed(&mut client, sequence), "public.numbers|t|of events|3");

    run(&mut client, "CREATE TABLE nulls (id int DEFAULT 7); INSERT INTO nulls VALUES (NULL), (1)");
    let mut steps = Steps::new(|sql| database.psql(sql), database.connect(), "public.nulls", "id");
    let check = "CHECK (wide IS NOT DISTINCT FROM id)";
    assert!(page("docs/migrate.md").text().contains(check));
    steps.page = steps.page.replace("CHECK (wide IS NOT NULL AND wide = id)", check);
    steps.all();
    run(&mut client, "INSERT INTO nulls VALUES (DEFAULT)");
    assert_eq!(printed(&mut client, "SELECT id, pg_typeof(id) FROM nulls"), "|bigint\n1|bigint\n7|bigint");

    let mut steps = Steps::new(|sql| database.psql(sql), database.connect(), "public.filled", "id");
    steps.step_1();
    run(&mut client, "INSERT INTO filled (body) VALUES ('during')");
    steps.steps_2_and_3();
    steps.steps_4_and_5("", "");
    run(&mut client, "INSERT INTO filled (body) VALUES ('after')");
    assert_eq!(printed(&mut client, "SELECT id, body FROM filled ORDER BY id"), "1|during\n2|after");
}

/// The subscriber first, as the script says, while rows arrive.
#[test]
fn a_subscriber_receives_each_row_during_the_steps() {
    let [publisher, subscriber] = [(); 2].map(|()| Cluster::builder().setting("wal_level", "logical").start());
    let [mut here, mut there] = [publisher.connect(), subscriber.connect()];
    for client in [&mut here, &mut there] {
        run(client, "CREATE TABLE events (id serial PRIMARY KEY, body text)");
    }
    run(&mut here, "CREATE PUBLICATION pub FOR TABLE events");
    let host = publisher.dir().display();
    run(&mut there, &format!("CREATE SUBSCRIPTION sub CONNECTION 'host={host} user=postgres dbname=postgres' PUBLICATION pub"));
    let mut arrives = |client: &mut Client| {
        let id = take_one(&mut here, "INSERT INTO events (body) VALUES ('new') RETURNING id::bigint");
        wait_for(client, &format!("SELECT count(*) = 1 FROM events WHERE id = {id}"), "the row has arrived");
    };
    for cluster in [&subscriber, &publisher] {
        Steps::new(|sql| cluster.psql(SUPERUSER, sql), cluster.connect(), "public.events", "id").all_among(|| arrives(&mut there));
        run(&mut there, "ALTER TABLE events ADD COLUMN IF NOT EXISTS wide bigint");
    }
    run(&mut there, "ALTER TABLE events DROP COLUMN wide");
    arrives(&mut there);
    assert_eq!(printed(&mut there, "SELECT count(*) FROM events"), "9");
    run(&mut there, "DROP SUBSCRIPTION sub");
}

/// The step waits for the transaction while it holds a lock that the transaction needs, and gives up before the transaction must.
#[test]
fn a_transaction_that_writes_both_tables_goes_on_in_step_4() {
    let writes = ["INSERT INTO events DEFAULT VALUES", "INSERT INTO comments (event_id) VALUES (1)"];
    for [first, second] in [writes, [writes[1], writes[0]]] {
        let setup = "CREATE TABLE events (id serial PRIMARY KEY); INSERT INTO events DEFAULT VALUES;
            CREATE TABLE comments (event_id int NOT NULL REFERENCES events)";
        let (database, mut client) = database_with(setup);
        for (table, column) in [("public.comments", "event_id"), ("public.events", "id")] {
            let mut steps = Steps::new(|sql| database.psql(sql), database.connect(), table, column);
            steps.step_1();
            steps.steps_2_and_3();
            run(&mut client, &format!("BEGIN; {first}"));
            let pid = backend_pid(&mut steps.client);
            scope(|scope| {
                scope.spawn(|| {
                    wait_until_it_waits_for_a_lock(&mut client, pid);
                    run(&mut client, &format!("{second}; COMMIT"));
                });
                steps.steps_4_and_5("", "");
            });
        }
    }
}

/// Does something again and again until it is stopped, and returns the IDs that it got.
fn write(database: &Database, stop: &Stop, mut once: impl FnMut(&mut Client, &mut Vec<i64>)) -> Vec<i64> {
    let mut client = database.connect();
    let mut ids = Vec::new();
    while !stop.is_called() {
        once(&mut client, &mut ids);
    }
    ids
}

/// The ID that a statement returns, which may wait in the way of the steps.
fn id_of(client: &mut Client, sql: &str) -> i64 {
    printed(client, sql).parse().expect("an ID")
}

/// PostgreSQL reports a deadlock at once to a client in the way of a step that has a weaker lock of the same table.
#[test]
fn a_client_that_has_locked_a_row_goes_on_while_step_4_waits_for_its_locks() {
    let sql = "CREATE TABLE events (id serial PRIMARY KEY); CREATE TABLE comments (event_id int REFERENCES events);
        INSERT INTO events VALUES (1)";
    let (database, mut client) = database_with(sql);
    let first = of_step(&list(&|sql| database.psql(sql), "public.events", "id"), "4 first");
    let locks = first.lines().find(|line| line.starts_with("LOCK TABLE")).expect("the step locks the tables");
    run(&mut client, "BEGIN; SELECT FROM events FOR UPDATE");
    let step = |other: &mut Client| run(other, &format!("BEGIN; {locks} COMMIT"));
    while_it_waits(&mut client, &mut database.connect(), step, |client| run(client, "UPDATE events SET id = 2; COMMIT"));
}

/// A key that changes is missing. The triggers of the table sort before and after most names, and one sets the key.
#[test]
fn clients_lose_no_row_and_no_reference_during_the_steps() {
    let (database, mut client) = database();
    // On a busy machine, a client could see a deadlock before the step gives up.
    run(&mut client, &format!("ALTER DATABASE {} SET deadlock_timeout = '1h'", database.name()));
    let setup = "CREATE TABLE events (id serial PRIMARY KEY, body text);
        INSERT INTO events (body) SELECT 'old' FROM generate_series(1, 20000);
        CREATE TABLE comments (event_id int NOT NULL REFERENCES events ON DELETE CASCADE, body text);
        CREATE INDEX ON comments (event_id);
        INSERT INTO comments SELECT id FROM events;
        CREATE SEQUENCE odd START 1000000000;
        CREATE FUNCTION sets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.body = 'odd' THEN NEW.id := nextval('odd'); END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER zz_sets BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION sets()";
    run(&mut client, setup);
    let stop = Stop::default();
    let upserted = AtomicI64::new(200_000_000);
    let insert = |body| format!("INSERT INTO events (body) VALUES ('{body}') RETURNING id");
    let upsert = |client: &mut Client, ids: &mut Vec<i64>| {
        let id = upserted.fetch_add(1, Ordering::Relaxed) / 2;
        let sql = format!("INSERT INTO events (id, body) VALUES ({id}, 'upsert') ON CONFLICT (id) DO UPDATE SET body = 'again'");
        while let Err(error) = client.simple_query(&sql) {
            // The one error that the page names.
            let error = error.as_db_error().expect("of the server");
            assert_eq!((error.code().code(), error.constraint()), ("23505", Some("events_pkey_wide")), "{error:?}");
        }
        ids.push(id);
    };
    let (ids, comments) = scope(|scope| {
        let at_the_end = StopAtEnd(&stop);
        let upserts = [0, 1].map(|_| scope.spawn(|| write(&database, &stop, upsert)));
        let inserts = scope.spawn(|| {
            write(&database, &stop, |client, ids| {
                let id = id_of(client, &insert("new"));
                run(client, &format!("UPDATE events SET body = 'changed' WHERE id = {id}"));
                if ids.len() % 3 == 0 {
                    run(client, &format!("DELETE FROM events WHERE id = {id}"));
                    ids.push(id_of(client, &insert("odd")));
                } else {
                    ids.push(id);
                }
            })
        });
        // Rows in another order than that of step 2, and rows that remain as they are.
        let locks = scope.spawn(|| {
            write(&database, &stop, |client, _| {
                run(client, "BEGIN; SELECT FROM events WHERE id = 15000 FOR UPDATE; UPDATE events SET body = 'x' WHERE id = 2; COMMIT")
            })
        });
        let pairs = scope.spawn(|| {
            write(&database, &stop, |client, ids| {
                run(client, "BEGIN");
                let id = id_of(client, &insert("parent"));
                run(client, &format!("INSERT INTO comments (event_id) VALUES ({id}); COMMIT"));
                ids.push(id);
            })
        });
        let children = scope.spawn(|| {
            write(&database, &stop, |client, ids| ids.push(id_of(client, "INSERT INTO comments (event_id) VALUES (1) RETURNING event_id")))
        });

        for (table, column) in [("public.comments", "event_id"), ("public.events", "id")] {
            Steps::new(|sql| database.psql(sql), database.connect(), table, column)
                .all_among(|| wait_for_more_rows(&mut client, table, 100));
        }
        drop(at_the_end);
        let [a, b] = upserts.map(|client| client.join().expect("no insert fails"));
        let pairs = pairs.join().expect("no insert fails");
        let children = children.join().expect("no insert fails");
        locks.join().expect("no update fails");
        let comments = pairs.len() + children.len();
        let mut ids = [a, b, pairs, inserts.join().expect("no insert fails")].concat();
        ids.sort_unstable();
        ids.dedup();
        (ids, comments)
    });
    let stored = take(&mut client, "SELECT id FROM events WHERE id > 20000 ORDER BY id");
    assert_eq!(stored.len(), ids.len());
    assert!(stored == ids, "a key has changed");
    assert_eq!(printed(&mut client, "SELECT count(DISTINCT id) FROM events WHERE id <= 20000"), "20000");
    let references = "SELECT count(*), count(*) FILTER (WHERE e.id IS NULL) FROM comments LEFT JOIN events AS e ON e.id = event_id";
    assert_eq!(printed(&mut client, references), format!("{}|0", 20000 + comments));
}
