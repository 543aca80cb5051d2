//! Surface: zones computed from the figures of a data sheet.
//!
//! Capacity, and sequential rates outermost, innermost and in the mean; the [sheet](super::sheet)
//! calls it where a drive is not given zone by zone. The zones have equally many cylinders, and
//! so many sectors a track that reading sequentially, skews included, gives the rates:
//!
//! ```text
//! rate(x) = outer - (outer - inner) * x^p      x from the outermost zone (0) to the innermost (1)
//! ```
//!
//! with the shape p chosen for the mean over all locations, or 1 where no mean is given. The mean
//! is one over bytes, as a benchmark at random locations finds it: outer zones hold more.

use serde::Deserialize;

use super::super::model::{ModelError, range};
use super::geometry::{CYLINDERS_MAX, SECTORS_MAX};
use super::sheet::ZoneSheet;

/// A surface by its figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurfaceSheet {
    /// How many zones of equally many cylinders; 16 unless given, as drives of the time had.
    pub zones: Option<u32>,
    /// Capacity, in units of 10^9 bytes.
    pub capacity_gb: f64,
    /// Sequential rate in the outermost zone, in units of 10^6 bytes a second.
    pub outer_mb_s: f64,
    /// In the innermost.
    pub inner_mb_s: f64,
    /// Mean over all locations.
    pub mean_mb_s: Option<f64>,
}

/// The mechanical times a surface is laid out by, in nanoseconds.
pub(super) struct Times {
    pub(super) revolution: u64,
    pub(super) head_switch: u64,
    pub(super) cylinder_switch: u64,
}

impl SurfaceSheet {
    /// The zones that give these figures.
    pub(super) fn zones(
        &self,
        times: &Times,
        heads: u32,
        sector: u64,
    ) -> Result<Vec<ZoneSheet>, ModelError> {
        let count = self.zones.unwrap_or(16);
        range("surface.zones", count.into(), 1.0, 256.0)?;
        let capacity = range("surface.capacity_gb", self.capacity_gb, 0.001, 1e6)? * 1e9;
        let inner = range("surface.inner_mb_s", self.inner_mb_s, 0.01, 1e5)?;
        let outer = range("surface.outer_mb_s", self.outer_mb_s, inner, 1e5)?;
        let rates = rates(outer, inner, self.mean_mb_s, count)?;
        // One cylinder takes its revolutions and the switches between its tracks and to the next.
        let heads_float = f64::from(heads);
        let cylinder_ns = heads_float * times.revolution as f64
            + (heads_float - 1.0) * times.head_switch as f64
            + times.cylinder_switch as f64;
        let per_track = |rate: f64| rate * 1e6 * cylinder_ns / 1e9 / (heads_float * sector as f64);
        let tracks: Vec<f64> = rates.iter().map(|&rate| per_track(rate).round()).collect();
        let one_of_each = tracks.iter().sum::<f64>() * heads_float * sector as f64;
        let cylinders = (capacity / one_of_each).floor().max(1.0);
        let most = f64::from(CYLINDERS_MAX) / f64::from(count);
        range("surface.capacity_gb, in cylinders", cylinders, 1.0, most)?;
        // The remainder of equal zones is in the innermost.
        let left = (capacity - cylinders * one_of_each).max(0.0);
        let innermost = tracks.last().copied().unwrap_or(1.0).max(1.0);
        let more = (left / (innermost * heads_float * sector as f64)).ceil();
        let zone = |(at, &sectors): (usize, &f64)| {
            let most = f64::from(SECTORS_MAX);
            let sectors = range("surface.outer_mb_s, in sectors a track", sectors, 1.0, most)?;
            let is_innermost = at + 1 == tracks.len();
            Ok(ZoneSheet {
                first_cylinder: None,
                cylinders: (cylinders + if is_innermost { more } else { 0.0 }) as u32,
                sectors_per_track: sectors as u32,
                track_skew_sectors: None,
                cylinder_skew_sectors: None,
                first_slot_sectors: 0,
                reserved_tracks: 0,
                spare_tracks: 0,
                slipped_tracks: Vec::new(),
                spare_sectors: 0,
                spare_range_tracks: None,
                slipped_sectors: Vec::new(),
            })
        };
        tracks.iter().enumerate().map(zone).collect()
    }
}

/// Rates zone by zone, with the shape that gives the mean over all locations.
fn rates(outer: f64, inner: f64, mean: Option<f64>, count: u32) -> Result<Vec<f64>, ModelError> {
    let last = f64::from(count.saturating_sub(1).max(1));
    let shaped = |p: f64| -> Vec<f64> {
        let rate = |zone| outer - (outer - inner) * (f64::from(zone) / last).powf(p);
        (0..count).map(rate).collect()
    };
    let mean_of =
        |rates: &[f64]| rates.iter().map(|r| r * r).sum::<f64>() / rates.iter().sum::<f64>();
    let Some(wanted) = mean else {
        return Ok(shaped(1.0));
    };
    let (mut low, mut high) = (0.1f64, 10.0f64);
    let (least, most) = (mean_of(&shaped(low)), mean_of(&shaped(high)));
    range("surface.mean_mb_s", wanted, least, most)?;
    // Each step halves the interval: 60 leave nothing of it.
    for _ in 0..60 {
        let middle = low.midpoint(high);
        if mean_of(&shaped(middle)) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(shaped(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_chosen_for_the_mean() {
        let found = rates(60.0, 38.0, Some(51.3), 16).unwrap();
        let mean = found.iter().map(|r| r * r).sum::<f64>() / found.iter().sum::<f64>();
        assert!((mean - 51.3).abs() < 1e-6);
        assert!((found[0] - 60.0).abs() < 1e-9 && (found[15] - 38.0).abs() < 1e-9);
        assert!(rates(60.0, 38.0, Some(61.0), 16).is_err());
    }
}
