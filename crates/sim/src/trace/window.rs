//! The sorting window: requests that are slightly out of order come out in order.
//!
//! Traces merged from several processors, or logged at completion, step back in time by a few
//! requests. Up to a fixed number of requests is held back and the oldest given out first; those
//! of equal time stay in the order of the file. One that comes too late even for that is an
//! error, because a simulation cannot go back.
//!
//! ```text
//! read ->  [ t=5 t=7 t=7 t=9 ]  -> given out: t=4
//!              ^ insert t=6
//! ```
//!
//! Requests without a time are kept where they stand. A trace that is in order, the usual case,
//! costs a push and a pop.

use std::collections::VecDeque;

use super::error::{Cause, Position};
use super::record::Record;

/// A request and where in the file it was read.
pub(super) type Placed = (Position, Record);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Window {
    /// In order of time; a request without one has that of the request before.
    held: VecDeque<(u64, Placed)>,
    size: usize,
    given_ns: u64,
    last_ns: u64,
    moved: u64,
}

impl Window {
    pub(super) fn new(size: usize) -> Self {
        Self {
            held: VecDeque::new(),
            size,
            given_ns: 0,
            last_ns: 0,
            moved: 0,
        }
    }

    /// How many requests were older than the one before them in the file.
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    /// Takes a request in.
    pub(super) fn push(&mut self, placed: Placed) -> Result<(), Cause> {
        let (_, record) = placed;
        let time = record.arrival.map_or(self.last_ns, |arrival| arrival.0);
        if time < self.given_ns {
            return Err(Cause::Order {
                found_ns: time,
                given_ns: self.given_ns,
                window: self.size,
            });
        }
        self.moved += u64::from(time < self.last_ns);
        self.last_ns = time;
        let newest = self.held.back().map_or(0, |(time, _)| *time);
        if time >= newest {
            self.held.push_back((time, placed));
        } else {
            let at = self.held.partition_point(|(held, _)| *held <= time);
            self.held.insert(at, (time, placed));
        }
        Ok(())
    }

    /// A request that none that is still to come may precede.
    pub(super) fn pop(&mut self) -> Option<Placed> {
        if self.held.len() > self.size {
            self.pop_last()
        } else {
            None
        }
    }

    /// The oldest request, when none is to come.
    pub(super) fn pop_last(&mut self) -> Option<Placed> {
        let (time, placed) = self.held.pop_front()?;
        self.given_ns = time;
        Some(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Nanos;

    fn through(size: usize, times: &[u64]) -> (Vec<u64>, Option<Cause>) {
        let mut window = Window::new(size);
        let mut given = Vec::new();
        for (number, time) in (0..).zip(times) {
            let record = Record {
                arrival: Some(Nanos(*time)),
                ..Record::block(number)
            };
            if let Err(cause) = window.push((Position::Line(number), record)) {
                return (given, Some(cause));
            }
            given.extend(window.pop().and_then(|(_, r)| r.arrival).map(|t| t.0));
        }
        let rest = std::iter::from_fn(|| window.pop_last());
        given.extend(rest.filter_map(|(_, r)| r.arrival).map(|t| t.0));
        (given, None)
    }

    #[test]
    fn steps_back_within_the_window_are_put_in_order() {
        assert_eq!(through(2, &[1, 4, 3, 2, 5]), (vec![1, 2, 3, 4, 5], None));
    }

    #[test]
    fn a_step_back_beyond_the_window_is_an_error() {
        let (given, cause) = through(1, &[1, 4, 3, 2]);
        assert_eq!(given, [1, 3]);
        assert_eq!(
            cause,
            Some(Cause::Order {
                found_ns: 2,
                given_ns: 3,
                window: 1
            })
        );
        assert!(through(0, &[2, 1]).1.is_some());
    }

    #[test]
    fn requests_without_a_time_keep_their_order() {
        let mut window = Window::new(9);
        for number in 0..5 {
            let at = Position::Line(number);
            window.push((at, Record::block(number))).unwrap();
        }
        let rest = std::iter::from_fn(|| window.pop_last());
        assert!(rest.eq((0..5).map(|n| (Position::Line(n), Record::block(n)))));
    }
}
