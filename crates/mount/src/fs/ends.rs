//! Where the kernel takes a file to end, so that it shows no zeros that were never in the file.
//!
//! Problem: the kernel fills a page with zeros behind an answer that is shorter than the request. It
//! hides them by its size of the file, and that can be wrong in two ways.
//!
//! ```text
//! size 9000, answer ends at 3000    kernel: size 3000, unless attributes or a notification came
//!                                   after the request was sent: then 9000, and 6000 zeros
//! page of a file of 3000, then      1096 zeros of the old page lie inside the file until it is
//! attributes with size 9000         dropped
//! ```
//!
//! Mechanism: one record for each file that was ever opened, of the largest size that the kernel may
//! have and of the attributes and notifications sent. An answer that ends before that size is a *cut*.
//! It is given if nothing was sent that could cross it, else it is *doubtful*: an error, after which
//! the kernel, or the program, asks again. Before a larger size is told the kernel drops the pages from the
//! first zero on ([`Ends::zeros_below`]).
//!
//! Limits: a reply takes effect when its thread runs, which the daemon does not see. One to the thread
//! that asks has taken effect; one to another thread is taken to have after [`TOLD`].

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

/// The longest time from a reply until the thread it is for has taken it in: a turn of each of a few busy
/// programs on its processor. Longer, and reads beside a cut fail more often.
const TOLD: Duration = Duration::from_millis(20);

/// The longest time from the sending of a request until the daemon has it. A notification has taken effect
/// when its call returns.
const NOTIFIED: Duration = Duration::from_millis(2);

/// An answer to a read.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// From here on.
    pub offset: u64,
    /// So many bytes were requested.
    pub asked: usize,
    /// So many there are.
    pub given: usize,
    /// The thread that reads.
    pub thread: u32,
    /// When the request came in.
    pub received: Instant,
}

/// Whether an answer may be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The kernel has no larger size than its end.
    Known,
    /// The kernel's size becomes its end. [`Ends::cut_given`] must follow.
    Cut,
    /// The kernel may keep a larger size, and show zeros.
    Doubtful,
}

/// Pages with zeros that the kernel has to drop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zeros {
    /// Offset of the first zero.
    pub from: u64,
    answers: u64,
}

/// Attributes, notifications and cuts that were sent: when each has surely taken effect.
#[derive(Debug)]
struct Sent {
    last: Instant,
    thread: u32,
    /// Of those to this thread, in the eyes of others.
    until: Instant,
    /// Of those to other threads.
    others_until: Instant,
    /// Cuts that are being given.
    cuts: u32,
}

impl Sent {
    fn add(&mut self, thread: u32, now: Instant, effect: Duration) {
        // Threads of another name space have no number.
        if thread != self.thread || thread == 0 {
            self.others_until = self.others_until.max(self.until);
            self.thread = thread;
            self.until = now + effect;
        }
        self.until = self.until.max(now + effect);
        self.last = now;
    }

    /// From when on nothing sent to others can cross a request of this thread.
    fn calm_at(&self, thread: u32) -> Instant {
        match thread == self.thread && thread != 0 {
            true => self.others_until,
            false => self.others_until.max(self.until),
        }
    }

    /// Whether nothing crosses a request that came in then.
    fn is_alone(&self, thread: u32, received: Instant) -> bool {
        self.cuts == 0 && self.last < received && self.calm_at(thread) <= received
    }
}

#[derive(Debug)]
struct State {
    /// The largest size the kernel may have.
    size: u64,
    zeros: Option<u64>,
    /// Answers that were filled up with zeros.
    answers: u64,
    sent: Sent,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Ends {
    state: Mutex<State>,
}

impl Ends {
    /// Of a file that this thread opens now, and of which the kernel has this size, if that is known.
    #[must_use]
    pub fn new(size: Option<u64>, thread: u32, now: Instant) -> Self {
        let sent = Sent {
            last: now,
            thread,
            until: now,
            others_until: now,
            cuts: 0,
        };
        let state = State {
            size: size.unwrap_or(u64::MAX),
            zeros: None,
            answers: 0,
            sent,
        };
        Self {
            state: state.into(),
        }
    }

