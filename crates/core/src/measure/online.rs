//! Online: costs and servers from the requests that complete.
//!
//! A request takes longer on a slow device, and behind other requests. With n requests queued all
//! the time, one server of 8 ms and two of 16 ms answer at the same moments. The time of a request
//! *alone* tells them apart, so now and then one has the device for itself.
//!
//! Costs: [lines](super::costs) through the times of requests that were alone, or on
//! [one server](super::single) through the times since the request before. On several others only ever slow a request: an
//! epoch's count too where they took less than they do alone, by their [mean](super::together), as one may be fast by chance.
//!
//! Servers, by [Little's law](super::servers) over epochs of requests that were not alone.
//!
//! Control law of the limit: that of a [profile](Profile::queue_max), two requests for one server
//! and four each for several, more where they are short. A device that was not described gets one at a time for the first two,
//! then two; if they are worked on at once the limit is eight, then 32. A server never gets less than eight,
//! and up to that many are taken as alone; one that was not described is taken for eight workers, so its limit is 32.
//!
//! Control law of exploration: [probing](super::probing).
//!
//! Example: a store of 30 ms gets 32 reads at once; if these take 30 ms, too, 128.

use alloc::boxed::Box;

use super::costs::Costs;
use super::probing::Probing;
use super::servers::{EPOCH, Epoch, ONE, Servers};
use super::single::Single;
use super::{Confidence, Measure, Sample};
use crate::profile::{Profile, SERVERS_MAX};
use crate::spec::{Knows, Method, Spec};
use crate::units::{Bytes, Nanos, saturate};

pub(super) const METHOD: Method<Box<dyn Measure>> = Method {
    spec: Spec {
        name: "online",
        summary: "costs and servers estimated from the requests that complete",
        source: "after Cardwell et al., ACM Queue 2016; Little 1961",
        unfit: "comparing methods on one device: each sees estimates of its own",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Online::default()),
};

/// Requests alone before the first guess: the first may be odd, and two cost a store of 200
/// ms less than half a second.
const FIRST: u64 = 2;
/// So much work is always at a device: as long as a thread of its host may wait for a processor, a
/// time slice of Linux, in which the device would run idle.
const LATE: u64 = 3_000_000;
/// So many times as much, or so many switches, where our order is worth little: a switch costs less than that, or
/// requests fall on several disks, unevenly. Eight pages each, or four requests of a depth: of n requests at m disks
/// n / (n + m - 1) of the disks work, which is 0.91 for 32 at four and 0.84 for 16.
const MANY: u64 = 8;
/// A server gets so many requests at once at least, but fewer if it was told to work on fewer: late ones may be so
/// because of their objects, and a hundred programs have their turn in three seconds if each takes a quarter of one.
const LEAST: u32 = 8;
/// Requests over which their time is averaged.
const MEAN_OF: u64 = 16;

/// See the [module](self).
#[derive(Debug)]
struct Online {
    costs: Costs,
    single: Single,
    servers: Servers,
    probing: Probing,
    limits: Limits,
    profile: Profile,
    /// Mean of the expected times of requests.
    mean: u64,
    /// When the last request ended.
    ended: Nanos,
    /// When the first costs were measured: before, the expected times of requests were only told.
    measured: Nanos,
}

/// Requests at once.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Fewest, also while something is measured.
    floor: u32,
    /// Most that are taken as alone.
    alone: u32,
    /// Most by the number of servers.
    by_servers: u32,
    /// Most by the profile.
    most: u32,
}

impl Limits {
    fn new(profile: &Profile, servers: Option<u32>) -> Self {
        let floor = match (profile.is_served(), servers) {
            (true, told) => told.unwrap_or(LEAST).min(LEAST),
            (false, _) => 1,
        };
        let by_servers = match servers {
            Some(told) => limit_of(told),
            None if profile.is_served() => limit_of(floor),
            None => floor,
        };
        Self {
            floor,
            alone: floor.min((profile.most() / 4).max(1)),
            by_servers,
            most: profile.most(),
        }
    }
}

