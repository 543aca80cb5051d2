//! Online: costs and servers from the requests that complete.
//!
//! A request takes longer on a slow device, and behind other requests. With n requests queued all
//! the time, one server of 8 ms and two of 16 ms answer at the same moments. The time of a request
//! *alone* tells them apart, so now and then one has the device for itself.
//!
//! Costs: [lines](super::costs) through the times of requests that were alone, or on
//! [one server](super::single) through the times since the request before; on several, a faster one counts too, as others only
//! ever slow it.
//!
//! Servers, by Little's law over 16 requests that were not alone, those before it counted to each:
//! ```text
//! servers = sum of the times each and those before it take alone / sum of the times taken
//! ```
//!
//! Control law of the limit: that of a [profile](Profile::queue_max), two requests for one server
//! and four each for several. A device that was not described gets one at a time for the first two,
//! then two; if they are worked on at once the limit is eight, then 32. A server never gets less than eight,
//! and up to that many are taken as alone; one that was not described is taken for eight workers, so its limit is 32.
//!
//! Control law of exploration: while requests wait, one in 128 a server is sent alone. Where an epoch
//! gives another number of servers, four are sent alone, because changed costs look the same; on a
//! store two if the first takes its expected time, none if the number grew and one was on time.
//!
//! Example: a store of 30 ms gets 32 reads at once; if these take 30 ms, too, 128.

use alloc::boxed::Box;

use super::costs::{Costs, STREAK};
use super::epoch::{Epoch, ONE};
use super::single::Single;
use super::{Confidence, Measure, Sample};
use crate::profile::{Profile, SERVERS_MAX};
use crate::spec::{Knows, Method, Spec};
use crate::units::{Bytes, Nanos};

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
/// Requests between two looks at the number of servers: chance in a disk's times is then a tenth.
const EPOCH: u32 = 16;
/// Requests between two looks while the number of servers is not known.
const FIRST_EPOCH: u32 = 4;
/// Requests between two that have the device for themselves, for each server: n servers lose at
/// most the work of two, while it runs out and while that one is alone, which is a 64th.
const PROBE_EVERY: u32 = 128;
/// The same between two times that four do because costs may have changed: a 64th, too.
const CHANGES_EVERY: u32 = 512;
/// Others at a device only ever make a request slower: costs have not changed while one of so many, an
/// epoch's, takes the time it takes alone, to a quarter. A disk is asked more often: it takes a time by chance
/// as it turns.
const ON_TIME: u32 = EPOCH;
/// A request that is never answered keeps the device from running out, so it is tried ever more
/// rarely.
const PAUSES_MAX: u32 = 10;
/// So much work is always at a device: as long as a thread of its host may wait for a processor, a
/// time slice of Linux, in which the device would run idle.
const LATE: u64 = 3_000_000;
/// Where a switch costs less than that, order is worth little and the device has so many times as
/// much.
const CHEAP: u64 = 8;
/// A server gets so many requests at once at least, but fewer if it was told to work on fewer: late ones may be so
/// because of their objects, and a hundred programs have their turn in three seconds if each takes a quarter of one.
const LEAST: u32 = 8;
/// Requests over which their time is averaged.
const MEAN_OF: u64 = 16;

/// See the [module](self).
#[derive(Debug)]
struct Online {
    costs: Costs,
    profile: Profile,
    /// In 256ths.
    servers: u64,
    single: Single,
    /// Mean of the expected times of requests.
    mean: u64,
    knows_servers: bool,
    limit: u32,
    /// The profile's upper limit.
    most: u32,
    /// Fewest requests at once, also while something is measured.
    floor: u32,
    /// Requests at once that are taken as alone.
    alone: u32,
    /// When the last request ended.
    ended: Nanos,
    /// When the first costs were measured: before, the expected times of requests were only told.
    measured: Nanos,
    /// Whether it was seen, not only told.
    saw_servers: bool,
    /// From the beginning on every epoch saw more of them.
    is_growing: bool,
    epoch: Epoch,
    /// Requests since one had the device for itself.
    since_alone: u32,
    /// They were measured since the last epoch that was believed.
    is_checked: bool,
    /// Requests since one took about the time it takes alone.
    since_on_time: u32,
    /// Requests since the costs were measured because they may have changed.
    since_change: u32,
    /// How often in a row that was given up: twice as many requests each time until the next.
    pauses: u32,
    /// So many requests are to have the device for themselves: it runs out for each.
    probes: u64,
}

