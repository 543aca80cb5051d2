//! Server: one request at a time, first come, first served; shared by devices with one.
//!
//! A device gives the work of a request and its outcome; the times of its end, and the device's
//! counters, follow:
//!
//! ```text
//! begin = max(now, end of the request before)      end = begin + work
//! ```
//!
//! Ends are absolute, so nothing is lost to rounding of waits.

use std::collections::VecDeque;

use forerun_core::{Bytes, Nanos};

use crate::device::{Completion, Outcome, Request, Usage};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Server {
    /// Requests accepted and not taken yet, in the order of their ends.
    ends: VecDeque<Completion>,
    free_at: Nanos,
    head: Option<Bytes>,
    usage: Usage,
}

impl Server {
    /// When a request that comes now begins.
    pub(crate) fn begin(&self, now: Nanos) -> Nanos {
        now.max(self.free_at)
    }

    /// End of the last request; `None` before the first, which always switches.
    pub(crate) fn head(&self) -> Option<Bytes> {
        self.head
    }

    /// Accepts a request that works so long.
    pub(crate) fn serve(&mut self, now: Nanos, request: &Request, work: Nanos, outcome: Outcome) {
        let at = Nanos(self.begin(now).0.saturating_add(work.0));
        self.usage.count(request, self.head != Some(request.at));
        self.usage.busy.0 = self.usage.busy.0.saturating_add(work.0);
        self.free_at = at;
        self.head = Some(request.end());
        let id = request.id;
        self.ends.push_back(Completion { id, at, outcome });
    }

    /// When the next request ends.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.ends.front().map(|first| first.at)
    }

    /// Appends the requests that have ended by `now`.
    pub(crate) fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        // One at a time: nearly always one has ended, and a range to drain costs more than that.
        while let Some(first) = self.ends.front().filter(|first| first.at <= now) {
            done.push(*first);
            self.ends.pop_front();
        }
    }

    /// Its counters so far.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }
}
