//! The answer of a chart: the smallest memory with which a preset is nearly as good as any is with any memory.
//!
//! *Nearly* is a share, 5 % unless told: a throughput of at least 0.95 of the best one, and a 99th percentile of at most
//! 1.05 of the best one. Example: of 2 ms with 64 MiB and 2.05 ms with 16 MiB, the second is the answer.

use super::chart::{Chart, Line, Place};
use super::points::Metric;

/// Those that an answer is judged by.
const JUDGED: [Metric; 2] = [Metric::Throughput, Metric::P99];

/// A preset and its memory.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The preset.
    pub line: &'a Line,
    /// The memory, and its figures.
    pub place: &'a Place,
    /// It is within the share in all metrics that the chart has; otherwise in throughput, and of these has the least p99.
    pub is_within_all: bool,
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
    let value = |place: &Place, metric| {
        let value = place
            .values
            .get(&metric)
            .map_or(f64::INFINITY, |value| value.value);
        if metric.is_gain() { -value } else { value }
    };
    let all = || chart.places();
    let near = all().filter(|(_, place)| is_near(place, &judged));
    let best = near.min_by(|(_, a), (_, b)| {
        let by_memory = memory(a).total_cmp(&memory(b));
        by_memory.then(value(a, last).total_cmp(&value(b, last)))
    });
    if let Some((line, place)) = best {
        return Some(Answer {
            line,
            place,
            is_within_all: true,
        });
    }
    let near = all().filter(|(_, place)| is_near(place, &judged[..1]));
    let best = near.min_by(|(_, a), (_, b)| {
        let by_value = value(a, last).total_cmp(&value(b, last));
        by_value.then(memory(a).total_cmp(&memory(b)))
    });
    best.map(|(line, place)| Answer {
        line,
        place,
        is_within_all: false,
    })
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
