//! Sheet: a drive's parameters as written in a TOML file, checked and turned into integers.
//!
//! [`Sheet`] is the file, field by field; [`Sheet::drawing`] is the only way from it to a
//! [`Drawing`], which the [drive](super::drive) works from. Everything is checked here, with the
//! parameter's name, value and range in the error; after it nothing can fail. Floating point ends
//! here too.
//!
//! The surface is given zone by zone, or by its figures: then a [`SurfaceSheet`] lays it out.
//! Skews not given are the smallest that hide their switch.

use serde::Deserialize;

use super::super::model::{ModelError, milliseconds, range};
use super::drawing::{Controller, Drawing};
use super::geometry::{CYLINDERS_MAX, Geometry, HEADS_MAX, SECTORS_MAX, Zone};
use super::seek::{SEEK_MAX_MS, SeekSheet};
use super::surface::{SurfaceSheet, Times};

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
    /// After the last byte of a read.
    pub read_end_ms: f64,
    /// After the last sector of a write.
    pub write_end_ms: f64,
    /// How much of a read must be off the surface before the bus is used, per cent.
    pub read_bus_start_percent: u32,
    /// How much of a write must have arrived before it goes to the surface, per cent; at least
    /// so much that the surface does not overtake the bus, whatever is said here.
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

impl ControllerSheet {
    fn check(&self) -> Result<Controller, ModelError> {
        let time = |name, ms| milliseconds(name, ms, OVERHEAD_MAX_MS).map(|time| time.0);
        let percent = |name, value: u32| range(name, value.into(), 0.0, 100.0).map(|p| p as u64);
        Ok(Controller {
            read_hit: time("controller.read_hit_ms", self.read_hit_ms)?,
            read_miss: time("controller.read_miss_ms", self.read_miss_ms)?,
            write: time("controller.write_ms", self.write_ms)?,
            read_end: time("controller.read_end_ms", self.read_end_ms)?,
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
    fn a_skew_hides_its_switch_and_no_more() {
        assert_eq!(hiding_skew(0, 72, 15_000_000), 0);
        assert_eq!(hiding_skew(1_600_000, 72, 15_000_000), 8);
    }
}
