//! A session's settings and fences are the same wherever it loads the library: also inside a parallel plan, in which PostgreSQL
//! lets nothing else change a setting.

use pg_snowflake_harness::installation;
use pg_snowflake_harness::prelude::*;

/// Settings that a server can have at the same time, each with a value that is not its default.
const SETTINGS: [&[(&str, &str)]; 4] = [
    &[("shard_id", "5"), ("max_lead", "150"), ("max_wait", "70"), ("owned_shards", "5-6")],
    &[("lease", "20000"), ("node", "db-1")],
    &[("allowed_hosts", "no-such-host")],
    &[("registry", "host=/nowhere")],
];

/// Where a session loads the library. `created_at()` is a PARALLEL SAFE function in PL/pgSQL, so a plan that calls it does not load the
/// library before it runs. Each statement can be run by every role.
const PLACES: [(&str, &str); 13] = [
    ("a call", "SELECT snowflake_created_at(0)"),
    ("the leader of a parallel plan", "SET max_parallel_workers = 0; SELECT max(created_at(id)) FROM big"),
    ("a worker of a parallel plan", "SET parallel_leader_participation = off; SELECT max(created_at(id)) FROM big"),
    ("both", "SELECT max(created_at(id)) FROM big"),
    (
        "an input function in a parallel plan",
        "SET max_parallel_workers = 0; SELECT count(json_populate_record(NULL::snowflake_columns, record)) FROM json",
    ),
    ("a function with SET in a parallel plan", "SET max_parallel_workers = 0; SELECT max(created_at_with_set(id)) FROM big"),
    ("a function with SET", "SELECT created_at_with_set(0)"),
    ("a function with SET of a setting of ours", "SELECT created_at_with_wait(0)"),
    ("a function of another role", "SELECT created_at_as_other(0)"),
    ("an aborted subtransaction", "DO $$ BEGIN PERFORM created_at(0); RAISE 'back'; EXCEPTION WHEN raise_exception THEN END $$"),
    ("an aborted transaction", "BEGIN; SELECT snowflake_created_at(0); ROLLBACK"),
    ("a function of another role in a parallel plan", "SET max_parallel_workers = 0; SELECT max(created_at_as_other(id)) FROM big"),
    (
        "a function with SET of a setting of ours in a parallel plan",
        "SET max_parallel_workers = 0; SELECT max(created_at_with_wait(id)) FROM big",
    ),
];

/// From 17 on, a function of a parallel plan may have an EXCEPTION clause.
const IN_A_SUBTRANSACTION: (&str, &str) =
    ("a subtransaction in a parallel plan", "SET max_parallel_workers = 0; SELECT max(created_at_or_null(id)) FROM big");

/// Where a session has its values from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    ConfigurationFile,
    Database,
    Role,
    Options,
    Set,
    SetLocal,
}

fn prepare(builder: Builder) -> Cluster {
    // Every scan is parallel, and loads the library in each session anew.
    let cluster = ["parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"]
        .into_iter()
        .fold(builder, |builder, setting| builder.setting(setting, "0"))
        .start();
    let mut client = cluster.connect();
    let function = |name: &str, options: &str, body: &str| {
        format!("CREATE FUNCTION {name}(id bigint) RETURNS timestamptz LANGUAGE plpgsql PARALLEL SAFE {options} AS $$ BEGIN {body} END $$;")
    };
    let body = "RETURN public.snowflake_created_at(id);";
    let sql = format!(
        "CREATE SEQUENCE s; CREATE ROLE writer LOGIN; CREATE ROLE other;
         GRANT USAGE ON SEQUENCE s TO writer;
         CREATE TABLE big AS SELECT id::bigint FROM generate_series(1, 5000) AS ids (id);
         CREATE TABLE json AS SELECT '{{\"layout\": \"instagram\"}}'::json AS record FROM generate_series(1, 1000);
         GRANT SELECT ON big, json TO PUBLIC; ANALYZE;
         {} {} {} {} {}
         ALTER FUNCTION created_at_as_other OWNER TO other",
        function("created_at", "", body),
        function("created_at_with_set", "SET work_mem = '5MB'", body),
        function("created_at_with_wait", "SECURITY DEFINER SET pg_snowflake.max_wait = '33ms'", body),
        function("created_at_as_other", "SECURITY DEFINER", body),
        function(
            "created_at_or_null",
            "",
            "BEGIN PERFORM public.snowflake_created_at(id); RAISE 'back'; EXCEPTION WHEN raise_exception THEN RETURN NULL; END;",
        ),
    );
    run(&mut client, &sql);
    cluster
}

