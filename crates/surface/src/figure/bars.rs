//! Bars: one a line, from the left to the right, with its interval.

use std::fmt::Write;

use super::axis::Axis;
use super::{COLOURS, Figure, TOP, WIDTH};
use crate::text::{escaped, number, shortened};

impl Figure {
    pub(super) fn bars(&self) -> (String, f64) {
        const BAR: f64 = 22.0;
        const NAMES: f64 = 170.0;
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let ends =
            marks().flat_map(|mark| [mark.y, mark.interval.map_or(mark.y, |(_, high)| high)]);
        let most = ends.fold(0.0f64, f64::max);
        let x = Axis {
            from: 0.0,
            to: if most > 0.0 { most } else { 1.0 },
            is_log: false,
            begin: NAMES,
            end: WIDTH - 60.0,
        };
        let mut svg = format!(
            "<text class=\"soft\" x=\"{NAMES}\" y=\"{:.1}\">{}</text>",
            TOP - 6.0,
            escaped(&self.unit)
        );
        let mut y = TOP + 4.0;
        for (at, series) in self.series.iter().enumerate() {
            let Some(mark) = series.marks.first() else {
                continue;
            };
            let colour = self.colour(at) % COLOURS;
            let fill = match series.is_other {
                true => "none".to_owned(),
                false => format!("var(--c{colour})"),
            };
            let name = match series.is_other {
                true => "compared with".to_owned(),
                false => series.name.clone(),
            };
            let (end, middle) = (x.at(mark.y), y + BAR / 2.0 - 2.0);
            let _ = write!(
                svg,
                "<text x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"end\">{2}</text>\
                 <rect class=\"bar\" x=\"{NAMES}\" y=\"{y:.1}\" width=\"{3:.1}\" height=\"{4:.1}\" \
                 style=\"fill:{fill};stroke:var(--c{colour})\"/>",
                NAMES - 8.0,
                middle + 4.0,
                escaped(&shortened(&name, 25)),
                (end - NAMES).max(0.5),
                BAR - 4.0
            );
            let mut beside = end;
            if let Some((low, high)) = mark.interval {
                let _ = write!(
                    svg,
                    "<line class=\"axis\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>",
                    x.at(low.max(0.0)),
                    x.at(high)
                );
                beside = x.at(high);
            }
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                beside + 6.0,
                middle + 4.0,
                number(mark.y)
            );
            y += BAR;
        }
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{NAMES}\" x2=\"{NAMES}\" y1=\"{TOP}\" y2=\"{y:.1}\"/>"
        );
        (svg, y + 6.0)
    }
}
