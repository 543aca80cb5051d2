//! Online: costs and servers from the requests that complete.
//!
//! A request takes longer on a slow device, and behind other requests. With n requests queued all
//! the time, one server of 8 ms and two of 16 ms answer at the same moments. The time of a request
//! *alone* tells them apart, so now and then one has the device for itself.
//!
//! Costs: [lines](super::costs) through the times of requests that were alone, or on
//! [one server](super::single) through the times since the request before. On several others only ever slow a request: four
//! that took less than half of their times alone count too, by their [mean](super::together), as one may be fast by chance.
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

use super::costs::{Costs, STREAK};
use super::probing::Probing;
use super::servers::{EPOCH, Epoch, ONE, Servers};
use super::single::Single;
use super::together::Together;
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
/// requests fall on several disks, unevenly. Each has eight at most, which are pages, or four of a depth: of n requests
/// at m disks n / (n + m - 1) of the disks work, which is 0.91 for 32 at four and 0.84 for 16.
const MANY: u64 = 8;
/// Requests over which their time is averaged.
const MEAN_OF: u64 = 16;

/// See the [module](self).
#[derive(Debug)]
struct Online {
    costs: Costs,
    single: Single,
    /// The last requests beside others, where there are several servers.
    beside: Together,
    servers: Servers,
    probing: Probing,
    /// Fewest requests at once, also while something is measured.
    floor: u32,
    /// Most of them by the number of servers.
    most: u32,
    profile: Profile,
    /// Mean of the expected times of requests.
    mean: u64,
    /// When the last request ended.
    ended: Nanos,
    /// When the first costs were measured: before, the expected times of requests were only told.
    measured: Nanos,
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
        let floor = profile.kind().side_by_side().min(told.unwrap_or(u32::MAX));
        let most = match told {
            Some(told) => limit_of(told),
            None if floor > 1 => limit_of(floor),
            None => floor,
        };
        let servers = Servers::new(told.unwrap_or(floor), told.is_some());
        let mut profile = profile.clone();
        let costs = Costs::new(&profile);
        if told.is_none() && floor > 1 {
            profile = profile.with_servers(servers.whole()).unwrap_or_default();
        }
        Self {
            costs,
            single: Single::default(),
            beside: Together::default(),
            servers,
            probing: Probing::default(),
            floor,
            most,
            profile,
            mean: LATE,
            ended: Nanos(0),
            measured: Nanos(u64::MAX),
        }
    }

    /// Whether the next requests say if the costs are others than was thought, or told.
    fn is_in_doubt(&self) -> bool {
        self.probing.is_in_doubt() || (self.probing.is_on() && self.costs.requests() == 0)
    }

    /// Most requests that are taken as alone.
    fn alone(&self) -> u32 {
        self.floor.min((self.profile.most() / 4).max(1))
    }

    /// The number of servers as others are told it: a server that was not described has as many as it is asked at
    /// first, any other device an unknown number.
    fn believed(&self) -> u32 {
        match self.servers.is_known || self.floor > 1 {
            true => self.servers.whole(),
            false => SERVERS_MAX,
        }
    }

    /// For how long the requests that each server has keep it busy, each for that time at least.
    fn work(&self) -> (u64, u64) {
        let switch = self.profile.switching(Bytes(u64::MAX)).0;
        // Where to continue costs as much as to begin, any server takes any request.
        let has_arms = self.costs.expected(Bytes(0), Bytes(1)).0 < switch / 2;
        let is_array = has_arms && self.servers.whole() > 1 && !self.profile.kind().any_worker();
        match switch >= LATE {
            true if is_array => (MANY * switch, switch),
            true => (LATE, 1),
            false => (MANY * LATE, 1),
        }
    }

    /// Time of a request that met no queue.
    fn learn(&mut self, sample: &Sample, before: Nanos) {
        if self.servers.is_one() {
            return self.single.learn(&mut self.costs, sample, before);
        }
        self.single.pass(&self.costs, sample, before);
        // Behind those that come late others go out meanwhile.
        let most = match self.is_in_doubt() {
            true => sample.in_flight,
            false => sample.in_flight.max(sample.left),
        };
        let time = sample.ended.since(sample.sent);
        // The first at an idle server is served first, and others only ever make a request slower.
        let is_new = !self.servers.is_known && self.floor > 1 && self.costs.requests() < FIRST;
        let is_first = is_new && (sample.in_flight == 1 || self.costs.requests() == 0);
        if most <= self.alone() || is_first {
            return self.costs.learn(sample.distance, sample.bytes, time);
        }
        let expected = self.costs.expected(sample.distance, sample.bytes);
        self.beside
            .push(sample.distance, sample.bytes, time.0, expected.0);
        if self.beside.requests() >= STREAK {
            let beside = core::mem::take(&mut self.beside);
            if beside.took() < beside.expected() / 2 {
                beside.learn(&mut self.costs);
            }
        }
    }

    /// A request was one of several.
    fn count(&mut self, sample: &Sample) {
        // Where all that may be sent is sent, how many more it could take is no matter.
        let counts = !sample.is_full || sample.in_flight >= self.most;
        self.probing.was_joined(counts);
        if let Some(epoch) = self.servers.add(sample) {
            self.settle(&epoch);
        }
        let seen = self.servers.was_seen.then(|| self.servers.whole());
        self.probing.plan(sample.ended, seen);
    }

    /// An epoch ended: how many servers were at work?
    fn settle(&mut self, epoch: &Epoch) {
        let is_told = match self.servers.is_one() {
            true => self.costs.requests() < u64::from(EPOCH),
            false => self.profile.kind().takes_its_time() && self.costs.requests() == 0,
        };
        // Expected times that were only told say nothing, nor do requests that were sent before the costs were
        // measured anew.
        if is_told || self.probing.is_on() {
            return;
        }
        let seen = self.servers.judge(epoch);
        let takes_its_time = self.profile.kind().takes_its_time();
        let is_clear = seen.has_grown && takes_its_time && self.probing.is_on_time();
        let is_checked = is_clear || self.servers.is_growing;
        let is_one = seen.count < ONE * 3 / 2 && !self.servers.is_one();
        let doubts = self
            .probing
            .doubts(seen.is_odd && !is_checked, is_one, self.servers.whole());
        if doubts || is_checked {
            self.servers.check(seen.count);
        }
        if doubts {
            return;
        }
        // The limit stays above the requests that tell nothing of the number of servers.
        let least = (self.floor / 4 + 1).max(self.floor.min(2));
        self.servers.believe(seen.count.max(u64::from(least) * ONE));
        self.most = limit_of(self.servers.whole());
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
        let told = self.profile.most();
        if self.probing.is_on() || self.most <= self.floor {
            return self.floor.min(told);
        }
        let (work, time) = self.work();
        let all = work.saturating_mul(self.servers.whole().into());
        let late = saturate(all / self.mean.max(time));
        let late = late.saturating_add(1);
        self.most.max(self.floor).max(late).min(told)
    }

    fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos {
        // Servers side by side are no arm: to continue is no cheaper there, until it is seen to be.
        let is_guess = self.servers.whole() > 1 && !self.costs.knows_adjacent();
        let least = Bytes(u64::from(is_guess));
        self.costs.expected(distance.max(least), bytes)
    }

    fn ended(&mut self, sample: &Sample) {
        // One that is late may be so because of its object; four in doubt are the server.
        if sample.is_late && !self.is_in_doubt() {
            return self.lost(sample.in_flight);
        }
        let before = core::mem::replace(&mut self.ended, sample.ended);
        let expected = self.costs.expected(sample.distance, sample.bytes).0;
        self.mean = self.mean - self.mean / MEAN_OF + expected / MEAN_OF;
        self.probing
            .took(sample.ended.since(sample.sent).0, expected);
        self.learn(sample, before);
        if self.costs.requests() > 0 {
            self.measured = self.measured.min(sample.ended);
        }
        let is_alone = sample.in_flight <= self.alone();
        if is_alone {
            self.probing.was_alone(self.profile.kind().takes_its_time());
        }
        if !self.servers.is_known && self.most == self.floor {
            if self.costs.requests() >= FIRST {
                self.most = limit_of(self.floor);
            }
        } else if !is_alone && (self.servers.is_known || sample.sent >= self.measured) {
            self.count(sample);
        }
        let profile = self.costs.profile(self.believed());
        self.profile = profile.with_most(self.profile.most());
    }

    fn lost(&mut self, in_flight: u32) {
        if in_flight <= self.alone() {
            self.probing.lost();
        }
    }

    fn give_up(&mut self) {
        self.probing.give_up();
        let least = limit_of(self.floor);
        self.most = self.most.max(least);
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
mod tests;
