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
//! Mechanism: a record for each file that was ever opened, of the largest size that the kernel may have
//! and of what it was sent. An answer that ends before that size is a *cut*. It is given if nothing sent can
//! cross it; else it is *doubtful*: an error, after which the kernel asks page by page and the program
//! again, and the pages are dropped. Before a larger size is told the kernel drops the pages from the first
//! zero on ([`Ends::zeros_below`]). A notification is a *barrier*: attributes asked for before do not count.
//!
//! Limits: a reply takes effect when its thread runs, which the daemon does not see; but for a read of
//! many pages, at once. One to the thread that asks has taken effect, another one after [`TOLD`].

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

/// The longest time from a reply until the thread it is for has taken it in: turns of fifty busy programs on
/// its processor. Longer, and reads beside a cut fail more often.
const TOLD: Duration = Duration::from_millis(200);

/// The kernel reads a page again by itself that came with an error; its thread takes in that answer.
const PAGE: usize = 4096;

/// The longest time from the sending of a request until the daemon has it. A notification has taken effect
/// when its call returns.
const NOTIFIED: Duration = Duration::from_millis(2);

/// Two changes within this time are a storm, which lasts as long: a file written once and read is none.
const STORM: Duration = Duration::from_secs(1);

/// Threads told since a barrier that are remembered: more are taken for others, which fail more often.
const THREADS_MAX: usize = 16;

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

/// Pages that came with an error: the offset of the first, and the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Offset of the first.
    pub from: u64,
    /// End of the last.
    pub end: u64,
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
    /// Notifications that are waiting or being sent.
    notices: u32,
}

impl Sent {
    fn add(&mut self, thread: u32, now: Instant, effect: Duration) {
        // Threads of another name space have no number.
        if thread != self.thread || thread == 0 {
            self.others_until = self.others_until.max(self.until);
            self.thread = thread;
        }
        self.until = self.until.max(now + effect);
        self.last = now;
    }

    /// Nothing that was sent before counts from now on.
    fn barrier(&mut self, thread: u32, now: Instant) {
        self.others_until = now;
        self.thread = thread;
        self.until = now + NOTIFIED;
        self.last = now;
    }

    /// Whether nothing crosses a request that came in then.
    fn is_alone(&self, thread: u32, received: Instant) -> bool {
        let calm = match thread == self.thread && thread != 0 {
            true => self.others_until,
            false => self.others_until.max(self.until),
        };
        let is_quiet = self.cuts == 0 && self.notices == 0;
        is_quiet && self.last < received && calm <= received
    }
}

/// Sizes told since a barrier.
#[derive(Default, Debug)]
struct Told {
    /// The largest.
    size: u64,
    /// When the first was that surely was asked for after it.
    at: Option<Instant>,
    /// To these: the kernel has one of them when they ask for bytes.
    threads: Vec<u32>,
}

