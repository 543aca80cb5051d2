//! An open loop: reads that begin at their times of arrival, whether those before have ended or not.
//!
//! Each read of a file takes a *lane*, a sequential process that has nothing to do, or a new one; the
//! engine sees all lanes of a file as the one reader that opened it, as it does threads of a program:
//!
//! ```text
//! arrivals   reader 0: a        b  c         d
//! lane 2               [a waits   ] [c      ]           all three are reader 0 to the engine,
//! lane 3                        [b waits     ]          with the position of its last read
//! lane 4                                     [d ]
//! ```
//!
//! When the last read has ended, all files are closed.

use forerun_core::Nanos;

use super::reader::{Reader, State};
use super::{World, WorldError};
use crate::workload::{Arrivals, Step};

/// Stands for the next arrival among the readers that wake.
pub(super) const ARRIVAL: usize = usize::MAX;

/// Most reads under way; later ones wait for one to end, which their responses include.
const LANES_MAX: usize = 1 << 16;

/// See the [module](self).
pub(super) struct Arriving<'a> {
    steps: Arrivals<'a>,
    next: Option<(usize, Step)>,
    /// The next one is due, and waits for a lane.
    is_held: bool,
    /// Of each reader, the lanes without a read.
    free: Vec<Vec<usize>>,
    busy: usize,
    growth: Growth,
}

impl<'a> Arriving<'a> {
    pub(super) fn new(steps: Arrivals<'a>, readers: usize) -> Self {
        Self {
            steps,
            next: None,
            is_held: false,
            free: vec![Vec::new(); readers],
            busy: 0,
            growth: Growth::default(),
        }
    }

    /// Whether responses grow to the end.
    pub(super) fn is_growing(&self) -> bool {
        self.growth.is_to_the_end()
    }
}

