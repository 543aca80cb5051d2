//! The answer of a chart: the smallest memory with which a preset is nearly as good as any is with any memory.
//!
//! *Nearly* is a share, 5 % unless told: a throughput of at least 0.95 of the best one, and a 99th percentile of at most
//! 1.05 of the best one; of several that are equal the one named first is the answer, and the others are named. Example: of 2 ms with 64 MiB and 2.05 ms with 16 MiB, the second is the answer.

use super::chart::{Chart, Line, Place};
use super::points::{Metric, SMALL_MS};

/// Those that an answer is judged by.
const JUDGED: [Metric; 2] = [Metric::Throughput, Metric::P99];

/// A preset and its memory.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The preset.
    pub line: &'a Line,
    /// The memory, and its figures.
    pub place: &'a Place,
    /// It is within the share in all metrics that the chart has; otherwise in throughput, and of these has the least p99.
    pub is_within_all: bool,
    /// Other lines that are as good with the same memory: of those the first is the answer.
    pub equals: Vec<&'a str>,
}

/// The answer; none of a chart without figures. Where no place is near the best in both, throughput counts before p99.
#[must_use]
pub fn answer(chart: &Chart, share: f64) -> Option<Answer<'_>> {
    let judged = JUDGED
        .iter()
        .filter_map(|metric| Some((*metric, chart.best(*metric)?)));
    let judged: Vec<(Metric, f64)> = judged.collect();
    let (first, _) = judged.first()?;
    let is_near = |place: &Place, metrics: &[(Metric, f64)]| {
        metrics.iter().all(|(metric, best)| {
            let value = place.values.get(metric);
            value.is_some_and(|value| metric.is_within(value.value, *best, share))
        })
    };
    let memory = |place: &Place| place.memory.unwrap_or(0.0);
    // Of equal memories the better one: of the metric judged last, where all are near the best in the first.
    let last = judged.last().map_or(*first, |(metric, _)| *metric);
    let of = |line, place, is_within_all| Answer {
        line,
        place,
        is_within_all,
        equals: equals(chart, line, place, &judged),
    };
    let all = || chart.places();
    let near = all().filter(|(_, place)| is_near(place, &judged));
    let best = near.min_by(|(_, a), (_, b)| {
        let by_memory = memory(a).total_cmp(&memory(b));
        let by_last = by_memory.then(value(a, last).total_cmp(&value(b, last)));
        by_last.then(value(a, *first).total_cmp(&value(b, *first)))
    });
    if let Some((line, place)) = best {
        return Some(of(line, place, true));
    }
    let near = all().filter(|(_, place)| is_near(place, &judged[..1]));
    let best = near.min_by(|(_, a), (_, b)| {
        let by_value = value(a, last).total_cmp(&value(b, last));
        by_value.then(memory(a).total_cmp(&memory(b)))
    });
    best.map(|(line, place)| of(line, place, false))
}

/// A value to be the least: a gain is turned round, and a small percentile is as good as any.
fn value(place: &Place, metric: Metric) -> f64 {
    let value = place.values.get(&metric).map(|value| value.value);
    match (value, metric) {
        (None, _) => f64::INFINITY,
        (Some(value), Metric::P99) => value.max(SMALL_MS),
        (Some(value), _) if metric.is_gain() => -value,
        (Some(value), _) => value,
    }
}

/// Other lines with the same values and the same memory.
fn equals<'a>(
    chart: &'a Chart,
    line: &Line,
    place: &Place,
    judged: &[(Metric, f64)],
) -> Vec<&'a str> {
    let is_equal = |other: &Place| {
        let mut metrics = judged.iter().map(|(metric, _)| *metric);
        other.memory == place.memory
            && metrics.all(|metric| value(other, metric) == value(place, metric))
    };
    let others = chart.lines.iter().filter(|other| other.name != line.name);
    let equal = others.filter(|other| other.places.iter().any(is_equal));
    equal.map(|other| other.name.as_str()).collect()
}

/// The smallest memory with which a line is so near to the best of all lines, and its value.
#[must_use]
pub fn smallest<'a>(
    chart: &Chart,
    line: &'a Line,
    metric: Metric,
    share: f64,
) -> Option<&'a Place> {
    let best = chart.best(metric)?;
    let mut near = line.places.iter().filter(|place| {
        let value = place.values.get(&metric);
        value.is_some_and(|value| metric.is_within(value.value, best, share))
    });
    near.next()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::chart::Estimate;
    use super::*;

    /// Memory, throughput and p99.
    type Measured = (f64, f64, f64);

    fn chart(lines: &[(&str, &[Measured])]) -> Chart {
        let place = |&(memory, throughput, p99): &Measured| {
            let of = |value| Estimate {
                value,
                interval: None,
            };
            Place {
                memory: Some(memory),
                values: BTreeMap::from([
                    (Metric::Throughput, of(throughput)),
                    (Metric::P99, of(p99)),
                ]),
                is_saturated: false,
                bound: None,
                runs: 1,
            }
        };
        let line = |(name, places): &(&str, &[(f64, f64, f64)])| Line {
            name: (*name).to_owned(),
            places: places.iter().map(place).collect(),
        };
        Chart {
            name: "c".to_owned(),
            lines: lines.iter().map(line).collect(),
            replaced: 0,
        }
    }

    #[test]
    fn the_least_memory_near_the_best_in_both_is_the_answer() {
        let chart = chart(&[
            (
                "a",
                &[(1.0, 50.0, 9.0), (2.0, 99.0, 2.0), (4.0, 100.0, 1.99)],
            ),
            ("b", &[(1.0, 98.0, 30.0), (8.0, 100.0, 1.98)]),
        ]);
        let best = answer(&chart, 0.05).unwrap();
        assert_eq!(
            (best.line.name.as_str(), best.place.memory),
            ("a", Some(2.0))
        );
        assert!(best.is_within_all);
        let exact = answer(&chart, 0.0).unwrap();
        assert_eq!(
            (exact.line.name.as_str(), exact.place.memory),
            ("b", Some(8.0))
        );
        let of = |line: usize| {
            let place = smallest(&chart, &chart.lines[line], Metric::Throughput, 0.05);
            place.and_then(|place| place.memory)
        };
        assert_eq!((of(0), of(1)), (Some(2.0), Some(1.0)));
    }

    #[test]
    fn of_equal_lines_the_first_is_the_answer_and_the_others_are_named() {
        let chart = chart(&[
            ("worse", &[(1.0, 97.0, 0.2)]),
            ("a", &[(1.0, 100.0, 0.09), (2.0, 100.0, 0.01)]),
            ("b", &[(1.0, 100.0, 0.02)]),
            ("c", &[(1.0, 99.0, 0.02)]),
        ]);
        let best = answer(&chart, 0.05).unwrap();
        assert_eq!(
            (best.line.name.as_str(), best.place.memory),
            ("a", Some(1.0))
        );
        assert_eq!(best.equals, ["b"]);
    }

    #[test]
    fn where_none_is_near_in_both_throughput_counts_first() {
        let chart = chart(&[
            ("a", &[(1.0, 50.0, 1.0)]),
            ("b", &[(2.0, 100.0, 9.0), (1.0, 99.0, 10.0)]),
        ]);
        let best = answer(&chart, 0.05).unwrap();
        assert_eq!(
            (best.line.name.as_str(), best.place.memory),
            ("b", Some(2.0))
        );
        assert!(!best.is_within_all);
    }
}
