//! A trace that is run as it is read: references one by one, or reads of one file for the engine.
//!
//! The trace's contents were learned before ([`Recorded`]); here it is read once more, and nothing
//! of it is kept. For the engine each device of the trace is a file with a reader of its own, all of
//! one process, and a request of n blocks is one read of n blocks:
//!
//! ```text
//! Request{device 2, first..=last} -> by address: one read of file 2    [first .. last]
//!                                 -> by first use: one for each run    [3 4 5] [9] [6 7]
//! ```
//!
//! A trace that cannot be read to its end, or has changed since, ends the run; the caller asks
//! [`Streamed::failure`] then.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use forerun_core::{Bytes, Nanos};

use super::lru::Reference;
use super::pacing::{Loop, Pacing, Readers};
use super::placing::Placing;
use super::recorded::Recorded;
use super::requests::{Request, Requests, RequestsError, Source};
use crate::workload::{Arrivals, Step, Steps, Workload};

/// The references of a trace, block by block, as they are read.
pub struct References<'a> {
    requests: Requests<'static>,
    recorded: &'a Recorded,
    /// The request that is under way, and its next block.
    request: Option<(Request, u64)>,
}

impl<'a> References<'a> {
    /// From the first one on.
    ///
    /// # Errors
    /// The trace cannot be opened; each item is a request or the error.
    pub fn new(source: &Source, recorded: &'a Recorded) -> Result<Self, RequestsError> {
        Ok(Self {
            requests: source.requests()?,
            recorded,
            request: None,
        })
    }
}

impl Iterator for References<'_> {
    type Item = Result<Reference, RequestsError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (request, number) = match self.request.take() {
            Some(under_way) => under_way,
            None => match self.requests.next()? {
                Ok(request) => (request, request.first),
                Err(error) => return Some(Err(error)),
            },
        };
        if number < request.last {
            self.request = Some((request, number + 1));
        }
        let is_first = number == request.first;
        let Some(block) = self.recorded.blocks().find(request.device, number) else {
            return Some(Err(RequestsError::Changed));
        };
        let compute = if is_first { request.compute } else { Nanos(0) };
        Some(Ok(Reference { block, compute }))
    }
}

/// The kept references, block by block, as [`References`] gives them.
pub fn kept(recorded: &Recorded) -> impl Iterator<Item = Result<Reference, RequestsError>> + '_ {
    // Computing after a reference is computing before the next one.
    let mut before = Nanos(0);
    recorded.references().iter().map(move |reference| {
        let compute = std::mem::replace(&mut before, reference.compute);
        let block = reference.block.0;
        Ok(Reference { block, compute })
    })
}

/// See the [module](self).
#[derive(Debug)]
pub struct Streamed<'a> {
    source: &'a Source,
    recorded: &'a Recorded,
    placing: &'a Placing<'a>,
    pacing: Pacing,
    /// Requests that were read for one reader after the other.
    shared: RefCell<Shared>,
    failure: RefCell<Option<RequestsError>>,
}

/// One reading of the trace for several readers.
#[derive(Default)]
struct Shared {
    requests: Option<Requests<'static>>,
    /// Of each reader, requests that were met on the way to another's.
    queues: Vec<VecDeque<Request>>,
    queued: u64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}

/// Most requests that wait for their reader: 768 MB of them.
const QUEUED_MAX: u64 = 1 << 24;

impl<'a> Streamed<'a> {
    /// The trace as a workload of one process.
    #[must_use]
    pub fn new(source: &'a Source, recorded: &'a Recorded, placing: &'a Placing<'a>) -> Self {
        Self {
            source,
            recorded,
            placing,
            pacing: Pacing::default(),
            shared: RefCell::default(),
            failure: RefCell::new(None),
        }
    }

    /// The same with these readers, whose requests begin so.
    #[must_use]
    pub fn paced(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// The error that ended the trace early, if any.
    #[must_use]
    pub fn failure(&self) -> Option<RequestsError> {
        self.failure.borrow().clone()
    }

    fn fail(&self, error: RequestsError) {
        self.failure.replace(Some(error));
    }

    /// The reads of one request, by the reader of its region.
    fn steps_of(&self, request: &Request) -> Vec<Step> {
        let on = usize::from(request.device);
        let is_lent = self.pacing.readers == Readers::One && on > 0;
        let steps = self.reads_of(request).into_iter();
        let steps = steps.map(|step| match self.pacing.when {
            Loop::Closed => step,
            Loop::Open | Loop::Paced => Step {
                think: Nanos(0),
                not_before: self.pacing.speed.of(request.arrival),
                ..step
            },
        });
        steps
            .map(|step| if is_lent { step.on(on) } else { step })
            .collect()
    }

    /// All requests; none are left once one cannot be read.
    fn requests(&self) -> impl Iterator<Item = Request> + use<'_, 'a> {
        let requests = self.open();
        let requests = requests.into_iter().flatten();
        requests.map_while(|request| self.or_fail(request))
    }

    fn open(&self) -> Option<Requests<'static>> {
        let requests = self.or_fail(self.source.requests())?;
        Some(match self.pacing.readers {
            Readers::One => requests,
            Readers::Device => requests.by_device(),
        })
    }