impl Default for Online {
    fn default() -> Self {
        Self::of(&Profile::default())
    }
}

impl Online {
    fn of(profile: &Profile) -> Self {
        let is_told = profile.servers() < SERVERS_MAX;
        let floor = match (profile.is_served(), is_told) {
            (true, true) => profile.servers().min(LEAST),
            (true, false) => LEAST,
            (false, _) => 1,
        };
        let servers = if is_told { profile.servers() } else { floor };
        let is_wide = !is_told && profile.is_served();
        let believed = profile.clone().with_servers(servers).unwrap_or_default();
        Self {
            costs: Costs::new(profile),
            profile: if is_wide { believed } else { profile.clone() },
            servers: u64::from(servers) * ONE,
            single: Single::default(),
            mean: LATE,
            knows_servers: is_told,
            limit: if is_told || is_wide {
                limit_of(servers)
            } else {
                floor
            },
            most: profile.most(),
            floor,
            alone: floor.min((profile.most() / 4).max(1)),
            ended: Nanos(0),
            measured: Nanos(u64::MAX),
            saw_servers: false,
            is_growing: !is_told,
            epoch: Epoch::default(),
            since_alone: 0,
            is_checked: false,
            since_on_time: u32::MAX,
            since_change: u32::MAX,
            pauses: 0,
            probes: 0,
        }
    }

    fn whole_servers(&self) -> u32 {
        let servers = (self.servers + ONE / 2) / ONE;
        u32::try_from(servers)
            .unwrap_or(u32::MAX)
            .clamp(1, SERVERS_MAX - 1)
    }

    /// The number of servers as others are told it: a server that was not described has as many as it is asked at
    /// first, any other device an unknown number.
    fn believed(&self) -> u32 {
        match self.knows_servers || self.floor > 1 {
            true => self.whole_servers(),
            false => SERVERS_MAX,
        }
    }

    fn is_single(&self) -> bool {
        self.knows_servers && self.whole_servers() == 1
    }

    /// Time of a request that met no queue.
    fn learn(&mut self, sample: &Sample, before: Nanos) {
        if self.is_single() {
            return self.single.learn(&mut self.costs, sample, before);
        }
        let most = sample.in_flight.max(sample.left);
        let time = sample.ended.since(sample.sent);
        // The first at an idle server is served first, and others only ever make a request slower.
        let is_new = !self.knows_servers && self.floor > 1 && self.costs.requests() < FIRST;
        let is_first = is_new && sample.in_flight == 1;
        if most <= self.alone
            || is_first
            || time < self.costs.expected(sample.distance, sample.bytes)
        {
            self.costs.learn(sample.distance, sample.bytes, time);
        }
    }

    /// A request was one of several.
    fn count(&mut self, sample: &Sample) {
        self.epoch.add(sample);
        self.since_change = self.since_change.saturating_add(1);
        // Where all that may be sent is sent, how many more it could take is no matter.
        self.since_alone += u32::from(!sample.is_full || sample.in_flight >= self.limit);
        let least = match self.knows_servers {
            true => EPOCH,
            false => FIRST_EPOCH,
        };
        if self.epoch.requests >= least.max(sample.in_flight / 2) {
            self.settle();
        }
        let every = match self.saw_servers {
            true => PROBE_EVERY.saturating_mul(self.whole_servers()),
            false => EPOCH,
        };
        if self.since_alone >= every << self.pauses {
            self.probes = self.probes.max(1);
        }
    }

