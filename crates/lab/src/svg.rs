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

/// Names of lines stand beside the plot: the size of their letters, the width of a letter and the distance of
/// two names at this size, and the room beside them, in pixels.
const LETTERS: i32 = 12;
const LETTER: u32 = 7;
const LINE_OF_TEXT: i32 = 14;
const NAME_GAP: i32 = 16;
/// How far the axis goes on behind the last point, as a part of its length.
const BEHIND: f64 = 0.03;

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
    // A parameter that begins at zero has no logarithm.
    let is_linear = points().any(|(x, _)| *x <= 0.0);
    let place = |x: f64| if is_linear { x } else { x.log2() };
    let value = |place: f64| if is_linear { place } else { place.exp2() };
    let left = points().map(|(x, _)| place(*x)).fold(f64::MAX, f64::min);
    let right = points().map(|(x, _)| place(*x)).fold(f64::MIN, f64::max);
    // One point, or none, has no length.
    let (left, right) = if left < right {
        (left, right)
    } else {
        (right - 1.0, right + 1.0)
    };
    let end = right + (right - left) * BEHIND;
    let longest = lines.iter().map(|(name, _)| name.chars().count()).max();
    let names = LETTER * longest.unwrap_or(0) as u32 + NAME_GAP as u32;
    let size = (SIZE.0 / 2, SIZE.1);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .margin_right(names)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(left..end, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(10)
            .x_label_formatter(&|x| format!("{:.0}", value(*x)))
            .x_desc(over)
            .y_desc(measured)
            .draw()?;
        let coloured = || lines.iter().zip(LINES.iter().cycle());
        for ((_, points), colour) in coloured() {
            let line = points.iter().map(|(x, y)| (place(*x), *y));
            let line: Vec<(f64, f64)> = line.collect();
            chart.draw_series([PathElement::new(line, colour.stroke_width(2))])?;
        }
        let last = |(_, points): &(_, Vec<(f64, f64)>)| points.last().map_or(0.0, |(_, y)| *y);
        let ends: Vec<i32> = lines
            .iter()
            .map(|line| chart.backend_coord(&(right, last(line))).1)
            .collect();
        let beside = (size.0 - names) as i32 + NAME_GAP / 2;
        for (((name, _), colour), y) in coloured().zip(apart(&ends)) {
            let style = ("sans-serif", LETTERS).into_font().color(colour);
            area.draw(&Text::new(name.clone(), (beside, y - LETTERS / 2), style))?;
        }
        area.present()?;
    }
    Ok(svg)
}

/// Places for names as near to the ends of their lines as they can be read: in their order, a line of text
/// from each other, inside the plot.
fn apart(ends: &[i32]) -> Vec<i32> {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(|line| ends[*line]);
    let mut places = ends.to_vec();
    let mut above = LINE_OF_TEXT;
    for line in &order {
        places[*line] = places[*line].max(above + LINE_OF_TEXT);
        above = places[*line];
    }
    // From below, the lowest first: those that were pushed out of the plot, and the ones they meet.
    let mut below = SIZE.1 as i32 - LINE_OF_TEXT;
    for line in order.iter().rev() {
        places[*line] = places[*line].min(below - LINE_OF_TEXT);
        below = places[*line];
    }
    places
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

    #[test]
    fn a_parameter_that_begins_at_zero_is_drawn_to_scale() {
        let chart = Chart::Lines {
            title: "rate".to_owned(),
            measured: "MB/s".to_owned(),
            over: "place, %".to_owned(),
            lines: vec![(
                "rate".to_owned(),
                vec![(0.0, 55.0), (50.0, 45.0), (100.0, 34.0)],
            )],
        };
        let svg = svg(&chart).unwrap();
        assert!(!svg.contains("inf") && !svg.contains("NaN"), "{svg}");
        // In the middle of the axis, which logarithms of 1, 50 and 100 are not.
        let lines = svg.split("points=\"").skip(1);
        let x = |line: &str| -> Vec<f64> {
            let points = line
                .split('"')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            points
                .filter_map(|point| point.split(',').next()?.parse().ok())
                .collect()
        };
        let x = lines.map(x).find(|x| x.len() == 3).unwrap();
        assert!((x[0] + x[2] - 2.0 * x[1]).abs() <= 2.0, "{x:?}");
    }

    #[test]
    fn names_of_lines_that_end_in_one_place_stand_apart_in_their_order_and_inside_the_plot() {
        for ends in [
            [100, 100, 101, 99, 100],
            [300, 301, 330, 335, 339],
            [5, 5, 300, 5, 0],
        ] {
            let places = apart(&ends);
            let mut order: Vec<usize> = (0..ends.len()).collect();
            order.sort_by_key(|line| ends[*line]);
            for pair in order.windows(2) {
                let distance = places[pair[1]] - places[pair[0]];
                assert!(distance >= LINE_OF_TEXT, "{ends:?}: {places:?}");
            }
            let inside = LETTERS..SIZE.1 as i32 - LETTERS;
            assert!(
                places.iter().all(|place| inside.contains(place)),
                "{ends:?}: {places:?}"
            );
        }
        assert_eq!(apart(&[50, 200, 120]), [50, 200, 120], "far enough already");
    }
}
