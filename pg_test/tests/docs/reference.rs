//! `docs/reference.md` has every object of the extension, once, as in the catalog.

use super::page::page;
use pg_snowflake_harness::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a heading of the page may name, and the columns that it returns: a name and a type each.
type Objects = BTreeMap<String, Vec<[String; 2]>>;

#[test]
fn every_object_has_one_heading_with_its_signature_and_its_columns() {
    let page = page("docs/reference.md");
    let database = Database::new();
    let mut objects = objects(&mut database.connect());
    let support = chapter(page.text(), "Support functions");
    objects.retain(|signature, _| !is_named(support, signature));

    let mut headings = BTreeSet::new();
    for (heading, chapter) in headings_of(page.text()) {
        assert!(headings.insert(heading), "{heading} is a duplicate");
        let columns = objects.get(heading).unwrap_or_else(|| panic!("there is no {heading}"));
        for [name, typ] in columns {
            // If two have the same columns, only one has the table.
            let row = format!("| `{name}` | `{typ}` |");
            assert!(chapter.contains(&row), "{heading}: no {row}");
        }
    }
    assert_eq!(headings, objects.keys().map(String::as_str).collect());
}

/// The page says that `\d+` in psql explains them.
#[test]
fn every_column_of_a_table_has_a_comment() {
    let (_database, mut client) = database_with("CREATE EXTENSION pg_snowflake_registry");
    let mut columns = |condition: &str| {
        let query = format!(
            "SELECT coalesce(string_agg(attrelid::regclass || '.' || attname, ', '), '') FROM pg_attribute
             WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind = 'r')
               AND attnum > 0 AND NOT attisdropped AND {condition}"
        );
        printed(&mut client, &query)
    };
    assert!(columns("true").contains("snowflake_registry.shards.serial"));
    assert_eq!(columns("col_description(attrelid, attnum) IS NULL"), "");
}

#[test]
fn every_setting_is_in_the_table_with_its_default_and_its_range() {
    let page = page("docs/reference.md");
    let (_database, mut client) = database_with("LOAD 'pg_snowflake'");

    let settings = "SELECT format('| `%s` | %s | %s | %s | %s |', name, concat_ws(', ', vartype, unit),
            coalesce(nullif(boot_val, ''), 'empty'), min_val, max_val)
        FROM pg_settings WHERE name LIKE 'pg\\_snowflake.%' ORDER BY name";

    // A cell without a value is one space wide.
    let expected = printed(&mut client, settings).replace("  |", " |");
    let table: Vec<&str> = page.text().lines().filter(|line| line.starts_with("| `pg_snowflake.")).collect();
    assert_eq!(table, expected.lines().collect::<Vec<_>>());
}

/// The functions, types, views and operator classes of the extension, and its settings.
fn objects(client: &mut Client) -> Objects {
    client.batch_execute("LOAD 'pg_snowflake'; CREATE EXTENSION pg_snowflake_registry").unwrap();
    let query = "
        WITH member AS (
            SELECT classid, objid FROM pg_depend
            WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
              AND refobjid IN (SELECT oid FROM pg_extension WHERE extname IN ('pg_snowflake', 'pg_snowflake_registry'))
        ), argument AS (
            SELECT p.oid, a.n, coalesce(a.name, '') AS name, format_type(a.typ, NULL) AS typ, coalesce(a.mode, 'i') AS mode
            FROM pg_proc AS p, unnest(
                coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes::text[])
                WITH ORDINALITY AS a (typ, name, mode, n)
        )
        SELECT format('%s%s(%s) → %s%s', substring(p.pronamespace::regnamespace::text || '.' from '^snowflake_registry.'), p.proname,
                (SELECT string_agg(ltrim(name || ' ' || typ), ', ' ORDER BY n) FROM argument
                 WHERE argument.oid = p.oid AND mode = 'i'),
                CASE WHEN p.proretset THEN 'setof ' END, format_type(p.prorettype, NULL)),
            ARRAY(SELECT name FROM argument WHERE argument.oid = p.oid AND mode = 'o' ORDER BY n),
            ARRAY(SELECT typ FROM argument WHERE argument.oid = p.oid AND mode = 'o' ORDER BY n)
        FROM member JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
        UNION ALL
        SELECT concat(substring(c.relnamespace::regnamespace::text || '.' from '^snowflake_registry.'), c.relname),
            ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND c.relkind = 'v'),
            ARRAY(SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND c.relkind = 'v')
        FROM member JOIN pg_class AS c ON classid = 'pg_class'::regclass AND objid = c.oid
        UNION ALL
        SELECT t.typname, '{}', '{}'
        FROM member JOIN pg_type AS t ON classid = 'pg_type'::regclass AND objid = t.oid
        -- From 17 on the row types of views and the array types of types are members too.
        WHERE t.typtype = 'b' AND t.typelem = 0
        UNION ALL
        SELECT o.opcname, '{}', '{}'
        FROM member JOIN pg_opclass AS o ON classid = 'pg_opclass'::regclass AND objid = o.oid
        WHERE NOT o.opcdefault
        UNION ALL
        SELECT name, '{}', '{}' FROM pg_settings WHERE name LIKE 'pg\\_snowflake.%'";
    let rows = client.query(query, &[]).unwrap();
    rows.iter()
        .map(|row| {
            let (names, types): (Vec<String>, Vec<String>) = (row.get(1), row.get(2));
            let columns = names.into_iter().zip(types.iter().map(|typ| short(typ)));
            (short(row.get(0)), columns.map(|(name, typ)| [name, typ]).collect())
        })
        .collect()
}

/// With the usual names of types, and `layout` for the type of a layout.
fn short(signature: &str) -> String {
    signature.replace("timestamp with time zone", "timestamptz").replace("integer", "int").replace("layout snowflake_layout", "layout")
}

/// Whether the chapter has that function's name or, if several share it, its name and argument.
fn is_named(chapter: &str, signature: &str) -> bool {
    let Some((name, _)) = signature.split_once('(') else { return false };
    let call = signature.split(" → ").next().unwrap_or(signature).replace("(int)", "(integer)");
    [name, &call].iter().any(|text| chapter.contains(&format!("`{text}`")))
}

fn chapter<'a>(text: &'a str, heading: &str) -> &'a str {
    let rest = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no chapter {heading}")).1;
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The headings of the third level, without backticks, and the chapter of each.
fn headings_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n## ").flat_map(|chapter| {
        let headings = chapter.lines().filter_map(|line| line.strip_prefix("### "));
        headings.map(move |heading| (heading.trim_matches('`'), chapter))
    })
}