    /// A thread is told of this size, which it asked for at a given time.
    pub fn tells(&self, size: u64, thread: u32, asked: Instant, now: Instant) {
        let mut state = lock(&self.state);
        state.size = match state.sent.is_alone(thread, asked) {
            true => size,
            false => state.size.max(size),
        };
        state.sent.add(thread, now, TOLD);
    }

    /// The kernel is notified that its attributes do not hold, before an answer to this thread.
    pub fn notifies(&self, thread: u32, now: Instant) {
        lock(&self.state).sent.add(thread, now, NOTIFIED);
    }

    /// The kernel is given the file's bytes up to this end, and takes it for the size.
    pub fn stores(&self, end: u64) {
        let mut state = lock(&self.state);
        state.size = state.size.max(end);
        state.ends(end);
    }

    /// Whether an answer may be given.
    pub fn answer(&self, answer: &Answer) -> Verdict {
        if answer.given == answer.asked {
            return Verdict::Known;
        }
        let end = answer.offset.saturating_add(answer.given as u64);
        let mut state = lock(&self.state);
        if end < state.size {
            if !state.sent.is_alone(answer.thread, answer.received) {
                return Verdict::Doubtful;
            }
            state.size = end;
            state.sent.cuts += 1;
            state.ends(end);
            return Verdict::Cut;
        }
        state.ends(end);
        Verdict::Known
    }

    /// A cut was given to this thread.
    pub fn cut_given(&self, thread: u32, now: Instant) {
        let mut state = lock(&self.state);
        state.sent.cuts = state.sent.cuts.saturating_sub(1);
        state.sent.add(thread, now, TOLD);
    }

    /// Time until nothing sent to others can cross a request of this thread.
    #[must_use]
    pub fn calm_in(&self, thread: u32, now: Instant) -> Duration {
        let calm = lock(&self.state).sent.calm_at(thread);
        calm.saturating_duration_since(now)
    }

    /// Zeros that would lie inside the file if the kernel had this size. They are dropped from the page
    /// of the first one on, by a notification, and [`Ends::dropped`] follows.
    #[must_use]
    pub fn zeros_below(&self, size: u64) -> Option<Zeros> {
        let state = lock(&self.state);
        let from = state.zeros.filter(|from| *from < size)?;
        let answers = state.answers;
        Some(Zeros { from, answers })
    }

