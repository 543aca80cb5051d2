//! A device of several servers: when each of its requests ends.
//!
//! Used by the [throttle](super) where an emulation has more than one server. A request pays the switching
//! cost beside those of other servers, never behind them; bodies under way share the transfer rate:
//!
//! ```text
//! waiting -> [a server is free] -> first byte -> body                       -> ended
//!                                  switching     rate / bodies at that time
//! ```
//!
//! `shared` counts bytes that *every* body received since the start, in billionths of a byte, so a body ends
//! when the count has grown by its own size, whichever came and went meanwhile. Example: 8 servers of 1 ms
//! and 300 MB/s, eight requests of 300 kB at once: first bytes at 1 ms, all end at 9 ms.
//!
//! It is the model of the simulator's `object_store`: no request continues another, because servers side by
//! side have no arm. A pure model: time is handed in, and a late caller changes no end.

use std::collections::{BTreeSet, VecDeque};

use forerun_core::{Nanos, RequestId};

use super::Emulation;

/// A request, with its number in the order of arrival.
type Numbered = (u64, RequestId);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Several {
    emulation: Emulation,
    now: Nanos,
    /// Numbers given so far.
    arrived: u64,
    /// Requests without a server, with their bytes.
    waiting: VecDeque<(Numbered, u64)>,
    /// Requests with one, by the time of their first byte.
    first_bytes: VecDeque<(Nanos, Numbered, u64)>,
    /// Bodies under way, by the count at which each ends.
    bodies: BTreeSet<(u128, Numbered)>,
    shared: u128,
    /// Time in which at least one server was at work.
    pub(super) busy: Nanos,
}

impl Several {
    pub(super) fn new(emulation: Emulation) -> Self {
        Self {
            emulation,
            now: Nanos(0),
            arrived: 0,
            waiting: VecDeque::new(),
            first_bytes: VecDeque::new(),
            bodies: BTreeSet::new(),
            shared: 0,
            busy: Nanos(0),
        }
    }

    /// Takes a request; appends those that ended before.
    pub(super) fn accept(
        &mut self,
        now: Nanos,
        number: RequestId,
        bytes: u64,
        ended: &mut VecDeque<RequestId>,
    ) {
        self.advance(now, ended);
        self.arrived += 1;
        self.waiting.push_back(((self.arrived, number), bytes));
        self.serve();
    }

    /// When the next first byte comes or body ends.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        let first_byte = self.first_bytes.front().map(|(at, ..)| *at);
        let body = self.bodies.first().map(|(end, _)| {
            let wait = end.saturating_sub(self.shared).div_ceil(self.share());
            let wait = u64::try_from(wait).unwrap_or(u64::MAX);
            Nanos(self.now.0.saturating_add(wait))
        });
        first_byte.into_iter().chain(body).min()
    }

    /// Appends the requests that ended by `now`, in the order of their ends.
    pub(super) fn advance(&mut self, now: Nanos, ended: &mut VecDeque<RequestId>) {
        while let Some(next) = self.next_event().filter(|next| *next <= now) {
            self.pass(next);
            while let Some(&(end, request)) = self.bodies.first()
                && end <= self.shared
            {
                self.bodies.remove(&(end, request));
                ended.push_back(request.1);
            }
            while let Some(&(at, request, bytes)) = self.first_bytes.front()
                && at <= self.now
            {
                self.first_bytes.pop_front();
                let size = u128::from(bytes) * 1_000_000_000;
                self.bodies.insert((self.shared + size, request));
            }
            self.serve();
        }
        self.pass(now);
    }

    /// The rate of each body, in bytes a second.
    fn share(&self) -> u128 {
        let bodies = self.bodies.len().max(1) as u64;
        (self.emulation.bytes_per_second / bodies).max(1).into()
    }

    /// Time passes, without an event before `now`.
    fn pass(&mut self, now: Nanos) {
        let elapsed = now.since(self.now).0;
        if !self.bodies.is_empty() {
            self.shared += self.share() * u128::from(elapsed);
        }
        if self.at_work() > 0 {
            self.busy.0 = self.busy.0.saturating_add(elapsed);
        }
        self.now = self.now.max(now);
    }

    fn at_work(&self) -> usize {
        self.first_bytes.len() + self.bodies.len()
    }

    /// Gives free servers to waiting requests.
    fn serve(&mut self) {
        while self.at_work() < self.emulation.servers as usize {
            let Some((request, bytes)) = self.waiting.pop_front() else {
                return;
            };
            let at = self.now.0.saturating_add(self.emulation.switching.0);
            self.first_bytes.push_back((Nanos(at), request, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When requests (time, bytes) end on servers of 1 ms and 300 MB/s, and how long the device was busy.
    fn ends(servers: u32, requests: &[(u64, u64)]) -> (Vec<u64>, u64) {
        let mut device = Several::new(Emulation {
            switching: Nanos(1_000_000),
            bytes_per_second: 300_000_000,
            servers,
        });
        let mut ended = VecDeque::new();
        let mut ends = vec![0; requests.len()];
        for (number, &(at, bytes)) in (0..).zip(requests) {
            device.accept(Nanos(at), RequestId(number), bytes, &mut ended);
            assert!(ended.is_empty(), "none ends before the last came");
        }
        while let Some(next) = device.next_event() {
            device.advance(next, &mut ended);
            for RequestId(number) in ended.drain(..) {
                ends[number as usize] = next.0;
            }
        }
        (ends, device.busy.0)
    }

    #[test]
    fn servers_switch_side_by_side_and_share_the_rate() {
        assert_eq!(ends(8, &[(5, 300_000)]), (vec![2_000_005], 2_000_000));
        let eight = [(0, 300_000); 8];
        assert_eq!(ends(8, &eight), (vec![9_000_000; 8], 9_000_000));
        // Half of them wait until the others have ended, and pay then.
        let (ends, busy) = ends(4, &eight);
        assert_eq!(ends, [[5_000_000; 4], [10_000_000; 4]].concat());
        assert_eq!(busy, 10_000_000);
    }

    #[test]
    fn a_short_request_passes_a_long_one() {
        let (ends, _) = ends(2, &[(0, 3_000_000), (100, 30_000)]);
        // It has half of the rate for 0.2 ms; the long one loses 0.1 ms.
        assert_eq!(ends, [11_100_000, 1_200_100]);
    }

    #[test]
    fn one_server_is_a_queue() {
        let (ends, busy) = ends(1, &[(0, 300_000), (0, 300_000)]);
        assert_eq!((ends, busy), (vec![2_000_000, 4_000_000], 4_000_000));
    }
}
