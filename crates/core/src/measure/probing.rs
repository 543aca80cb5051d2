//! Probing: when requests have the device for themselves.
//!
//! Only the time of a request that no other slows tells costs and servers apart, and it costs the work that the
//! device could have done beside it. So it is rare:
//!
//! - one request in 128 a server, while requests wait;
//! - four where an epoch saw another number of servers than when the costs were measured, because changed costs look
//!   the same: at most once in 512 requests a server. On a store they are two if the first takes its expected time, and
//!   none if the number grew and one of the last 16 was on time;
//! - not before the device has worked for 32 times as long as the last such time took: while it runs out it does
//!   half of its work, so a 64th is lost whatever the host needs to notice. A request that is never answered keeps
//!   the device from running out, which takes long, and is tried as rarely.
//!
//! Example: a store of 30 ms that suddenly takes 60 for each of 16 requests has half of the workers or twice the
//! costs. The next four requests wait until it has no other; they take 60 ms, too: the costs are twice as high.

use super::costs::STREAK;
use super::servers::EPOCH;
use crate::units::Nanos;

/// Requests between two that have the device for themselves, for each server: n servers lose at
/// most the work of two, while it runs out and while that one is alone, which is a 64th.
const EVERY: u32 = 128;
/// The same between two times that four do because costs may have changed: a 64th, too.
const CHANGES_EVERY: u32 = 512;
/// Others at a device only ever make a request slower: costs have not changed while one of so many, an epoch's,
/// takes the time it takes alone, to a quarter. A disk is asked more often: it takes a time by chance as it turns.
const ON_TIME: u32 = EPOCH;
/// The device works so many times as long as it took to have it for a request alone.
const REST: u64 = 32;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    /// So many requests are to have the device for themselves: it runs out for each.
    left: u64,
    /// Requests since one had the device for itself.
    since_alone: u32,
    /// Requests since one took about the time it takes alone.
    since_on_time: u32,
    /// Requests since the costs were measured because they may have changed.
    since_change: u32,
    /// They were measured since the last epoch that was believed.
    is_checked: bool,
    /// When the device was to run out, until it works again.
    began: Option<Nanos>,
    /// Until then it works.
    rests: Nanos,
    /// The last request to have it alone was given up.
    is_hung: bool,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            left: 0,
            since_alone: 0,
            since_on_time: u32::MAX,
            since_change: u32::MAX,
            is_checked: false,
            began: None,
            rests: Nanos(0),
            is_hung: false,
        }
    }
}

impl Probing {
    /// Whether the next request waits until the device has no other.
    pub(super) fn is_on(&self) -> bool {
        self.left > 0
    }

    /// Whether the next requests say if the costs have changed.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_on() && self.is_checked
    }

    /// Whether a request of the last epoch took about the time it takes alone.
    pub(super) fn is_on_time(&self) -> bool {
        self.since_on_time < ON_TIME
    }

    /// A request took so long, where so much was expected of it alone.
    pub(super) fn took(&mut self, time: u64, expected: u64) {
        self.since_on_time = match time.abs_diff(expected) <= expected / 4 {
            true => 0,
            false => self.since_on_time.saturating_add(1),
        };
    }

    /// The last request had the device, or one of a store's workers, for itself.
    pub(super) fn was_alone(&mut self, takes_its_time: bool) {
        self.lost();
        if takes_its_time && self.since_on_time == 0 {
            self.left = self.left.min(1);
        }
        (self.since_alone, self.is_hung) = (0, false);
    }

    /// A request was one of several; whether it brings the next that has the device for itself nearer.
    pub(super) fn was_joined(&mut self, counts: bool) {
        self.since_change = self.since_change.saturating_add(1);
        self.since_alone = self.since_alone.saturating_add(counts.into());
    }

    /// Has the next request the device for itself? The number of servers, where it was seen.
    pub(super) fn plan(&mut self, now: Nanos, servers: Option<u32>) {
        if let Some(began) = self.began.take_if(|_| self.left == 0) {
            let rest = now.since(began).0.saturating_mul(REST);
            self.rests = Nanos(now.0.saturating_add(rest));
        }
        let every = servers.map_or(EPOCH, |servers| EVERY.saturating_mul(servers));
        if self.since_alone >= every && now >= self.rests {
            self.left = self.left.max(1);
        }
        if self.is_on() {
            self.began.get_or_insert(now);
        }
    }

    /// An epoch saw another number of servers, one where there were several, or neither: whether costs are
    /// measured before that is believed.
    pub(super) fn doubts(&mut self, is_odd: bool, is_one: bool, servers: u32) -> bool {
        let is_due = is_odd && self.since_change >= CHANGES_EVERY.saturating_mul(servers);
        // On one server costs are measured in another way, from which there is no way back but this.
        self.is_checked = is_due || (is_one && !self.is_checked);
        if self.is_checked {
            self.since_change = 0;
            self.left = if self.is_hung { 0 } else { STREAK };
        }
        self.is_checked
    }

    /// A request that was alone ended, and its time may say nothing.
    pub(super) fn lost(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// The device answers nothing for long.
    pub(super) fn give_up(&mut self) {
        if self.left > 0 {
            (self.left, self.since_alone, self.is_hung) = (0, 0, true);
        }
    }
}
