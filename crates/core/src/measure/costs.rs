//! Costs: the line through the times of requests, time = cost + bytes / rate.
//!
//! Requests that continue the one before (*adjacent*) and others (*apart*) have a cost each and the
//! rate in common: on a disk the first is nothing and the second a seek, on a store both are its
//! latency. Each kind has a mean. A request that is longer than the mean of its kind by *x* bytes and
//! takes *y* longer says y / x of the time of a byte, with the weight of x squared (recursive least
//! squares):
//!
//! ```text
//! time of a byte += x (y - x * time of a byte) / (information + x^2)
//! information    += x^2 - information / 8 * min(1, x^2 / spread^2)
//! cost of a kind  = mean time - mean bytes * time of a byte, at least 0
//! ```
//!
//! The spread is half of cost x rate. Chance is about a third of a disk's cost, so lengths that differ
//! by less say less of the rate than chance does, and make little forgotten. Example: on 8 ms and 80
//! MB/s the spread is 320 kB. Windows of 16 KiB beside pages leave the rate near to where it is; one
//! request of 4 MiB has nearly all of the weight.
//!
//! A rest that lengths do not explain is split between cost and rate by their squared parts of the time. A mean
//! moves by an eighth; from the ninth on no time counts for more than four times the expected one, or
//! less than a quarter. When four of a kind in a row took more than 3/2, or less than 2/3, the device
//! changed and everything is scaled by the ratio nearest to 1; if all were shorter than the spread,
//! the cost of their kind alone. The cost of a distance is the mean over apart requests that far, by
//! powers of 16; where there were too few, the cost of all.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::profile::{Profile, RATE_RANGE, SWITCHING_MAX};
use crate::units::{Bytes, Nanos, scaled};

/// Classes of distances: below 16 bytes, 256, .. 2^64. With one mean for all, two streams of runs at random in
/// 16 MiB (the TwoRand of prefetch memory) have 0.75 to 0.87 of the throughput.
const DISTANCES: usize = 16;
/// Requests until a mean moves by this part and no more: an eighth follows a device within tens of
/// requests and keeps a disk's rotation, which is chance, to a tenth.
const GAIN: u64 = 8;
/// A time counts for no more than so many times the expected one, after eight of a kind; in 256ths.
const CLIP: u64 = 4 * ONE;
/// So many requests in a row, each slower by half or faster by a third, are a change of the device: of
/// a disk whose rotation is chance, one in a thousand such rows has this length.
pub(super) const STREAK: u64 = 4;
/// Ratios are in 256ths.
const ONE: u64 = 256;
/// A request that takes less than such a part of the expected time came from a cache.
const CACHED: u64 = 32;
/// So many in a row are a device that became faster.
const CACHED_MAX: u64 = 16;
/// The cost of a distance is known for so many requests after the last that far.
const RECENT: u64 = 128;
/// The spread is such a part of cost x rate: a turn of a disk, 0 to 8 ms beside 4 for the arm, differs by 0.3 of the
/// cost from its mean, so the rate stays within a sixth of where it should be, mostly.
const CHANCE: u64 = 2;
/// A told rate weighs as much as so many requests that differ by the spread.
const TOLD: i128 = 2;
/// Bounds of the spread, whatever costs were told: four pages, and a difference that windows of an undescribed
/// device soon have.
const SPREADS: RangeInclusive<u64> = 16 << 10..=1 << 20;
/// Requests that far, until their own cost is taken for it.
const DISTANCE_SAMPLES: u64 = 4;
/// A request costs its host some time, however fast its device: thread wake-ups, submission,
/// completion. With a tenth of a millisecond the host is busy for a third of a window's time at
/// most.
pub(super) const HOST_COST: u64 = 100_000;
/// One byte's time is kept in nanoseconds a MiB.
const MIB: u64 = 1 << 20;
/// Times beyond are as bad as any: an hour.
const TIME_MAX: u64 = 3_600_000_000_000;
/// No request is longer than the settings allow.
const BYTES_MAX: Bytes = Bytes(1 << 30);

/// Mean length and time of recent requests.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: u64,
    bytes: u64,
    time: u64,
    /// When it had one last, in requests.
    last: u64,
}

