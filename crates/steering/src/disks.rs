//! Disks: the costs of the disks below a file system, from the requests that the kernel sends them.
//!
//! Each request is seen when it is issued and when it completes; from both, the core's measure method estimates
//! switching cost and rate, one instance a disk, as it does for a driver that sends requests itself. The engine gets one
//! device that stands for all of them:
//!
//! ```text
//!           depth of one stream                        rate that all share
//! striped   n x the deepest disk: a part lies on each   n x the slowest disk
//! apart     the deepest disk: a stream is on one        the sum
//! ```
//!
//! A disk that says that it turns works on one request at a time until its requests say otherwise. Devices that
//! together complete more than 20,000 requests a second have no use for windows, and to be told of each would cost a
//! processor: all are looked at for one second of ten, and of the other nine no work is known.

use std::collections::{HashMap, VecDeque};

use forerun_core::measure::{Measure, Sample};
use forerun_core::{Bytes, Nanos, Profile};

use crate::crowd::Work;
use crate::events::Request;

const SECTOR: u64 = 512;
/// Requests that never complete are forgotten: no device has more at a time.
const OUTSTANDING_MAX: usize = 1 << 16;
/// Requests that were sent so long ago are forgotten, too: the kernel ends a command after 30 s (`/sys/block/*/device/timeout`), and tries once
/// more. A completion that was not seen would otherwise keep its disk busy and its readers late for ever.
const FORGOTTEN_AFTER: u64 = 60_000_000_000;
/// Costs of flash before its requests are measured: a command, and the rate of a cheap drive.
const FLASH: (u64, u64) = (100_000, 2_000_000_000);
/// Requests a second that are one too many, twice as many events.
pub const REQUESTS_MAX: u64 = 20_000;
/// Costs are told again where the depth changed by this part.
const CHANGE_PART: u64 = 8;

/// How the leaves of a file system lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// A long window lies on all of them.
    Striped,
    /// A stream lies on one of them, other streams on others.
    Apart,
}

/// A request at a disk.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    sent: Nanos,
    bytes: Bytes,
    distance: Bytes,
    in_flight: u32,
    ahead: Nanos,
}

/// One disk.
#[derive(Debug)]
struct Disk {
    measure: Box<dyn Measure>,
    requests: HashMap<u64, Outstanding>,
    /// In the order in which they were sent; some are gone already.
    order: VecDeque<(Nanos, u64)>,
    /// Where the last one ended.
    head: u64,
    /// Moving average of the distances that are not zero.
    distance: Bytes,
    /// What it did since it was asked last, and since when it has had something to do without a break.
    work: Work,
    busy_since: Nanos,
}

/// Those of a file system.
#[derive(Debug)]
pub struct Disks {
    disks: Vec<(u32, Disk)>,
    spread: Spread,
    told: Bytes,
    seen: u64,
    /// Requests were not seen since its work was asked for last.
    is_unseen: bool,
}

impl Disks {
    /// These disks, each with whether it turns, and measured by a method of its own.
    pub fn new(
        disks: &[(u32, bool)],
        spread: Spread,
        mut measure: impl FnMut() -> Box<dyn Measure>,
    ) -> Self {
        let mut of = |(number, is_rotational): &(u32, bool)| {
            let mut measure = measure();
            measure.told(&prior(*is_rotational));
            let disk = Disk {
                measure,
                requests: HashMap::new(),
                order: VecDeque::new(),
                head: u64::MAX,
                distance: Bytes(0),
                work: Work::default(),
                busy_since: Nanos(0),
            };
            (*number, disk)
        };
        Self {
            disks: disks.iter().map(&mut of).collect(),
            spread,
            told: Bytes(0),
            seen: 0,
            is_unseen: false,
        }
    }

    /// A request of one of these disks; false if it is of another.
    pub fn saw(&mut self, request: &Request) -> bool {
        let disk = self
            .disks
            .iter_mut()
            .find(|(number, _)| *number == request.device);
        let Some((_, disk)) = disk else {
            return false;
        };
        self.seen += 1;
        match request.is_complete {
            true => disk.completed(request),
            false => disk.issued(request),
        }
        true
    }

    /// When the oldest request was sent that a disk still has; far in the future if there is none.
    pub fn oldest(&mut self) -> Nanos {
        let oldest = self.disks.iter_mut().map(|(_, disk)| disk.oldest());
        oldest.min().unwrap_or(Nanos(u64::MAX))
    }

    /// Requests are not seen from now on, until their work is asked for.
    pub fn unseen(&mut self) {
        self.blind();
        self.is_unseen = true;
    }

