//! Plots of the report: elapsed time by number of disks, or a measured quantity by a parameter.
//!
//! The paper's figures are made of bars: the reader's computing time, on top of it the processor
//! time of fetches, and on top of that the waiting time; a group of bars for each number of disks,
//! a bar for each method. SVG text, drawn by `plotters`; no fonts and no bitmaps are needed.

use crate::{Bar, Chart};
use plotters::prelude::*;

use forerun_surface::failure::Failure;

/// Width and height in pixels of a plot that fills the page.
const SIZE: (u32, u32) = (1080, 340);
/// Widest bar; a plot of few of them does not fill the page.
const BAR_MAX: u32 = 28;
/// Room for the vertical axis and its name.
const AXIS: u32 = 80;

/// Fill of each part, and its name; told apart in grey as well.
pub(super) const PARTS: [(&str, RGBColor); 3] = [
    ("compute", RGBColor(69, 104, 138)),
    ("driver", RGBColor(232, 178, 80)),
    ("stall", RGBColor(190, 70, 60)),
];

/// Of lines, in their order.
const LINES: [RGBColor; 5] = [
    RGBColor(69, 104, 138),
    RGBColor(190, 70, 60),
    RGBColor(60, 130, 80),
    RGBColor(150, 90, 160),
    RGBColor(120, 100, 60),
];

/// SVG of a chart.
///
/// # Errors
/// It cannot be drawn.
pub(super) fn svg(chart: &Chart) -> Result<String, Failure> {
    let drawn = match chart {
        Chart::Bars { title, bars } => grouped(title, bars),
        Chart::Lines {
            title,
            measured,
            over,
            lines,
        } => lined(title, [over, measured], lines),
    };
    drawn.map_err(|e| Failure::Run(format!("cannot draw a plot: {e}")))
}

/// Methods of a chart of bars, from left to right.
pub(super) fn methods(chart: &Chart) -> Vec<&'static str> {
    let mut methods = Vec::new();
    if let Chart::Bars { bars, .. } = chart {
        for bar in bars {
            if !methods.contains(&bar.method) {
                methods.push(bar.method);
            }
        }
    }
    methods
}

/// Room for the names of lines behind their ends, as a part of the axis.
const NAMES: f64 = 0.16;

type Drawn = Result<String, Box<dyn std::error::Error>>;

/// The end of each part of a bar, in seconds.
fn ends(bar: &Bar) -> [f64; 3] {
    let mut end = 0.0;
    [bar.compute, bar.driver, bar.stall].map(|part| {
        end += part.0 as f64 / 1e9;
        end
    })
}

fn grouped(title: &str, bars: &[Bar]) -> Drawn {
    let top = bars.iter().map(|bar| ends(bar)[2]).fold(1.0, f64::max) * 1.05;
    // One empty place between groups.
    let mut places = Vec::new();
    let mut at = 0.0;
    for (number, bar) in bars.iter().enumerate() {
        if number > 0 && bars[number - 1].disks != bar.disks {
            at += 1.0;
        }
        places.push(at);
        at += 1.0;
    }
    let width = SIZE.0.min(AXIS + BAR_MAX * at as u32);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, SIZE.1)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(32)
            .y_label_area_size(56)
            .build_cartesian_2d(-0.5..at + 0.5, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(0)
            .x_desc("disks")
            .y_desc("elapsed, s")
            .draw()?;
        for (bar, place) in bars.iter().zip(&places) {
            let (left, right) = (place + 0.06, place + 0.94);
            let mut from = 0.0;
            for ((_, colour), to) in PARTS.iter().zip(ends(bar)) {
                let part = Rectangle::new([(left, from), (right, to)], colour.filled());
                chart.draw_series([part])?;
                from = to;
            }
        }
        for group in bars.chunk_by(|a, b| a.disks == b.disks) {
            let Some(first) = bars.iter().position(|bar| bar.disks == group[0].disks) else {
                continue;
            };
            let middle = places[first] + group.len() as f64 / 2.0;
            let (x, y) = chart.backend_coord(&(middle, 0.0));
            let text = group[0].disks.to_string();
            area.draw(&Text::new(text, (x - 4, y + 4), ("sans-serif", 12)))?;
        }
        area.present()?;
    }
    Ok(svg)
}

fn lined(title: &str, [over, measured]: [&str; 2], lines: &[(String, Vec<(f64, f64)>)]) -> Drawn {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let top = points().map(|(_, y)| *y).fold(1.0, f64::max) * 1.05;
    let left = points().map(|(x, _)| x.log2()).fold(f64::MAX, f64::min);
    let right = points().map(|(x, _)| x.log2()).fold(left, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (SIZE.0 / 2, SIZE.1)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(left..right + (right - left) * NAMES + 0.3, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(10)
            .x_label_formatter(&|x| format!("{:.0}", x.exp2()))
            .x_desc(over)
            .y_desc(measured)
            .draw()?;
        for ((name, points), colour) in lines.iter().zip(LINES.iter().cycle()) {
            let line = points.iter().map(|(x, y)| (x.log2(), *y));
            let line: Vec<(f64, f64)> = line.collect();
            chart.draw_series([PathElement::new(line, colour.stroke_width(2))])?;
            if let Some((x, y)) = points.last() {
                let (x, y) = chart.backend_coord(&(x.log2(), *y));
                let style = ("sans-serif", 12).into_font().color(colour);
                area.draw(&Text::new(name.clone(), (x + 6, y - 6), style))?;
            }
        }
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use forerun_core::Nanos;

    use super::*;

    #[test]
    fn every_bar_has_three_parts() {
        let bar = |disks| Bar {
            method: "aggressive",
            disks,
            compute: Nanos(1_000_000_000),
            driver: Nanos(500_000_000),
            stall: Nanos(250_000_000),
        };
        let chart = Chart::Bars {
            title: "synth".to_owned(),
            bars: vec![bar(1), bar(2)],
        };
        let svg = svg(&chart).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("synth"), "{svg}");
        // One more is the background.
        assert_eq!(svg.matches("<rect").count(), 2 * 3 + 1, "{svg}");
        assert_eq!(methods(&chart), ["aggressive"]);
    }

    #[test]
    fn every_line_is_drawn_and_named() {
        let line = |name: &str, y: f64| (name.to_owned(), vec![(4.0, y), (160.0, y / 2.0)]);
        let chart = Chart::Lines {
            title: "cscope2".to_owned(),
            measured: "elapsed, s".to_owned(),
            over: "batch".to_owned(),
            lines: vec![line("one", 60.0), line("two", 40.0)],
        };
        let svg = svg(&chart).unwrap();
        assert!(svg.contains("one") && svg.contains("two"), "{svg}");
        assert!(svg.matches("<polyline").count() >= 2, "{svg}");
    }
}
