//! Seek: the time of the arm by distance in cylinders, as a table of integers.
//!
//! Built once from floating-point figures, read on every access. Four forms of input:
//!
//! ```text
//! curve     t(d) = base + sqrt * sqrt(d) + linear * d     pieces by distance (Ruemmler, Wilkes)
//! first     the first distances one by one, where drives do not follow the curve
//! points    measured distances; straight lines between them
//! figures   track to track, mean over random pairs, full stroke: as a data sheet prints them
//! ```
//!
//! A longer seek takes at least as long as a shorter one. Measured tables have noise, so a time
//! may lie up to [`NOISE_PERCENT`] below that of a shorter distance; below that it is refused.
//!
//! Three figures decide one curve of the first form exactly. The mean is taken over pairs of
//! random *locations*, as benchmarks draw them, not over pairs of cylinders: outer cylinders hold
//! more. Settling after a seek to write, and head switches, are left out.

use serde::Deserialize;

use super::super::model::{ModelError, milliseconds, range};

/// Points into which the surface is cut to take means over random pairs; 512 keep the mean of
/// any curve here within 0.1 % of the mean over all pairs of cylinders.
const QUANTILES: usize = 512;

/// Slowest seek accepted. Times are kept in 32 bits, and no drive is this slow.
pub(super) const SEEK_MAX_MS: f64 = 4_000.0;

/// How far a seek may lie below a shorter one. Published tables of six drives stay within 9 %, but
/// for single points that were evidently measured wrong and lie 20 to 86 % below.
const NOISE_PERCENT: u32 = 12;

/// One piece of a curve, in force from a distance on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// The first distance it is meant for.
    pub from_cylinders: u32,
    /// The constant part.
    pub base_ms: f64,
    /// Times the square root of the distance: the arm accelerates.
    #[serde(default)]
    pub sqrt_ms: f64,
    /// Times the distance: the arm coasts.
    #[serde(default)]
    pub linear_ms: f64,
}

/// The `[seek]` part of a model: `curve`, with or without `first_ms`, or the three figures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekSheet {
    /// Times of the distances 1, 2, ..., before the curve begins.
    #[serde(default)]
    pub first_ms: Vec<f64>,
    /// The pieces, by distance.
    #[serde(default)]
    pub curve: Vec<Piece>,
    /// Distance in cylinders and time in milliseconds, by distance. Shorter distances than the
    /// first take as long as it; longer ones than the last as long as that.
    #[serde(default)]
    pub points_ms: Vec<(u32, f64)>,
    /// Time to the next cylinder.
    pub track_to_track_ms: Option<f64>,
    /// Mean over pairs of random locations.
    pub mean_ms: Option<f64>,
    /// Time from the first cylinder to the last.
    pub full_stroke_ms: Option<f64>,
}

impl SeekSheet {
    /// Time to the next cylinder, which a cylinder skew must hide.
    pub(super) fn single_ms(&self) -> Result<f64, ModelError> {
        match (self.track_to_track_ms, self.first_ms.first()) {
            (Some(figure), _) => range("seek.track_to_track_ms", figure, 0.0, SEEK_MAX_MS),
            (None, Some(&first)) => range("seek.first_ms", first, 0.0, SEEK_MAX_MS),
            (None, None) if !self.points_ms.is_empty() => Ok(self.between_ms(1)),
            (None, None) => Ok(self.curve_ms(1)),
        }
    }

    /// The time on the straight line between the two points around this distance.
    fn between_ms(&self, distance: u32) -> f64 {
        let points = &self.points_ms;
        let at = points.partition_point(|&(d, _)| d < distance);
        let (before, after) = (
            at.checked_sub(1).and_then(|b| points.get(b)),
            points.get(at),
        );
        match (before, after) {
            (Some(&(d0, t0)), Some(&(d1, t1))) => {
                let part = f64::from(distance - d0) / f64::from(d1 - d0);
                t0 + (t1 - t0) * part
            }
            (Some(&(_, t)), None) | (None, Some(&(_, t))) => t,
            (None, None) => 0.0,
        }
    }

