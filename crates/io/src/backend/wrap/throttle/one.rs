//! A device of one server: when each of its requests ends.
//!
//! Used by the [throttle](super). A request's service time is the switching cost, unless it begins where
//! the one before ended, plus its bytes at the transfer rate; its end is known when it comes:
//!
//! ```text
//! busy_until = max(busy_until, now) + (continues ? 0 : switching) + bytes / rate
//! ```
//!
//! It is the model of the simulator's `switching` device.

use std::collections::VecDeque;

use forerun_core::{Nanos, RequestId};

use super::Emulation;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct One {
    emulation: Emulation,
    busy_until: Nanos,
    next_position: Option<u64>,
    ends: VecDeque<(Nanos, RequestId)>,
    /// Requests that began where the one before ended.
    pub(super) continued: u64,
    /// Service times, added up.
    pub(super) busy: Nanos,
}

impl One {
    pub(super) fn new(emulation: Emulation) -> Self {
        Self {
            emulation,
            busy_until: Nanos(0),
            next_position: None,
            ends: VecDeque::new(),
            continued: 0,
            busy: Nanos(0),
        }
    }

    /// Takes a request of `bytes` at `position` that came at `now`.
    pub(super) fn accept(&mut self, now: Nanos, number: RequestId, position: u64, bytes: u64) {
        let continues = self.next_position == Some(position);
        let service = self.service(bytes, continues);
        self.next_position = Some(position.saturating_add(bytes));
        self.busy_until = Nanos(self.busy_until.max(now).0.saturating_add(service.0));
        self.ends.push_back((self.busy_until, number));
        self.continued += u64::from(continues);
        self.busy.0 = self.busy.0.saturating_add(service.0);
    }

    /// When the next request ends.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.ends.front().map(|(at, _)| *at)
    }

    /// Appends the requests that ended by `now`.
    pub(super) fn advance(&mut self, now: Nanos, ended: &mut VecDeque<RequestId>) {
        while let Some(&(_, number)) = self.ends.front().filter(|(at, _)| *at <= now) {
            ended.push_back(number);
            self.ends.pop_front();
        }
    }

    fn service(&self, bytes: u64, continues: bool) -> Nanos {
        let rate = u128::from(self.emulation.bytes_per_second.max(1));
        let transfer = u128::from(bytes) * 1_000_000_000 / rate;
        let transfer = u64::try_from(transfer).unwrap_or(u64::MAX);
        let switching = if continues {
            0
        } else {
            self.emulation.switching.0
        };
        Nanos(transfer.saturating_add(switching))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_pays_for_the_switch_unless_it_continues_and_queues_behind_the_one_before() {
        let mut disk = One::new(Emulation {
            switching: Nanos(8_000_000),
            bytes_per_second: 80_000_000,
            servers: 1,
        });
        disk.accept(Nanos(1_000), RequestId(0), 0, 80_000);
        disk.accept(Nanos(2_000), RequestId(1), 80_000, 80_000);
        disk.accept(Nanos(20_000_000), RequestId(2), 0, 8_000);
        let mut ended = VecDeque::new();
        for (number, end) in (0..).zip([9_001_000, 10_001_000, 28_100_000]) {
            assert_eq!(disk.next_event(), Some(Nanos(end)));
            disk.advance(Nanos(end - 1), &mut ended);
            assert!(ended.is_empty());
            disk.advance(Nanos(end), &mut ended);
            assert_eq!(ended.pop_front(), Some(RequestId(number)));
        }
        assert_eq!(disk.continued, 1);
        assert_eq!(disk.busy, Nanos(9_000_000 + 1_000_000 + 8_100_000));
    }
}