/// Most requests of a device of so many servers, as of one that was described.
fn limit_of(servers: u32) -> u32 {
    let described = Profile::default().with_servers(servers);
    described.map_or(2, |profile| profile.queue_max())
}

impl Default for Online {
    fn default() -> Self {
        Self::of(&Profile::default())
    }
}

impl Online {
    fn of(profile: &Profile) -> Self {
        let told = Some(profile.servers()).filter(|told| *told < SERVERS_MAX);
        let limits = Limits::new(profile, told);
        let servers = Servers::new(told.unwrap_or(limits.floor), told.is_some());
        let mut profile = profile.clone();
        let costs = Costs::new(&profile);
        if told.is_none() && profile.is_served() {
            profile = profile.with_servers(servers.whole()).unwrap_or_default();
        }
        Self {
            costs,
            single: Single::default(),
            servers,
            probing: Probing::default(),
            limits,
            profile,
            mean: LATE,
            ended: Nanos(0),
            measured: Nanos(u64::MAX),
        }
    }

    /// The number of servers as others are told it: a server that was not described has as many as it is asked at
    /// first, any other device an unknown number.
    fn believed(&self) -> u32 {
        match self.servers.is_known || self.limits.floor > 1 {
            true => self.servers.whole(),
            false => SERVERS_MAX,
        }
    }

    /// The time for which the requests that each server has keep it busy.
    fn work(&self) -> u64 {
        let switch = self.profile.switching(Bytes(u64::MAX)).0;
        let is_array = !self.profile.is_served() && self.servers.whole() > 1;
        match is_array || switch < LATE {
            true => MANY * LATE.max(switch),
            false => LATE,
        }
    }

    /// Time of a request that met no queue.
    fn learn(&mut self, sample: &Sample, before: Nanos) {
        if self.servers.is_one() {
            return self.single.learn(&mut self.costs, sample, before);
        }
        self.single.pass(&self.costs, sample, before);
        let most = sample.in_flight.max(sample.left);
        let time = sample.ended.since(sample.sent);
        // The first at an idle server is served first, and others only ever make a request slower.
        let is_new =
            !self.servers.is_known && self.limits.floor > 1 && self.costs.requests() < FIRST;
        let is_first = is_new && (sample.in_flight == 1 || self.costs.requests() == 0);
        if most <= self.limits.alone || is_first {
            self.costs.learn(sample.distance, sample.bytes, time);
        }
    }

    /// A request was one of several.
    fn count(&mut self, sample: &Sample) {
        // Where all that may be sent is sent, how many more it could take is no matter.
        let counts = !sample.is_full || sample.in_flight >= self.limits.by_servers;
        self.probing.was_joined(counts);
        let expected = self.costs.expected(sample.distance, sample.bytes);
        if let Some(epoch) = self.servers.add(sample, expected) {
            self.settle(&epoch);
        }
        let seen = self.servers.was_seen.then(|| self.servers.whole());
        self.probing.plan(sample.ended, seen);
    }

    /// An epoch ended: how many servers were at work?
    fn settle(&mut self, epoch: &Epoch) {
        if epoch.is_short() && !self.servers.is_one() {
            epoch.all.learn(&mut self.costs);
        }
        let is_told = self.servers.is_one() && self.costs.requests() < u64::from(EPOCH);
        // Expected times that were only told say nothing, nor do requests that were sent before the costs were
        // measured anew.
        if is_told || self.probing.is_on() {
            return;
        }
        let seen = self.servers.judge(epoch);
        let is_clear = seen.has_grown && self.profile.is_served() && self.probing.is_on_time();
        let is_odd = seen.is_odd && !is_clear && !self.servers.is_growing;
        let is_one = seen.count < ONE * 3 / 2 && !self.servers.is_one();
        if self.probing.doubts(is_odd, is_one, self.servers.whole()) {
            return;
        }
        // The limit stays above the requests that tell nothing of the number of servers.
        let floor = self.limits.floor;
        let least = (floor / 4 + 1).max(floor.min(2));
        self.servers.believe(seen.count.max(u64::from(least) * ONE));
        self.limits.by_servers = limit_of(self.servers.whole());
    }
}

