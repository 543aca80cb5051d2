//! Geometry: the zone, cylinder, head and angle of a sector.
//!
//! The drive's arithmetic; its only time is the revolution. Sectors are numbered along a track,
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
//! tracks at its end hold nothing. Neither do spare sectors, which stand at the end of each *range*
//! of tracks (a track, a cylinder, several, or the zone), nor slipped sectors: those after one move
//! on by one place, into the range's spares:
//!
//! ```text
//! place on the surface    0 1 2 3 4 5 6 7 | 8 9 ..     one spare in a range of 8, place 2 slipped
//! sector                  0 1 - 2 3 4 5 6 | 7 8 ..
//! ```
//!
//! Sectors remapped one by one to a place elsewhere are not modelled.

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
    /// Right after the zone before unless given.
    pub(super) first_cylinder: Option<u32>,
    pub(super) cylinders: u32,
    pub(super) sectors_per_track: u64,
    pub(super) track_skew: u64,
    pub(super) cylinder_skew: u64,
    pub(super) first_slot: u64,
    pub(super) reserved_tracks: u64,
    pub(super) spare_tracks: u64,
    /// Tracks that hold nothing, counted from the zone's first one, in order.
    pub(super) slipped: Vec<u64>,
    /// Tracks of a range; all of the zone's that are not kept back or spare where 0.
    pub(super) range_tracks: u64,
    /// Sectors at the end of each range that hold nothing unless sectors of it are slipped.
    pub(super) spare_sectors: u64,
    /// Places that hold nothing, counted from the zone's first sector, in order.
    pub(super) slips: Slips,
}

/// Slipped sectors of a zone, each by its place, and by its place less those slipped before it in
/// its range: the first sector that is moved on by it. Both increase.
#[derive(Clone, Debug, Default)]
pub(super) struct Slips {
    places: Vec<u64>,
    moved: Vec<u64>,
}

impl Slips {
    /// The place of the sector that would lie at `place` without slips, in the range that begins
    /// at `begin`; and how many sectors follow it without a gap.
    fn place(&self, begin: u64, place: u64) -> (u64, u64) {
        if self.places.is_empty() {
            return (place, u64::MAX);
        }
        let before = self.places.partition_point(|&slip| slip < begin);
        let after = self.moved.partition_point(|&moved| moved <= place);
        let place = place + (after - before.min(after)) as u64;
        let next = self.places.get(after).copied().unwrap_or(u64::MAX);
        (place, next - place)
    }
}

impl Zone {
    fn begin(&self) -> u32 {
        self.first_cylinder.unwrap_or_default()
    }

    /// Tracks of one range, and the sectors one holds.
    fn range(&self, heads: u64) -> (u64, u64) {
        let all = self.tracks(heads);
        let tracks = match self.range_tracks {
            0 => all,
            some => some.min(all),
        };
        (tracks, tracks * self.sectors_per_track - self.spare_sectors)
    }

    /// Tracks that are neither kept back nor spare.
    fn tracks(&self, heads: u64) -> u64 {
        u64::from(self.cylinders) * heads - self.reserved_tracks - self.spare_tracks
    }

    /// Checks slipped and spare sectors against each other, and takes the slips in.
    fn take_slips(&mut self, heads: u64, places: &[u64]) -> Result<(), ModelError> {
        let n = self.sectors_per_track;
        let all = self.tracks(heads);
        let tracks = match self.range_tracks {
            0 => all,
            some => some.min(all),
        };
        // The last range may be shorter.
        let shortest = match all % tracks {
            0 => tracks,
            rest => rest,
        };
        let most = (shortest * n - 1) as f64;
        range("zone.spare_sectors", self.spare_sectors as f64, 0.0, most)?;
        if !places.is_empty() && !self.slipped.is_empty() {
            return Err(ModelError::Choose(
                "a zone has slipped_tracks or slipped_sectors, not both",
            ));
        }
        let first = self.reserved_tracks * n;
        let last = first + all * n - 1;
        let (mut least, mut in_range, mut current) = (first, 0, u64::MAX);
        for &place in places {
            range(
                "zone.slipped_sectors, in increasing order",
                place as f64,
                least as f64,
                last as f64,
            )?;
            least = place + 1;
            let this = (place - first) / (tracks * n);
            in_range = if this == current { in_range + 1 } else { 1 };
            current = this;
            range(
                "zone.slipped_sectors in one range of spare_sectors",
                in_range as f64,
                0.0,
                self.spare_sectors as f64,
            )?;
            self.slips.places.push(place);
            self.slips.moved.push(place - (in_range - 1));
        }
        Ok(())
    }

