//! The chart of a run.

use crate::bench::contender::Contender;
use crate::bench::load::CLIENTS;
use crate::bench::samples::{Measure, Samples};
use crate::bench::sequences::COUNTS;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

const SIZE: (u32, u32) = (1200, 1000);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// An SVG of four panels.
pub(super) fn draw(contenders: &[&Contender], samples: &Samples) -> String {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    draw_panels(&root, contenders, samples).expect("memory can be drawn on");
    drop(root);
    svg
}

fn draw_panels(root: &Area, contenders: &[&Contender], samples: &Samples) -> Drawn {
    root.fill(&WHITE)?;
    let panels = root.split_evenly((2, 2));
    bars(&panels[0], contenders, samples)?;
    let of = |measures: Vec<(u32, Measure)>| lines_of(contenders, samples, &measures);
    let ids = CLIENTS.map(|clients| (clients, Measure::TakingTps(clients)));
    lines(&panels[1], "transactions of 100 ids per second, by clients", of(ids.to_vec()))?;
    let sequences = COUNTS.map(|count| (count, Measure::InTurnNs(count)));
    lines(&panels[2], "ns per id above the loop, by sequences in turn", of(sequences.to_vec()))?;
    let inserts = CLIENTS.map(|clients| (clients, Measure::InsertingTps(clients)));
    lines(&panels[3], "inserts per second, each a transaction, by clients", of(inserts.to_vec()))?;
    root.present()?;
    Ok(())
}

fn color_of(contender: &Contender) -> RGBColor {
    let (red, green, blue) = contender.color;
    RGBColor(red, green, blue)
}

/// Without Markdown's markup.
fn plain(title: &str) -> String {
    title.replace('`', "")
}

/// The time for an id in one backend: one bar for each contender, with its figure.
fn bars(area: &Area, contenders: &[&Contender], samples: &Samples) -> Drawn {
    let bars: Vec<(&Contender, f64)> = contenders
        .iter()
        .filter_map(|&contender| {
            Some((contender, samples.spread(Measure::IdNs, contender.name)?.median))
        })
        .collect();
    let longest = bars.iter().map(|&(_, ns)| ns).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption("ns per id above the loop, one backend", ("sans-serif", 18))
        .margin(15)
        .x_label_area_size(10)
        .y_label_area_size(215)
        .build_cartesian_2d(0.0..longest * 1.15, 0.0..bars.len().max(1) as f64)?;
    for (place, &(contender, ns)) in bars.iter().rev().enumerate() {
        let bottom = place as f64;
        let bar = [(0.0, bottom + 0.2), (ns.max(0.0), bottom + 0.8)];
        chart.draw_series([Rectangle::new(bar, color_of(contender).filled())])?;
        let left = text(Pos::new(HPos::Left, VPos::Center));
        let figure = format!("{ns:.0}");
        chart.draw_series([
            EmptyElement::at((ns.max(0.0), bottom + 0.5)) + Text::new(figure, (6, 0), left)
        ])?;
        let right = text(Pos::new(HPos::Right, VPos::Center));
        let title = Text::new(plain(contender.title), (-8, 0), right);
        chart.draw_series([EmptyElement::at((0.0, bottom + 0.5)) + title])?;
    }
    Ok(())
}

fn text(anchor: Pos) -> TextStyle<'static> {
    ("sans-serif", 13).into_text_style(&SIZE).pos(anchor)
}

/// The medians of a contender for each number of clients or sequences.
struct Line {
    title: String,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

fn lines_of(
    contenders: &[&Contender],
    samples: &Samples,
    measures: &[(u32, Measure)],
) -> Vec<Line> {
    let line = |contender: &&Contender| Line {
        title: plain(contender.title),
        color: color_of(contender),
        points: measures
            .iter()
            .filter_map(|&(count, measure)| {
                Some((count.into(), samples.spread(measure, contender.name)?.median))
            })
            .collect(),
    };
    contenders.iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// Counts on a logarithmic x axis, figures on a y axis from zero.
fn lines(area: &Area, caption: &str, lines: Vec<Line>) -> Drawn {
    let points = || lines.iter().flat_map(|line| &line.points);
    let widest = points().map(|&(count, _)| count).fold(1.0, f64::max);
    let highest = points().map(|&(_, figure)| figure).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(15)
        .x_label_area_size(25)
        .y_label_area_size(60)
        // Room above for the legend.
        .build_cartesian_2d((1.0..widest * 1.1).log_scale(), 0.0..highest * 1.6)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|count| format!("{count:.0}"))
        .y_label_formatter(&|figure| format!("{figure:.0}"))
        .draw()?;
    for Line { title, color, points } in lines {
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(3))?
            .label(title)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .label_font(("sans-serif", 12))
        .background_style(WHITE.mix(0.85))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::bench::contenders::ALL;
    use crate::bench::samples::{Measure, Samples};
    use roxmltree::Document;
    use std::collections::HashSet;

    #[test]
    fn the_chart_is_an_svg_with_the_measured_names_and_figures() {
        let mut samples = Samples::default();
        samples.add(0, "ours_cache_1", Measure::IdNs, 4711.0);
        samples.add(0, "core_cache_1", Measure::TakingTps(8), 8500.0);
        let svg = draw(&ALL, &samples);
        let document = Document::parse(&svg).unwrap();
        let texts: Vec<&str> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .filter_map(|node| node.text())
            .map(str::trim)
            .collect();
        assert!(texts.contains(&"snowflake_nextval, CACHE 1"), "{texts:?}");
        assert!(texts.contains(&"4711"), "{texts:?}");
        assert!(texts.contains(&"core nextval, CACHE 1"), "{texts:?}");
        assert!(!texts.contains(&"gen_random_uuid()"), "{texts:?}");
    }

    #[test]
    fn every_contender_has_a_color_of_its_own() {
        let colors: HashSet<_> = ALL.iter().map(|contender| contender.color).collect();
        assert_eq!(colors.len(), ALL.len());
    }
}