    fn or_fail<T>(&self, result: Result<T, RequestsError>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// The next request of a reader, with those before it kept for theirs.
    fn next_of(&self, reader: usize) -> Option<Request> {
        let mut shared = self.shared.borrow_mut();
        let shared = &mut *shared;
        if let Some(request) = shared.queues.get_mut(reader)?.pop_front() {
            shared.queued -= 1;
            return Some(request);
        }
        loop {
            let request = self.or_fail(shared.requests.as_mut()?.next()?)?;
            let own = usize::from(request.device);
            if own == reader {
                return Some(request);
            }
            if shared.queued == QUEUED_MAX {
                self.fail(RequestsError::Ahead(QUEUED_MAX));
                shared.requests = None;
                return None;
            }
            shared.queued += 1;
            shared.queues.get_mut(own)?.push_back(request);
        }
    }

    fn reads_of(&self, request: &Request) -> Vec<Step> {
        let bytes = self.source.manner.block_bytes;
        if self.placing.is_by_address() {
            let (at, bytes) = request.bytes(bytes);
            return vec![Step::read(at.0, bytes.0, request.compute.0)];
        }
        let mut steps: Vec<Step> = Vec::new();
        for number in request.blocks() {
            let Some(block) = self.recorded.blocks().find(request.device, number) else {
                self.fail(RequestsError::Changed);
                return Vec::new();
            };
            let at = self.placing.number(block).saturating_mul(bytes.into());
            match steps.last_mut() {
                Some(last) if last.offset.0 + last.bytes.0 == at => {
                    last.bytes.0 += u64::from(bytes);
                    last.take = last.bytes;
                }
                before => {
                    let compute = before.map_or(request.compute.0, |_| 0);
                    steps.push(Step::read(at, bytes.into(), compute));
                }
            }
        }
        steps
    }
}

/// A file and a reader a region. The first one's process makes all steps, or each its own.
impl Workload for Streamed<'_> {
    fn files(&self) -> Vec<Bytes> {
        self.placing.files()
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.placing.files().len()).collect()
    }

    fn owner(&self, reader: usize) -> usize {
        match (self.pacing.readers, self.pacing.when) {
            (Readers::One, Loop::Closed | Loop::Paced) => 0,
            _ => reader,
        }
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        match self.pacing {
            Pacing {
                when: Loop::Open, ..
            } => Box::new(std::iter::empty()),
            Pacing {
                readers: Readers::One,
                ..
            } if reader == 0 => {
                Box::new(self.requests().flat_map(|request| self.steps_of(&request)))
            }
            Pacing {
                readers: Readers::One,
                ..
            } => Box::new(std::iter::empty()),
            Pacing {
                readers: Readers::Device,
                ..
            } => {
                if reader == 0 {
                    let queues = vec![VecDeque::new(); self.placing.files().len()];
                    self.shared.replace(Shared {
                        requests: self.open(),
                        queues,
                        queued: 0,
                    });
                }
                let requests = std::iter::from_fn(move || self.next_of(reader));
                Box::new(requests.flat_map(|request| self.steps_of(&request)))
            }
        }
    }

    fn arrivals(&self) -> Option<Arrivals<'_>> {
        let is_open = self.pacing.when == Loop::Open;
        is_open.then(|| -> Arrivals<'_> {
            let reads = |request: Request| {
                let (reader, arrival) = (usize::from(request.device), request.arrival);
                let not_before = self.pacing.speed.of(arrival);
                let reads = self.reads_of(&request).into_iter();
                reads.map(move |step| {
                    let think = Nanos(0);
                    (
                        reader,
                        Step {
                            think,
                            not_before,
                            ..step
                        },
                    )
                })
            };
            Box::new(self.requests().flat_map(reads))
        })
    }
}