impl Measure for Online {
    fn told(&mut self, profile: &Profile) {
        *self = Self {
            ended: self.ended,
            ..Self::of(profile)
        };
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn limit(&self) -> u32 {
        let limits = &self.limits;
        if self.probing.is_on() || limits.by_servers <= limits.floor {
            return limits.floor.min(limits.most);
        }
        let time = self.work().saturating_mul(self.servers.whole().into());
        let late = saturate(time / self.mean.max(1));
        let late = late.saturating_add(1);
        let least = limits.by_servers.max(limits.floor);
        least.max(late).min(limits.most)
    }

    fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos {
        // Servers side by side are no arm: to continue is no cheaper there, until it is seen to be.
        let is_guess = self.servers.whole() > 1 && !self.costs.knows_adjacent();
        let least = Bytes(u64::from(is_guess));
        self.costs.expected(distance.max(least), bytes)
    }

    fn ended(&mut self, sample: &Sample) {
        let before = core::mem::replace(&mut self.ended, sample.ended);
        let expected = self.costs.expected(sample.distance, sample.bytes).0;
        self.mean = self.mean - self.mean / MEAN_OF + expected / MEAN_OF;
        self.probing
            .took(sample.ended.since(sample.sent).0, expected);
        self.learn(sample, before);
        if self.costs.requests() > 0 {
            self.measured = self.measured.min(sample.ended);
        }
        let is_alone = sample.in_flight <= self.limits.alone;
        if is_alone {
            self.probing.was_alone(self.profile.is_served());
        }
        if !self.servers.is_known && self.limits.by_servers == self.limits.floor {
            if self.costs.requests() >= FIRST {
                self.limits.by_servers = limit_of(self.limits.floor);
            }
        } else if !is_alone && (self.servers.is_known || sample.sent >= self.measured) {
            self.count(sample);
        }
        let profile = self.costs.profile(self.believed());
        self.profile = profile.with_most(self.limits.most);
    }

    fn lost(&mut self, in_flight: u32) {
        if in_flight <= self.limits.alone {
            self.probing.lost();
        }
    }

    fn give_up(&mut self) {
        self.probing.give_up();
        let least = limit_of(self.limits.floor);
        self.limits.by_servers = self.limits.by_servers.max(least);
    }

    fn confidence(&self) -> Confidence {
        let held = match self.servers.is_one() {
            true => self.single.held(),
            false => 0,
        };
        Confidence {
            samples: self.costs.requests() + held,
            switches: self.costs.switches(),
            saw_servers: self.servers.was_seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use std::println;

    use super::*;
    use crate::conformance::Random;

    /// Requests one behind the other, every other one from a cache.
    #[test]
    fn a_cache_that_has_half_of_the_requests_hides_no_device() {
        let mut method = Online::default();
        let mut now = 0;
        for number in 0..1000u64 {
            let time = match number % 2 {
                0 => 12_000_000 + 5_000_000,
                _ => 10_000,
            };
            let sample = Sample {
                sent: Nanos(now),
                ended: Nanos(now + time),
                distance: Bytes(1 << 30),
                bytes: Bytes(500_000),
                in_flight: 1,
                left: 1,
                ..Sample::default()
            };
            method.ended(&sample);
            now += time;
        }
        let expected = method.expected(Bytes(1 << 30), Bytes(500_000));
        assert!(expected.0.abs_diff(17_000_000) < 1_000_000, "{expected:?}");
    }

    /// A store of eight servers.
    fn store() -> Online {
        let described = Profile::constant(Nanos(20_000_000), 80_000_000).unwrap();
        let mut method = Online::default();
        method.told(&described.with_servers(8).unwrap().with_most(256));
        method
    }

    /// A request that was sent with so many and took so many times the time it takes alone.
    fn sample(method: &Online, in_flight: u32, times: u64) -> Sample {
        let alone = method.expected(Bytes(1 << 30), Bytes(1 << 20)).0;
        Sample {
            ended: Nanos(times * alone),
            distance: Bytes(1 << 30),
            bytes: Bytes(1 << 20),
            in_flight,
            left: in_flight,
            ahead: Nanos(u64::from(in_flight) * alone),
            ..Sample::default()
        }
    }

    /// Until its costs are measured anew, because all come back late.
    fn suspicious() -> Online {
        let mut method = store();
        while method.limit() > LEAST {
            method.ended(&sample(&method, 32, 40));
        }
        method
    }

    /// All that a store had been given comes back late: it may have become slower.
    #[test]
    fn what_was_sent_before_a_change_of_costs_is_no_evidence_of_fewer_servers() {
        let mut method = suspicious();
        for _ in 0..64 {
            method.ended(&sample(&method, 32, 40));
        }
        assert_eq!((method.limit(), method.profile().servers()), (LEAST, 8));
    }

    #[test]
    fn costs_are_known_after_two_requests_that_take_their_time_and_after_four_that_do_not() {
        for (times, expected) in [(1, 2), (3, 4)] {
            let (mut method, mut alone) = (suspicious(), 0);
            while method.limit() == LEAST {
                method.ended(&sample(&method, LEAST, times));
                alone += 1;
            }
            assert_eq!(alone, expected, "{times} times the time expected");
        }
    }

    /// Of 32 requests that go out together all come back in the time of one.
    #[test]
    fn more_servers_are_believed_at_once_where_requests_take_their_time() {
        let mut method = store();
        for _ in 0..EPOCH {
            method.ended(&sample(&method, 32, 1));
            assert!(method.limit() > LEAST, "nothing is measured for it");
        }
        assert_eq!(method.profile().servers(), 32);
    }

    /// A server of which nothing is known, whose requests take 38 ms however many there are, then ten times that.
    #[test]
    fn a_server_is_never_asked_for_less_than_eight_and_its_workers_are_found() {
        for servers in [8, 16] {
            let mut method = Online::default();
            method.told(&Profile::default().with_most(256));
            let mut now = 0;
            for number in 0..8000u64 {
                let alone = if number < 2000 {
                    38_000_000
                } else {
                    380_000_000
                };
                let in_flight = u64::from(method.limit()).min(64);
                assert!(in_flight >= u64::from(LEAST), "request {number}");
                now += alone / in_flight.min(servers);
                let took = alone * in_flight.max(servers) / servers;
                method.ended(&Sample {
                    sent: Nanos(now.saturating_sub(took)),
                    ended: Nanos(now),
                    ahead: Nanos(in_flight * method.expected(Bytes(1 << 30), Bytes(1 << 20)).0),
                    ..sample(&method, in_flight as u32, 1)
                });
                if number % 2000 == 1999 {
                    let expected = method.expected(Bytes(1 << 30), Bytes(1 << 20)).0;
                    let seen = u64::from(method.profile().servers());
                    assert!(2 * seen >= servers, "{seen} of {servers} after {number}");
                    assert!(
                        (alone / 2..alone * 2).contains(&expected),
                        "{expected} after {number}"
                    );
                }
            }
        }
    }

    /// A device of one server, told of as 1 ms and 1 GB/s.
    fn one() -> Online {
        let described = Profile::constant(Nanos(1_000_000), 1_000_000_000).unwrap();
        let mut method = Online::default();
        method.told(&described.with_servers(1).unwrap().with_most(256));
        method
    }

    #[test]
    fn a_host_that_is_told_of_many_requests_at_once_sees_the_time_of_each() {
        let convoys = [
            (3, 3_100_000),
            (10, 2_000_000),
            (40, 8_000_000),
            (200, 30_000_000),
        ];
        for (convoy, gap) in convoys {
            let (mut method, mut now) = (one(), 100_000_000);
            for number in 0..50 * convoy {
                now += if number % convoy == 0 { gap } else { 12_000 };
                method.ended(&Sample {
                    sent: Nanos(now - 50_000_000),
                    ended: Nanos(now),
                    bytes: Bytes(1 << 20),
                    in_flight: 40,
                    left: 40,
                    ..Sample::default()
                });
            }
            let expected = method.expected(Bytes(0), Bytes(1 << 20)).0;
            let each = (gap + (convoy - 1) * 12_000) / convoy;
            assert!(
                (each / 2..each * 2).contains(&expected),
                "{expected} where {convoy} are told of every {gap} ns"
            );
        }
    }

    /// 0.1 ms and 2.4 GB/s, whose host stands still for 50 ms and is then told of up to so many requests at once, of which
    /// one in so many continues none; the time of each convoy is off by a third at most.
    fn told_together(told: &Profile, most: u64, apart: u64, seed: u64) -> u64 {
        let mut random = Random(seed);
        let (mut method, mut now) = (Online::default(), 100_000_000);
        method.told(told);
        for _ in 0..4000 / most {
            let convoy = 1 + random.below(most);
            let length = |_| [1 << 20, 400 << 10][usize::from(random.one_in(8))];
            let lengths: Vec<u64> = (0..convoy).map(length).collect();
            let whole = convoy * 100_000 + lengths.iter().sum::<u64>() * 10 / 24;
            let late = whole * 2 / 3 + random.below(whole * 2 / 3) - 20_000 * (convoy - 1);
            for (at, bytes) in lengths.into_iter().enumerate() {
                now += if at == 0 { late } else { 20_000 };
                method.ended(&Sample {
                    sent: Nanos(now - 50_000_000),
                    ended: Nanos(now),
                    distance: Bytes(u64::from(random.one_in(apart)) << 30),
                    bytes: Bytes(bytes),
                    in_flight: 40,
                    left: 40,
                    ..Sample::default()
                });
            }
        }
        method.profile().rate(Bytes(0)) / 1_000_000
    }

    /// Where up to 64 are told together 4,000 requests are a hundred observations, of one length nearly: chance is left.
    #[test]
    fn convoys_leave_the_rate_within_a_factor_of_three() {
        for (cost, rate) in [(8_000_000, 80_000_000), (1_000_000, 1_000_000_000)] {
            let told = Profile::constant(Nanos(cost), rate).unwrap();
            let told = told.with_servers(1).unwrap();
            for (most, apart, least) in [
                (2, 2, 32),
                (4, 16, 32),
                (16, 2, 30),
                (16, 16, 28),
                (64, 3, 26),
                (64, 10, 22),
            ] {
                let rates = (0..32).map(|seed| told_together(&told, most, apart, seed));
                let near = rates.filter(|rate| (800..=7_200).contains(rate)).count();
                println!("{cost} ns, up to {most}, 1 in {apart} apart: {near} of 32");
                assert!(near >= least, "{cost} ns, {most}, {apart}: {near} of 32");
            }
        }
    }

    /// A request that was not there when a late one ended is in no convoy with it.
    #[test]
    fn a_disk_that_becomes_ten_times_faster_is_followed_whatever_came_before() {
        for seed in 0..8 {
            let (mut random, mut method, mut now) = (Random(seed), one(), 0);
            let mut serve = |method: &mut Online, took: u64| {
                now += took;
                method.ended(&Sample {
                    sent: Nanos(now - took),
                    ended: Nanos(now),
                    distance: Bytes(1 << 30),
                    bytes: Bytes(1 << 20),
                    in_flight: 2,
                    left: 2,
                    ..Sample::default()
                });
            };
            for _ in 0..100 {
                serve(&mut method, 17_000_000 + random.below(8_000_000));
            }
            serve(&mut method, 40_000_000);
            for _ in 0..24 {
                serve(&mut method, 1_700_000 + random.below(800_000));
            }
            let expected = method.expected(Bytes(1 << 30), Bytes(1 << 20)).0;
            assert!(expected < 4_200_000, "{expected} ns, seed {seed}");
        }
    }

    /// Disks that take 4 to 12 ms for a page, at which so many requests at random are.
    fn pages_on(disks: u64, readers: u32, requests: usize, seed: u64) -> (u64, u32) {
        let (mut random, mut method, mut now) = (Random(seed), Online::default(), 0);
        let mut free = std::vec![0; disks as usize];
        let mut sent: Vec<Sample> = Vec::new();
        for _ in 0..requests {
            while sent.len() < readers.min(method.limit()) as usize {
                let in_flight = sent.len() as u32 + 1;
                let page = (Bytes(1 << 30), Bytes(4096));
                let ahead = u64::from(in_flight) * method.expected(page.0, page.1).0;
                let disk = &mut free[random.below(disks) as usize];
                *disk = now.max(*disk) + 4_000_000 + random.below(8_000_000);
                sent.push(Sample {
                    sent: Nanos(now),
                    ended: Nanos(*disk),
                    distance: page.0,
                    bytes: page.1,
                    in_flight,
                    ahead: Nanos(ahead),
                    ..Sample::default()
                });
            }
            let first = (0..sent.len()).min_by_key(|at| sent[*at].ended).unwrap();
            let left = sent.len() as u32;
            let is_full = left >= method.limit();
            let done = sent.swap_remove(first);
            now = done.ended.0;
            method.ended(&Sample {
                left,
                is_full,
                ..done
            });
        }
        let expected = method.expected(Bytes(1 << 30), Bytes(4096)).0;
        (expected, method.profile().servers())
    }

    /// Of disks one page in four takes 6 ms or less.
    #[test]
    fn the_chance_of_a_disk_makes_an_array_neither_faster_nor_smaller() {
        for (disks, readers) in [(2, 8), (4, 4), (4, 16), (4, 64), (8, 100)] {
            let of = |seed| pages_on(disks, readers, 500 + 400 * seed as usize, seed);
            let seen: Vec<(u64, u32)> = (0..24).map(of).collect();
            println!("{disks} disks, {readers} readers: {seen:?}");
            let times = seen.iter().map(|(time, _)| time / 1000).sum::<u64>() / 24;
            let servers = seen
                .iter()
                .map(|(_, servers)| u64::from(*servers))
                .sum::<u64>();
            assert!(
                (6_800..=9_200).contains(&times),
                "{disks}, {readers}: {times} us"
            );
            assert!(
                servers >= 24 * disks * 5 / 8,
                "{disks}, {readers}: {servers} / 24"
            );
        }
    }

    #[test]
    fn the_time_in_which_a_device_runs_out_is_a_small_part_however_long_it_takes() {
        for runs_out in [2_000_000, 12_000_000, 100_000_000] {
            let (mut method, mut now, mut lost) = (one(), 0, 0);
            for _ in 0..200_000 {
                let is_alone = method.limit() == 1;
                let took = if is_alone { runs_out } else { 500_000 };
                lost += if is_alone { took } else { 0 };
                now += took;
                method.ended(&Sample {
                    sent: Nanos(now - 500_000),
                    ended: Nanos(now),
                    bytes: Bytes(1 << 19),
                    in_flight: if is_alone { 1 } else { 8 },
                    left: if is_alone { 1 } else { 8 },
                    ahead: Nanos(4_000_000),
                    ..Sample::default()
                });
            }
            assert!(lost > 0, "nothing was measured");
            assert!(32 * lost <= now + 64 * runs_out, "{lost} of {now} ns");
        }
    }

    #[test]
    fn a_device_that_never_completes_is_still_given_two_requests_or_one_and_a_server_32() {
        assert_eq!(Online::default().limit(), 1);
        let mut server = Online::default();
        for (most, expected) in [(64, 32), (4, 4)] {
            server.told(&Profile::default().with_most(most));
            assert_eq!((server.limit(), server.profile().servers()), (expected, 8));
        }
        let disk = Profile::default().with_servers(1).unwrap();
        let mut told = Online::default();
        told.told(&disk);
        assert_eq!((told.limit(), told.profile()), (2, &disk));
        told.told(&disk.clone().with_most(1));
        assert_eq!(told.limit(), 1);
    }
}
