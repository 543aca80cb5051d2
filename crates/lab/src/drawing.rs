//! Plots of the report, in the figures of every page: elapsed time by number of disks, or a measured quantity by a parameter.
//!
//! The papers' figures are made of bars: the reader's computing time, on top of it the processor time of fetches, and on top
//! of that the waiting time; a group of bars for each number of disks, a bar for each method.

use forerun_surface::figure::stacks::{Group, Stacks};
use forerun_surface::figure::{Figure, Kind, Mark, Over, Series};

use crate::{Bar, Chart};

/// The parts of a bar, from below.
pub(super) const PARTS: [&str; 3] = ["compute", "driver", "stall"];

/// SVG of a chart, inside a page with the style of figures.
pub(super) fn svg(chart: &Chart) -> String {
    match chart {
        Chart::Bars { title, bars } => stacks(title, bars).inline(),
        Chart::Lines {
            title,
            measured,
            over,
            lines,
        } => Figure {
            title: title.clone(),
            of: String::new(),
            unit: measured.clone(),
            kind: Kind::Curves,
            over: Over::Number(over.clone()),
            series: lines.iter().map(series).collect(),
            file: String::new(),
        }
        .inline(),
    }
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

fn stacks(title: &str, bars: &[Bar]) -> Stacks {
    let parts = |bar: &Bar| {
        let parts = [bar.compute, bar.driver, bar.stall];
        parts.map(|part| part.0 as f64 / 1e9).to_vec()
    };
    let groups = bars.chunk_by(|a, b| a.disks == b.disks);
    Stacks {
        title: title.to_owned(),
        unit: "elapsed, s".to_owned(),
        over: "disks".to_owned(),
        groups: groups
            .map(|group| Group {
                name: group[0].disks.to_string(),
                bars: group.iter().map(parts).collect(),
            })
            .collect(),
    }
}

fn series((name, points): &(String, Vec<(f64, f64)>)) -> Series {
    let mark = |&(x, y): &(f64, f64)| Mark {
        x,
        y,
        interval: None,
    };
    Series {
        name: name.clone(),
        marks: points.iter().map(mark).collect(),
        is_other: false,
    }
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
        let svg = svg(&chart);
        assert!(svg.starts_with("<svg") && svg.contains("synth"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2 * 3, "{svg}");
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
        let svg = svg(&chart);
        for name in ["one", "two", "batch", "elapsed, s"] {
            assert!(svg.contains(name), "{svg}");
        }
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
    }
}
