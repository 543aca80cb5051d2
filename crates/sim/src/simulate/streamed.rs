//! A trace that is run as it is read: references one by one, or reads of one file for the engine.
//!
//! The trace's contents were learned before ([`Recorded`]); here it is read once more, and nothing
//! of it is kept. For the engine each device of the trace is a file, which [one process, one of its own or those of the
//! trace](Readers) have [open](super::opened), and a request is one read of as many pages of 4 KiB as it is long: a page that it has
//! half of, or less, is the next one's, so that requests that are not aligned are counted once:
//!
//! ```text
//! Request{device 2, bytes} -> by address: one read of file 2    [page .. page]
//!                          -> by first use: one for each run    [page ..] [page] [page ..]
//! ```
//!
//! A trace that cannot be read to its end, or has changed since, ends the run; the caller asks
//! [`Streamed::failure`] then.

use core::ops::Range;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use forerun_core::{Bytes, Nanos};

use super::PAGE_BYTES;
use super::lru::Reference;
use super::opened::Opened;
use super::pacing::{Loop, Pacing, Readers};
use super::placing::Placing;
use super::recorded::Recorded;
use super::requests::{Request, Requests, RequestsError, Source};
use crate::device::needs::{Needs, Run};
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
    opened: Cow<'a, Opened>,
    /// Requests that were read for one reader after the other.
    shared: RefCell<Shared>,
    /// Of each disk, or of the array, the pages that were read.
    touched: RefCell<Vec<(Needs, Vec<Run>)>>,
    failure: RefCell<Option<RequestsError>>,
}

/// Runs that are collected before those that touch are made one: 1 MiB of them.
const RUNS_MAX: usize = 1 << 16;

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

/// Most requests that wait for their reader: 1.3 GB of them.
const QUEUED_MAX: u64 = 1 << 24;

impl<'a> Streamed<'a> {
    /// The trace as a workload of these readers, whose requests begin so.
    #[must_use]
    pub fn new(
        source: &'a Source,
        recorded: &'a Recorded,
        placing: &'a Placing<'a>,
        pacing: Pacing,
    ) -> Self {
        let opened = match pacing.readers {
            Readers::Process => Cow::Borrowed(recorded.opened()),
            by_region => Cow::Owned(Opened::of_regions(by_region, placing.files().len())),
        };
        Self {
            source,
            recorded,
            placing,
            pacing,
            opened,
            shared: RefCell::default(),
            touched: RefCell::new(vec![(Needs::default(), Vec::new()); placing.heads()]),
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

    /// How many readers the trace has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.opened.readers()
    }

    /// The number of a request's reader.
    fn reader(&self, request: &Request) -> usize {
        self.pacing.readers.of(request.device, request.process)
    }

    /// The open file by which it reads.
    fn place(&self, request: &Request) -> Option<usize> {
        let place = self.opened.place(self.reader(request), request.device);
        if place.is_none() {
            self.fail(RequestsError::Changed);
        }
        place
    }

    /// The reads of one request, by an open file of its reader.
    fn steps_of(&self, request: &Request) -> Vec<Step> {
        let Some(at) = self.place(request) else {
            return Vec::new();
        };
        let mut steps = self.reads_of(request);
        for step in &mut steps {
            if self.pacing.when != Loop::Closed {
                step.think = Nanos(0);
                step.not_before = Some(self.pacing.speed.of(request.arrival));
            }
            step.on = (self.owner(at) != at).then_some(at);
        }
        steps
    }

    /// All requests; none are left once one cannot be read.
    fn requests(&self) -> impl Iterator<Item = Request> + use<'_, 'a> {
        let requests = self.or_fail(self.source.requests());
        let requests = requests.into_iter().flatten();
        requests.map_while(|request| self.or_fail(request))
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
            let own = self.reader(&request);
            if own == reader {
                return Some(request);
            }
            if shared.queued == QUEUED_MAX {
                self.fail(RequestsError::Ahead(QUEUED_MAX));
                shared.requests = None;
                return None;
            }
            let Some(queue) = shared.queues.get_mut(own) else {
                self.fail(RequestsError::Changed);
                return None;
            };
            shared.queued += 1;
            queue.push_back(request);
        }
    }

