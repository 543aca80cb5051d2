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

use forerun_core::{Bytes, Nanos};

use super::lru::Reference;
use super::placing::Placing;
use super::recorded::Recorded;
use super::requests::{Request, Requests, RequestsError, Source};
use crate::workload::{Step, Steps, Workload};

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
    failure: RefCell<Option<RequestsError>>,
}

impl<'a> Streamed<'a> {
    /// The trace as a workload of one process.
    #[must_use]
    pub fn new(source: &'a Source, recorded: &'a Recorded, placing: &'a Placing<'a>) -> Self {
        Self {
            source,
            recorded,
            placing,
            failure: RefCell::new(None),
        }
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
        let steps = self.reads_of(request).into_iter();
        steps
            .map(|step| if on == 0 { step } else { step.on(on) })
            .collect()
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

/// A file and a reader a region; the first one's process makes all steps.
impl Workload for Streamed<'_> {
    fn files(&self) -> Vec<Bytes> {
        self.placing.files()
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.placing.files().len()).collect()
    }

    fn owner(&self, _reader: usize) -> usize {
        0
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        if reader > 0 {
            return Box::new(std::iter::empty());
        }
        let requests = match self.source.requests() {
            Ok(requests) => requests,
            Err(error) => {
                self.fail(error);
                return Box::new(std::iter::empty());
            }
        };
        let good = requests.map_while(|request| match request {
            Ok(request) => Some(request),
            Err(error) => {
                self.fail(error);
                None
            }
        });
        Box::new(good.flat_map(|request| self.steps_of(&request)))
    }
}