    /// Number of sectors.
    fn holds(&self, heads: u64) -> u64 {
        let (tracks, _) = self.range(heads);
        let ranges = self.tracks(heads).div_ceil(tracks);
        self.tracks(heads) * self.sectors_per_track - ranges * self.spare_sectors
    }
}

/// Location of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// Its place on the track as the platter turns, in sectors.
    pub(super) slot: u64,
    pub(super) per_track: u64,
    /// How many sectors follow on the track without a gap, this one included.
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
    /// Numbers the sectors of zones, each with its slipped sectors; `first_lbn` and `end_lbn` are
    /// set here.
    pub(super) fn new(zones: Vec<(Zone, Vec<u64>)>, heads: u32) -> Result<Self, ModelError> {
        range("number of zones", zones.len() as f64, 1.0, 256.0)?;
        let (mut lbn, mut cylinder) = (0u64, 0u32);
        let mut numbered = Vec::new();
        for (mut zone, places) in zones {
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
            let begin = zone.first_cylinder.unwrap_or(cylinder);
            range(
                "zone.first_cylinder, after the zones before",
                begin.into(),
                cylinder.into(),
                CYLINDERS_MAX.into(),
            )?;
            zone.first_cylinder = Some(begin);
            zone.take_slips(heads.into(), &places)?;
            zone.first_lbn = lbn;
            lbn += zone.holds(heads.into());
            zone.end_lbn = lbn;
            cylinder = begin.saturating_add(zone.cylinders);
            numbered.push(zone);
        }
        range(
            "cylinders",
            f64::from(cylinder),
            1.0,
            f64::from(CYLINDERS_MAX),
        )?;
        Ok(Self {
            zones: numbered,
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

    /// Cylinders and the sectors of each, zone by zone.
    pub(super) fn weights(&self) -> Vec<(u32, u64)> {
        let mut weights = Vec::new();
        let mut next = 0;
        for zone in &self.zones {
            // Cylinders between two zones hold nothing.
            if zone.begin() > next {
                weights.push((zone.begin() - next, 0));
            }
            weights.push((zone.cylinders, zone.sectors_per_track * self.heads));
            next = zone.begin().saturating_add(zone.cylinders);
        }
        weights
    }

    /// Location of a sector; for one past the end, where it would if the last zone went on.
    pub(super) fn locate(&self, lbn: u64) -> Spot {
        let at = self.zones.partition_point(|zone| zone.end_lbn <= lbn);
        let zone = &self.zones[at.min(self.zones.len() - 1)];
        let n = zone.sectors_per_track;
        let mut place = lbn - zone.first_lbn;
        // Sectors up to a gap: a slipped one, or the spares at the end of a range.
        let mut left = u64::MAX;
        if zone.spare_sectors > 0 {
            let (tracks, holds) = zone.range(self.heads);
            let (at, within) = (place / holds, place % holds);
            let begin = (at * tracks + zone.reserved_tracks) * n;
            let (found, gap) = zone.slips.place(begin, begin + within);
            place = found - zone.reserved_tracks * n;
            left = gap.min(holds - within);
        }
        let sector = place % n;
        let mut track = place / n + zone.reserved_tracks;
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
            cylinder: zone.begin().saturating_add(cylinder as u32),
            head: head as u32,
            slot: (sector + skew) % n,
            per_track: n,
            left: left.min(n - sector),
        }
    }

    /// The end of the sectors on the track of this one; on its cylinder, if `is_cylinder`.
    pub(super) fn end_around(&self, lbn: u64, is_cylinder: bool) -> u64 {
        let home = self.locate(lbn);
        let (mut end, mut spot) = (lbn, home);
        while spot.cylinder == home.cylinder && (is_cylinder || spot.head == home.head) {
            end += spot.left;
            if end >= self.sectors {
                return self.sectors;
            }
            spot = self.locate(end);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(cylinders: u32, sectors_per_track: u64) -> Zone {
        Zone {
            first_lbn: 0,
            end_lbn: 0,
            first_cylinder: None,
            cylinders,
            sectors_per_track,
            track_skew: 3,
            cylinder_skew: 5,
            first_slot: 1,
            reserved_tracks: 0,
            spare_tracks: 0,
            slipped: Vec::new(),
            range_tracks: 0,
            spare_sectors: 0,
            slips: Slips::default(),
        }
    }

    fn geometry(zones: Vec<Zone>) -> Result<Geometry, ModelError> {
        let plain = zones.into_iter().map(|zone| (zone, Vec::new()));
        Geometry::new(plain.collect(), 2)
    }

    #[test]
    fn skews_add_up_from_track_to_track_and_start_anew_in_a_zone() {
        let geometry = geometry(vec![zone(4, 20), zone(4, 10)]).unwrap();
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
        let geometry = geometry(vec![first]).unwrap();
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
        assert!(geometry(vec![bad]).is_err());
    }
}
