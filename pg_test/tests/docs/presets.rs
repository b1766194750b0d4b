//! The pages that list the presets have all of them, as in the table `PRESETS`. docs/layouts.md also has the output
//! of `snowflake_layouts`, which is tested like every other block.

use super::page::page;
use pg_snowflake_harness::top;
use pg_snowflake_ids::layout_spec::spec;
use pg_snowflake_ids::{Layout, PRESETS};

#[test]
fn the_drawing_of_the_presets_has_each_with_its_fields() {
    let page = page("docs/layouts.md");
    let blocks = page.blocks();
    let mut drawings = blocks.iter().filter(|block| block.language == "text" && block.text.contains("| time "));
    let drawing = &drawings.next().expect("a drawing").text;

    let drawn: Vec<(&str, Vec<&str>)> = drawing
        .lines()
        .map(|line| {
            let mut cells = line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
            let name = cells.next().and_then(|cell| cell.split(' ').next()).unwrap_or_default();
            (name, cells.collect())
        })
        .collect();

    let presets: Vec<(&str, Vec<String>)> = PRESETS.iter().map(|(name, layout)| (*name, fields(layout))).collect();
    assert_eq!(format!("{drawn:?}"), format!("{presets:?}"), "left: docs/layouts.md, right: PRESETS");
}

/// The fields that have bits, highest first, as in the drawing.
fn fields(layout: &Layout) -> Vec<String> {
    let spec = spec(layout);
    let part = |name: &str| {
        let value = spec.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix(':'));
        value.expect("a part of every spec").to_owned()
    };
    let unit = part("unit");
    let digits = unit.chars().take_while(char::is_ascii_digit).count();
    let (length, unit) = unit.split_at(digits);
    let epoch = part("epoch").replace('T', " ").replace('Z', "");
    let time = format!("time {}, {length} {unit} since {epoch}", part("time"));

    let shard = if layout.shard_place.is_xored() { "shard XOR above" } else { "shard" };
    let mut below = [(shard, layout.shard_bits), ("seq", layout.seq_bits)];
    if layout.shard_place.is_lowest() {
        below.reverse();
    }
    let below = below.into_iter().filter(|&(_, bits)| bits > 0);
    [time].into_iter().chain(below.map(|(name, bits)| format!("{name} {bits}"))).collect()
}

#[test]
fn every_preset_is_explained() {
    let page = page("docs/layouts.md");
    let explained: Vec<&str> = page
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("- **`")?.split('`').next())
        .filter(|name| Layout::preset(name).is_some())
        .collect();
    let presets: Vec<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
    assert_eq!(explained, presets, "left: docs/layouts.md, right: PRESETS");
}

#[test]
fn every_operator_class_is_listed_with_its_presets() {
    let page = page("docs/routing.md");
    let place = |layout: &Layout| (layout.shard_shift(), layout.shard_bits, layout.shard_place.is_xored());
    let sql = std::fs::read_to_string(top().join("sql/routing.sql")).expect("a file of the clone");
    // Each class has a comment: `COMMENT ON OPERATOR CLASS name USING hash IS 'partitioning by … in layout preset, …'`.
    let comments: Vec<&str> = sql.split("COMMENT ON OPERATOR CLASS ").skip(1).collect();
    assert_eq!(comments.len(), sql.matches("CREATE OPERATOR CLASS ").count());
    for comment in comments {
        let class = comment.split(' ').next().expect("a name");
        let preset = comment.split("in layout ").nth(1).and_then(|rest| rest.split([',', ':']).next()).expect("a layout");
        let end = format!("| `{class}` |");
        let mut rows = page.text().lines().filter_map(|line| line.strip_suffix(&end));
        let row = rows.next().unwrap_or_else(|| panic!("no row ends with {end}"));
        let listed: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let of_class = place(&Layout::preset(preset).expect("a preset"));
        let presets: Vec<&str> = PRESETS.iter().filter(|(_, layout)| place(layout) == of_class).map(|&(name, _)| name).collect();
        assert_eq!(listed, presets, "{end}");
    }
}
