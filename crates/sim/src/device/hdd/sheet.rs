//! Sheet: a drive's parameters as written in a TOML file, checked and turned into integers.
//!
//! [`Sheet`] is the file, field by field; [`Sheet::drawing`] is the only way from it to a
//! [`Drawing`], which the [drive](super::drive) works from. Everything is checked here, with the
//! parameter's name, value and range in the error; after it nothing can fail. Floating point ends
//! here too.
//!
//! The surface is either given zone by zone, or by what a data sheet prints: capacity, and
//! sequential rates outermost, innermost and in the mean. From those the zones are laid out so
//! that reading sequentially, skews included, gives the rates:
//!
//! ```text
//! rate(x) = outer - (outer - inner) * x^p      x from the outermost zone (0) to the innermost (1)
//! ```
//!
//! with the shape p chosen for the mean over all locations, or 1 where no mean is given. Skews not
//! given are the smallest that hide their switch.

use serde::Deserialize;

use super::super::model::{ModelError, milliseconds, range};
use super::drawing::{Controller, Drawing};
use super::geometry::{CYLINDERS_MAX, Geometry, HEADS_MAX, SECTORS_MAX, Zone};
use super::seek::{SEEK_MAX_MS, SeekSheet};

/// Longest overhead accepted.
const OVERHEAD_MAX_MS: f64 = 10_000.0;

/// A drive, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// Always `hdd`.
    pub kind: String,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Tracks of a cylinder, which is heads.
    pub tracks_per_cylinder: u32,
    /// Bytes of a sector; 512 unless given.
    pub sector_bytes: Option<u32>,
    /// Time to go to another track of the cylinder.
    pub head_switch_ms: f64,
    /// Time to go on from the last track of a cylinder to the first of the next; unless given,
    /// the seek, or the head switch if that is longer: both at once.
    pub cylinder_switch_ms: Option<f64>,
    /// Time a head settles longer before it may write; none unless given.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// The surface, zone by zone, outside in.
    #[serde(default)]
    pub zone: Vec<ZoneSheet>,
    /// The surface by its figures, where it is not given zone by zone.
    pub surface: Option<SurfaceSheet>,
    /// How long seeks take.
    pub seek: SeekSheet,
    /// What the controller adds.
    #[serde(default)]
    pub controller: ControllerSheet,
    /// The way to the host.
    pub bus: BusSheet,
    /// The drive's memory; none unless given.
    #[serde(default)]
    pub cache: CacheSheet,
}

/// A run of cylinders with equally many sectors on each track.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSheet {
    /// How many.
    pub cylinders: u32,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// How much later the next track of the cylinder begins.
    pub track_skew_sectors: Option<u32>,
    /// How much later the first track of the next cylinder begins than the last one before it.
    pub cylinder_skew_sectors: Option<u32>,
    /// The angle at which the zone begins.
    #[serde(default)]
    pub first_slot_sectors: u32,
    /// Tracks kept back at its front.
    #[serde(default)]
    pub reserved_tracks: u64,
    /// Tracks kept as spares at its end, those in use for slipped tracks included.
    #[serde(default)]
    pub spare_tracks: u64,
    /// Tracks passed over, counted from the zone's first.
    #[serde(default)]
    pub slipped_tracks: Vec<u64>,
}

/// A surface by its figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurfaceSheet {
    /// How many zones of equally many cylinders; 16 unless given, as drives of the time had.
    pub zones: Option<u32>,
    /// What the drive holds, in units of 10^9 bytes.
    pub capacity_gb: f64,
    /// Sequential rate in the outermost zone, in units of 10^6 bytes a second.
    pub outer_mb_s: f64,
    /// In the innermost.
    pub inner_mb_s: f64,
    /// Mean over all locations.
    pub mean_mb_s: Option<f64>,
}

/// What the controller adds to each access.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerSheet {
    /// Before the bytes of a read that is in the cache.
    pub read_hit_ms: f64,
    /// Before the arm moves for one that is not.
    pub read_miss_ms: f64,
    /// Before the first byte of a write.
    pub write_ms: f64,
    /// Between having enough sectors of a read and using the bus.
    pub read_reconnect_ms: f64,
    /// After the last byte of a read.
    pub read_end_ms: f64,
    /// Between taking the first byte of a write and moving the arm.
    pub write_seek_delay_ms: f64,
    /// After the last sector of a write.
    pub write_end_ms: f64,
    /// How much of a read must be off the surface before the bus is used, per cent.
    pub read_bus_start_percent: u32,
    /// How much of a write must have arrived before it goes to the surface, per cent.
    pub write_media_start_percent: u32,
}