impl Mean {
    /// It moves by such a part.
    fn part(&self) -> u64 {
        (self.count + 1).min(GAIN)
    }

    fn add(&mut self, now: u64, bytes: u64, time: u64) {
        let part = self.part();
        self.time = self.time - self.time / part + time / part;
        self.bytes = self.bytes - self.bytes / part + bytes / part;
        self.count += 1;
        self.last = now;
    }
}

/// Requests in a row that are off on one side.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    /// Whether they are slower, and whether they are faster.
    side: (bool, bool),
    count: u64,
    /// By how much at least, in 256ths.
    shift: u64,
    /// The longest of them.
    bytes: u64,
}

impl Streak {
    /// A request took so many 256ths of the time it should.
    fn add(&mut self, ratio: u64, bytes: u64) {
        let side = (ratio > ONE * 3 / 2, ratio < ONE * 2 / 3);
        if side == (false, false) || side != self.side {
            *self = Self {
                side,
                shift: ratio,
                ..Self::default()
            };
        }
        // The one nearest to no change.
        self.shift = match side {
            (true, _) => self.shift.min(ratio),
            _ => self.shift.max(ratio),
        };
        self.count += u64::from(side.0 || side.1);
        self.bytes = self.bytes.max(bytes);
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Requests that continue the one before, and others; at first a told cost and no bytes.
    kinds: [Mean; 2],
    /// Nanoseconds a MiB takes.
    per_mib: u64,
    /// Weight of that, in squared bytes.
    information: i128,
    distances: [Mean; DISTANCES],
    /// Switching costs by distance that were told and not observed yet.
    told: Arc<Profile>,
    requests: u64,
    switches: u64,
    /// Of each kind.
    streaks: [Streak; 2],
    /// So many in a row took next to no time.
    cached: u64,
    /// Lengths far enough apart to tell cost and rate were seen.
    has_spread: bool,
}

impl Costs {
    pub(super) fn new(profile: &Profile) -> Self {
        let told = Mean {
            time: profile.switching(Bytes(u64::MAX)).0,
            ..Mean::default()
        };
        let mut costs = Self {
            kinds: [Mean::default(), told],
            per_mib: per_mib(profile.rate(Bytes(0))),
            information: 0,
            distances: Default::default(),
            told: Arc::new(profile.clone()),
            requests: 0,
            switches: 0,
            streaks: Default::default(),
            cached: 0,
            has_spread: false,
        };
        costs.information = TOLD * squared(costs.spread());
        costs
    }

    /// The difference in length from which on requests tell the rate.
    fn spread(&self) -> u64 {
        let depth = scaled(self.cost(1), MIB, self.per_mib.max(1));
        (depth / CHANCE).clamp(*SPREADS.start(), *SPREADS.end())
    }

    /// Of a kind, whatever the distance.
    fn cost(&self, kind: usize) -> u64 {
        let mean = &self.kinds[kind];
        let cost = mean.time.saturating_sub(self.transfer(mean.bytes));
        cost.min(SWITCHING_MAX.0)
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
            0 => self.cost(0),
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
            self.cost(1)
        } else {
            self.unpaid(self.told.switching(centre(class)))
        };
        cost.max(self.cost(0))
    }

    /// A cost that was told and never paid: less on a device whose rate is above the told one,
    /// because a device that transfers a hundred times as fast as a disk does not seek like one.
    fn unpaid(&self, cost: Nanos) -> u64 {
        let told = per_mib(self.told.rate(Bytes(0)));
        scaled(cost.0, self.per_mib.min(told), told)
    }

    fn is_known(&self, mean: &Mean) -> bool {
        mean.count >= DISTANCE_SAMPLES && self.requests - mean.last < RECENT
    }

    /// Of all distances, while no switch was paid.
    fn told_points(&self) -> Vec<(Bytes, Nanos)> {
        let told = self.told.switching_points().iter();
        told.map(|(distance, cost)| (*distance, Nanos(self.unpaid(*cost))))
            .collect()
    }

    /// Whether times of requests so far apart are clipped.
    pub(super) fn knows(&self, distance: Bytes) -> bool {
        self.kinds[usize::from(distance.0 > 0)].count >= GAIN
    }

