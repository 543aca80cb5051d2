//! Demand fetching with LRU replacement, from a stream: for traces of any length.
//!
//! Equals the [host](crate::hinted::host) with the planner's `demand-lru`, event for event (a test
//! compares them), but needs no reference in advance: it keeps only the blocks by last use, eight
//! bytes a block. One fetch is under way at a time, as the reader waits for it:
//!
//! ```text
//! processor  | compute |driver|  stall  | compute | compute | ..
//!                      ^ miss: asks its disk      ^ hit
//! ```

use forerun_core::Nanos;

use super::Outcome;
use crate::count::Recency;
use crate::device::{self, Device, Request};
use crate::hinted::Place;
use crate::hinted::host::Host;

/// One reference: which block, and the computing before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Its number, dense.
    pub block: u32,
    /// The computing time before it.
    pub compute: Nanos,
}

/// Runs references over devices, one a disk, on which blocks lie at their places, with a cache of
/// a given number of blocks. It is empty at first.
///
/// # Errors
/// An error in the references. A disk without a device never answers, and counts as failed.
pub fn run<E>(
    host: &Host,
    cache_blocks: u32,
    devices: Vec<Box<dyn Device>>,
    place: impl Fn(u32) -> Place,
    references: impl IntoIterator<Item = Result<Reference, E>>,
) -> Result<Outcome, E> {
    let mut reader = Reader {
        host,
        recency: Recency::new(cache_blocks as usize),
        devices,
        done: Vec::new(),
        now: Nanos(0),
        processor: Nanos(0),
        response: 0,
        outcome: Outcome::default(),
    };
    for reference in references {
        reader.take(reference?, &place);
    }
    Ok(reader.end())
}

struct Reader<'a> {
    host: &'a Host,
    recency: Recency,
    devices: Vec<Box<dyn Device>>,
    done: Vec<device::Completion>,
    now: Nanos,
    /// When the processor is done with all work it has.
    processor: Nanos,
    response: u128,
    outcome: Outcome,
}

impl Reader<'_> {
    fn take(&mut self, Reference { block, compute }: Reference, place: &impl Fn(u32) -> Place) {
        self.outcome.compute = self.outcome.compute.saturating_add(compute.0);
        self.work(compute);
        self.now = self.processor;
        self.outcome.reads += 1;
        let (begin, stalled) = (self.now, self.outcome.stall);
        if self.recency.touch(block) {
            self.outcome.hits += 1;
        } else {
            self.outcome.misses += 1;
            self.outcome.fetches += 1;
            self.fetch(block.into(), place(block));
        }
        let end = self.processor.max(self.now);
        self.outcome.responses.add(end.since(begin));
        let wait = self.outcome.stall - stalled;
        if wait > 0 {
            self.outcome.waits.add(Nanos(wait));
        }
    }

    /// Asks the disk, and waits for it.
    fn fetch(&mut self, id: u64, place: Place) {
        let Some(device) = self.devices.get_mut(usize::from(place.disk.0)) else {
            self.outcome.failed += 1;
            return self.recency.forget_newest();
        };
        let (asked, bytes) = (self.now, self.host.block_bytes);
        let at = place.at;
        device.submit(asked, Request::new(id, at, bytes));
        while self.done.is_empty() {
            let Some(next) = device.next_event() else {
                break;
            };
            device.advance(next, &mut self.done);
        }
        self.outcome.driver = self.outcome.driver.saturating_add(self.host.driver.0);
        self.work(self.host.driver);
        for ended in self.done.drain(..) {
            self.response += u128::from(ended.at.since(asked).0);
            self.now = self.now.max(ended.at);
            if ended.outcome != device::Outcome::Done {
                self.outcome.failed += 1;
                self.recency.forget_newest();
            }
        }
        // The rest of the wait once the driver is done is stall.
        self.work(Nanos(0));
    }

    /// The processor gets work; its waiting time before that is stall.
    fn work(&mut self, time: Nanos) {
        let idle = self.now.since(self.processor).0;
        self.outcome.stall = self.outcome.stall.saturating_add(idle);
        let begin = self.processor.max(self.now);
        self.processor = Nanos(begin.0.saturating_add(time.0));
    }

    fn end(mut self) -> Outcome {
        let mean = self.response.checked_div(self.outcome.fetches.into());
        let mean = mean.map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX));
        self.outcome.response_mean = Some(mean);
        self.outcome.elapsed = self.processor.0;
        self.outcome.compute_longest = self.outcome.compute;
        let devices = self.devices.iter();
        let busy = devices.map(|d| d.usage().busy.0 / u64::from(d.servers().max(1)));
        self.outcome.busy = busy.collect();
        self.outcome
    }
}