/// The way to the host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSheet {
    /// Rate towards the host.
    pub read_bytes_per_second: u64,
    /// Rate from the host; the same unless given.
    pub write_bytes_per_second: Option<u64>,
}

/// The drive's memory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSheet {
    /// Runs it can hold.
    pub segments: u32,
    /// Bytes of each.
    pub segment_bytes: u64,
    /// How far it reads on after a read.
    pub readahead_bytes: u64,
}

/// The mechanical times a surface is laid out by, in nanoseconds.
struct Times {
    revolution: u64,
    head_switch: u64,
    cylinder_switch: u64,
}

impl Sheet {
    /// Checks everything and turns it into integers.
    ///
    /// # Errors
    /// The first parameter out of its range, or missing.
    pub fn drawing(&self) -> Result<Drawing, ModelError> {
        let rpm = range("rpm", self.rpm, 60.0, 1_000_000.0)?;
        let heads = self.tracks_per_cylinder;
        range("tracks_per_cylinder", heads.into(), 1.0, HEADS_MAX.into())?;
        let sector = u64::from(self.sector_bytes.unwrap_or(512));
        range("sector_bytes", sector as f64, 128.0, 65_536.0)?;
        let at_once = self.seek.single_ms()?.max(self.head_switch_ms);
        let cylinder_ms = self.cylinder_switch_ms.unwrap_or(at_once);
        let times = Times {
            revolution: (60e9 / rpm).round() as u64,
            head_switch: milliseconds("head_switch_ms", self.head_switch_ms, SEEK_MAX_MS)?.0,
            cylinder_switch: milliseconds("cylinder_switch_ms", cylinder_ms, SEEK_MAX_MS)?.0,
        };
        let zones = match (&self.surface, self.zone.as_slice()) {
            (None, [_, ..]) => self.zone.clone(),
            (Some(surface), []) => surface.zones(&times, heads, sector)?,
            _ => {
                return Err(ModelError::Choose(
                    "the surface is given by [[zone]] tables or by [surface], by one of them",
                ));
            }
        };
        let zones: Result<Vec<Zone>, ModelError> =
            zones.iter().map(|zone| zone.check(&times)).collect();
        let geometry = Geometry::new(zones?, heads)?;
        let seek = self.seek.table(&geometry.weights())?;
        Ok(Drawing {
            sector,
            revolution: times.revolution,
            head_switch: times.head_switch,
            cylinder_switch: times.cylinder_switch,
            write_settle: milliseconds("write_settle_ms", self.write_settle_ms, SEEK_MAX_MS)?.0,
            seek,
            geometry,
            controller: self.controller.check()?,
            read_rate: self.bus.check()?,
            write_rate: self.bus.write_rate()?,
            segments: range("cache.segments", self.cache.segments.into(), 0.0, 1024.0)? as usize,
            segment_sectors: self.cache.check()? / sector,
            readahead_sectors: self.cache.readahead_bytes / sector,
        })
    }
}

impl ZoneSheet {
    fn check(&self, times: &Times) -> Result<Zone, ModelError> {
        let most = f64::from(SECTORS_MAX);
        let per_track = f64::from(self.sectors_per_track);
        range("zone.sectors_per_track", per_track, 1.0, most)?;
        let cylinders = f64::from(self.cylinders);
        range("zone.cylinders", cylinders, 1.0, CYLINDERS_MAX.into())?;
        let hiding = |given: Option<u32>, switch: u64| {
            let n = u64::from(self.sectors_per_track);
            given.map_or_else(|| hiding_skew(switch, n, times.revolution), u64::from)
        };
        let track_skew = hiding(self.track_skew_sectors, times.head_switch);
        let cylinder_skew = hiding(self.cylinder_skew_sectors, times.cylinder_switch);
        let widest = most * 1024.0;
        range("zone.track_skew_sectors", track_skew as f64, 0.0, widest)?;
        range(
            "zone.cylinder_skew_sectors",
            cylinder_skew as f64,
            0.0,
            widest,
        )?;
        Ok(Zone {
            first_lbn: 0,
            end_lbn: 0,
            first_cylinder: 0,
            cylinders: self.cylinders,
            sectors_per_track: self.sectors_per_track.into(),
            track_skew: track_skew % u64::from(self.sectors_per_track),
            cylinder_skew: cylinder_skew % u64::from(self.sectors_per_track),
            first_slot: self.first_slot_sectors.into(),
            reserved_tracks: self.reserved_tracks,
            spare_tracks: self.spare_tracks,
            slipped: self.slipped_tracks.clone(),
        })
    }
}