impl<'a> World<'a, '_> {
    /// The next read is expected; without one, all files are closed once none is under way.
    pub(super) fn expect_arrival(&mut self) -> Result<(), WorldError> {
        let Some(arriving) = &mut self.arriving else {
            return Ok(());
        };
        arriving.next = arriving.steps.next();
        match arriving.next {
            Some((_, step)) => {
                let at = step.not_before.map_or(self.now, |due| due.max(self.now));
                self.push(at, ARRIVAL);
                Ok(())
            }
            None if arriving.busy == 0 => self.close_lanes(),
            None => Ok(()),
        }
    }

    /// A read arrives.
    pub(super) fn arrive(&mut self) -> Result<(), WorldError> {
        let now = self.now;
        let Some(arriving) = &mut self.arriving else {
            return Ok(());
        };
        arriving.is_held = arriving.busy == LANES_MAX;
        if arriving.is_held {
            return Ok(());
        }
        let Some((reader, step)) = arriving.next.take() else {
            return Ok(());
        };
        let Some(free) = arriving.free.get_mut(reader) else {
            return Err(WorldError::NoFile(reader));
        };
        arriving.busy += 1;
        let readers = &self.readers;
        let is_ready = |lane: &usize| match readers[*lane].state {
            State::Away { since } => since <= now,
            _ => false,
        };
        let lane = free
            .iter()
            .rposition(is_ready)
            .map(|at| free.swap_remove(at));
        let lane = lane.unwrap_or_else(|| self.add_lane(reader));
        self.expect_arrival()?;
        let previous = self.readers[reader].previous;
        let one = &mut self.readers[lane];
        one.end_idling(now);
        one.previous = previous;
        one.due = step.not_before;
        self.begin(lane, &step)
    }

    fn add_lane(&mut self, reader: usize) -> usize {
        let (file, process) = (self.readers[reader].file, self.readers[reader].process);
        let mut lane = Reader::new(file, Box::new(core::iter::empty()));
        lane.process = process;
        lane.lane_of = Some(reader);
        self.readers.push(lane);
        self.readers.len() - 1
    }

    /// A read has ended after so long.
    pub(super) fn end_lane(
        &mut self,
        lane: usize,
        reader: usize,
        response: Nanos,
    ) -> Result<(), WorldError> {
        let one = &mut self.readers[lane];
        let since = self.now.max(one.free_at);
        (one.reading, one.state) = (None, State::Away { since });
        let (previous, hits) = (one.previous, std::mem::take(&mut one.plain_hits));
        let opener = &mut self.readers[reader];
        opener.previous = previous;
        opener.plain_hits += hits;
        let Some(arriving) = &mut self.arriving else {
            return Ok(());
        };
        arriving.busy -= 1;
        arriving.free[reader].push(lane);
        arriving.growth.add(response);
        if std::mem::take(&mut arriving.is_held) {
            self.push(self.now, ARRIVAL);
            return Ok(());
        }
        match arriving.next.is_none() && arriving.busy == 0 {
            true => self.close_lanes(),
            false => Ok(()),
        }
    }

    fn close_lanes(&mut self) -> Result<(), WorldError> {
        let now = self.now;
        for reader in 0..self.readers.len() {
            let one = &mut self.readers[reader];
            one.end_idling(now.max(one.free_at));
            if one.lane_of.is_some() {
                one.report.elapsed = now.max(one.free_at);
                one.state = State::Done;
                continue;
            }
            self.close(reader)?;
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// A lane has had nothing to do until now.
    fn end_idling(&mut self, now: Nanos) {
        if let State::Away { since } = self.state {
            let idle = self.report.idle.0.saturating_add(now.since(since).0);
            self.report.idle = Nanos(idle);
            self.state = State::Reading;
        }
    }
}

/// Mean responses over the run, in at most 100 parts that grow with it.
#[derive(Clone, Debug, Default)]
struct Growth {
    parts: Vec<(u128, u64)>,
    /// Responses of a part.
    length: u64,
}

impl Growth {
    const PARTS: usize = 100;

    fn add(&mut self, response: Nanos) {
        self.length = self.length.max(1);
        let is_full = |part: &(u128, u64)| part.1 == self.length;
        if self.parts.last().is_none_or(is_full) {
            if self.parts.len() == Self::PARTS {
                let pairs = self.parts.chunks(2).map(|pair| {
                    let add =
                        |sum: (u128, u64), part: &(u128, u64)| (sum.0 + part.0, sum.1 + part.1);
                    pair.iter().fold((0, 0), add)
                });
                self.parts = pairs.collect();
                self.length *= 2;
            }
            self.parts.push((0, 0));
        }
        if let Some(last) = self.parts.last_mut() {
            last.0 += u128::from(response.0);
            last.1 += 1;
        }
    }

    /// Whether each fifth of the run has longer responses than the one before, and the last one half as long
    /// again as the middle one: a queue that grows evenly has 1.8 times.
    fn is_to_the_end(&self) -> bool {
        let fifth = self.parts.len() / 5;
        if fifth < 4 {
            return false;
        }
        let mean = |parts: &[(u128, u64)]| {
            let sum: u128 = parts.iter().map(|part| part.0).sum();
            let count: u64 = parts.iter().map(|part| part.1).sum();
            sum / u128::from(count.max(1))
        };
        let means: Vec<u128> = self.parts.chunks(fifth).take(5).map(mean).collect();
        means.is_sorted_by(|a, b| a < b) && 2 * means[4] > 3 * means[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_grows_to_the_end_is_told_from_one_that_does_not() {
        let grows = |response: &dyn Fn(u64) -> u64, count: u64| {
            let mut growth = Growth::default();
            (0..count).for_each(|at| growth.add(Nanos(response(at))));
            growth.is_to_the_end()
        };
        for count in [20, 99, 100, 101, 1000, 54_321] {
            assert!(grows(&|at| 100 + at * 10, count.max(200)), "{count}");
            assert!(grows(&|at| at, count), "{count}");
            assert!(!grows(&|_| 700, count), "{count}");
            assert!(!grows(&|at| (at * 7919) % 1000, count), "{count}");
            // A burst that is served before the end.
            assert!(
                !grows(&|at| if 2 * at < count { at } else { count - at }, count),
                "{count}"
            );
        }
        assert!(!grows(&|at| at, 19));
    }
}
