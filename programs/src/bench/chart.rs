//! The chart of a run, for people who do not read tables: four panels of bars, ours in blue. It brings its own background,
//! so that it is legible on a light page and on a dark one.

use crate::bench::bulk::ROWS;
use crate::bench::plan::scaled;
use crate::bench::samples::{Measure, Samples};
use pg_snowflake_harness::record::thousands;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

const SIZE: (u32, u32) = (1000, 580);

const BACKGROUND: RGBColor = WHITE;
const BORDER: RGBColor = RGBColor(208, 215, 222);
const TEXT: RGBColor = RGBColor(31, 35, 40);
const SMALL_TEXT: RGBColor = RGBColor(89, 99, 110);
const OURS: RGBColor = RGBColor(9, 105, 218);
const OTHERS: RGBColor = RGBColor(154, 164, 175);

/// Pixels in a panel: where its text begins, where its bars begin and end, the first bar's top, and from one bar to the next.
const MARGIN: i32 = 24;
const BARS: i32 = 200;
const MAX_BAR: i32 = 220;
const TOP: i32 = 72;
const STEP: i32 = 29;
const THICKNESS: i32 = 20;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// A contender's name, and its name for people here.
type Name = (&'static str, &'static str);

const CORE: Name = ("core_cache_1", "bigserial");
const IDENTITY: Name = ("core_identity", "identity");
const PGEDGE: Name = ("pgedge", "pgEdge snowflake");
const PLPGSQL: Name = ("copied_plpgsql", "PL/pgSQL function");
const UUID_7: Name = ("uuid_v7", "UUID version 7");
const UUID_4: Name = ("uuid_v4", "UUID version 4");
const PG_SNOWFLAKE: Name = ("ours_cache_1", "pg_snowflake");

/// Bars of one measure.
struct Panel {
    title: &'static str,
    unit: &'static str,
    measure: Measure,
    names: &'static [Name],
    /// From the measure to the unit, given the number of rows of a large INSERT.
    convert: fn(f64, f64) -> f64,
    show: fn(f64) -> String,
}

const PANELS: [Panel; 4] = [
    Panel {
        title: "The first ID of a transaction",
        unit: "nanoseconds, less is better",
        measure: Measure::FirstIdNs,
        names: &[PG_SNOWFLAKE, CORE, PGEDGE, UUID_7, UUID_4, PLPGSQL],
        convert: |ns, _| ns,
        show: |ns| thousands(ns.round() as i64),
    },
    Panel {
        title: "A row of a large INSERT",
        unit: "microseconds, less is better",
        measure: Measure::BulkSeconds,
        names: &[PG_SNOWFLAKE, CORE, IDENTITY, PGEDGE, UUID_7, UUID_4, PLPGSQL],
        convert: |seconds, rows| seconds / rows * 1e6,
        show: |microseconds| format!("{microseconds:.2}"),
    },
    Panel {
        title: "A row in the primary key",
        unit: "bytes, less is better",
        measure: Measure::KeyBytes,
        names: &[PG_SNOWFLAKE, CORE, IDENTITY, PGEDGE, UUID_7, UUID_4],
        convert: |bytes, rows| bytes / rows,
        show: |bytes| format!("{bytes:.1}"),
    },
    Panel {
        title: "What CACHE changes: IDs for 8 clients",
        unit: "millions per second, 100 in each transaction; more is better",
        measure: Measure::TakingTps(8),
        names: &[
            PG_SNOWFLAKE,
            ("ours_cache_64", "pg_snowflake, CACHE 64"),
            ("ours_batch", "snowflake_nextvals"),
            CORE,
            ("core_cache_64", "bigserial, CACHE 64"),
            PGEDGE,
        ],
        convert: |tps, _| tps * 100.0 / 1e6,
        show: |millions| format!("{millions:.2}"),
    },
];

/// A bar: its name, whether it is ours, and its length in the panel's unit.
type Bar = (&'static str, bool, f64);

impl Panel {
    fn bars(&self, samples: &Samples, rows: f64) -> Vec<Bar> {
        let bar = |&(contender, name): &Name| {
            let median = samples.spread(self.measure, contender)?.median;
            Some((name, contender.starts_with("ours_"), (self.convert)(median, rows)))
        };
        self.names.iter().filter_map(bar).collect()
    }

    /// Nothing if none of its contenders was measured.
    fn draw(&self, area: &Area, bars: &[Bar]) -> Drawn {
        if bars.is_empty() {
            return Ok(());
        }
        area.draw_text(self.title, &text(18, &TEXT, HPos::Left), (MARGIN, 28))?;
        area.draw_text(self.unit, &text(13, &SMALL_TEXT, HPos::Left), (MARGIN, 51))?;
        let longest = bars.iter().map(|&(.., length)| length).fold(f64::MIN_POSITIVE, f64::max);
        for (top, &(name, is_ours, length)) in (TOP..).step_by(STEP as usize).zip(bars) {
            let middle = top + THICKNESS / 2;
            let end = BARS + (length.max(0.0) / longest * f64::from(MAX_BAR)) as i32;
            let color = if is_ours { OURS } else { OTHERS };
            area.draw(&Rectangle::new([(BARS, top), (end, top + THICKNESS)], color.filled()))?;
            area.draw_text(name, &text(14, &TEXT, HPos::Right), (BARS - 8, middle))?;
            let figure = (self.show)(length);
            area.draw_text(&figure, &text(14, &TEXT, HPos::Left), (end + 6, middle))?;
        }
        Ok(())
    }
}

/// An SVG of all panels that have a measurement.
pub(super) fn draw(samples: &Samples, scale: f64) -> String {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    draw_panels(&root, samples, scaled(ROWS, scale) as f64).expect("memory can be drawn on");
    drop(root);
    svg
}

fn draw_panels(root: &Area, samples: &Samples, rows: f64) -> Drawn {
    root.fill(&BACKGROUND)?;
    let corner = (SIZE.0 as i32 - 1, SIZE.1 as i32 - 1);
    root.draw(&Rectangle::new([(0, 0), corner], BORDER))?;
    for (panel, area) in PANELS.iter().zip(root.split_evenly((2, 2))) {
        panel.draw(&area, &panel.bars(samples, rows))?;
    }
    root.present()?;
    Ok(())
}

fn text(size: u32, color: &RGBColor, side: HPos) -> TextStyle<'_> {
    let style = ("sans-serif", size).into_text_style(&SIZE);
    style.color(color).pos(Pos::new(side, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::{PANELS, draw};
    use crate::bench::contenders::ALL;
    use crate::bench::samples::{Measure, Samples};
    use roxmltree::Document;

    #[test]
    fn the_chart_is_an_svg_with_the_measured_names_and_figures() {
        let mut samples = Samples::default();
        samples.add(0, "ours_cache_1", Measure::FirstIdNs, 4711.0);
        samples.add(0, "core_cache_1", Measure::TakingTps(8), 8500.0);
        let svg = draw(&samples, 1.0);
        let document = Document::parse(&svg).unwrap();
        let texts: Vec<&str> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .filter_map(|node| node.text())
            .map(str::trim)
            .collect();
        let expected = [
            "The first ID of a transaction",
            "nanoseconds, less is better",
            "pg_snowflake",
            "4,711",
            "What CACHE changes: IDs for 8 clients",
            "millions per second, 100 in each transaction; more is better",
            "bigserial",
            "0.85",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn every_bar_is_of_a_contender() {
        for (name, _) in PANELS.iter().flat_map(|panel| panel.names) {
            assert!(ALL.iter().any(|contender| contender.name == *name), "{name}");
        }
    }
}