    /// The kernel has dropped these pages. Others may have come since.
    pub fn dropped(&self, zeros: Zeros) {
        let mut state = lock(&self.state);
        if state.answers == zeros.answers {
            state.zeros = None;
        }
    }
}

impl State {
    /// A page is filled up with zeros from here on.
    fn ends(&mut self, end: u64) {
        self.zeros = Some(self.zeros.map_or(end, |zeros| zeros.min(end)));
        self.answers += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u32 = 7;
    const OTHER: u32 = 8;
    const PAGE: usize = 4096;

    /// A clock that is set by hand: a read, `ms` after the beginning.
    struct Clock(Instant);

    impl Clock {
        fn at(&self, ms: u64) -> Instant {
            self.0 + Duration::from_millis(ms)
        }

        fn ends(&self, size: u64) -> Ends {
            Ends::new(Some(size), ONE, self.at(0))
        }

        fn short(&self, offset: u64, given: usize, thread: u32, ms: u64) -> Answer {
            Answer {
                offset,
                asked: given.next_multiple_of(PAGE).max(PAGE),
                given,
                thread,
                received: self.at(ms),
            }
        }
    }

    fn clock() -> Clock {
        Clock(Instant::now())
    }

    #[test]
    fn the_end_that_the_kernel_knows_is_given_whatever_crosses_it() {
        let clock = clock();
        let ends = clock.ends(3000);
        ends.tells(3000, OTHER, clock.at(1), clock.at(1));
        let answer = clock.short(0, 3000, ONE, 1);
        assert_eq!(ends.answer(&answer), Verdict::Known);
        let longer = clock.short(0, 4000, ONE, 1);
        assert_eq!(ends.answer(&longer), Verdict::Known);
    }

    #[test]
    fn a_cut_that_nothing_crosses_is_given_and_is_the_size_from_then_on() {
        let clock = clock();
        let ends = clock.ends(9000);
        let answer = clock.short(0, 3000, ONE, 5);
        assert_eq!(ends.answer(&answer), Verdict::Cut);
        assert_eq!(
            ends.answer(&clock.short(0, 2000, ONE, 6)),
            Verdict::Doubtful,
            "the first one may be on its way"
        );
        ends.cut_given(ONE, clock.at(7));
        assert_eq!(
            ends.answer(&clock.short(0, 2000, ONE, 6)),
            Verdict::Doubtful,
            "it was sent before the kernel had the new size"
        );
        assert_eq!(ends.answer(&clock.short(0, 3000, ONE, 6)), Verdict::Known);
        assert_eq!(ends.answer(&clock.short(0, 2000, ONE, 8)), Verdict::Cut);
    }

    #[test]
    fn attributes_and_notifications_that_may_cross_a_cut_make_it_doubtful() {
        let clock = clock();
        let ends = clock.ends(9000);
        ends.tells(9000, OTHER, clock.at(10), clock.at(10));
        let cut = |thread, ms| ends.answer(&clock.short(0, 3000, thread, ms));
        assert_eq!(cut(ONE, 5), Verdict::Doubtful, "asked before");
        assert_eq!(cut(OTHER, 9), Verdict::Doubtful, "asked before");
        assert_eq!(cut(ONE, 15), Verdict::Doubtful, "soon after");
        assert_eq!(ends.calm_in(ONE, clock.at(15)), Duration::from_millis(15));
        assert_eq!(cut(OTHER, 15), Verdict::Cut, "the same thread is later");
        ends.cut_given(OTHER, clock.at(16));
        ends.notifies(0, clock.at(50));
        let shorter = |ms| ends.answer(&clock.short(0, 2000, ONE, ms));
        assert_eq!(shorter(49), Verdict::Doubtful);
        assert_eq!(shorter(51), Verdict::Doubtful);
        assert_eq!(shorter(53), Verdict::Cut);
    }

    #[test]
    fn a_smaller_size_counts_once_it_has_surely_reached_the_kernel() {
        let clock = clock();
        let ends = clock.ends(9000);
        let known = |ms| ends.answer(&clock.short(0, 3000, ONE, ms)) == Verdict::Known;
        ends.tells(9000, OTHER, clock.at(10), clock.at(10));
        ends.tells(3000, ONE, clock.at(12), clock.at(12));
        assert!(!known(13), "either may have come first");
        ends.tells(3000, ONE, clock.at(100), clock.at(100));
        assert!(known(101));
    }

    #[test]
    fn zeros_are_dropped_before_a_larger_size_is_told_and_not_again() {
        let clock = clock();
        let ends = clock.ends(3000);
        let _ = ends.answer(&clock.short(0, 3000, ONE, 1));
        assert_eq!(ends.zeros_below(3000), None);
        let zeros = ends.zeros_below(9000).unwrap();
        assert_eq!(zeros.from, 3000);
        let _ = ends.answer(&clock.short(0, 3500, ONE, 1));
        ends.dropped(zeros);
        let again = ends.zeros_below(9000).unwrap();
        assert_eq!(again.from, 3000, "an answer came meanwhile");
        ends.dropped(again);
        assert_eq!(ends.zeros_below(u64::MAX), None);
        ends.stores(5000);
        assert_eq!(ends.zeros_below(5001).map(|zeros| zeros.from), Some(5000));
    }

    #[test]
    fn whole_answers_leave_no_zeros() {
        let clock = clock();
        let ends = clock.ends(8192);
        let whole = clock.short(0, 8192, ONE, 1);
        assert_eq!(ends.answer(&whole), Verdict::Known);
        assert_eq!(ends.zeros_below(u64::MAX), None);
    }

    #[test]
    fn a_size_that_is_not_known_is_larger_than_every_end() {
        let clock = clock();
        let ends = Ends::new(None, ONE, clock.at(0));
        assert_eq!(
            ends.answer(&clock.short(0, 3000, ONE, 0)),
            Verdict::Doubtful
        );
        assert_eq!(ends.answer(&clock.short(0, 3000, ONE, 1)), Verdict::Cut);
        let told = Ends::new(None, ONE, clock.at(0));
        told.tells(3000, ONE, clock.at(1), clock.at(1));
        assert_eq!(told.answer(&clock.short(0, 3000, ONE, 1)), Verdict::Known);
    }
}
