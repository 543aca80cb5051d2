//! Drawing: a drive in integers, and how its arm and platter move.
//!
//! Made by the [sheet](super::sheet), used by the [drive](super::drive). Rotation is tracked in
//! absolute time: the platter's angle at a time is `time mod revolution`, so the
//! rotational latency of a request follows from its time of arrival, never from chance.
//!
//! ```text
//! ready                start                            end
//!   | wait for the slot  | sectors of one track           |  move  | next track ...
//! --+--------------------+--------------------------------+--------+------------> time
//! ```
//!
//! A run of sectors is read track by track; between tracks the arm moves, and the skew makes the
//! next slot come by shortly after. A *zero-latency* read of slots 2 to 6 whose head arrives at
//! slot 4 takes 4, 5 and 6 first, and 2 and 3 when they come round, so it ends three slots
//! earlier. Times and angles are nanoseconds; the angle of slot s is
//! `s * revolution / sectors per track`, rounded down, so that a full turn is exact.

use forerun_core::{Bytes, Nanos, Profile, profile};

use super::super::model::ModelError;
use super::super::transfer_time;
use super::controller::{Before, Controller};
use super::geometry::{Geometry, Spot, Zone};
use super::readahead::Until;

/// A drive's parameters, checked, in integers.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) sector: u64,
    pub(super) revolution: u64,
    pub(super) head_switch: u64,
    /// From the last track of a cylinder to the first of the next, in the middle of a run.
    pub(super) cylinder_switch: u64,
    pub(super) write_settle: i64,
    pub(super) zero_latency: bool,
    /// Seek time by distance in cylinders.
    pub(super) seek: Vec<u32>,
    pub(super) geometry: Geometry,
    pub(super) controller: Controller,
    pub(super) read_rate: u64,
    pub(super) write_rate: u64,
    pub(super) segments: usize,
    pub(super) segment_sectors: u64,
    pub(super) readahead_sectors: u64,
    pub(super) readahead_until: Until,
    pub(super) readahead_needs_run: bool,
    pub(super) readahead_yields: bool,
    pub(super) readahead_after_hit: bool,
    pub(super) write_segments: usize,
    pub(super) destage_idle: u64,
    pub(super) destage_before_reads: bool,
    pub(super) keeps_written: bool,
}

/// Position of the heads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Arm {
    pub(super) cylinder: u32,
    pub(super) head: u32,
}

/// Sectors of one track passing under the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// When the first one begins to.
    pub(super) start: u64,
    pub(super) sectors: u64,
    slot: u64,
    per_track: u64,
    revolution: u64,
    /// Of them, so many at the front pass from `start` on; the others have passed before.
    pub(super) front: u64,
}

impl Pass {
    fn angle(&self, slot: u64) -> u64 {
        slot * self.revolution / self.per_track
    }

    /// When the first `sectors` of it have passed.
    pub(super) fn after(&self, sectors: u64) -> u64 {
        let sectors = sectors.min(self.front);
        let angle = self.angle(self.slot + sectors) - self.angle(self.slot);
        self.start.saturating_add(angle)
    }

    pub(super) fn end(&self) -> u64 {
        self.after(self.sectors)
    }

    /// The first of its sectors that begins `elapsed` after its first slot began, or later.
    fn caught(&self, elapsed: u64) -> u64 {
        let slots = u128::from(elapsed) * u128::from(self.per_track);
        let near = (slots / u128::from(self.revolution)) as u64;
        // Rounded angles may name the slot before or after.
        let begins = |at: u64| self.angle(self.slot + at) - self.angle(self.slot);
        let mut at = near.saturating_sub(1);
        while begins(at) < elapsed {
            at += 1;
        }
        at
    }

    /// How many have passed by then, of sectors taken in order.
    pub(super) fn by(&self, now: u64) -> u64 {
        let Some(elapsed) = now.checked_sub(self.start) else {
            return 0;
        };
        // The slot in which `now` lies, from its angle; rounded angles may name the one before.
        let angle = u128::from(self.angle(self.slot)) + u128::from(elapsed);
        let slot = (angle * u128::from(self.per_track) / u128::from(self.revolution)) as u64;
        let mut passed = (slot - self.slot.min(slot)).min(self.sectors);
        if passed < self.sectors && self.after(passed + 1) <= now {
            passed += 1;
        }
        passed
    }
}

