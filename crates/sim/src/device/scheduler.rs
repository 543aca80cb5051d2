//! Schedulers: the order in which waiting requests reach a device that serves one at a time.
//!
//! The wrapper [`Queued`](crate::wrap::Queued) holds the submitted requests of a device and asks
//! the [`Scheduler`] for the next whenever the device is free. A request of no bytes takes a disk's
//! arm somewhere; a scheduler may ask for that too. It acts like an operating system, which knows
//! positions but neither arm nor angle.
//!
//! Each scheduler is one file in `scheduler/`, one `mod` line and one entry in [`LIST`]; it says
//! only where to go from where the last request ended, so it keeps no queue of its own. Picks are
//! `O(log n)`. Among requests at one position the oldest comes first.

pub mod anticipatory;
pub mod cscan;
pub mod deadline;
pub mod fcfs;
pub mod look;
pub mod scan;
pub mod sstf;

use std::collections::{BTreeMap, VecDeque};

use forerun_core::spec::{Choice, ChoiceError, Method};
use forerun_core::{Bytes, Nanos};

use crate::device::{Process, Request};

/// The schedulers. One entry a scheduler.
pub static LIST: &[Method<Box<dyn Scheduler>>] = &[
    fcfs::METHOD,
    sstf::METHOD,
    scan::METHOD,
    cscan::METHOD,
    look::METHOD,
    anticipatory::METHOD,
    deadline::METHOD,
];

/// Builds a scheduler from its name.
///
/// # Errors
/// An unknown one.
pub fn parse(text: &str) -> Result<Box<dyn Scheduler>, ChoiceError> {
    Choice::parse("scheduler", LIST, text).map(|choice| choice.build())
}

/// Names a waiting request: its position, and then its number in order of arrival.
pub type Key = (Bytes, u64);

/// Requests that wait, in the order of their positions and in that of their arrival.
///
/// Two trees would cost a disk-accurate run a tenth of its time. Arrivals are a queue, as most
/// requests leave in that order; one that leaves before its turn stays there as a stale entry until
/// it comes to the front. The front is never stale.
#[derive(Debug, Default)]
pub struct Waiting {
    by_position: BTreeMap<Key, Request>,
    by_arrival: VecDeque<Arrival>,
}

/// When a request came, and under which name it waits now.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    key: Key,
    at: Nanos,
}

/// Stale arrivals beside as many live ones before all are looked through. Each look is then paid
/// for by as many requests; and a request that is never served keeps no more entries than that
/// behind it.
const STALE_MIN: usize = 64;

impl Waiting {
    /// The request that came first.
    #[must_use]
    pub fn oldest(&self) -> Option<Key> {
        self.by_arrival.front().map(|first| first.key)
    }

    /// The same, and when it came.
    #[must_use]
    pub fn oldest_since(&self) -> Option<(Key, Nanos)> {
        self.by_arrival.front().map(|first| (first.key, first.at))
    }

    /// The nearest one that begins at `at` or after it.
    #[must_use]
    pub fn at_or_after(&self, at: Bytes) -> Option<Key> {
        let mut after = self.by_position.range((at, 0)..);
        after.next().map(|(key, _)| *key)
    }

    /// The nearest one that begins before `at`: of several at its position the oldest.
    #[must_use]
    pub fn before(&self, at: Bytes) -> Option<Key> {
        let mut before = self.by_position.range(..(at, 0));
        let (position, _) = *before.next_back()?.0;
        self.at_or_after(position)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_position.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_position.is_empty()
    }

    /// One more, with its number in order of arrival; the name under which it waits.
    pub(crate) fn insert(&mut self, number: u64, at: Nanos, request: Request) -> Key {
        let key = (request.at, number);
        self.by_position.insert(key, request);
        self.by_arrival.push_back(Arrival { key, at });
        key
    }

    /// The waiting request of a name.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&Request> {
        self.by_position.get(&key)
    }

    /// The waiting request that ends where this one begins, or begins where it ends, takes it in if
    /// both together are no longer than that; the name by which it waits from now on. It keeps its
    /// place in the order of arrival, and its asker.
    pub(crate) fn merge(&mut self, request: &Request, most: Bytes) -> Option<Key> {
        let fits = |other: &Request| other.bytes.0.saturating_add(request.bytes.0) <= most.0;
        let back = self.before(request.at);
        let back = back.filter(|key| {
            let other = self.by_position.get(key);
            other.is_some_and(|other| other.end() == request.at && fits(other))
        });
        if let Some(key) = back {
            let other = self.by_position.get_mut(&key)?;
            other.bytes.0 += request.bytes.0;
            return Some(key);
        }
        let key = self.at_or_after(request.end());
        let key = key.filter(|key| key.0 == request.end())?;
        let other = *self.by_position.get(&key).filter(|other| fits(other))?;
        let number = |arrival: &Arrival| arrival.key.1;
        let slot = self.by_arrival.binary_search_by_key(&key.1, number).ok()?;
        let moved = (request.at, key.1);
        self.by_arrival.get_mut(slot)?.key = moved;
        self.by_position.remove(&key);
        let bytes = Bytes(other.bytes.0 + request.bytes.0);
        let at = request.at;
        self.by_position
            .insert(moved, Request { at, bytes, ..other });
        Some(moved)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Request> {
        let request = self.by_position.remove(&key)?;
        let Self {
            by_position,
            by_arrival,
        } = self;
        let is_live = |arrival: &Arrival| by_position.contains_key(&arrival.key);
        if by_arrival.front().is_some_and(|front| front.key == key) {
            by_arrival.pop_front();
            while by_arrival.front().is_some_and(|front| !is_live(front)) {
                by_arrival.pop_front();
            }
        } else if by_arrival.len() > 2 * by_position.len() + STALE_MIN {
            by_arrival.retain(is_live);
        }
        Some(request)
    }
}

