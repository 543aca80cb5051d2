//! Costs: the line through the times of requests, time = cost + bytes / rate.
//!
//! Requests that continue the one before (*adjacent*) and others (*apart*) have a cost each and the
//! rate in common: on a disk the first is nothing and the second a seek, on a store both are its
//! latency. The estimate is a least squares fit of two parallel lines over the means of requests of
//! like size, with the last fit as one more observation:
//!
//! ```text
//!            sum over classes of weight x (bytes - mean) x (time - mean)  +  RIDGE / rate before
//! 1 / rate = ------------------------------------------------------------------------------------
//!            sum over classes of weight x (bytes - mean)^2                +  RIDGE
//!
//! cost of a kind = mean time of its classes - mean bytes / rate, at least 0
//! ```
//!
//! Where all are of one length, cost and rate take up a difference by their squared parts of the
//! time. A mean moves by an eighth, and no further than four times itself. When four in a row took
//! more than 3/2, or less than 2/3, of the expected time, the device changed as a whole and
//! everything is scaled by the least of the four. The cost of a distance is the mean over apart
//! requests that far, by powers of 16; where there were too few, the cost of all.

use alloc::vec::Vec;

use crate::profile::{Profile, RATE_RANGE, SWITCHING_MAX};
use crate::units::{Bytes, Nanos, scaled};

/// Classes of sizes: up to 4 KiB, 8 KiB, .. 4 MiB and longer.
const SIZES: usize = 11;
/// Classes of distances: below 16 bytes, 256, .. 2^64.
const DISTANCES: usize = 16;
/// Requests until a mean moves by this part and no more: an eighth follows a device within tens of
/// requests and keeps a disk's rotation, which is chance, to a tenth.
const GAIN: u64 = 8;
/// A time counts for no more than so many times the mean, once there is one; in 256ths.
pub(super) const CLIP: u64 = 4 * ONE;
/// So many requests in a row, each off by half or more on one side, are a change of the device: of
/// a disk whose rotation is chance, one in a thousand such rows has this length.
pub(super) const STREAK: u64 = 4;
/// Ratios are in 256ths.
pub(super) const ONE: u64 = 256;
/// A request that takes less than such a part of the expected time came from a cache.
pub(super) const CACHED: u64 = 32;
/// So many in a row are a device that became faster.
const CACHED_MAX: u64 = 16;
/// A class without requests for so many loses half of its weight: after 64 it has a sixteenth.
const HALF_LIFE: u64 = 16;
/// The spread of sizes, in bytes, at which the samples weigh as much as the estimate before.
const SPREAD: i128 = 64 << 10;
/// Requests that far, until their own cost is taken for it.
const DISTANCE_SAMPLES: u64 = 4;
/// A request costs its host some time, however fast its device: thread wake-ups, submission,
/// completion. With a tenth of a millisecond the host is busy for a third of a window's time at
/// most.
const HOST_COST: u64 = 100_000;
/// One byte's time is kept in nanoseconds a MiB.
const MIB: u64 = 1 << 20;
/// Times beyond are as bad as any: an hour.
const TIME_MAX: u64 = 3_600_000_000_000;
/// No request is longer than the settings allow.
const BYTES_MAX: Bytes = Bytes(1 << 30);

/// Recent requests of like size, or of like distance.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: u64,
    bytes: u64,
    time: u64,
    /// When it had one last, in requests.
    last: u64,
}

impl Mean {
    fn add(&mut self, now: u64, bytes: u64, time: u64) {
        let (mean, count) = (self.time, self.count);
        let time = match count {
            0..GAIN => time,
            _ => time.clamp(mean * ONE / CLIP, (mean * CLIP / ONE).max(1000)),
        };
        let part = (count + 1).min(GAIN);
        self.time = mean - mean / part + time / part;
        self.bytes = self.bytes - self.bytes / part + bytes / part;
        self.count += 1;
        self.last = now;
    }

    fn weight(&self, now: u64) -> i128 {
        let age = (now.saturating_sub(self.last) / HALF_LIFE).min(16);
        i128::from((self.count.min(GAIN) << 10) >> age)
    }
}

/// Weighted sums over the classes of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: i128,
    bytes: i128,
    time: i128,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Of a request that continues the one before, and of any other.
    kinds: [u64; 2],
    /// Nanoseconds a MiB takes.
    per_mib: u64,
    sizes: [[Mean; SIZES]; 2],
    distances: [Mean; DISTANCES],
    /// Switching costs by distance that were told and not observed yet.
    told: Profile,
    requests: u64,
    switches: u64,
    /// Which of slower and faster the last requests were, how many in a row, and by how much at
    /// least, in 256ths.
    side: (u64, u64),
    streak: u64,
    shift: u64,
    /// So many in a row took next to no time.
    cached: u64,
    /// Requests of lengths apart enough to tell cost and rate were seen.
    has_spread: bool,
}

