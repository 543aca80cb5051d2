//! Tape: winding takes time in proportion to the distance, so order matters more than on any disk.
//!
//! A request that continues the one before is transferred at 300 MB/s. Any other one winds first: half a
//! second to stop and start, and 1 GB of tape passes in 10 ms.

use std::collections::VecDeque;

use forerun_core::{Bytes, Nanos, Profile};
use forerun_sim::device::{Completion, Device, Outcome, Request, Usage};

const RATE: u64 = 300_000_000;
const TURN: Nanos = Nanos(500_000_000);
/// Bytes that pass in a nanosecond while it winds.
const WIND: u64 = 100;

#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// Requests that were accepted and have not been handed back, by the time they end.
    ends: VecDeque<Completion>,
    free_at: Nanos,
    head: Option<Bytes>,
    usage: Usage,
}

impl Device for Tape {
    fn profile(&self) -> Profile {
        // A run costs one turn; how far it winds depends on the files.
        Profile::constant(TURN, RATE).unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let switches = self.head != Some(request.at);
        let distance = request.at.0.abs_diff(self.head.unwrap_or_default().0);
        let wind = if switches {
            TURN.0 + distance / WIND
        } else {
            0
        };
        let transfer = u128::from(request.bytes.0) * 1_000_000_000 / u128::from(RATE);
        let work = wind.saturating_add(transfer as u64);
        let at = Nanos(self.free_at.max(now).0.saturating_add(work));
        self.usage.requests += 1;
        self.usage.bytes.0 += request.bytes.0;
        self.usage.switches += u64::from(switches);
        self.usage.busy.0 += work;
        (self.free_at, self.head) = (at, Some(request.end()));
        let (id, outcome) = (request.id, Outcome::Done);
        self.ends.push_back(Completion { id, at, outcome });
    }

    fn next_event(&self) -> Option<Nanos> {
        self.ends.front().map(|first| first.at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(first) = self.ends.front().filter(|first| first.at <= now) {
            done.push(*first);
            self.ends.pop_front();
        }
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}