/// The next action of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Serve this request, one of those waiting.
    Serve(Key),
    /// Take the arm there and pick again.
    Seek(Bytes),
    /// Leave the device idle, and pick again at that time, or when a request comes before.
    Wait(Nanos),
}

/// Where a free device stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The time.
    pub now: Nanos,
    /// Where the last request ended.
    pub at: Bytes,
    /// The end of the device, if it has one.
    pub end: Option<Bytes>,
}

/// Decides which request is next.
///
/// # Examples
/// First come, first served.
///
/// ```
/// use forerun_sim::device::scheduler::{Head, Next, Scheduler, Waiting};
///
/// #[derive(Debug)]
/// struct Oldest;
///
/// impl Scheduler for Oldest {
///     fn pick(&mut self, waiting: &Waiting, _: Head) -> Option<Next> {
///         waiting.oldest().map(Next::Serve)
///     }
/// }
/// ```
pub trait Scheduler: core::fmt::Debug {
    /// The next action; `None` only if no request waits. It seeks at most twice between two
    /// requests that it serves, and waits only for a time to come.
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next>;

    /// A request came; it is not among the waiting ones yet.
    fn came(&mut self, _now: Nanos, _request: &Request) {}

    /// The device ended a request that was served.
    fn ended(&mut self, _now: Nanos, _request: &Request) {}

    /// Waiting requests that follow each other become one, of at most a given number of bytes.
    fn merge_max(&self) -> Bytes {
        Bytes(0)
    }

    /// Waiting requests from which on this process sleeps before it asks for more; without a number it need not.
    fn requests_max(&self, _process: Process) -> Option<usize> {
        None
    }

    /// Whether a queue of so many requests, that at the device included, is congested, where it was so or not before.
    fn is_congested(&self, _requests: usize, _was: bool) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Profile;

    use crate::device::Device;
    use crate::device::switching::Switching;
    use crate::wrap::Queued;

    /// The order in which requests at these positions are served, all submitted while one at
    /// 500 is being served.
    fn order(name: &str, positions: &[u64]) -> Vec<u64> {
        let profile = Profile::constant(Nanos(1_000_000), 1_000_000).unwrap();
        let mut device = Queued::new(parse(name).unwrap(), Switching::new(profile));
        for &at in [500].iter().chain(positions) {
            let (id, at, bytes) = (at, Bytes(at), Bytes(1));
            device.submit(Nanos(0), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        while let Some(next) = device.next_event() {
            device.advance(next, &mut done);
        }
        done.iter().skip(1).map(|one| one.id).collect()
    }

    #[test]
    fn each_scheduler_has_its_order() {
        let asked = [900, 100, 520, 450, 700, 300];
        assert_eq!(order("fcfs", &asked), asked);
        assert_eq!(order("sstf", &asked), [520, 450, 300, 100, 700, 900]);
        assert_eq!(order("scan", &asked), [520, 700, 900, 450, 300, 100]);
        assert_eq!(order("look", &asked), [520, 700, 900, 450, 300, 100]);
        assert_eq!(order("cscan", &asked), [520, 700, 900, 100, 300, 450]);
        let to_edge = order("cscan(to_edge=1)", &asked);
        assert_eq!(to_edge, [520, 700, 900, 100, 300, 450]);
    }

    /// Against a list that is looked through: requests leave from anywhere, one of them never.
    #[test]
    fn the_oldest_is_the_oldest_whoever_left_before() {
        let mut random = crate::random::Random::new(7);
        let (mut waiting, mut list) = (Waiting::default(), Vec::new());
        for id in 0..20_000 {
            let (at, bytes) = (Bytes(random.below(50)), Bytes(1));
            waiting.insert(id, Nanos(id), Request::new(id, at, bytes));
            list.push((at, id));
            while list.len() > 1 && random.chance(600) {
                let leaves = match random.chance(900) {
                    true => random.between(1, list.len() as u64 - 1),
                    // Once it goes after all, so do the stale requests behind it.
                    false => u64::from(id < 10_000),
                };
                let key = list.remove(leaves as usize);
                assert_eq!(waiting.remove(key).map(|one| one.id), Some(key.1));
                assert_eq!(waiting.remove(key), None);
            }
            assert_eq!(waiting.oldest(), list.first().copied());
            assert_eq!(waiting.len(), list.len());
            assert!(waiting.by_arrival.len() <= 2 * list.len() + STALE_MIN + 1);
        }
    }

    #[test]
    fn every_scheduler_serves_whatever_waits() {
        for method in LIST {
            assert_eq!(order(method.spec.name, &[5, 4, 3, 2, 1]).len(), 5);
            assert!(!method.spec.summary.is_empty() && !method.spec.unfit.is_empty());
        }
        assert!(parse("elevator").is_err());
    }
}
