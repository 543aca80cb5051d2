//! Curves: a mark for each point, joined by lines, over memory or another parameter.

use std::fmt::Write;

use super::axis::Axis;
use super::{COLOURS, Figure, HEIGHT, LEFT, Over, RIGHT, Series, TOP, WIDTH, grid, shape};
use crate::text::{escaped, memory, number};

/// The span of memory, and of percentiles, from which on an axis is logarithmic.
const LOG_FROM: f64 = 4.0;
const LOG_VALUES_FROM: f64 = 20.0;

impl Figure {
    pub(super) fn curves(&self) -> (String, f64) {
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0f64), |(least, most), value| {
                (least.min(value), most.max(value))
            })
        };
        let (least, most) = ends(&mut marks().map(|mark| mark.x));
        let x = Axis {
            from: least,
            to: if most > least { most } else { least * 2.0 },
            is_log: least > 0.0 && most / least >= LOG_FROM,
            begin: LEFT + 8.0,
            end: WIDTH - RIGHT,
        };
        let bottom = TOP + HEIGHT;
        let y = self.values(&ends, bottom);
        let mut svg = String::new();
        for tick in y.ticks(false, 5) {
            svg += &grid(&y, tick, WIDTH - RIGHT);
        }
        let is_memory = self.over == Over::Memory;
        let (over, named): (_, fn(f64) -> String) = match &self.over {
            Over::Memory => ("memory".to_owned(), memory),
            Over::Number(name) => (escaped(name), number),
        };
        for tick in x.ticks(is_memory, 6) {
            let at = x.at(tick);
            let _ = write!(
                svg,
                "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom:.1}\" y2=\"{0:.1}\"/>\
                 <text class=\"soft\" x=\"{at:.1}\" y=\"{1:.1}\" text-anchor=\"middle\">{2}</text>",
                bottom + 4.0,
                bottom + 18.0,
                named(tick)
            );
        }
        let log = if y.is_log { ", logarithmic" } else { "" };
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"soft\" x=\"4\" y=\"{1:.1}\">{2}{log}</text>\
             <text class=\"soft\" x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"end\">{over}</text>",
            WIDTH - RIGHT,
            TOP - 8.0,
            escaped(&self.unit),
            bottom + 33.0,
        );
        // Those that are compared with first: the others are drawn over them.
        for is_other in [true, false] {
            for (at, series) in self.series.iter().enumerate() {
                if series.is_other == is_other {
                    svg += &curve(series, self.colour(at), &x, &y);
                }
            }
        }
        let (legend, height) = self.legend(bottom + 48.0);
        (svg + &legend, height)
    }

    /// The axis of values: from zero or from the least possible, or logarithmic.
    fn values(
        &self,
        ends: &dyn Fn(&mut dyn Iterator<Item = f64>) -> (f64, f64),
        bottom: f64,
    ) -> Axis {
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let (least, most) = ends(&mut marks().map(|mark| mark.y));
        let (_, high) = ends(&mut marks().filter_map(|mark| Some(mark.interval?.1)));
        let most = most.max(high);
        let is_log = self.unit == "ms" && least > 0.0 && most / least >= LOG_VALUES_FROM;
        let (from, to) = match is_log {
            true => (least / 1.3, most * 1.3),
            // Over the least possible: none is below.
            false if self.unit == "times" && least >= 1.0 => (1.0, (most * 1.02).max(1.1)),
            false => (0.0, if most > 0.0 { most * 1.05 } else { 1.0 }),
        };
        Axis {
            from,
            to,
            is_log,
            begin: bottom,
            end: TOP,
        }
    }
}

fn curve(series: &Series, colour: usize, x: &Axis, y: &Axis) -> String {
    let style = format!("stroke:var(--c{})", colour % COLOURS);
    let mut svg = String::new();
    for mark in &series.marks {
        if let Some((low, high)) = mark.interval {
            let _ = write!(
                svg,
                "<line class=\"spread\" style=\"{style}\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/>",
                x.at(mark.x),
                y.at(low.max(y.from)),
                y.at(high)
            );
        }
    }
    let points: Vec<String> = series
        .marks
        .iter()
        .map(|mark| format!("{:.1},{:.1}", x.at(mark.x), y.at(mark.y)))
        .collect();
    let class = if series.is_other {
        "line other"
    } else {
        "line"
    };
    let _ = write!(
        svg,
        "<polyline class=\"{class}\" style=\"{style}\" points=\"{}\"/>",
        points.join(" ")
    );
    if !series.is_other {
        for mark in &series.marks {
            svg += &shape(colour, x.at(mark.x), y.at(mark.y));
        }
    }
    svg
}
