//! Geometry: where a sector lies, by zone, cylinder, head and angle.
//!
//! The drive's arithmetic; knows no time but the revolution. Sectors are numbered along a track,
//! then over the heads of a cylinder, then over the cylinders of a zone, outside in. Each track's
//! first sector stands a *skew* after that of the track before, so that it comes by just when
//! the head is there:
//!
//! ```text
//! slot(sector) = sector + first_slot + heads passed * track_skew
//!                                    + cylinders passed * (cylinder_skew - track_skew)   mod n
//! phase        = slot * revolution / n
//! ```
//!
//! Tracks a zone keeps back at its front, tracks slipped over because they are bad, and spare
//! tracks at its end hold nothing. Sectors remapped one by one are not modelled.

use super::super::model::{ModelError, range};

/// Most cylinders, tracks of a cylinder and sectors of a track accepted: well above any drive,
/// and small enough for the arithmetic of this folder in 64 bits.
pub(super) const CYLINDERS_MAX: u32 = 2_000_000;
pub(super) const HEADS_MAX: u32 = 1_000;
pub(super) const SECTORS_MAX: u32 = 65_535;

/// A run of cylinders with equally many sectors on each track.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) first_lbn: u64,
    pub(super) end_lbn: u64,
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
    pub(super) sectors_per_track: u64,
    pub(super) track_skew: u64,
    pub(super) cylinder_skew: u64,
    pub(super) first_slot: u64,
    pub(super) reserved_tracks: u64,
    pub(super) spare_tracks: u64,
    /// Tracks that hold nothing, counted from the zone's first one, in order.
    pub(super) slipped: Vec<u64>,
}

/// Where a sector lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// Its place on the track as the platter turns, in sectors.
    pub(super) slot: u64,
    pub(super) per_track: u64,
    /// How many sectors the track still holds, this one included.
    pub(super) left: u64,
}

/// All zones of a drive.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    sectors: u64,
    cylinders: u32,
}

impl Geometry {
    /// Numbers the zones' sectors; `first_lbn`, `end_lbn` and `first_cylinder` are set here.
    pub(super) fn new(mut zones: Vec<Zone>, heads: u32) -> Result<Self, ModelError> {
        range("number of zones", zones.len() as f64, 1.0, 256.0)?;
        let (mut lbn, mut cylinder) = (0u64, 0u32);
        for zone in &mut zones {
            let tracks = u64::from(zone.cylinders) * u64::from(heads);
            let slips = zone.slipped.len() as u64;
            let kept = zone.reserved_tracks.saturating_add(zone.spare_tracks);
            let most = tracks.saturating_sub(1) as f64;
            range(
                "zone.reserved_tracks + zone.spare_tracks",
                kept as f64,
                0.0,
                most,
            )?;
            range(
                "zone.slipped_tracks",
                slips as f64,
                0.0,
                zone.spare_tracks as f64,
            )?;
            if let Some(&at) = zone.slipped.last() {
                range("zone.slipped_tracks", at as f64, 0.0, most)?;
            }
            if zone.slipped.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(ModelError::Choose("zone.slipped_tracks must increase"));
            }
            zone.first_lbn = lbn;
            zone.first_cylinder = cylinder;
            lbn += (tracks - kept) * zone.sectors_per_track;
            zone.end_lbn = lbn;
            cylinder = cylinder.saturating_add(zone.cylinders);
        }
        range(
            "cylinders",
            f64::from(cylinder),
            1.0,
            f64::from(CYLINDERS_MAX),
        )?;
        Ok(Self {
            zones,
            heads: u64::from(heads),
            sectors: lbn,
            cylinders: cylinder,
        })
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn cylinders(&self) -> u32 {
        self.cylinders
    }

    pub(super) fn heads(&self) -> u64 {
        self.heads
    }

    pub(super) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Cylinders and what each holds, zone by zone.
    pub(super) fn weights(&self) -> Vec<(u32, u64)> {
        let weight = |zone: &Zone| (zone.cylinders, zone.sectors_per_track * self.heads);
        self.zones.iter().map(weight).collect()
    }

    /// Where a sector lies; for one past the end, where it would if the last zone went on.
    pub(super) fn locate(&self, lbn: u64) -> Spot {
        let at = self.zones.partition_point(|zone| zone.end_lbn <= lbn);
        let zone = &self.zones[at.min(self.zones.len() - 1)];
        let within = lbn - zone.first_lbn;
        let sector = within % zone.sectors_per_track;
        let mut track = within / zone.sectors_per_track + zone.reserved_tracks;
        for &slipped in &zone.slipped {
            if slipped > track {
                break;
            }
            track += 1;
        }
        let (cylinder, head) = (track / self.heads, track % self.heads);
        let per_cylinder = (self.heads - 1) * zone.track_skew + zone.cylinder_skew;
        let skew = zone.first_slot + head * zone.track_skew + cylinder * per_cylinder;
        Spot {
            cylinder: zone.first_cylinder.saturating_add(cylinder as u32),
            head: head as u32,
            slot: (sector + skew) % zone.sectors_per_track,
            per_track: zone.sectors_per_track,
            left: zone.sectors_per_track - sector,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(cylinders: u32, sectors_per_track: u64) -> Zone {
        Zone {
            first_lbn: 0,
            end_lbn: 0,
            first_cylinder: 0,
            cylinders,
            sectors_per_track,
            track_skew: 3,
            cylinder_skew: 5,
            first_slot: 1,
            reserved_tracks: 0,
            spare_tracks: 0,
            slipped: Vec::new(),
        }
    }

    #[test]
    fn skews_add_up_from_track_to_track_and_start_anew_in_a_zone() {
        let geometry = Geometry::new(vec![zone(4, 20), zone(4, 10)], 2).unwrap();
        assert_eq!(geometry.sectors(), 4 * 2 * 20 + 4 * 2 * 10);
        let slots = |lbns: &[u64]| lbns.iter().map(|&l| geometry.locate(l).slot).collect();
        let found: Vec<u64> = slots(&[0, 20, 40, 60, 160, 170]);
        assert_eq!(found, [1, 4, 9, 12, 1, 4]);
        let spot = geometry.locate(175);
        assert_eq!((spot.cylinder, spot.head, spot.left), (4, 1, 5));
    }

    #[test]
    fn reserved_and_slipped_tracks_hold_nothing() {
        let mut first = zone(4, 20);
        (first.reserved_tracks, first.spare_tracks) = (1, 2);
        first.slipped = vec![2, 3];
        let geometry = Geometry::new(vec![first], 2).unwrap();
        assert_eq!(geometry.sectors(), 5 * 20);
        let track = |lbn| {
            let spot = geometry.locate(lbn);
            spot.cylinder * 2 + spot.head
        };
        let found: Vec<u32> = (0..5).map(|n| track(n * 20)).collect();
        assert_eq!(found, [1, 4, 5, 6, 7]);
    }

    #[test]
    fn more_slips_than_spares_are_refused() {
        let mut bad = zone(4, 20);
        bad.slipped = vec![0];
        assert!(Geometry::new(vec![bad], 2).is_err());
    }
}