impl Costs {
    pub(super) fn new(profile: &Profile) -> Self {
        let rate = profile.rate(Bytes(0));
        let cost = profile.switching(Bytes(u64::MAX));
        Self {
            kinds: [0, cost.0],
            per_mib: per_mib(rate),
            sizes: Default::default(),
            distances: Default::default(),
            told: profile.clone(),
            requests: 0,
            switches: 0,
            side: (0, 0),
            streak: 0,
            shift: ONE,
            cached: 0,
            has_spread: false,
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether a request that continued the one before was seen.
    pub(super) fn knows_adjacent(&self) -> bool {
        self.requests > self.switches
    }

    pub(super) fn switches(&self) -> u64 {
        self.switches
    }

    /// How long a request takes alone.
    pub(super) fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos {
        let cost = match distance.0 {
            0 => self.kinds[0],
            _ => self.switching(class_of(distance)),
        };
        Nanos(cost.saturating_add(self.transfer(bytes.0)))
    }

    fn transfer(&self, bytes: u64) -> u64 {
        scaled(bytes, self.per_mib, MIB)
    }

    /// The cost of going so far: its own mean, that of all, or the profile's.
    fn switching(&self, class: usize) -> u64 {
        let mean = &self.distances[class];
        let cost = if self.is_known(mean) {
            mean.time
        } else if self.switches > 0 {
            self.kinds[1]
        } else {
            self.unpaid(self.told.switching(centre(class)))
        };
        cost.max(self.kinds[0])
    }

    /// A cost that was told and never paid: less on a device whose rate is above the told one,
    /// because a device that transfers a hundred times as fast as a disk does not seek like one.
    fn unpaid(&self, cost: Nanos) -> u64 {
        let told = per_mib(self.told.rate(Bytes(0)));
        scaled(cost.0, self.per_mib.min(told), told)
    }

    fn is_known(&self, mean: &Mean) -> bool {
        mean.count >= DISTANCE_SAMPLES && self.requests - mean.last < 8 * HALF_LIFE
    }

    /// Of all distances, while no switch was paid.
    fn told_points(&self) -> Vec<(Bytes, Nanos)> {
        let told = self.told.switching_points().iter();
        told.map(|(distance, cost)| (*distance, Nanos(self.unpaid(*cost))))
            .collect()
    }

    /// A request took so long alone.
    pub(super) fn learn(&mut self, distance: Bytes, bytes: Bytes, time: Nanos) {
        let time = time.0.min(TIME_MAX);
        let expected = self.expected(distance, bytes).0.max(1);
        if bytes.0 == 0 || self.is_cached(time, expected) {
            return;
        }
        self.follow(time, expected);
        self.requests += 1;
        let now = self.requests;
        let bytes = bytes.min(BYTES_MAX);
        let kind = usize::from(distance.0 > 0);
        self.switches += kind as u64;
        let size = bytes.0.div_ceil(4096).next_power_of_two().ilog2() as usize;
        self.sizes[kind][size.min(SIZES - 1)].add(now, bytes.0, time);
        self.fit();
        if kind == 1 {
            let cost = time.saturating_sub(self.transfer(bytes.0));
            self.distances[class_of(distance)].add(now, bytes.0, cost);
        }
    }

    /// No device works for this: a cache had it, unless so many in a row are as fast.
    fn is_cached(&mut self, time: u64, expected: u64) -> bool {
        if time >= expected / CACHED {
            self.cached = 0;
            return false;
        }
        self.cached += 1;
        self.cached < CACHED_MAX
    }

    /// Has the device itself become slower or faster? Then all is scaled, seen of late or not.
    fn follow(&mut self, time: u64, expected: u64) {
        let ratio = scaled(time, ONE, expected).clamp(1, ONE * ONE);
        let side = (
            u64::from(ratio > ONE * 3 / 2),
            u64::from(ratio < ONE * 2 / 3),
        );
        if side == (0, 0) || side != self.side {
            (self.side, self.streak, self.shift) = (side, 0, ratio);
        }
        // The one nearest to no change.
        self.shift = match side {
            (1, _) => self.shift.min(ratio),
            _ => self.shift.max(ratio),
        };
        self.streak += side.0 + side.1;
        if self.streak >= STREAK {
            self.streak = 0;
            self.scale(self.shift);
        }
    }

    /// Every cost becomes so many 256ths of its estimate.
    fn scale(&mut self, by: u64) {
        let scaled = |value| scaled(value, by, ONE).min(TIME_MAX);
        self.per_mib = scaled(self.per_mib).max(1);
        for mean in self.sizes.iter_mut().flatten().chain(&mut self.distances) {
            mean.time = scaled(mean.time);
        }
        for cost in &mut self.kinds {
            *cost = scaled(*cost).min(SWITCHING_MAX.0);
        }
    }

    fn fit(&mut self) {
        let now = self.requests;
        let sums = self.sizes.map(|kind| sums(&kind, now));
        let (mut xy, mut xx) = (0i128, 0i128);
        for (kind, sums) in self.sizes.iter().zip(&sums) {
            for mean in kind {
                let weight = mean.weight(now);
                if weight > 0 && sums.weight > 0 {
                    let bytes = i128::from(mean.bytes) - sums.bytes / sums.weight;
                    let time = i128::from(mean.time) - sums.time / sums.weight;
                    xx += weight * bytes * bytes;
                    xy += weight * bytes * time;
                }
            }
        }
        let ridge = SPREAD * SPREAD * i128::from(GAIN << 10);
        let before = i128::from(self.prior(&sums));
        self.has_spread |= xx > ridge;
        let mut slope = (xy * i128::from(MIB) + ridge * before) / (xx + ridge);
        for sums in sums.iter().filter(|sums| sums.bytes > 0) {
            // No cost is negative.
            slope = slope.min(sums.time * i128::from(MIB) / sums.bytes);
        }
        let least = per_mib(*RATE_RANGE.end());
        self.per_mib = u64::try_from(slope)
            .unwrap_or(least)
            .clamp(least, per_mib(*RATE_RANGE.start()));
        for (kind, sums) in sums.iter().enumerate() {
            if sums.weight > 0 {
                let transfer =
                    sums.bytes / sums.weight * i128::from(self.per_mib) / i128::from(MIB);
                let cost = (sums.time / sums.weight - transfer).max(0);
                self.kinds[kind] = u64::try_from(cost).unwrap_or(u64::MAX).min(SWITCHING_MAX.0);
            }
        }
    }

    /// Time of a MiB before, moved by its part of the difference between the time the last requests
    /// were expected to take and the time they took.
    fn prior(&self, sums: &[Sums; 2]) -> u64 {
        let (mut doubt, mut cost, mut transfer, mut time) = (0i128, 0i128, 0i128, 0i128);
        // It is not known yet whether continuing is free.
        let least = if self.has_spread { 0 } else { self.kinds[1] };
        for (kind, sums) in sums.iter().enumerate() {
            doubt += sums.weight * i128::from(self.kinds[kind].max(least));
            cost += sums.weight * i128::from(self.kinds[kind]);
            transfer += sums.bytes * i128::from(self.per_mib) / i128::from(MIB);
            time += sums.time;
        }
        // In millionths of all, so that squares stay small.
        let all = (cost + transfer).max(1);
        let (doubt, transfer) = (doubt * 1_000_000 / all, transfer * 1_000_000 / all);
        let part = transfer * transfer * 1_000 / (doubt * doubt + transfer * transfer).max(1);
        let ratio = time * 1_000 / all;
        let factor = 1_000_000 + (ratio - 1_000) * part;
        let moved = i128::from(self.per_mib) * factor.max(1_000) / 1_000_000;
        u64::try_from(moved).unwrap_or(u64::MAX).max(1)
    }

    /// As a profile of so many servers.
    pub(super) fn profile(&self, servers: u32) -> Profile {
        let seen = (0..DISTANCES).filter(|class| self.is_known(&self.distances[*class]));
        let mut points: Vec<(Bytes, Nanos)> = seen
            .map(|class| (centre(class), Nanos(self.switching(class))))
            .collect();
        if points.is_empty() {
            points = match self.switches {
                0 => self.told_points(),
                _ => Vec::from([(Bytes(0), Nanos(self.kinds[1]))]),
            };
        }
        for (_, cost) in &mut points {
            let least = self.kinds[0].max(HOST_COST);
            *cost = Nanos(cost.0.clamp(least, SWITCHING_MAX.0));
        }
        let rate = MIB * 1_000_000_000 / self.per_mib.max(1);
        let rate = rate.clamp(*RATE_RANGE.start(), *RATE_RANGE.end());
        let profile = Profile::new(points, Vec::from([(Bytes(0), rate)]));
        let profile = profile.and_then(|profile| profile.with_servers(servers));
        debug_assert!(profile.is_ok(), "an estimate is in range");
        profile.unwrap_or_default()
    }
}

fn sums(kind: &[Mean; SIZES], now: u64) -> Sums {
    kind.iter().fold(Sums::default(), |sums, mean| {
        let weight = mean.weight(now);
        Sums {
            weight: sums.weight + weight,
            bytes: sums.bytes + weight * i128::from(mean.bytes),
            time: sums.time + weight * i128::from(mean.time),
        }
    })
}

fn per_mib(rate: u64) -> u64 {
    MIB * 1_000_000_000 / rate.max(1)
}

/// Powers of 16.
fn class_of(distance: Bytes) -> usize {
    (distance.0.max(1).ilog2() / 4) as usize
}

/// The middle of a class, by ratio.
fn centre(class: usize) -> Bytes {
    Bytes(1 << (4 * class as u32 + 2))
}
