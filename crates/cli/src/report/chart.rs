//! Charts: the points of one input on one device, as lines over memory; points of several seeds are one with its interval.

use std::collections::BTreeMap;

use super::points::{Metric, Point};

/// The preset that reads nothing ahead.
pub const NONE: &str = "none";
/// The kernel's readahead of 128 KiB.
pub const KERNEL: &str = "linux-2.6.24";

/// A value and the interval that holds its mean at 95 %, by the seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Its interval, where there are several seeds, or the range of a bench.
    pub interval: Option<(f64, f64)>,
}

/// A memory of a line.
#[derive(Clone, Debug)]
pub struct Place {
    /// In bytes; none where that is not known.
    pub memory: Option<f64>,
    /// The figures.
    pub values: BTreeMap<Metric, Estimate>,
    /// A run's queue grew to the end.
    pub is_saturated: bool,
    /// Name of the bound.
    pub bound: Option<String>,
    /// Runs of which it is the mean.
    pub runs: usize,
}

/// A preset.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// By memory.
    pub places: Vec<Place>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Chart {
    /// Input and device.
    pub name: String,
    /// Those that take no mount first, then by their names: of equal ones the first is the answer.
    pub lines: Vec<Line>,
    /// Points that a later one with other figures replaced.
    pub replaced: usize,
}

impl Chart {
    /// Whether there is a curve, rather than a bar a line.
    #[must_use]
    pub fn has_curves(&self) -> bool {
        let curved = |line: &Line| line.places.iter().filter(|p| p.memory.is_some()).count() > 1;
        self.lines.iter().any(curved)
    }

    /// The place of a line at a memory.
    #[must_use]
    pub fn at(&self, line: &str, memory: Option<f64>) -> Option<&Place> {
        let line = self.lines.iter().find(|own| own.name == line)?;
        line.places.iter().find(|place| place.memory == memory)
    }

    /// All places, with their lines.
    pub fn places(&self) -> impl Iterator<Item = (&Line, &Place)> {
        let of = |line| std::iter::repeat(line).zip(&Line::places_of(line)[..]);
        self.lines.iter().flat_map(of)
    }

    /// The best value.
    #[must_use]
    pub fn best(&self, metric: Metric) -> Option<f64> {
        let values = self
            .places()
            .filter_map(|(_, place)| place.values.get(&metric));
        let better = |one: f64, other: f64| match metric.is_better(one, other) {
            true => one,
            false => other,
        };
        values.map(|estimate| estimate.value).reduce(better)
    }
}

impl Line {
    fn places_of(line: &Self) -> &Vec<Place> {
        &line.places
    }
}

/// The charts of these points, in the order of their first ones. Of two points that differ in nothing the later counts.
#[must_use]
pub fn charts(points: &[Point]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    let mut of: BTreeMap<(usize, usize, u64), BTreeMap<&str, &Point>> = BTreeMap::new();
    for point in points {
        let chart = position(
            &mut charts,
            |chart| chart.name == point.chart,
            || Chart {
                name: point.chart.clone(),
                lines: Vec::new(),
                replaced: 0,
            },
        );
        let lines = &mut charts[chart].lines;
        let line = position(
            lines,
            |line| line.name == point.line,
            || Line {
                name: point.line.clone(),
                places: Vec::new(),
            },
        );
        // Sizes are positive, and such floats have the order of their bits.
        let memory = point.memory.unwrap_or(0.0).to_bits();
        let seeds = of.entry((chart, line, memory)).or_default();
        let before = seeds.insert(&point.seed, point);
        let differs = |before: &Point| before.values != point.values || before.range != point.range;
        charts[chart].replaced += usize::from(before.is_some_and(differs));
    }
    for ((chart, line, _), seeds) in of {
        let seeds: Vec<&Point> = seeds.into_values().collect();
        charts[chart].lines[line].places.push(place(&seeds));
    }
    // A preset has the same colour in all charts, and of equal ones the same is the answer, in whatever order rows came.
    for chart in &mut charts {
        chart
            .lines
            .sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
    }
    charts
}

/// Where a line stands: nothing read ahead, then the kernel's readahead, then all others.
fn rank(line: &str) -> usize {
    let preset = line.split(", ").next();
    let mut plain = [NONE, KERNEL].into_iter();
    plain.position(|name| preset == Some(name)).unwrap_or(2)
}

fn position<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(is).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}

fn place(seeds: &[&Point]) -> Place {
    let mut values = BTreeMap::new();
    for metric in Metric::LIST {
        let of: Vec<f64> = seeds
            .iter()
            .filter_map(|point| point.values.get(&metric).copied())
            .collect();
        // One saturated run of several has no percentile, and the mean of the others is none.
        if of.len() != seeds.len() {
            continue;
        }
        let mut estimate = estimate(&of);
        if let (Metric::Throughput, [point]) = (metric, seeds) {
            estimate.interval = point.range.filter(|(least, most)| least < most);
        }
        values.insert(metric, estimate);
    }
    Place {
        memory: seeds.first().and_then(|point| point.memory),
        values,
        is_saturated: seeds.iter().any(|point| point.is_saturated),
        bound: seeds.first().and_then(|point| point.bound.clone()),
        runs: seeds.len(),
    }
}

/// Student's t at 95 % for 1, 2, .. degrees of freedom; beyond, that of the last.
const T: [f64; 30] = [
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
    2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04,
];

fn estimate(values: &[f64]) -> Estimate {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let interval = (values.len() > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = error * T[(values.len() - 2).min(T.len() - 1)];
        (mean - half, mean + half)
    });
    Estimate {
        value: mean,
        interval,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(line: &str, memory: f64, seed: &str, throughput: f64) -> Point {
        Point {
            chart: "t on d".to_owned(),
            line: line.to_owned(),
            memory: Some(memory),
            seed: seed.to_owned(),
            values: BTreeMap::from([(Metric::Throughput, throughput)]),
            range: None,
            is_saturated: false,
            bound: None,
        }
    }

    #[test]
    fn seeds_are_one_point_with_students_interval_and_a_later_row_replaces_an_earlier_one() {
        let points = [
            point("a", 2.0, "1", 99.0),
            point("a", 2.0, "1", 10.0),
            point("a", 2.0, "2", 12.0),
            point("a", 2.0, "3", 14.0),
            point("a", 1.0, "1", 5.0),
        ];
        let charts = charts(&points);
        let places = &charts[0].lines[0].places;
        assert_eq!(
            places.iter().map(|p| p.memory).collect::<Vec<_>>(),
            [Some(1.0), Some(2.0)]
        );
        let estimate = places[1].values[&Metric::Throughput];
        // Mean 12, deviation 2, error 2 / sqrt 3, t of two degrees 4.30.
        assert_eq!(estimate.value, 12.0);
        let (low, high) = estimate.interval.unwrap();
        assert!((high - 12.0 - 4.965).abs() < 0.01 && (12.0 - low - 4.965).abs() < 0.01);
        assert_eq!(places[0].values[&Metric::Throughput].interval, None);
        assert_eq!(charts[0].replaced, 1);
    }

    #[test]
    fn a_row_that_comes_again_with_the_same_figures_replaces_none() {
        let points = [
            point("a", 1.0, "1", 5.0),
            point("a", 1.0, "1", 5.0),
            point("b", 1.0, "1", 6.0),
            point("b", 1.0, "1", 7.0),
            point("b", 1.0, "1", 6.0),
        ];
        assert_eq!(charts(&points)[0].replaced, 2);
    }
}