    /// A request took so long alone.
    pub(super) fn learn(&mut self, distance: Bytes, bytes: Bytes, time: Nanos) {
        self.learn_mean(distance, bytes, time, 1);
    }

    /// So many did on the average, which is one observation.
    pub(super) fn learn_mean(&mut self, distance: Bytes, bytes: Bytes, time: Nanos, requests: u64) {
        let time = time.0.min(TIME_MAX);
        let expected = self.expected(distance, bytes).0.max(1);
        if bytes.0 == 0 || self.is_cached(time, expected) {
            return;
        }
        let bytes = bytes.min(BYTES_MAX).0;
        let kind = usize::from(distance.0 > 0);
        self.follow(kind, bytes, time, expected);
        self.requests += requests;
        let now = self.requests;
        self.switches += kind as u64 * requests;
        let expected = self.expected(distance, Bytes(bytes)).0;
        let time = match self.kinds[kind].count {
            0..GAIN => time,
            _ => time.clamp(expected * ONE / CLIP, (expected * CLIP / ONE).max(1000)),
        };
        if self.kinds[kind].count == 0 {
            // Nothing but the told costs is known beside the first.
            let time = self.cost(kind).saturating_add(self.transfer(bytes));
            self.kinds[kind] = Mean {
                bytes,
                time,
                ..Mean::default()
            };
        }
        self.fit(kind, bytes, time);
        self.kinds[kind].add(now, bytes, time);
        self.bound();
        if kind == 1 {
            let cost = time.saturating_sub(self.transfer(bytes));
            self.distances[class_of(distance)].add(now, bytes, cost);
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

    /// Has the device itself become slower or faster? Then all is scaled, seen of late or not; by requests that are
    /// too short to tell a rate the cost of their kind alone.
    fn follow(&mut self, kind: usize, bytes: u64, time: u64, expected: u64) {
        let ratio = scaled(time, ONE, expected).clamp(1, ONE * ONE);
        let streak = &mut self.streaks[kind];
        streak.add(ratio, bytes);
        if streak.count < STREAK {
            return;
        }
        let Streak { shift, bytes, .. } = core::mem::take(streak);
        let is_whole = bytes >= self.spread();
        let scaled = |value| scaled(value, shift, ONE).min(TIME_MAX);
        let [adjacent, apart] = &mut self.kinds;
        if kind == 0 || is_whole {
            adjacent.time = scaled(adjacent.time);
        }
        if kind == 1 || is_whole {
            for mean in self.distances.iter_mut().chain([apart]) {
                mean.time = scaled(mean.time);
            }
        }
        if is_whole {
            self.per_mib = scaled(self.per_mib).max(1);
        }
    }

    /// The rate by a request's length, and by its part of the rest.
    fn fit(&mut self, kind: usize, bytes: u64, time: u64) {
        let mean = self.kinds[kind];
        let longer = i128::from(bytes) - i128::from(mean.bytes);
        let later = i128::from(time) - i128::from(mean.time);
        let (weight, spread) = (longer * longer, squared(self.spread()));
        let before = i128::from(self.per_mib);
        let information = self.information + weight;
        let by_length = longer * (later * i128::from(MIB) - longer * before) / information;
        // Chance alone may say that longer requests take less time.
        let by_length = by_length.clamp(-before / 2, before);
        self.has_spread |= weight > spread;
        let gain = i128::from(GAIN);
        let forgotten = self.information / gain * weight.min(spread) / spread;
        self.information = information - forgotten;
        let rest = later - longer * (before + by_length) / i128::from(MIB);
        let by_level = before * self.level(kind, rest / i128::from(mean.part())) / 1_000_000;
        let slope = (before + by_length + by_level).max(1);
        self.per_mib = u64::try_from(slope).unwrap_or(u64::MAX);
    }

    /// A mean moves by so much, of which the rate takes the square of its part: by how many
    /// millionths.
    fn level(&self, of: usize, moved: i128) -> i128 {
        let (mut doubt, mut cost, mut transfer) = (0i128, 0i128, 0i128);
        // It is not known yet whether continuing is free.
        let least = if self.has_spread { 0 } else { self.cost(1) };
        for (kind, mean) in self.kinds.iter().enumerate() {
            if kind == of || mean.count > 0 {
                doubt += i128::from(self.cost(kind).max(least));
                cost += i128::from(self.cost(kind));
                transfer += i128::from(self.transfer(mean.bytes));
            }
        }
        // In millionths of all, so that squares stay small.
        let all = (cost + transfer).max(1);
        let (doubt, transfer) = (doubt * 1_000_000 / all, transfer * 1_000_000 / all);
        let part = transfer * transfer * 1_000 / (doubt * doubt + transfer * transfer).max(1);
        (moved * 1_000 / all * part).max(-900_000)
    }

    /// No cost is negative, and no rate beyond those there are.
    fn bound(&mut self) {
        let [least, most] = [RATE_RANGE.end(), RATE_RANGE.start()].map(|rate| per_mib(*rate));
        for mean in self.kinds.iter().filter(|mean| mean.bytes > 0) {
            self.per_mib = self.per_mib.min(scaled(mean.time, MIB, mean.bytes));
        }
        self.per_mib = self.per_mib.clamp(least, most);
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
                _ => Vec::from([(Bytes(0), Nanos(self.cost(1)))]),
            };
        }
        for (_, cost) in &mut points {
            let least = self.cost(0).max(HOST_COST);
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

fn squared(bytes: u64) -> i128 {
    i128::from(bytes) * i128::from(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 ms, of which a turn of 8 ms is chance, and 80 MB/s.
    fn time(bytes: u64, number: u64, seed: u64) -> Nanos {
        // SplitMix64.
        let mut bits = (number + seed * 1_000_003 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let turn = (bits ^ (bits >> 31)) % 8_000_000;
        Nanos(4_000_000 + turn + bytes * 1_000_000_000 / 80_000_000)
    }

    fn rate(costs: &Costs) -> u64 {
        costs.profile(1).rate(Bytes(0)) / 1_000_000
    }

    /// Pages at random, and some windows, of these lengths.
    fn pages_and(window: u64, requests: u64, seed: u64) -> Costs {
        let mut costs = Costs::new(&Profile::default());
        for number in 0..requests {
            let bytes = if number % 5 == 0 { window } else { 4096 };
            costs.learn(Bytes(1 << 30), Bytes(bytes), time(bytes, number, seed));
        }
        costs
    }

    #[test]
    fn pages_and_short_windows_move_a_rate_by_no_factor_of_three() {
        for window in [8192, 16 << 10, 24 << 10, 64 << 10] {
            for (seed, requests) in [100, 300, 1000, 3000, 10_000, 30_000]
                .into_iter()
                .enumerate()
            {
                for seed in 0..8 * seed as u64 {
                    let rate = rate(&pages_and(window, requests, seed));
                    assert!(
                        (27..=240).contains(&rate),
                        "{requests} requests, {window} bytes, seed {seed}: {rate} MB/s"
                    );
                }
            }
        }
    }

    #[test]
    fn two_long_requests_tell_it_after_any_number_of_pages() {
        for pages in [10, 1000, 30_000] {
            let mut costs = pages_and(16 << 10, pages, 1);
            for number in 0..2 {
                let bytes = 8 << 20;
                let slow = Nanos(time(0, number, 2).0 + bytes * 1_000_000_000 / 40_000_000);
                costs.learn(Bytes(1 << 30), Bytes(bytes), slow);
            }
            let rate = rate(&costs);
            assert!((36..=48).contains(&rate), "{pages}: {rate}");
        }
    }

    #[test]
    fn requests_of_one_kind_say_nothing_of_what_the_other_pays() {
        let mut costs = Costs::new(&Profile::default());
        for number in 0..2000 {
            let is_late = number % 100 < 4;
            let bytes = 128 << 10;
            let took = bytes * 1_000_000_000 / 80_000_000 * if is_late { 3 } else { 1 };
            costs.learn(Bytes(0), Bytes(bytes), Nanos(took));
        }
        let cost = costs.profile(1).switching(Bytes(1 << 30)).0;
        assert!((4_000_000..=16_000_000).contains(&cost), "{cost} ns");
    }
}