/// All that a session knows of its settings, and what it lets them do.
fn state(client: &mut Client) -> String {
    // The calls come first: after a parallel plan, only the workers may have loaded the library.
    let calls = ["SELECT snowflake_nextval('s')", "SELECT snowflake_nextval('s', 7)"].map(|call| {
        // Also in a transaction, which an error would abort.
        let _ = client.batch_execute("SAVEPOINT call");
        let outcome = client.simple_query(call).map(|_| "an ID".to_owned());
        let _ = client.batch_execute("ROLLBACK TO call");
        outcome.unwrap_or_else(|error| {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{call}: {error:?}"));
            format!("{}: {}", error.code().code(), error.message())
        })
    });
    let settings = "SELECT name, setting, reset_val, source FROM pg_settings WHERE name LIKE 'pg\\_snowflake.%' ORDER BY name";
    format!("{}\n{}", calls.join("\n"), printed(client, settings))
}

/// The session of a role that has the settings from that origin, before it loads the library.
fn session(cluster: &Cluster, role: &str, settings: &[(&str, &str)], origin: Origin) -> Client {
    let all = |separator: &str, one: &dyn Fn(&str, &str) -> String| {
        settings.iter().map(|(name, value)| one(name, value)).collect::<Vec<_>>().join(separator)
    };
    match origin {
        Origin::ConfigurationFile | Origin::Database | Origin::Role => cluster.connect_to(role, SUPERUSER),
        Origin::Options => {
            let options = all(" ", &|name, value| format!("-c pg_snowflake.{name}={value}"));
            cluster.connect_with_options(role, &options).expect("options of an unknown library")
        }
        Origin::Set | Origin::SetLocal => {
            let mut client = cluster.connect_to(role, SUPERUSER);
            let set = if matches!(origin, Origin::Set) { "SET" } else { "BEGIN; SET LOCAL" };
            run(&mut client, &all(";", &|name, value| format!("{set} pg_snowflake.{name} = '{value}'")));
            client
        }
    }
}

/// Compares each place with a plain call, for both roles.
fn check(cluster: &Cluster, settings: &[(&str, &str)], origin: Origin) {
    let has_subtransactions = installation::major(installation::bindir()) >= 17;
    for role in [SUPERUSER, "writer"] {
        let mut client = session(cluster, role, settings, origin);
        run(&mut client, PLACES[0].1);
        let expected = state(&mut client);
        for (place, statements) in PLACES.into_iter().chain(has_subtransactions.then_some(IN_A_SUBTRANSACTION)) {
            let is_in_transaction = matches!(origin, Origin::SetLocal);
            if is_in_transaction && place == "an aborted transaction" {
                continue;
            }
            let mut client = session(cluster, role, settings, origin);
            run(&mut client, statements);
            assert_eq!(state(&mut client), expected, "{role}, {settings:?} by {origin:?}, loaded in {place}");
        }
    }
}

#[test]
fn a_session_has_the_settings_of_the_configuration_file_wherever_it_loads_the_library() {
    for settings in SETTINGS {
        let builder =
            settings.iter().fold(Cluster::builder(), |builder, (name, value)| builder.setting(&format!("pg_snowflake.{name}"), value));
        check(&prepare(builder), settings, Origin::ConfigurationFile);
    }
}

#[test]
fn a_session_has_the_settings_of_its_database_and_role_wherever_it_loads_the_library() {
    let cluster = prepare(Cluster::builder());
    for (whose, origin) in [("DATABASE postgres", Origin::Database), ("ROLE ALL", Origin::Role)] {
        for settings in SETTINGS {
            for (name, value) in settings {
                cluster.psql(SUPERUSER, &format!("ALTER {whose} SET pg_snowflake.{name} = '{value}'"));
            }
            check(&cluster, settings, origin);
            cluster.psql(SUPERUSER, &format!("ALTER {whose} RESET ALL"));
        }
    }
}

#[test]
fn a_session_keeps_its_own_settings_wherever_it_loads_the_library() {
    let cluster = prepare(Cluster::builder().setting("pg_snowflake.max_lead", "250"));
    for origin in [Origin::Options, Origin::Set, Origin::SetLocal] {
        for settings in SETTINGS {
            check(&cluster, settings, origin);
        }
    }
}

/// A server with the first settings in its configuration file, and one with all. In the latter, no ID can be generated.
fn configured() -> [Cluster; 2] {
    [&SETTINGS[..1], &SETTINGS].map(|sets| {
        let with = |builder: Builder, (name, value): &(&str, &str)| builder.setting(&format!("pg_snowflake.{name}"), value);
        prepare(sets.iter().copied().flatten().fold(Cluster::builder(), with))
    })
}

#[test]
fn a_session_that_is_given_the_library_has_the_same_settings() {
    for cluster in configured() {
        let loaded = |role: &str, load: &str| {
            let mut client = cluster.connect_to(role, SUPERUSER);
            run(&mut client, load);
            state(&mut client)
        };
        let expected = [SUPERUSER, "writer"].map(|role| loaded(role, PLACES[0].1));
        assert_eq!(loaded(SUPERUSER, "LOAD 'pg_snowflake'"), expected[0]);
        assert_eq!(loaded(SUPERUSER, "BEGIN; LOAD 'pg_snowflake'; ROLLBACK"), expected[0]);
        run(&mut cluster.connect(), "ALTER ROLE ALL SET session_preload_libraries = 'pg_snowflake'");
        assert_eq!([SUPERUSER, "writer"].map(|role| loaded(role, "")), expected);
    }
}

