//! The history of a file: the versions it may have had between two moments.
//!
//! Written by the file's [`writer`](super::writer) before and after each change, asked by
//! [`readers`](super::reader) after their calls. The moment at which a change takes effect lies
//! somewhere in its system call, so the versions on both sides of it are possible all through it:
//!
//! ```text
//! version 6   ------------------------|
//!                          |--pwrite--|
//! version 7                |--------------------------
//! ```
//!
//! A reader therefore never finds a violation where there is none. Versions that ended a minute ago
//! are forgotten, and a reader that is slower than that is told so.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longer than a read takes on a machine that stands still now and then.
const KEPT_NS: u64 = 60_000_000_000;

/// Moments as nanoseconds since the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    zero: Instant,
    started: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self {
            zero: now,
            started: now,
        }
    }

    /// The same moments, and the time of the run begins now.
    pub(super) fn again(self) -> Self {
        let started = Instant::now();
        Self { started, ..self }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A state of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Version {
    /// Which file of this name; 0: there is none.
    pub(super) incarnation: u32,
    /// Which bytes; 0: none are written.
    pub(super) content: u32,
    /// Their end; after it are zeros.
    pub(super) written: u64,
    /// End of the file.
    pub(super) length: u64,
    /// Whether other users may read it.
    pub(super) is_public: bool,
}

/// A version, and when the file may have had it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Period {
    pub(super) version: Version,
    /// When the change that made it began.
    pub(super) since: u64,
    /// When that change had been made.
    pub(super) made: u64,
    /// When the change that ended it had been made.
    pub(super) until: u64,
    /// Whether bytes of an open file were changed, so that a read at the same time may be torn.
    pub(super) is_in_place: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct History(Mutex<Periods>);

#[derive(Debug)]
struct Periods {
    periods: VecDeque<Period>,
    /// The end of the last one that was forgotten.
    forgotten_until: Option<u64>,
    contents: u32,
}

impl History {
    pub(super) fn new(version: Version, now: u64) -> Self {
        let period = Period {
            version,
            since: now,
            made: now,
            until: u64::MAX,
            is_in_place: false,
        };
        Self(Mutex::new(Periods {
            periods: [period].into(),
            forgotten_until: None,
            contents: version.content,
        }))
    }

    fn periods(&self) -> MutexGuard<'_, Periods> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version the file has; of its writer only, which makes all the changes.
    pub(super) fn current(&self) -> Version {
        let periods = self.periods();
        periods
            .periods
            .back()
            .map(|p| p.version)
            .unwrap_or_default()
    }

    /// Number of contents.
    pub(super) fn contents(&self) -> u64 {
        u64::from(self.periods().contents)
    }

    /// Makes a change that leads to this version.
    pub(super) fn change<T>(
        &self,
        clock: &Clock,
        version: Version,
        is_in_place: bool,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.begin(version, is_in_place, clock.now());
        let result = act();
        self.end(clock.now());
        result
    }

    fn begin(&self, version: Version, is_in_place: bool, now: u64) {
        let mut periods = self.periods();
        periods.contents = periods.contents.max(version.content);
        periods.periods.push_back(Period {
            version,
            since: now,
            made: u64::MAX,
            until: u64::MAX,
            is_in_place,
        });
        let kept_from = now.saturating_sub(KEPT_NS);
        while let Some(first) = periods.periods.front().filter(|p| p.until < kept_from) {
            periods.forgotten_until = Some(first.until);
            periods.periods.pop_front();
        }
    }

    fn end(&self, now: u64) {
        let mut periods = self.periods();
        let mut newest = periods.periods.iter_mut().rev();
        if let Some(made) = newest.next() {
            made.made = now;
        }
        if let Some(ended) = newest.next() {
            ended.until = now;
        }
    }

    /// The versions from one moment to another; none: they were forgotten.
    pub(super) fn between(&self, from: u64, to: u64) -> Option<Vec<Period>> {
        let periods = self.periods();
        let newest = periods.periods.iter().rev();
        let mut found: Vec<Period> = newest
            .skip_while(|period| period.since > to)
            .take_while(|period| period.until >= from)
            .copied()
            .collect();
        found.reverse();
        // None is less than any.
        (periods.forgotten_until < Some(from)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(content: u32) -> Version {
        Version {
            content,
            ..Version::default()
        }
    }

    fn contents(history: &History, from: u64, to: u64) -> Vec<u32> {
        let found = history.between(from, to).unwrap();
        found.iter().map(|period| period.version.content).collect()
    }

    #[test]
    fn both_versions_are_possible_while_one_becomes_the_other() {
        let history = History::new(version(1), 1);
        history.begin(version(2), true, 100);
        assert_eq!(contents(&history, 50, 99), [1]);
        assert_eq!(contents(&history, 50, 120), [1, 2]);
        assert_eq!(contents(&history, 900, 1_000), [1, 2]);
        history.end(200);
        assert_eq!(contents(&history, 0, 160), [1, 2]);
        assert_eq!(contents(&history, 201, 300), [2]);
        history.begin(version(3), false, 400);
        history.end(500);
        assert_eq!(contents(&history, 150, 450), [1, 2, 3]);
        assert_eq!(contents(&history, 600, 600), [3]);
        assert_eq!((history.contents(), history.current()), (3, version(3)));
        let period = history.between(600, 600).unwrap()[0];
        assert_eq!((period.since, period.made), (400, 500));
    }

    #[test]
    fn what_ended_long_ago_is_forgotten_and_that_is_said() {
        let history = History::new(version(1), 1);
        for (content, at) in [(2, 10), (3, 20 + KEPT_NS)] {
            history.begin(version(content), false, at);
            history.end(at + 1);
        }
        assert_eq!(history.between(5, 40), None);
        assert_eq!(history.between(0, 40), None);
        assert_eq!(contents(&history, 12, 40), [2]);
    }
}
