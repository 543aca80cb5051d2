//! Bars of parts, in groups: where the time of each run went.
//!
//! ```text
//! s  |  #        #            a part on top of the other, a bar for each run
//!    |  + #      + #          beside each other those of a group, with its name below
//!    +--1-----------2---- disks
//! ```

use std::fmt::Write;

use super::axis::Axis;
use super::{COLOURS, HEIGHT, LEFT, TOP, framed, grid};
use crate::text::escaped;

/// The widest bar, in pixels; few of them do not fill the page.
const BAR_MAX: f64 = 28.0;
/// The width of a page.
const WIDTH_MAX: f64 = 1080.0;
/// The least width, for the title.
const WIDTH_MIN: f64 = 320.0;
const RIGHT: f64 = 10.0;

/// Bars under one name.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The parts of each bar, from below.
    pub bars: Vec<Vec<f64>>,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Debug)]
pub struct Stacks {
    /// Subject.
    pub title: String,
    /// Name and unit of the values.
    pub unit: String,
    /// Name of the groups.
    pub over: String,
    /// Groups, from left to right.
    pub groups: Vec<Group>,
}

/// The colour of a part, by its place from below.
#[must_use]
pub fn colour(part: usize) -> String {
    format!(
        "var(--c{})",
        [0, 4, 1].get(part).copied().unwrap_or(part) % COLOURS
    )
}

impl Stacks {
    /// As a part of a page, which has the style of figures.
    #[must_use]
    pub fn inline(&self) -> String {
        let sums = self.groups.iter().flat_map(|group| &group.bars);
        let most = sums.map(|parts| parts.iter().sum()).fold(0.0, f64::max);
        let bottom = TOP + HEIGHT;
        let y = Axis {
            from: 0.0,
            to: if most > 0.0 { most * 1.05 } else { 1.0 },
            is_log: false,
            begin: bottom,
            end: TOP,
        };
        // One empty place behind each group.
        let places: usize = self.groups.iter().map(|group| group.bars.len() + 1).sum();
        let room = (WIDTH_MAX - LEFT - RIGHT) / places.max(1) as f64;
        let bar = room.min(BAR_MAX);
        let width = (LEFT + bar * places as f64 + RIGHT).max(WIDTH_MIN);
        let mut svg: String = y
            .ticks(false, 5)
            .into_iter()
            .map(|tick| grid(&y, tick, width - RIGHT))
            .collect();
        let mut at = LEFT + bar / 2.0;
        for group in &self.groups {
            let middle = at + bar * group.bars.len() as f64 / 2.0;
            for parts in &group.bars {
                svg += &stack(parts, at, bar, &y);
                at += bar;
            }
            at += bar;
            let _ = write!(
                svg,
                "<text class=\"soft\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                escaped(&group.name)
            );
        }
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"soft\" x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"end\">{2}</text>",
            width - RIGHT,
            bottom + 32.0,
            escaped(&self.over)
        );
        let heads = [self.title.as_str(), self.unit.as_str()];
        framed(heads, (width, bottom + 40.0), "", &svg)
    }
}

/// A bar, of which a tenth on both sides stays free.
fn stack(parts: &[f64], left: f64, width: f64, y: &Axis) -> String {
    let (mut svg, mut from) = (String::new(), 0.0);
    for (number, part) in parts.iter().enumerate() {
        let (bottom, top) = (y.at(from), y.at(from + part));
        let _ = write!(
            svg,
            "<rect style=\"fill:{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            colour(number),
            left + width * 0.1,
            width * 0.8,
            bottom - top
        );
        from += part;
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_on_each_other_and_bars_of_a_group_beside_each_other() {
        let group = |name: &str, bars: usize| Group {
            name: name.to_owned(),
            bars: vec![vec![1.0, 0.5, 0.25]; bars],
        };
        let stacks = Stacks {
            title: "a < b".to_owned(),
            unit: "s".to_owned(),
            over: "disks".to_owned(),
            groups: vec![group("1", 2), group("<2>", 1)],
        };
        let svg = stacks.inline();
        assert!(
            svg.contains("a &lt; b") && svg.contains("&lt;2&gt;"),
            "{svg}"
        );
        let of = |name: &str| -> Vec<f64> {
            let rects = svg.split("<rect ").skip(1);
            let value = |rect: &str| {
                let value = rect.split(&format!(" {name}=\"")).nth(1).unwrap();
                value.split('"').next().unwrap().parse().unwrap()
            };
            rects.map(value).collect()
        };
        let (x, y, height) = (of("x"), of("y"), of("height"));
        assert_eq!(x.len(), 9);
        for bar in 0..3 {
            let [below, middle, top] = [0, 1, 2].map(|part| 3 * bar + part);
            assert!((y[below] - height[middle] - y[middle]).abs() < 0.2, "{svg}");
            assert!((y[middle] - height[top] - y[top]).abs() < 0.2, "{svg}");
            assert!((height[below] / height[top] - 4.0).abs() < 0.1, "{svg}");
        }
        // A bar's width to the next of its group, and two to the next group.
        assert!((x[3] - x[0]) * 1.9 < x[6] - x[3], "{x:?}");
    }

    #[test]
    fn no_bars_and_bars_without_time_are_drawn() {
        for groups in [
            vec![],
            vec![Group {
                name: String::new(),
                bars: vec![vec![0.0; 3], vec![]],
            }],
        ] {
            let stacks = Stacks {
                title: String::new(),
                unit: String::new(),
                over: String::new(),
                groups,
            };
            let svg = stacks.inline();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