    /// Some requests were not seen: none is taken to be under way.
    pub fn blind(&mut self) {
        for (_, disk) in &mut self.disks {
            disk.requests.clear();
            disk.order.clear();
        }
    }

    /// Events since it was asked last.
    pub fn take_seen(&mut self) -> u64 {
        std::mem::take(&mut self.seen)
    }

    /// Their work since it was asked last; none where requests were not seen.
    pub fn take_work(&mut self, now: Nanos) -> Option<Work> {
        let count = self.disks.len().max(1) as u64;
        let each = self.disks.iter_mut().map(|(_, disk)| disk.take_work(now));
        let add = |sum: Work, of: Work| Work {
            bytes: sum.bytes.saturating_add(of.bytes),
            busy: Nanos(sum.busy.0.saturating_add(of.busy.0)),
        };
        let sum = each.fold(Work::default(), add);
        let is_seen = !std::mem::take(&mut self.is_unseen);
        is_seen.then(|| Work {
            busy: Nanos(sum.busy.0 / count),
            ..sum
        })
    }

    /// The costs of all as one device.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let costs: Vec<(Nanos, u64)> = self.disks.iter().map(|(_, disk)| disk.costs()).collect();
        match joined(&costs, self.spread) {
            Some((cost, rate)) => Profile::constant(cost, rate).unwrap_or_default(),
            None => prior(false),
        }
    }

    /// The number of each disk, how many requests it works on, and what it is measured by.
    pub fn each(&self) -> impl Iterator<Item = (u32, usize, &dyn Measure)> {
        let disks = self.disks.iter();
        disks.map(|(number, disk)| (*number, disk.requests.len(), &*disk.measure))
    }

    /// The same, if the depth changed since it was told last.
    pub fn changed(&mut self) -> Option<Profile> {
        let profile = self.profile();
        let depth = profile.competitive_depth(Bytes(0), Bytes(0));
        let is_changed = depth.0.abs_diff(self.told.0) > self.told.0 / CHANGE_PART;
        is_changed.then(|| {
            self.told = depth;
            profile
        })
    }

    /// Requests that the costs rest on.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let samples = self
            .disks
            .iter()
            .map(|(_, disk)| disk.measure.confidence().samples);
        samples.sum()
    }
}

impl Disk {
    fn issued(&mut self, request: &Request) {
        if self.requests.len() >= OUTSTANDING_MAX {
            self.requests.clear();
            self.order.clear();
        }
        if self.requests.is_empty() {
            self.busy_since = request.time;
        }
        let bytes = Bytes(request.sectors.saturating_mul(SECTOR));
        let apart = match self.head {
            u64::MAX => 1,
            head => head.abs_diff(request.sector),
        };
        let distance = Bytes(apart.saturating_mul(SECTOR));
        if distance.0 > 0 {
            let mean = self.distance.0;
            self.distance = Bytes(mean - mean / 16 + distance.0 / 16);
        }
        self.head = request.sector.saturating_add(request.sectors);
        let own = self.measure.expected(distance, bytes);
        let ahead = self
            .requests
            .values()
            .map(|r| self.measure.expected(r.distance, r.bytes).0);
        let outstanding = Outstanding {
            sent: request.time,
            bytes,
            distance,
            in_flight: u32::try_from(self.requests.len())
                .unwrap_or(u32::MAX)
                .saturating_add(1),
            ahead: Nanos(ahead.fold(own.0, u64::saturating_add)),
        };
        self.requests.insert(request.sector, outstanding);
        self.order.push_back((request.time, request.sector));
    }