    fn curve_ms(&self, distance: u32) -> f64 {
        let from = |piece: &&Piece| piece.from_cylinders <= distance;
        let Some(piece) = self.curve.iter().rev().find(from).or(self.curve.first()) else {
            return 0.0;
        };
        let d = f64::from(distance);
        piece.base_ms + piece.sqrt_ms * d.sqrt() + piece.linear_ms * d
    }

    /// The table for a surface whose cylinders hold `sectors` each, run by run.
    pub(super) fn table(&self, sectors: &[(u32, u64)]) -> Result<Vec<u32>, ModelError> {
        let cylinders: u32 = sectors.iter().map(|(count, _)| count).sum();
        let figures = [self.track_to_track_ms, self.mean_ms, self.full_stroke_ms];
        let points = self.points_ms.as_slice();
        let curve = match (self.curve.as_slice(), points, figures) {
            ([_, ..], [], [None, None, None]) => {
                check_order(&self.curve)?;
                self.clone()
            }
            ([], [_, ..], [None, None, None]) if self.first_ms.is_empty() => {
                check_points(points, cylinders)?;
                self.clone()
            }
            ([], [], [Some(single), Some(mean), Some(full)]) if self.first_ms.is_empty() => {
                through(single, mean, full, sectors, cylinders)?
            }
            _ => {
                return Err(ModelError::Choose(
                    "[seek] takes either curve (and first_ms), or points_ms, or all of \
                     track_to_track_ms, mean_ms and full_stroke_ms",
                ));
            }
        };
        let time = |distance: u32| match distance.checked_sub(1) {
            None => Ok(0),
            Some(before) => {
                let first = curve.first_ms.get(before as usize).copied();
                let ms = first.unwrap_or_else(|| match points {
                    [] => curve.curve_ms(distance),
                    _ => curve.between_ms(distance),
                });
                let nanos = milliseconds("seek time of some distance, ms", ms, SEEK_MAX_MS)?;
                Ok(u32::try_from(nanos.0).unwrap_or(u32::MAX))
            }
        };
        let table: Vec<u32> = (0..cylinders).map(time).collect::<Result<_, _>>()?;
        check_rising(&table)?;
        Ok(table)
    }
}

/// Refuses a seek that takes clearly less than a shorter one.
fn check_rising(table: &[u32]) -> Result<(), ModelError> {
    let mut longest = 0;
    for &time in table {
        let least = longest / 100 * (100 - NOISE_PERCENT);
        range(
            "seek time in ms of a distance, given that of a shorter one",
            f64::from(time) / 1e6,
            f64::from(least) / 1e6,
            SEEK_MAX_MS,
        )?;
        longest = longest.max(time);
    }
    Ok(())
}

fn check_points(points: &[(u32, f64)], cylinders: u32) -> Result<(), ModelError> {
    let mut least = 1.0;
    for &(distance, _) in points {
        let most = f64::from(cylinders.saturating_sub(1).max(1));
        range("seek.points_ms, distance", distance.into(), least, most)?;
        least = f64::from(distance) + 1.0;
    }
    Ok(())
}

fn check_order(curve: &[Piece]) -> Result<(), ModelError> {
    for pair in curve.windows(2) {
        let least = f64::from(pair[0].from_cylinders) + 1.0;
        let from = f64::from(pair[1].from_cylinders);
        range(
            "seek.curve.from_cylinders",
            from,
            least,
            f64::from(u32::MAX),
        )?;
    }
    Ok(())
}

