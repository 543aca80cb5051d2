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
use super::controller::ControllerSheet;
use super::drawing::Drawing;
use super::geometry::{CYLINDERS_MAX, Geometry, HEADS_MAX, SECTORS_MAX, Slips, Zone};
use super::readahead::Until;
use super::seek::{SEEK_MAX_MS, SeekSheet};
use super::surface::{SurfaceSheet, Times};

/// Longest idle time accepted before dirty sectors go to the surface.
const IDLE_MAX_MS: f64 = 3_600_000.0;

/// The parameters of a drive, as in its file.
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
    /// Time a head settles longer before it may write; below zero where the seek times are those
    /// of reads that had to settle longer. None unless given.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Whether sectors of a read are taken in the order in which they pass under the head.
    #[serde(default)]
    pub zero_latency_reads: bool,
    /// The surface, zone by zone, outside in.
    #[serde(default)]
    pub zone: Vec<ZoneSheet>,
    /// The surface by its figures, where it is not given zone by zone.
    pub surface: Option<SurfaceSheet>,
    /// How long seeks take.
    pub seek: SeekSheet,
    /// Overheads of the controller.
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
    /// Its first cylinder; the one after the zone before unless given.
    pub first_cylinder: Option<u32>,
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
    /// Sectors kept as spares at the end of each range, those in use for slipped ones included.
    #[serde(default)]
    pub spare_sectors: u64,
    /// Tracks of a range; the whole zone unless given.
    pub spare_range_tracks: Option<u64>,
    /// Sectors passed over, counted from the zone's first.
    #[serde(default)]
    pub slipped_sectors: Vec<u64>,
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
    /// How far it reads on after a read, at most.
    pub readahead_bytes: u64,
    /// Where else reading on ends; nowhere unless given.
    pub readahead_until: Until,
    /// Whether it reads on only after a read that continues a run in the cache.
    pub readahead_needs_run: bool,
    /// Whether a request for other sectors ends it; it does unless given.
    pub readahead_yields: Option<bool>,
    /// Whether a read that is in the cache sets it going again; it does unless given.
    pub readahead_after_hit: Option<bool>,
    /// Runs of written sectors it holds for later; 0 is no write-back cache.
    pub write_segments: u32,
    /// How long the heads have nothing to do before such a run goes to the surface.
    pub destage_idle_ms: f64,
    /// Whether all such runs go to the surface before a read that needs the heads.
    pub destage_before_reads: bool,
    /// Whether written sectors stay in the cache for reads once they are on the surface; only
    /// with a write-back cache.
    pub keeps_written: bool,
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
        let check = |zone: &ZoneSheet| Ok((zone.check(&times)?, zone.slipped_sectors.clone()));
        let zones: Result<Vec<(Zone, Vec<u64>)>, ModelError> = zones.iter().map(check).collect();
        let geometry = Geometry::new(zones?, heads)?;
        let seek = self.seek.table(&geometry.weights())?;
        Ok(Drawing {
            sector,
            revolution: times.revolution,
            head_switch: times.head_switch,
            cylinder_switch: times.cylinder_switch,
            write_settle: self.write_settle()?,
            zero_latency: self.zero_latency_reads,
            seek,
            geometry,
            controller: self.controller.check()?,
            read_rate: self.bus.check()?,
            write_rate: self.bus.write_rate()?,
            segments: range("cache.segments", self.cache.segments.into(), 0.0, 1024.0)? as usize,
            segment_sectors: self.cache.check()? / sector,
            readahead_sectors: self.cache.readahead_bytes / sector,
            readahead_until: self.cache.readahead_until,
            readahead_needs_run: self.cache.readahead_needs_run,
            readahead_yields: self.cache.readahead_yields.unwrap_or(true),
            readahead_after_hit: self.cache.readahead_after_hit.unwrap_or(true),
            write_segments: self.cache.write_segments as usize,
            destage_idle: milliseconds(
                "cache.destage_idle_ms",
                self.cache.destage_idle_ms,
                IDLE_MAX_MS,
            )?
            .0,
            destage_before_reads: self.cache.destage_before_reads,
            keeps_written: self.cache.keeps_written,
        })
    }

    fn write_settle(&self) -> Result<i64, ModelError> {
        let (ms, most) = (self.write_settle_ms, SEEK_MAX_MS);
        let settle = range("write_settle_ms", ms, -most, most)?;
        Ok((settle * 1e6).round() as i64)
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
            first_cylinder: self.first_cylinder,
            cylinders: self.cylinders,
            sectors_per_track: self.sectors_per_track.into(),
            track_skew: track_skew % u64::from(self.sectors_per_track),
            cylinder_skew: cylinder_skew % u64::from(self.sectors_per_track),
            first_slot: self.first_slot_sectors.into(),
            reserved_tracks: self.reserved_tracks,
            spare_tracks: self.spare_tracks,
            slipped: self.slipped_tracks.clone(),
            range_tracks: match self.spare_range_tracks {
                None => 0,
                Some(tracks) => {
                    let most = f64::from(CYLINDERS_MAX) * f64::from(HEADS_MAX);
                    range("zone.spare_range_tracks", tracks as f64, 1.0, most)? as u64
                }
            },
            spare_sectors: self.spare_sectors,
            slips: Slips::default(),
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
        let most = f64::from(self.segments);
        range(
            "cache.write_segments",
            self.write_segments.into(),
            0.0,
            most,
        )?;
        if self.write_segments == 0
            && (self.destage_before_reads || self.keeps_written || self.destage_idle_ms != 0.0)
        {
            return Err(ModelError::Choose(
                "cache.destage_idle_ms, destage_before_reads and keeps_written need \
                 cache.write_segments",
            ));
        }
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