    fn completed(&mut self, request: &Request) {
        // A request that was split or merged meanwhile completes at another place, and tells nothing.
        let Some(known) = self.requests.remove(&request.sector) else {
            return;
        };
        self.work.bytes = self.work.bytes.saturating_add(known.bytes.0);
        if self.requests.is_empty() {
            self.rest(request.time);
        }
        let left = u32::try_from(self.requests.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let mut sample = Sample::default();
        sample.sent = known.sent;
        sample.ended = request.time;
        sample.distance = known.distance;
        sample.bytes = known.bytes;
        sample.in_flight = known.in_flight;
        sample.left = left;
        sample.ahead = known.ahead;
        self.measure.ended(&sample);
    }

    /// The time that it was busy is counted up to now.
    fn rest(&mut self, now: Nanos) {
        let busy = now.since(self.busy_since).0;
        self.work.busy = Nanos(self.work.busy.0.saturating_add(busy));
        self.busy_since = self.busy_since.max(now);
    }

    fn take_work(&mut self, now: Nanos) -> Work {
        self.forget(now);
        if !self.requests.is_empty() {
            self.rest(now);
        }
        std::mem::take(&mut self.work)
    }

    /// Forgets requests whose completion was not seen.
    fn forget(&mut self, now: Nanos) {
        let is_old = |sent: Nanos| now.since(sent).0 > FORGOTTEN_AFTER;
        while let Some((sent, sector)) = self.order.front().filter(|(sent, _)| is_old(*sent)) {
            if self.requests.get(sector).is_some_and(|r| r.sent == *sent) {
                self.requests.remove(sector);
            }
            self.order.pop_front();
        }
    }

    fn oldest(&mut self) -> Nanos {
        while let Some((sent, sector)) = self.order.front() {
            if self.requests.get(sector).is_some_and(|r| r.sent == *sent) {
                return *sent;
            }
            self.order.pop_front();
        }
        Nanos(u64::MAX)
    }

    fn costs(&self) -> (Nanos, u64) {
        let profile = self.measure.profile();
        (profile.switching(self.distance), profile.rate(Bytes(0)))
    }
}

/// Switching cost and rate of the device that stands for disks of these; none of no disk.
fn joined(costs: &[(Nanos, u64)], spread: Spread) -> Option<(Nanos, u64)> {
    const SECOND: u128 = 1_000_000_000;
    let rates = || costs.iter().map(|(_, rate)| u128::from(*rate));
    let depth = |(cost, rate): &(Nanos, u64)| u128::from(cost.0) * u128::from(*rate) / SECOND;
    let (count, deepest) = (costs.len() as u128, costs.iter().map(depth).max()?);
    let (depth, rate) = match spread {
        Spread::Striped => (count * deepest, count * rates().min()?),
        Spread::Apart => (deepest, rates().sum()),
    };
    let range = forerun_core::profile::RATE_RANGE;
    let rate = u64::try_from(rate).unwrap_or(u64::MAX);
    let rate = rate.clamp(*range.start(), *range.end());
    let cost = (depth * SECOND).div_ceil(u128::from(rate));
    Some((Nanos(u64::try_from(cost).unwrap_or(u64::MAX)), rate))
}

fn prior(is_rotational: bool) -> Profile {
    match is_rotational {
        true => Profile::default().with_servers(1).unwrap_or_default(),
        false => Profile::constant(Nanos(FLASH.0), FLASH.1).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use forerun_core::measure::LIST;
    use forerun_core::spec::Choice;

    use super::*;

    fn disks(is_rotational: bool) -> Disks {
        Disks::new(&[(7, is_rotational)], Spread::Striped, measure)
    }

    fn measure() -> Box<dyn Measure> {
        Choice::of(&LIST[0]).build()
    }

    #[test]
    fn each_disk_counts_by_itself_and_a_stream_by_how_they_lie() {
        let (disk, slow) = (
            (Nanos(8_000_000), 80_000_000),
            (Nanos(12_000_000), 40_000_000),
        );
        let depth = |costs: &[(Nanos, u64)], spread| {
            let (cost, rate) = joined(costs, spread).unwrap();
            (cost.0 * rate / 1_000_000_000, rate)
        };
        assert_eq!(depth(&[disk], Spread::Striped), (640_000, 80_000_000));
        assert_eq!(depth(&[disk; 4], Spread::Striped), (2_560_000, 320_000_000));
        assert_eq!(depth(&[disk; 4], Spread::Apart), (640_000, 320_000_000));
        // The slowest disk of a stripe is waited for, and the deepest one needs its part.
        assert_eq!(
            depth(&[disk, slow], Spread::Striped),
            (1_280_000, 80_000_000)
        );
        assert_eq!(depth(&[disk, slow], Spread::Apart), (640_000, 120_000_000));
        assert_eq!(joined(&[], Spread::Apart), None);
        let both = [(7, true), (9, false)];
        let disks = Disks::new(&both, Spread::Striped, measure);
        let each: Vec<_> = disks.each().map(|(disk, count, _)| (disk, count)).collect();
        assert_eq!(each, [(7, 0), (9, 0)]);
    }

    /// A disk with so many requests at a time, each elsewhere and of another length, 12 ms and 220 MB/s.
    fn work(disks: &mut Disks, deep: usize) {
        let (mut queue, mut now) = (VecDeque::new(), 0);
        for number in 0..600u64 {
            let request = |time, is_complete, (sector, sectors)| Request {
                time: Nanos(time),
                is_complete,
                device: 7,
                sector,
                sectors,
            };
            let place = ((number * 7919 % 1000) * 1_000_000, 256 << (number % 5));
            assert!(disks.saw(&request(now, false, place)));
            queue.push_back(place);
            if queue.len() == deep {
                let done = queue.pop_front().unwrap();
                now += 12_000_000 + done.1 * 512 * 1000 / 220;
                assert!(disks.saw(&request(now, true, done)));
            }
        }
    }

    #[test]
    fn a_disk_that_is_always_busy_is_measured() {
        for deep in [1, 4] {
            let mut disks = disks(true);
            let depth = |profile: Profile| profile.competitive_depth(Bytes(0), Bytes(0)).0;
            assert_eq!(disks.changed().map(depth), Some(640_000), "as it was told");
            work(&mut disks, deep);
            let measured = depth(disks.changed().unwrap());
            let right = 12 * 220_000;
            assert!(
                measured.abs_diff(right) < right / 4,
                "{deep}: {measured} of {right}"
            );
            assert!(disks.samples() > 100 && disks.changed().is_none());
        }
    }

    #[test]
    fn work_is_the_bytes_that_came_and_the_time_with_a_request() {
        let mut disks = Disks::new(&[(7, true), (9, true)], Spread::Apart, measure);
        let mut saw = |time, is_complete, sector| {
            let request = Request {
                time: Nanos(time),
                is_complete,
                device: 7,
                sector,
                sectors: 8,
            };
            assert!(disks.saw(&request));
        };
        // From 100 to 400, and from 900 on.
        saw(100, false, 0);
        saw(200, false, 8);
        saw(300, true, 0);
        saw(400, true, 8);
        saw(900, false, 16);
        let work = |bytes, busy: u64| {
            Some(Work {
                bytes,
                busy: Nanos(busy / 2),
            })
        };
        assert_eq!(
            disks.take_work(Nanos(1000)),
            work(2 * 8 * SECTOR, 300 + 100)
        );
        assert_eq!(disks.take_work(Nanos(2000)), work(0, 1000));
        disks.blind();
        assert_eq!(disks.take_work(Nanos(3000)), work(0, 0));
        disks.unseen();
        assert_eq!(disks.take_work(Nanos(4000)), None);
        assert_eq!(disks.take_work(Nanos(5000)), work(0, 0));
    }

    #[test]
    fn a_request_whose_completion_was_not_seen_keeps_its_disk_busy_for_a_minute() {
        const SECOND: u64 = 1_000_000_000;
        let mut disks = disks(true);
        let saw = |disks: &mut Disks, time: u64, is_complete, sector| {
            let (device, sectors, time) = (7, 8, Nanos(time * SECOND));
            disks.saw(&Request {
                time,
                is_complete,
                device,
                sector,
                sectors,
            });
        };
        saw(&mut disks, 1, false, 100);
        saw(&mut disks, 40, false, 200);
        let busy =
            |disks: &mut Disks, time: u64| disks.take_work(Nanos(time * SECOND)).unwrap().busy.0;
        assert_eq!(busy(&mut disks, 61), 60 * SECOND);
        assert_eq!(disks.oldest(), Nanos(SECOND));
        assert_eq!(busy(&mut disks, 62), SECOND, "of the other one");
        assert_eq!(disks.oldest(), Nanos(40 * SECOND));
        saw(&mut disks, 63, true, 200);
        assert_eq!(busy(&mut disks, 64), SECOND);
        assert_eq!(disks.oldest(), Nanos(u64::MAX));
        assert_eq!(busy(&mut disks, 65), 0);
        // One that was forgotten comes back all the same.
        saw(&mut disks, 66, true, 100);
        assert_eq!(busy(&mut disks, 67), 0);
    }

    #[test]
    fn the_oldest_request_is_one_that_is_still_there() {
        let mut disks = disks(true);
        let mut saw = |time, is_complete, sector| {
            disks.saw(&Request {
                time: Nanos(time),
                is_complete,
                device: 7,
                sector,
                sectors: 8,
            });
            disks.oldest()
        };
        assert_eq!(saw(5, false, 100), Nanos(5));
        assert_eq!(saw(6, false, 200), Nanos(5));
        assert_eq!(saw(7, true, 100), Nanos(6));
        assert_eq!(
            saw(8, true, 300),
            Nanos(6),
            "of a request that nobody saw go"
        );
        assert_eq!(saw(9, true, 200), Nanos(u64::MAX));
    }
}