/// The one curve `base + sqrt * sqrt(d) + linear * d` with these three figures.
fn through(
    single: f64,
    mean: f64,
    full: f64,
    sectors: &[(u32, u64)],
    cylinders: u32,
) -> Result<SeekSheet, ModelError> {
    range("seek.track_to_track_ms", single, 0.0, SEEK_MAX_MS)?;
    range("seek.full_stroke_ms", full, single, SEEK_MAX_MS)?;
    range("seek.mean_ms", mean, single, full)?;
    let last = f64::from(cylinders.saturating_sub(1));
    let [moves, root, distance] = pair_means(sectors);
    // Unknowns sqrt and linear, after base = single - sqrt - linear is put into the two others:
    // a1 sqrt + b1 linear = c1 (full stroke), a2 sqrt + b2 linear = c2 (mean).
    let (a1, b1, c1) = (last.sqrt() - 1.0, last - 1.0, full - single);
    let (a2, b2, c2) = (root - moves, distance - moves, mean - single * moves);
    let determinant = a1 * b2 - a2 * b1;
    if determinant.abs() < f64::EPSILON {
        return Err(ModelError::Choose(
            "[seek] figures need at least four cylinders",
        ));
    }
    let sqrt_ms = (c1 * b2 - c2 * b1) / determinant;
    let linear_ms = (a1 * c2 - a2 * c1) / determinant;
    Ok(SeekSheet {
        curve: vec![Piece {
            from_cylinders: 1,
            base_ms: single - sqrt_ms - linear_ms,
            sqrt_ms,
            linear_ms,
        }],
        ..SeekSheet::default()
    })
}

/// Over pairs of random locations: how often the arm moves at all, and the means of the square
/// root of the distance and of the distance.
fn pair_means(sectors: &[(u32, u64)]) -> [f64; 3] {
    let total: f64 = sectors.iter().map(|&(n, s)| f64::from(n) * s as f64).sum();
    let quantile = |at: usize| {
        let mut left = (at as f64 + 0.5) / QUANTILES as f64 * total;
        let mut cylinder = 0.0;
        for &(count, each) in sectors {
            let here = f64::from(count) * each as f64;
            if left < here {
                return cylinder + left / each as f64;
            }
            left -= here;
            cylinder += f64::from(count);
        }
        cylinder
    };
    let points: Vec<f64> = (0..QUANTILES).map(quantile).collect();
    let cylinders: f64 = sectors.iter().map(|&(n, _)| f64::from(n)).sum();
    // Two locations in one quantile lie a third of it apart in the mean, and the root of a
    // uniform pair's distance has the mean 8/15.
    let width = cylinders / QUANTILES as f64;
    let (mut root, mut distance) = (
        (QUANTILES as f64) * width.sqrt() * 8.0 / 15.0,
        (QUANTILES as f64) * width / 3.0,
    );
    for (at, a) in points.iter().enumerate() {
        for b in &points[..at] {
            root += 2.0 * (a - b).sqrt();
            distance += 2.0 * (a - b);
        }
    }
    let pairs = (QUANTILES * QUANTILES) as f64;
    [1.0 - 1.0 / cylinders, root / pairs, distance / pairs]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_come_back_out_of_the_table() {
        let sheet = SeekSheet {
            track_to_track_ms: Some(0.6),
            mean_ms: Some(7.53),
            full_stroke_ms: Some(15.0),
            ..SeekSheet::default()
        };
        let surface = [(3000, 4000u64), (3000, 3000)];
        let table = sheet.table(&surface).unwrap();
        assert!(table[1].abs_diff(600_000) <= 1);
        assert!(table[5999].abs_diff(15_000_000) <= 1);
        let weight = |c: usize| if c < 3000 { 4000.0 } else { 3000.0 };
        let (mut sum, mut weights) = (0.0, 0.0);
        for a in 0..6000 {
            for b in (a % 7..6000).step_by(7) {
                sum += weight(a) * weight(b) * f64::from(table[a.abs_diff(b)]);
                weights += weight(a) * weight(b);
            }
        }
        let mean = sum / weights / 1e6;
        assert!((mean - 7.53).abs() < 0.01, "{mean}");
    }

    #[test]
    fn neither_form_or_both_are_refused() {
        let both = SeekSheet {
            first_ms: vec![1.0],
            mean_ms: Some(7.0),
            ..SeekSheet::default()
        };
        assert!(matches!(both.table(&[(9, 9)]), Err(ModelError::Choose(_))));
        let none = SeekSheet::default();
        assert!(matches!(none.table(&[(9, 9)]), Err(ModelError::Choose(_))));
    }
}