#[derive(Debug)]
struct State {
    /// The largest size the kernel may have, whatever was told since the barrier.
    size: u64,
    told: Option<Told>,
    barrier: Instant,
    zeros: Option<u64>,
    /// When a change was seen last by an open.
    changed: Option<Instant>,
    /// It changes often until then.
    storm: Option<Instant>,
    /// Pages that came with an error, and are dropped soon.
    refused: Option<Refused>,
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
    /// Of a file that this thread opens now, and of which the kernel has this size at most.
    #[must_use]
    pub fn new(size: u64, thread: u32, now: Instant) -> Self {
        let sent = Sent {
            last: now,
            thread,
            until: now,
            others_until: now,
            cuts: 0,
            notices: 0,
        };
        let state = State {
            size,
            told: None,
            barrier: now,
            zeros: None,
            changed: None,
            storm: None,
            refused: None,
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
        if state.sent.is_alone(thread, asked) {
            state.size = size;
            state.told = None;
        }
        // The notice that is under way may come before it or after it.
        let is_later = state.sent.notices == 0 && asked > state.barrier;
        let told = state.told.get_or_insert_default();
        told.size = told.size.max(size);
        if is_later {
            told.at.get_or_insert(now);
            if told.threads.len() < THREADS_MAX && thread != 0 {
                told.threads.push(thread);
            }
        }
        state.size = state.size.max(size);
        state.sent.add(thread, now, TOLD);
    }

    /// The kernel is to be notified that its attributes do not hold: once no cut is being given
    /// [`Ends::notifies`] follows, then the notice, then [`Ends::notified`].
    pub fn will_notify(&self) {
        lock(&self.state).sent.notices += 1;
    }

    /// Whether a cut is being given, which a notice would cross.
    #[must_use]
    pub fn is_cutting(&self) -> bool {
        lock(&self.state).sent.cuts > 0
    }

    /// The notice is sent now, before an answer to this thread.
    pub fn notifies(&self, thread: u32, now: Instant) {
        let mut state = lock(&self.state);
        state.size = state.size_for(None, now);
        state.told = None;
        state.barrier = now;
        state.sent.barrier(thread, now);
    }

    /// It was sent.
    pub fn notified(&self, thread: u32, now: Instant) {
        let mut state = lock(&self.state);
        state.sent.notices = state.sent.notices.saturating_sub(1);
        state.sent.add(thread, now, NOTIFIED);
        state.barrier = now;
        if let Some(told) = &mut state.told {
            told.at = None;
            told.threads.clear();
        }
    }

    /// A program opens the file, in which this open saw a change or not. Whether it changes so often that it
    /// is read past the kernel's page cache, where an end is an end.
    pub fn is_in_storm(&self, changed: bool, now: Instant) -> bool {
        let mut state = lock(&self.state);
        if changed {
            let before = state.changed.replace(now);
            if before.is_some_and(|at| now.saturating_duration_since(at) < STORM) {
                state.storm = Some(now + STORM);
            }
        }
        state.storm.is_some_and(|until| now < until)
    }

    /// The kernel is given the file's bytes up to this end, and takes it for the size.
    pub fn stores(&self, end: u64) {
        let mut state = lock(&self.state);
        state.size = state.size.max(end);
        if let Some(told) = &mut state.told {
            told.size = told.size.max(end);
        }
        state.ends(end);
    }

    /// Whether an answer may be given.
    pub fn answer(&self, answer: &Answer) -> Verdict {
        if answer.given == answer.asked {
            return Verdict::Known;
        }
        let end = answer.offset.saturating_add(answer.given as u64);
        let mut state = lock(&self.state);
        let is_again = |pages: Refused| (pages.from..pages.end).contains(&answer.offset);
        if answer.asked <= PAGE && state.refused.is_some_and(is_again) {
            return Verdict::Doubtful;
        }
        if end < state.size_for(Some(answer.thread), answer.received) {
            if !state.sent.is_alone(answer.thread, answer.received) {
                return Verdict::Doubtful;
            }
            state.size = end;
            state.told = None;
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
        state.sent.add(thread, now, NOTIFIED);
    }

    /// A read is answered with an error.
    pub fn refuses(&self, offset: u64, bytes: usize) {
        let mut state = lock(&self.state);
        let end = offset.saturating_add(bytes as u64);
        let before = state.refused.unwrap_or(Refused { from: offset, end });
        state.refused = Some(Refused {
            from: before.from.min(offset),
            end: before.end.max(end),
        });
    }

    /// The pages that came with an error.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        lock(&self.state).refused
    }

    /// The kernel has dropped these. More may have come since.
    pub fn refused_dropped(&self, pages: Refused) {
        let mut state = lock(&self.state);
        if state.refused == Some(pages) {
            state.refused = None;
        }
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
    /// The largest size that the kernel may have when a thread asked for bytes at a given time.
    fn size_for(&self, thread: Option<u32>, asked: Instant) -> u64 {
        let Some(told) = &self.told else {
            return self.size;
        };
        let was_told = thread.is_some_and(|thread| told.threads.contains(&thread));
        let is_old = told.at.is_some_and(|at| at + TOLD <= asked);
        match was_told || is_old {
            true => told.size,
            false => self.size,
        }
    }

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

    /// A clock that is set by hand: a read, `ms` after the beginning.
    struct Clock(Instant);

    impl Clock {
        fn at(&self, ms: u64) -> Instant {
            self.0 + Duration::from_millis(ms)
        }

        fn ends(&self, size: u64) -> Ends {
            Ends::new(size, ONE, self.at(0))
        }

        fn notice(&self, ends: &Ends, thread: u32, ms: u64) {
            ends.will_notify();
            ends.notifies(thread, self.at(ms));
            ends.notified(thread, self.at(ms));
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
        assert_eq!(cut(ONE, 209), Verdict::Doubtful, "soon after");
        assert_eq!(cut(OTHER, 15), Verdict::Cut, "the same thread is later");
        ends.cut_given(OTHER, clock.at(16));
        clock.notice(&ends, 0, 250);
        let shorter = |ms| ends.answer(&clock.short(0, 2000, ONE, ms));
        assert_eq!(shorter(249), Verdict::Doubtful);
        assert_eq!(shorter(251), Verdict::Doubtful);
        assert_eq!(shorter(253), Verdict::Cut);
    }

    #[test]
    fn a_smaller_size_counts_once_it_has_surely_reached_the_kernel() {
        let clock = clock();
        let ends = clock.ends(9000);
        let known = |ms| ends.answer(&clock.short(0, 3000, ONE, ms)) == Verdict::Known;
        ends.tells(9000, OTHER, clock.at(10), clock.at(10));
        ends.tells(3000, ONE, clock.at(12), clock.at(12));
        assert!(!known(13), "either may have come first");
        ends.tells(3000, ONE, clock.at(300), clock.at(300));
        assert!(known(301));
    }

    #[test]
    fn a_notification_ends_the_doubts_of_the_thread_that_asks_again() {
        let clock = clock();
        let ends = clock.ends(9000);
        ends.tells(9000, OTHER, clock.at(10), clock.at(10));
        let short = |thread, ms| ends.answer(&clock.short(0, 3000, thread, ms));
        assert_eq!(short(ONE, 11), Verdict::Doubtful);
        clock.notice(&ends, ONE, 12);
        // Another thread is told of the size of then, too, and neither can cross the other.
        ends.tells(3000, OTHER, clock.at(13), clock.at(13));
        assert_eq!(short(ONE, 14), Verdict::Doubtful, "it has not asked");
        ends.tells(3000, ONE, clock.at(14), clock.at(14));
        assert_eq!(short(ONE, 15), Verdict::Known);
        ends.tells(4000, OTHER, clock.at(15), clock.at(15));
        assert_eq!(short(ONE, 16), Verdict::Doubtful, "or 4000");
        clock.notice(&ends, OTHER, 17);
        assert_eq!(short(OTHER, 18), Verdict::Cut);
        assert!(ends.is_cutting());
        ends.cut_given(OTHER, clock.at(19));
        assert!(!ends.is_cutting());
    }

    #[test]
    fn a_page_that_came_with_an_error_has_no_end_until_it_is_dropped() {
        let clock = clock();
        let ends = clock.ends(3000);
        let short = |ms| ends.answer(&clock.short(0, 3000, ONE, ms));
        ends.refuses(0, 8192);
        ends.refuses(4096, 8192);
        let pages = ends.refused().unwrap();
        assert_eq!((pages.from, pages.end), (0, 12288));
        assert_eq!(short(1), Verdict::Doubtful);
        ends.refuses(12288, 1);
        ends.refused_dropped(pages);
        assert_eq!(short(2), Verdict::Doubtful, "more came meanwhile");
        ends.refused_dropped(ends.refused().unwrap());
        assert_eq!(short(3), Verdict::Known);
    }

    #[test]
    fn attributes_that_may_come_before_or_after_a_notice_count_both_ways() {
        let clock = clock();
        let ends = clock.ends(9000);
        let short = |ms| ends.answer(&clock.short(0, 3000, ONE, ms));
        ends.will_notify();
        assert_eq!(short(11), Verdict::Doubtful, "a notice is to come");
        ends.notifies(OTHER, clock.at(12));
        ends.tells(3000, ONE, clock.at(13), clock.at(13));
        assert_eq!(short(14), Verdict::Doubtful, "it may not count");
        ends.notified(OTHER, clock.at(15));
        assert_eq!(short(16), Verdict::Doubtful);
        ends.tells(8000, OTHER, clock.at(16), clock.at(16));
        ends.tells(3000, ONE, clock.at(16), clock.at(16));
        assert_eq!(short(17), Verdict::Doubtful, "or 8000");
        let longer = clock.short(0, 8000, ONE, 17);
        assert_eq!(ends.answer(&longer), Verdict::Known);
    }

    #[test]
    fn attributes_asked_for_before_a_notification_do_not_count() {
        let clock = clock();
        let ends = clock.ends(9000);
        clock.notice(&ends, OTHER, 10);
        ends.tells(3000, ONE, clock.at(9), clock.at(11));
        let answer = clock.short(0, 3000, ONE, 11);
        assert_eq!(ends.answer(&answer), Verdict::Doubtful);
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
    fn a_file_that_changes_twice_in_a_second_is_in_a_storm_for_one() {
        let clock = clock();
        let ends = clock.ends(9000);
        assert!(!ends.is_in_storm(true, clock.at(0)));
        assert!(!ends.is_in_storm(true, clock.at(1000)));
        assert!(!ends.is_in_storm(false, clock.at(1001)));
        assert!(ends.is_in_storm(true, clock.at(1999)));
        assert!(ends.is_in_storm(false, clock.at(2998)));
        assert!(!ends.is_in_storm(false, clock.at(2999)));
    }

    #[test]
    fn whole_answers_leave_no_zeros() {
        let clock = clock();
        let ends = clock.ends(8192);
        let whole = clock.short(0, 8192, ONE, 1);
        assert_eq!(ends.answer(&whole), Verdict::Known);
        assert_eq!(ends.zeros_below(u64::MAX), None);
    }
}