impl Drawing {
    /// Number of sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.geometry.sectors()
    }

    /// Capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        Bytes(self.sectors() * self.sector)
    }

    /// Bytes of a sector.
    #[must_use]
    pub fn sector_bytes(&self) -> u64 {
        self.sector
    }

    /// The time of one revolution.
    #[must_use]
    pub fn revolution(&self) -> Nanos {
        Nanos(self.revolution)
    }

    /// The time of a seek over a given number of cylinders; over more than there are, the longest.
    #[must_use]
    pub fn seek(&self, cylinders: u32) -> Nanos {
        let last = self.seek.len().saturating_sub(1);
        let time = self.seek.get(last.min(cylinders as usize));
        Nanos(time.copied().unwrap_or_default().into())
    }

    /// The cylinder of a sector.
    #[must_use]
    pub fn cylinder(&self, lbn: u64) -> u32 {
        self.geometry.locate(lbn).cylinder
    }

    /// How long the arm takes to a track: the seek, or the head switch if that is longer.
    pub(super) fn movement(&self, from: Arm, to: &Spot) -> u64 {
        let seek = self.seek(from.cylinder.abs_diff(to.cylinder)).0;
        if from.head == to.head {
            seek
        } else {
            seek.max(self.head_switch)
        }
    }

    /// The sectors from `lbn` on that lie on one track, at most `most`, passing under the head
    /// once it may begin: the arm sets out at `at`, and nothing begins before `earliest`.
    pub(super) fn pass(&self, run: SectorRun, arm: &mut Arm) -> Pass {
        let spot = self.geometry.locate(run.lbn);
        let is_next = spot.head == 0 && spot.cylinder == arm.cylinder.saturating_add(1);
        let movement = if run.is_going_on && is_next {
            self.cylinder_switch
        } else {
            self.movement(*arm, &spot)
        };
        let there = run.at.saturating_add(self.settled(movement, run.is_write));
        let ready = there.max(run.earliest);
        *arm = Arm {
            cylinder: spot.cylinder,
            head: spot.head,
        };
        let mut pass = Pass {
            start: 0,
            sectors: run.most.min(spot.left),
            slot: spot.slot,
            per_track: spot.per_track,
            revolution: self.revolution,
            front: run.most.min(spot.left),
        };
        let (angle, now) = (pass.angle(spot.slot), ready % self.revolution);
        let wait = if angle >= now {
            angle - now
        } else {
            angle + self.revolution - now
        };
        pass.start = ready.saturating_add(wait);
        if run.is_any_order && wait > 0 {
            pass.front = pass.front.min(pass.caught(self.revolution - wait));
        }
        pass
    }

    /// A movement with the settling of its head.
    fn settled(&self, movement: u64, is_write: bool) -> u64 {
        match is_write {
            true => movement.saturating_add_signed(self.write_settle),
            false => movement,
        }
    }

    /// The time `sectors` take over the bus to the host.
    pub(super) fn host_takes(&self, sectors: u64) -> u64 {
        transfer_time(Bytes(sectors.saturating_mul(self.sector)), self.read_rate).0
    }

    /// The time they take from the host.
    pub(super) fn host_gives(&self, sectors: u64) -> u64 {
        transfer_time(Bytes(sectors.saturating_mul(self.sector)), self.write_rate).0
    }

    /// The two maps of a competitive depth, from the parameters. A switch costs the controller's
    /// overhead of a read that is not cached, the seek, and half a revolution, the mean rotational
    /// latency of a random sector; bytes come at the rate of sequential reading in their zone,
    /// switches between tracks included.
    ///
    /// # Errors
    /// A cost or a rate beyond what a profile may state.
    pub fn profile(&self) -> Result<Profile, ModelError> {
        let zones = self.geometry.zones();
        let rates = zones.iter().map(|zone| {
            let middle = zone.first_lbn.midpoint(zone.end_lbn) * self.sector;
            (Bytes(middle), self.zone_rate(zone))
        });
        // A profile holds so many points: of more zones, every second or third is left out.
        let every = zones.len().div_ceil(profile::POINTS_MAX);
        let rates = rates.step_by(every.max(1)).collect();
        let profile = Profile::new(self.switching_points(), rates);
        // One arm.
        let profile = profile.and_then(|profile| profile.with_servers(1));
        profile.map_err(ModelError::Profile)
    }

    /// Bytes a second of reading a zone from end to end.
    fn zone_rate(&self, zone: &Zone) -> u64 {
        let (heads, n) = (self.geometry.heads(), zone.sectors_per_track);
        let between = |skew: u64, switch: u64| {
            let hidden = skew * self.revolution / n;
            // A switch that its skew does not hide misses whole turns.
            let missed = switch.saturating_sub(hidden).div_ceil(self.revolution);
            hidden + missed * self.revolution
        };
        let time = heads * self.revolution
            + (heads - 1) * between(zone.track_skew, self.head_switch)
            + between(zone.cylinder_skew, self.cylinder_switch);
        let bytes = u128::from(heads * n * self.sector) * 1_000_000_000;
        let rate = u64::try_from(bytes / u128::from(time.max(1))).unwrap_or(u64::MAX);
        rate.min(self.read_rate)
    }

    /// Costs at distances of 0, 1, 2, 4, ... cylinders and between, the longest included.
    fn switching_points(&self) -> Vec<(Bytes, Nanos)> {
        let cylinders = self.geometry.cylinders();
        let capacity = u128::from(self.capacity().0);
        let fixed = self.controller.read_miss.after(Before::Read) + self.revolution / 2;
        let mut distances = vec![0u32];
        let mut next = 2u32;
        while next / 2 < cylinders {
            distances.extend([next / 2, next * 3 / 4]);
            next = next.saturating_mul(2);
        }
        distances.push(cylinders - 1);
        distances.retain(|&distance| distance < cylinders);
        let bytes = |distance: u32| {
            let share = capacity * u128::from(distance) / u128::from(cylinders);
            Bytes(u64::try_from(share).unwrap_or(u64::MAX))
        };
        let mut points: Vec<(Bytes, Nanos)> = distances
            .iter()
            .map(|&d| (bytes(d), Nanos(fixed + self.seek(d).0)))
            .collect();
        points.sort_unstable();
        points.dedup_by_key(|point| point.0);
        points
    }
}

/// A run of sectors to pass under the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorRun {
    pub(super) lbn: u64,
    /// At most so many.
    pub(super) most: u64,
    /// When the arm may set out.
    pub(super) at: u64,
    /// Nothing begins before.
    pub(super) earliest: u64,
    /// Whether they are written.
    pub(super) is_write: bool,
    /// Whether the heads have just passed the sector before.
    pub(super) is_going_on: bool,
    /// Whether sectors may be taken as they come.
    pub(super) is_any_order: bool,
}

impl SectorRun {
    /// Reading from a sector on, with the arm setting out at `at` from anywhere.
    pub(super) fn reading(lbn: u64, at: u64) -> Self {
        Self {
            lbn,
            most: u64::MAX,
            at,
            earliest: 0,
            is_write: false,
            is_going_on: false,
            is_any_order: false,
        }
    }
}