    /// An epoch ends: how many servers were at work?
    fn settle(&mut self) {
        let epoch = core::mem::take(&mut self.epoch);
        if self.is_single() && self.costs.requests() < u64::from(EPOCH) {
            // The expected times of these were only told.
            return;
        }
        if self.probes > 0 {
            // These were sent before the costs were measured again.
            return;
        }
        let old = self.servers;
        let seen = match epoch.is_queued() {
            true => epoch.servers(),
            // All were worked on at once, and more might have been.
            false => epoch.servers().max(old),
        };
        let has_grown = 2 * seen > 3 * old;
        self.is_growing &= has_grown;
        let is_odd = has_grown || 2 * seen < old;
        let next = match is_odd {
            true => seen,
            false => old.midpoint(seen),
        };
        let every = CHANGES_EVERY.saturating_mul(self.whole_servers());
        let is_clear = has_grown && self.profile.is_served() && self.since_on_time < ON_TIME;
        let is_due = is_odd && !is_clear && !self.is_growing && self.since_change >= every;
        // On one server costs are measured in another way, from which there is no way back but
        // this.
        let is_single = next < ONE * 3 / 2 && !self.is_single() && !self.is_checked;
        if is_due || is_single {
            // The costs may have changed instead: they are measured before this is believed.
            let probes = if self.pauses == 0 { STREAK } else { 0 };
            (self.since_change, self.probes) = (0, probes);
            self.is_checked = true;
            return;
        }
        self.is_checked = false;
        // The limit stays above the requests that tell nothing of the number of servers.
        let least = (self.floor / 4 + 1).max(self.floor.min(2));
        self.servers = next.max(u64::from(least) * ONE);
        self.knows_servers = true;
        self.saw_servers = true;
        self.limit = limit_of(self.whole_servers());
    }
}

/// Most requests of a device of so many servers, as of one that was described.
fn limit_of(servers: u32) -> u32 {
    let described = Profile::default().with_servers(servers);
    described.map_or(2, |profile| profile.queue_max())
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
        if self.probes > 0 || self.limit <= self.floor {
            return self.floor.min(self.most);
        }
        let cheap = self.profile.switching(Bytes(u64::MAX)).0 < LATE;
        let late = LATE * if cheap { CHEAP } else { 1 } / self.mean.max(1);
        let late = u32::try_from(late).unwrap_or(u32::MAX).saturating_add(1);
        self.limit.max(late).max(self.floor).min(self.most)
    }

    fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos {
        // Servers side by side are no arm: to continue is no cheaper there, until it is seen to be.
        let is_guess = self.whole_servers() > 1 && !self.costs.knows_adjacent();
        let least = Bytes(u64::from(is_guess));
        self.costs.expected(distance.max(least), bytes)
    }

    fn ended(&mut self, sample: &Sample) {
        let before = core::mem::replace(&mut self.ended, sample.ended);
        let expected = self.costs.expected(sample.distance, sample.bytes).0;
        self.mean = self.mean - self.mean / MEAN_OF + expected / MEAN_OF;
        let time = sample.ended.since(sample.sent).0;
        self.since_on_time = match time.abs_diff(expected) <= expected / 4 {
            true => 0,
            false => self.since_on_time.saturating_add(1),
        };
        self.learn(sample, before);
        if self.costs.requests() > 0 {
            self.measured = self.measured.min(sample.ended);
        }
        if sample.in_flight <= self.alone {
            let left = self.probes.saturating_sub(1);
            self.probes = match self.since_on_time == 0 && self.profile.is_served() {
                true => left.min(1),
                false => left,
            };
            self.since_alone = 0;
            self.pauses = 0;
        }
        if !self.knows_servers && self.limit == self.floor {
            if self.costs.requests() >= FIRST {
                self.limit = limit_of(self.floor);
            }
        } else if sample.in_flight > self.alone
            && (self.knows_servers || sample.sent >= self.measured)
        {
            self.count(sample);
        }
        self.profile = self.costs.profile(self.believed()).with_most(self.most);
    }

    fn lost(&mut self, in_flight: u32) {
        if in_flight <= self.alone {
            self.probes = self.probes.saturating_sub(1);
        }
    }

    fn give_up(&mut self) {
        if self.probes > 0 {
            self.probes = 0;
            self.since_alone = 0;
            self.pauses = (self.pauses + 1).min(PAUSES_MAX);
        }
        self.limit = self.limit.max(limit_of(self.floor));
    }

    fn confidence(&self) -> Confidence {
        Confidence {
            samples: self.costs.requests(),
            switches: self.costs.switches(),
            knows_servers: self.knows_servers,
            saw_servers: self.saw_servers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
