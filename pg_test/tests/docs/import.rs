//! The IDs that docs/import.md computes for existing rows.

use super::page::page;
use pg_snowflake_harness::prelude::*;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::presets::PRESETS;

const SCRIPT: &str = include_str!("../../../docs/import/measure.sql");

/// The block of the page with this statement.
fn block(statement: &str) -> String {
    page("docs/import.md").block_with(statement)
}

/// The second step of the page, for a layout: with the replacements that the page names.
fn step(layout: &str) -> String {
    let step = block("CREATE TABLE order_ids AS");
    let preset = Layout::preset(layout).expect("a preset");
    let mut step = step;
    for (old, new) in [
        ("'2010-01-01Z'::timestamptz", format!("(snowflake_layout_info('{layout}')).epoch")),
        ("interval '1 ms', 5", format!("(snowflake_layout_info('{layout}')).unit, {}", shard(&preset))),
        ("counter >> 10", format!("counter >> {}", preset.seq_bits)),
        ("(counter & 1023)::int", format!("(counter & {})::int, '{layout}'", preset.seqs() - 1)),
        ("0, 0) >> 12", format!("0, 0, '{layout}') >> {}", preset.shard_bits)),
    ] {
        assert_eq!(step.matches(old).count(), 1, "{old} in {step}");
        step = step.replace(old, &new);
    }
    step
}

/// Shard 5, or 0 in a layout without shards.
fn shard(layout: &Layout) -> i64 {
    5.min(layout.shards() - 1)
}

/// Groups of rows with the same time. The surplus of a group meets the next groups, a gap of some microseconds or milliseconds later.
const ROWS: &str = "
    CREATE TABLE imported_orders (id int PRIMARY KEY, created_at timestamptz);
    INSERT INTO imported_orders
    SELECT row_number() OVER (ORDER BY n * 7919 % 1009, grp), '2026-02-28 12:00Z'::timestamptz + interval '1 us' * (grp * gap + n % 3)
    FROM generate_series(0, 6) AS grp, generate_series(1, 1 + grp * 250) AS n";

/// All rows have an ID, the order is that of the times, no ID is before its row's time or of another shard.
const WRONG: &str = "
    SELECT count(*) FILTER (WHERE new_id IS NULL), count(*) - count(DISTINCT new_id), count(*) FILTER (WHERE new_id < before),
           count(*) FILTER (WHERE late < '0'), count(*) FILTER (WHERE snowflake_shard_id(new_id, 'LAYOUT') <> SHARD)
    FROM (SELECT new_id, lag(new_id) OVER (ORDER BY created_at, id) AS before,
                 snowflake_created_at(new_id, 'LAYOUT') - snowflake_created_at(snowflake_encode(created_at, 0, 0, 'LAYOUT'), 'LAYOUT') AS late
          FROM imported_orders LEFT JOIN order_ids ON old_id = id) AS ids";

/// By the first free tick: no row is later than the rows before it require.
const LATEST: &str = "
    SELECT count(*) FROM (
        SELECT new_id, lag(new_id) OVER (ORDER BY new_id) AS before, snowflake_encode(created_at, 0, 0, 'LAYOUT') AS tick
        FROM imported_orders JOIN order_ids ON old_id = id) AS ids
    WHERE snowflake_created_at(new_id, 'LAYOUT') > snowflake_created_at(tick, 'LAYOUT')
      AND NOT (snowflake_created_at(before, 'LAYOUT') = snowflake_created_at(new_id, 'LAYOUT')
               OR snowflake_seq(before, 'LAYOUT') = (1 << SEQ_BITS) - 1)";

#[test]
fn imported_ids_are_in_order_and_fill_each_millisecond_before_the_next() {
    let (_database, mut client) = database();
    for (layout, preset) in PRESETS {
        for gap in [0, 900, 1001, 5_000_000] {
            run(&mut client, "DROP TABLE IF EXISTS imported_orders, order_ids");
            run(&mut client, &ROWS.replace("gap", &gap.to_string()));
            run(&mut client, &step(layout));
            let of_layout = |sql: &str| {
                sql.replace("LAYOUT", layout).replace("SEQ_BITS", &preset.seq_bits.to_string()).replace("SHARD", &shard(preset).to_string())
            };
            assert_eq!(printed(&mut client, &of_layout(WRONG)), "0|0|0|0|0", "{layout}, {gap} us");
            assert_eq!(printed(&mut client, &of_layout(LATEST)), "0", "{layout}, {gap} us");
        }
    }
}

#[test]
fn a_row_whose_time_no_id_can_have_is_refused() {
    let (_database, mut client) = database();
    let step = step("postgres");
    for (time, sqlstate, message) in [
        ("'2009-12-31 23:59:59Z'", "22003", "out of range"),
        ("'-infinity'", "22003", "out of range"),
        ("'infinity'", "22003", "out of range"),
        ("NULL", "23502", "column \"new_id\" of relation \"order_ids\" contains null values"),
    ] {
        run(&mut client, "DROP TABLE IF EXISTS imported_orders, order_ids");
        run(&mut client, &format!("{ROWS}; INSERT INTO imported_orders VALUES (0, {time})").replace("gap", "1"));
        assert_refused(&mut client, &step, refusal(sqlstate, message));
    }
}

