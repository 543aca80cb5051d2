//! Fault: makes some requests fail, end short or end late, drawn from a seed.
//!
//! The fate of a request is drawn when it is submitted, so it depends on the order of requests and
//! the seed alone. A failed or short request takes as long as a complete one, because the inner
//! device serves it in full. A delayed one ends later than the inner device ended it, which lets
//! requests overtake each other as they do in real arrays and networks.
//!
//! ```text
//! submit -> draw fate -> inner device -> ended -> [wait for delay] -> completion with its fate
//! ```
//!
//! The error is always EIO (5), a driver's error for a bad sector.

use std::collections::BTreeMap;

use forerun_core::{Bytes, ErrorCode, Nanos};

use super::{Layer, Wrapped};
use crate::device::{Completion, Device, Outcome, Request};
use crate::random::Random;

/// The error every injected failure reports: EIO.
pub const INJECTED: ErrorCode = ErrorCode(5);

/// The rates of faults, in thousandths of all requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Decides which requests.
    pub seed: u64,
    /// Requests that fail.
    pub failed_per_mille: u16,
    /// Requests that transfer only their first bytes.
    pub short_per_mille: u16,
    /// Requests that end later than they should.
    pub delayed_per_mille: u16,
    /// The longest delay.
    pub delay_max: Nanos,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug)]
struct Fate {
    outcome: Option<Outcome>,
    delay: Nanos,
}

/// A device some of whose requests go wrong. See the [module](self).
pub type Fault<D> = Wrapped<Injector, D>;

/// Decides which do, and holds those that end late.
#[derive(Debug)]
pub struct Injector {
    faults: Faults,
    random: Random,
    fates: BTreeMap<u64, Fate>,
    /// Ended inside, not shown yet, by time and then by order of ending.
    late: BTreeMap<(Nanos, u64), Completion>,
    ended: u64,
}

impl<D: Device> Fault<D> {
    /// The device, with these faults.
    pub fn new(inner: D, faults: Faults) -> Self {
        let layer = Injector {
            faults,
            random: Random::new(faults.seed),
            fates: BTreeMap::new(),
            late: BTreeMap::new(),
            ended: 0,
        };
        Self { layer, inner }
    }
}

impl Injector {
    /// Always draws the same amount of numbers, so that one rate changed leaves the other
    /// requests' fates as they were.
    fn draw(&mut self, bytes: Bytes) -> Fate {
        let failed = self.random.chance(self.faults.failed_per_mille.into());
        let short = self.random.chance(self.faults.short_per_mille.into());
        let part = Bytes(self.random.below(bytes.0));
        let delayed = self.random.chance(self.faults.delayed_per_mille.into());
        let delay = Nanos(self.random.between(0, self.faults.delay_max.0));
        let outcome = match (failed, short) {
            (true, _) => Some(Outcome::Failed { error: INJECTED }),
            (false, true) if bytes.0 > 0 => Some(Outcome::Short { bytes: part }),
            (false, _) => None,
        };
        Fate {
            outcome,
            delay: if delayed { delay } else { Nanos(0) },
        }
    }

    fn hold(&mut self, mut ended: Completion) {
        if let Some(fate) = self.fates.remove(&ended.id) {
            ended.at = Nanos(ended.at.0.saturating_add(fate.delay.0));
            ended.outcome = fate.outcome.unwrap_or(ended.outcome);
        }
        self.ended += 1;
        self.late.insert((ended.at, self.ended), ended);
    }
}

impl Layer for Injector {
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        let fate = self.draw(request.bytes);
        self.fates.insert(request.id, fate);
        inner.submit(now, request);
    }

    fn next_event<D: Device>(&self, inner: &D) -> Option<Nanos> {
        let late = self.late.first_key_value().map(|((at, _), _)| *at);
        late.into_iter().chain(inner.next_event()).min()
    }

    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        let mut ended = Vec::new();
        inner.advance(now, &mut ended);
        ended.into_iter().for_each(|one| self.hold(one));
        while let Some(first) = self.late.first_entry().filter(|first| first.key().0 <= now) {
            done.push(first.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::instant::Instant;

    fn outcomes(faults: Faults) -> Vec<Outcome> {
        let mut device = Fault::new(Instant::default(), faults);
        for id in 0..1000 {
            device.submit(Nanos(0), Request::new(id, Bytes(0), Bytes(4096)));
        }
        let mut done = Vec::new();
        device.advance(Nanos(u64::MAX), &mut done);
        done.sort_by_key(|c| c.id);
        done.iter().map(|c| c.outcome).collect()
    }

    #[test]
    fn faults_come_about_as_often_as_asked_and_the_same_by_seed() {
        let faults = Faults {
            seed: 4,
            failed_per_mille: 100,
            short_per_mille: 50,
            delayed_per_mille: 300,
            delay_max: Nanos(1000),
        };
        let first = outcomes(faults);
        let failed = first
            .iter()
            .filter(|o| matches!(o, Outcome::Failed { .. }))
            .count();
        let short = first
            .iter()
            .filter(|o| matches!(o, Outcome::Short { .. }))
            .count();
        assert!((60..140).contains(&failed), "{failed}");
        assert!((20..80).contains(&short), "{short}");
        assert_eq!(first, outcomes(faults));
        assert_ne!(first, outcomes(Faults { seed: 5, ..faults }));
    }

    #[test]
    fn no_faults_leave_a_device_as_it_is() {
        assert!(
            outcomes(Faults::default())
                .iter()
                .all(|o| *o == Outcome::Done)
        );
    }
}