    /// Its pages, in runs.
    fn reads_of(&self, request: &Request) -> Vec<Step> {
        let mut steps = Vec::new();
        for run in self.runs_of(request) {
            let compute = if steps.is_empty() {
                request.compute.0
            } else {
                0
            };
            let (at, bytes) = pages(&run);
            self.touch(request.device, at, bytes);
            steps.push(Step::read(at, bytes, compute));
        }
        steps
    }

    /// Its bytes, as they lie in its region.
    fn runs_of(&self, request: &Request) -> Vec<Range<u64>> {
        let bytes = self.source.manner.block_bytes;
        let mut runs: Vec<Range<u64>> = Vec::new();
        if self.placing.is_by_address() {
            runs.push(request.begin..request.begin.saturating_add(request.bytes));
            return runs;
        }
        for number in request.blocks() {
            let Some(block) = self.recorded.blocks().find(request.device, number) else {
                self.fail(RequestsError::Changed);
                return Vec::new();
            };
            let at = self.placing.number(block).saturating_mul(bytes.into());
            let part = request.part(number, bytes);
            let (begin, end) = (at.saturating_add(part.start), at.saturating_add(part.end));
            match runs.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => runs.push(begin..end),
            }
        }
        runs
    }

    /// Pages that a disk, or the array, has to deliver.
    fn touch(&self, region: u16, at: u64, bytes: u64) {
        let mut touched = self.touched.borrow_mut();
        let head = usize::from(region) % touched.len().max(1);
        let Some((needs, runs)) = touched.get_mut(head) else {
            return;
        };
        runs.push(Run {
            at: Bytes(self.placing.begin(region).saturating_add(at)),
            bytes: Bytes(bytes),
        });
        if runs.len() >= RUNS_MAX {
            *needs = core::mem::take(needs).and(core::mem::take(runs));
        }
    }

    /// The needs of each disk, or of the array over which regions are striped, for all reads so far.
    pub fn needs(&self) -> Vec<Needs> {
        let touched = self.touched.take().into_iter();
        touched.map(|(needs, runs)| needs.and(runs)).collect()
    }
}

/// The pages of a run of bytes, as the byte at which they begin and their length.
fn pages(run: &Range<u64>) -> (u64, u64) {
    let page = u64::from(PAGE_BYTES);
    let nearest = |at: u64| at.saturating_add(page / 2) / page;
    let (first, end) = (nearest(run.start), nearest(run.end));
    match end > first {
        true => (first * page, (end - first) * page),
        // Less than a page: the one that has its middle.
        false => ((run.start + (run.end - run.start) / 2) / page * page, page),
    }
}

/// A file a region, and readers that open them.
impl Workload for Streamed<'_> {
    fn files(&self) -> Vec<Bytes> {
        self.placing.files()
    }

    fn is_packed(&self) -> bool {
        true
    }

    fn readers(&self) -> Vec<usize> {
        self.opened.regions().map(usize::from).collect()
    }

    fn owner(&self, at: usize) -> usize {
        let owner = self
            .opened
            .owner(at)
            .filter(|_| self.pacing.when != Loop::Open);
        owner.map_or(at, |(_, first)| first)
    }

    fn steps(&self, at: usize) -> Steps<'_> {
        let owner = self.opened.owner(at).filter(|(_, first)| *first == at);
        let Some((reader, _)) = owner.filter(|_| self.pacing.when != Loop::Open) else {
            return Box::new(std::iter::empty());
        };
        if at == 0 {
            self.shared.replace(Shared {
                requests: self
                    .or_fail(self.source.requests())
                    .map(|r| r.by(self.pacing.readers)),
                queues: vec![VecDeque::new(); self.opened.readers()],
                queued: 0,
            });
        }
        let requests = std::iter::from_fn(move || self.next_of(reader));
        Box::new(requests.flat_map(|request| self.steps_of(&request)))
    }

    fn arrivals(&self) -> Option<Arrivals<'_>> {
        let is_open = self.pacing.when == Loop::Open;
        is_open.then(|| -> Arrivals<'_> {
            let reads = |request: Request| {
                let at = self.place(&request).unwrap_or_default();
                let reads = self.steps_of(&request).into_iter();
                reads.map(move |step| (at, Step { on: None, ..step }))
            };
            Box::new(self.requests().flat_map(reads))
        })
    }
}