/// The fewest sectors that pass during a switch. Angles are rounded down to a nanosecond each, so
/// a switch that fits exactly would miss its sector: two nanoseconds are added.
fn hiding_skew(switch: u64, sectors_per_track: u64, revolution: u64) -> u64 {
    match switch {
        0 => 0,
        _ => ((switch + 2) * sectors_per_track).div_ceil(revolution),
    }
}

impl SurfaceSheet {
    /// The zones that give these figures.
    fn zones(&self, times: &Times, heads: u32, sector: u64) -> Result<Vec<ZoneSheet>, ModelError> {
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
        // What equal zones leave over, the innermost holds.
        let left = (capacity - cylinders * one_of_each).max(0.0);
        let innermost = tracks.last().copied().unwrap_or(1.0).max(1.0);
        let more = (left / (innermost * heads_float * sector as f64)).ceil();
        let zone = |(at, &sectors): (usize, &f64)| {
            let most = f64::from(SECTORS_MAX);
            let sectors = range("surface.outer_mb_s, in sectors a track", sectors, 1.0, most)?;
            let is_innermost = at + 1 == tracks.len();
            Ok(ZoneSheet {
                cylinders: (cylinders + if is_innermost { more } else { 0.0 }) as u32,
                sectors_per_track: sectors as u32,
                track_skew_sectors: None,
                cylinder_skew_sectors: None,
                first_slot_sectors: 0,
                reserved_tracks: 0,
                spare_tracks: 0,
                slipped_tracks: Vec::new(),
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

impl ControllerSheet {
    fn check(&self) -> Result<Controller, ModelError> {
        let time = |name, ms| milliseconds(name, ms, OVERHEAD_MAX_MS).map(|time| time.0);
        let percent = |name, value: u32| range(name, value.into(), 0.0, 100.0).map(|p| p as u64);
        Ok(Controller {
            read_hit: time("controller.read_hit_ms", self.read_hit_ms)?,
            read_miss: time("controller.read_miss_ms", self.read_miss_ms)?,
            write: time("controller.write_ms", self.write_ms)?,
            read_reconnect: time("controller.read_reconnect_ms", self.read_reconnect_ms)?,
            read_end: time("controller.read_end_ms", self.read_end_ms)?,
            write_seek_delay: time("controller.write_seek_delay_ms", self.write_seek_delay_ms)?,
            write_end: time("controller.write_end_ms", self.write_end_ms)?,
            read_bus_start: percent(
                "controller.read_bus_start_percent",
                self.read_bus_start_percent,
            )?,
            write_media_start: percent(
                "controller.write_media_start_percent",
                self.write_media_start_percent,
            )?,
        })
    }
}

impl BusSheet {
    fn check(&self) -> Result<u64, ModelError> {
        bus_rate("bus.read_bytes_per_second", self.read_bytes_per_second)
    }

    fn write_rate(&self) -> Result<u64, ModelError> {
        let rate = self.write_bytes_per_second;
        bus_rate(
            "bus.write_bytes_per_second",
            rate.unwrap_or(self.read_bytes_per_second),
        )
    }
}

fn bus_rate(name: &'static str, rate: u64) -> Result<u64, ModelError> {
    range(name, rate as f64, 1e3, 1e12).map(|_| rate)
}

impl CacheSheet {
    fn check(&self) -> Result<u64, ModelError> {
        let bytes = self.segment_bytes as f64;
        range("cache.segment_bytes", bytes, 0.0, 2f64.powi(40))?;
        let ahead = self.readahead_bytes as f64;
        range("cache.readahead_bytes", ahead, 0.0, bytes)?;
        Ok(self.segment_bytes)
    }
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

    #[test]
    fn a_skew_hides_its_switch_and_no_more() {
        assert_eq!(hiding_skew(0, 72, 15_000_000), 0);
        assert_eq!(hiding_skew(1_600_000, 72, 15_000_000), 8);
    }
}