#[test]
fn rows_of_several_shards_have_the_ids_of_their_shard() {
    // With one time for all rows, each shard has more of them than one tick has IDs.
    let (_database, mut client) = database_with(&ROWS.replace("gap", "0"));
    let of = |shard: i32| {
        let rows = format!("FROM imported_orders WHERE id % 2 = {}", shard % 2);
        step("postgres").replace(", 5, (counter", &format!(", {shard}, (counter")).replace("FROM imported_orders", &rows)
    };
    run(&mut client, &of(5));
    let (query, _) = of(6)
        .replace("CREATE TABLE order_ids AS", "INSERT INTO order_ids")
        .split_once(";\nALTER")
        .map(|(query, rest)| (query.to_owned(), rest.to_owned()))
        .expect("a query");
    run(&mut client, &query);
    let wrong = "SELECT count(*) FILTER (WHERE snowflake_shard_id(new_id) <> 6 - id % 2), count(*) FILTER (WHERE new_id IS NULL)
                 FROM imported_orders LEFT JOIN order_ids ON old_id = id";
    assert_eq!(printed(&mut client, wrong), "0|0");
}

#[test]
fn the_script_measures_the_statements_of_the_page() {
    for statement in ["CREATE TABLE order_ids AS", "CREATE SEQUENCE orders_id_seq"] {
        for line in block(statement).lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
            let line = line.split("   --").next().unwrap();
            assert!(line.starts_with("SET") || ["BEGIN;", "COMMIT;"].contains(&line) || SCRIPT.contains(line), "{line}");
        }
    }
}

/// Also rows of no order. Rows that were not imported are not counted, and remain.
#[test]
fn the_undo_deletes_the_rows_that_the_copy_inserted() {
    let (_database, mut client) = database();
    let example = block("CREATE TABLE imported_orders");
    run(&mut client, example.split_once(';').expect("CREATE EXTENSION").1);
    run(&mut client, &step("postgres"));
    let step_3 = block("CREATE SEQUENCE orders_id_seq");
    run(&mut client, &step_3);
    let notes = block("CREATE TABLE imported_notes");
    let (tables, notes) = notes.split_once("-- the copy").expect("a comment");
    let (copy, notes) = notes.split_once("-- the check").expect("a comment");
    let (check, undo) = notes.split_once("-- the undo").expect("a comment");
    let [copy, check, undo] = [copy, check, undo].map(|part| part.split_once('\n').expect("SQL").1);
    run(&mut client, tables);
    let others = "WITH o AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO items SELECT id, 1 FROM o;
                  INSERT INTO notes VALUES (3, NULL, 'other')";
    run(&mut client, others);

    let copies: String = step_3.lines().filter(|line| line.starts_with("INSERT")).collect();
    let missing = "SELECT missing_orders, missing_items FROM (CHECK) AS checked";
    let checked = block("AS missing_orders");
    let checked = checked.split_once('\n').expect("SET").1.trim().trim_end_matches(';');
    let missing = missing.replace("CHECK", checked);
    let counts = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM items), (SELECT count(*) FROM notes)";
    for is_first in [true, false] {
        run(&mut client, copy);
        if !is_first {
            run(&mut client, &copies);
        }
        assert_eq!(printed(&mut client, &missing), "0|0");
        assert_eq!(printed(&mut client, check), "0");
        assert_eq!(printed(&mut client, counts), "10001|10001|3");
        run(&mut client, &block("DELETE FROM orders"));
        run(&mut client, undo);
        assert_eq!(printed(&mut client, check), "2");
        assert_eq!(printed(&mut client, counts), "1|1|1");
    }
}

/// A policy could hide rows from each step, and from the check that would find them missing.
#[test]
fn no_step_leaves_rows_out_that_row_security_hides_from_the_owner() {
    let (database, mut superuser) = database_with("GRANT ALL ON SCHEMA public TO owner");
    let example = block("CREATE TABLE imported_orders");
    let example = example.split_once(';').expect("CREATE EXTENSION").1;
    run(&mut database.connect_as("owner"), example);
    let steps: [(&str, &[&str]); 4] = [
        ("CREATE TABLE order_ids AS", &["imported_orders"]),
        ("CREATE SEQUENCE orders_id_seq", &["imported_orders", "imported_items"]),
        ("AS missing_orders", &["imported_orders", "imported_items", "orders", "items"]),
        ("DELETE FROM orders", &["imported_items", "orders", "items"]),
    ];
    for (step, tables) in steps {
        let step = block(step);
        for table in tables {
            let alter = format!("ALTER TABLE {table}");
            run(&mut superuser, &format!("{alter} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"));
            assert_refused(&mut database.connect_as("owner"), &step, refusal("42501", "row-level security policy for table"));
            run(&mut superuser, &format!("{alter} DISABLE ROW LEVEL SECURITY"));
        }
        run(&mut database.connect_as("owner"), &step);
    }
}

/// The script also measures. Its figures are in the page.
#[test]
fn the_script_about_the_import_finds_nothing_wrong() {
    let database = Database::new();
    let printed = database.psql(&format!("\\set rows 30000\n\\set burst 2500\n{SCRIPT}"));
    let lines: Vec<String> = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for pair in [
        ["missing | repeated | out_of_order | latest", "0 | 0 | 0 | 00:00:00.002"],
        ["most_of_a_millisecond", "1024"],
        ["most_created_in_a_millisecond", "2500"],
        ["items_without_their_order", "0"],
        ["new_id_is_above", "t"],
    ] {
        let at = lines.iter().position(|line| line == pair[0]);
        let value = at.and_then(|at| lines.get(at + 2));
        assert_eq!(value.map(String::as_str), Some(pair[1]), "{}:\n{printed}", pair[0]);
    }
}