#[test]
fn a_parallel_build_of_an_index_leaves_the_settings_in_force() {
    for cluster in configured() {
        let mut client = cluster.connect();
        let immutable = "ALTER FUNCTION created_at IMMUTABLE";
        run(&mut client, &format!("{immutable}; {}", PLACES[0].1));
        let expected = state(&mut client);
        for workers in [0, 2] {
            let mut client = cluster.connect();
            run(&mut client, &format!("SET max_parallel_workers = {workers}"));
            run(&mut client, "CREATE INDEX of_time ON big (created_at(id)); DROP INDEX of_time");
            assert_eq!(state(&mut client), expected);
        }
    }
}

/// A walsender that is connected to a database runs SQL.
#[test]
fn a_walsender_has_the_same_settings() {
    let show = "DO $$ BEGIN PERFORM snowflake_nextval('s', 7);
            RAISE 'an ID'; EXCEPTION WHEN object_not_in_prerequisite_state THEN END $$;
        SELECT name, setting, source FROM pg_settings WHERE name LIKE 'pg\\_snowflake.%' ORDER BY name;";
    for cluster in configured() {
        for (place, load) in PLACES {
            let script = format!("{};\n{show}", load.replace("; ", ";\n"));
            let [plain, walsender] =
                ["dbname=postgres", "dbname=postgres replication=database"].map(|database| cluster.psql(database, &script));
            assert_eq!(walsender, plain, "{place}");
        }
    }
}

/// A setting may be changed in parallel mode only by the library, while it defines the setting.
#[test]
fn a_parallel_plan_changes_no_setting() {
    let cluster = prepare(Cluster::builder());
    let mut client = cluster.connect();
    let sql = "CREATE FUNCTION change(id bigint) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN
            PERFORM public.snowflake_created_at(id);
            RETURN set_config('pg_snowflake.max_wait', '5ms', false);
        END $$;
        SET max_parallel_workers = 0";
    run(&mut client, sql);
    assert_refused(&mut client, "SELECT max(change(id)) FROM big", refusal("25000", "parallel operation"));
}

const VALUES: &str =
    "(SELECT pg_catalog.string_agg(setting, ' ' ORDER BY name) FROM pg_catalog.pg_settings WHERE name LIKE 'pg\\_snowflake.%')";

fn values(cluster: &Cluster) -> String {
    let mut client = cluster.connect();
    run(&mut client, PLACES[0].1);
    let defaults = "SELECT name FROM pg_settings WHERE name LIKE 'pg\\_snowflake.%' AND setting = boot_val";
    assert_eq!(printed(&mut client, defaults), "", "not in SETTINGS");
    printed(&mut client, &format!("SELECT {VALUES}"))
}

/// Autovacuum evaluates the expression of an index.
#[test]
fn autovacuum_has_the_same_settings() {
    let [_, cluster] = configured();
    let sql = format!(
        "CREATE FUNCTION attempt(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
             PERFORM public.snowflake_created_at(id);
             IF (SELECT backend_type = 'autovacuum worker' FROM pg_catalog.pg_stat_activity
                 WHERE pid = pg_catalog.pg_backend_pid()) THEN
                 RAISE LOG 'the settings of autovacuum: %', {VALUES};
                 PERFORM public.snowflake_nextval('public.s', 7);
             END IF;
             RETURN id;
         END $$;
         CREATE TABLE watched (id bigint) WITH (autovacuum_analyze_threshold = 1);
         CREATE INDEX ON watched (attempt(id));
         INSERT INTO watched SELECT generate_series(1, 1000)"
    );
    run(&mut cluster.connect(), &sql);
    for setting in ["autovacuum_naptime = 1", "autovacuum = on"] {
        reload_with(&mut cluster.connect(), &format!("ALTER SYSTEM SET {setting}"));
    }
    let seen = format!("the settings of autovacuum: {}", values(&cluster));
    assert!(comes_true(|| cluster.log().contains(&seen)), "autovacuum has other settings");
    let refusal = "ERROR:  host";
    assert!(comes_true(|| cluster.log().contains(refusal)), "autovacuum has no fence");
}

#[test]
fn a_parallel_worker_has_the_settings_of_its_leader() {
    let [_, cluster] = configured();
    let sql = format!(
        "CREATE FUNCTION seen(id bigint) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN
             PERFORM snowflake_created_at(id); RETURN {VALUES};
         END $$"
    );
    run(&mut cluster.connect(), &sql);
    let expected = values(&cluster);
    for load in ["", PLACES[0].1, "SET max_parallel_workers = 0; SELECT max(created_at(id)) FROM big; RESET ALL"] {
        let mut client = cluster.connect();
        run(&mut client, &format!("{load}; SET parallel_leader_participation = off"));
        // Each of these rows reads all settings of the server.
        assert_eq!(printed(&mut client, "SELECT DISTINCT seen(id) FROM big WHERE id % 25 = 0"), expected, "{load}");
    }
}
