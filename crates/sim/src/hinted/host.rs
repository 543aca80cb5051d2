//! The host: one reader, one processor and an array of devices, in virtual time.
//!
//! As in kimbrel96 section 3: the reader takes a block, computes for as long as the trace says,
//! and asks for the next. Each fetch costs the processor half a millisecond, at once and before
//! anything else; its request is at the device from the beginning of that. What the processor
//! does is work in one queue, so its time splits without rest:
//!
//! ```text
//! elapsed = compute + driver + stall
//!
//! processor  |driver|driver|  compute  |driver|  compute  |   stall   |  compute  |
//!            ^ two fetches start       ^ one more         ^ asks      ^ arrives
//! ```
//!
//! Stall is time in which the processor has nothing to do. The reader's last computation counts,
//! what devices still do after it does not. Devices queue and reorder by themselves; how long one
//! worked on a request is taken to be the time since it ended the one before, or since it got this
//! one, whichever is shorter. The paper does not say when within a fetch its overhead falls due,
//! whether requests of a batch reach the disk one by one, nor when a free disk is seen ([`Hears`]).

use forerun_core::hinted::{BlockNo, Input, Ledger, Output, Planner, Setup};
use forerun_core::{Bytes, Nanos};

use super::{BLOCK_BYTES, HostError, Reads};
use crate::device::{Completion, Device, Outcome, Request};

/// What a fetch costs the processor (kimbrel96 section 3.1, a DECstation 5000/200).
pub const DRIVER_OVERHEAD: Nanos = Nanos(500_000);

/// When the planner hears of fetches that ended, and so can decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hears {
    /// When the reader asks for a block, and while it waits. This is time as the theory has it,
    /// which moves from reference to reference, and as a simulator driven by a trace. On `synth`
    /// over three disks it makes aggressive waste 1,006 fetches in batches of 4, where the paper
    /// counted 994; hearing at once makes it 3,694, as disks come free one by one.
    #[default]
    AtReads,
    /// At the moment they end: as a driver with interrupts.
    AtOnce,
}

/// What the host is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// When the planner hears of fetches that ended.
    pub hears: Hears,
    /// Processor time of a fetch.
    pub driver: Nanos,
    /// Size of a block.
    pub block_bytes: Bytes,
    /// Blocks in the cache at the beginning.
    pub warm: Vec<BlockNo>,
}

impl Default for Host {
    /// The paper's: half a millisecond, blocks of 8 KiB, a cold cache, decisions at reads.
    fn default() -> Self {
        Self {
            hears: Hears::AtReads,
            driver: DRIVER_OVERHEAD,
            block_bytes: Bytes(BLOCK_BYTES),
            warm: Vec::new(),
        }
    }
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostReport {
    /// The planner's counters.
    pub ledger: Ledger,
    /// From the first request to the end of the last computation.
    pub elapsed: Nanos,
    /// What the reader computed.
    pub compute: Nanos,
    /// What fetches cost the processor.
    pub driver: Nanos,
    /// What the processor waited.
    pub stall: Nanos,
    /// Sum over fetches that ended of the time from submission to completion.
    pub response: Nanos,
    /// Fetches that ended.
    pub completed: u64,
    /// How long each device worked.
    pub busy: Vec<Nanos>,
}

impl HostReport {
    /// Mean time from submission to completion.
    #[must_use]
    pub fn response_mean(&self) -> Nanos {
        Nanos(self.response.0.checked_div(self.completed).unwrap_or(0))
    }

    /// Share of the elapsed time that the devices worked, in millionths, on average.
    #[must_use]
    pub fn utilisation_ppm(&self) -> u64 {
        let busy: u128 = self.busy.iter().map(|busy| u128::from(busy.0)).sum();
        let time = u128::from(self.elapsed.0) * self.busy.len() as u128;
        (busy * 1_000_000).checked_div(time).unwrap_or(0) as u64
    }

    /// Whether time and counters add up.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let parts = [self.compute, self.driver, self.stall].map(|part| u128::from(part.0));
        u128::from(self.elapsed.0) == parts.iter().sum() && self.ledger.adds_up()
    }
}

/// Runs a reference string over devices, one a disk.
///
/// # Errors
/// A setup out of range, references without a place, fewer devices than disks, or a method that
/// leaves its reader waiting for nothing.
pub fn run(
    setup: &Setup,
    host: &Host,
    reads: &Reads,
    devices: &mut [Box<dyn Device>],
) -> Result<HostReport, HostError> {
    reads.check_for(setup)?;
    if devices.len() < usize::from(setup.disks) {
        return Err(HostError::Devices(devices.len()));
    }
    let lanes = devices.iter().map(|_| Lane::default()).collect();
    let mut run = Run {
        host,
        reads,
        planner: Planner::new(setup)?,
        devices,
        lanes,
        done: Vec::new(),
        now: Nanos(0),
        processor: Nanos(0),
        reader: Reader::Computes(Nanos(0)),
        report: HostReport::default(),
    };
    run.begin();
    run.all()?;
    Ok(run.end())
}

#[derive(Clone, Copy, Debug)]
enum Reader {
    /// It will ask for the next block when the processor is done; it computes for so long.
    Computes(Nanos),
    Waits,
}

/// What the host remembers of a device.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// By block number, when its fetch was submitted; sorted by nothing, searched from the front.
    submitted: Vec<(u64, Nanos)>,
    last_end: Nanos,
}

struct Run<'a> {
    host: &'a Host,
    reads: &'a Reads,
    planner: Planner,
    devices: &'a mut [Box<dyn Device>],
    lanes: Vec<Lane>,
    done: Vec<Completion>,
    now: Nanos,
    /// When the processor is done with all work it has.
    processor: Nanos,
    reader: Reader,
    report: HostReport,
}

impl Run<'_> {
    fn begin(&mut self) {
        for block in &self.host.warm {
            if let Some(hint) = self.reads.hint(*block) {
                self.tell(Input::Cached(hint));
            }
        }
        self.tell(Input::Hints(self.reads.hints()));
        self.listen();
    }

    fn all(&mut self) -> Result<(), HostError> {
        while self.planner.board().cursor() < self.planner.board().end() {
            let Some(next) = self.next_event() else {
                return Err(HostError::Stranded(self.planner.board().cursor()));
            };
            self.now = self.now.max(next);
            self.complete();
            if let Reader::Computes(compute) = self.reader
                && self.processor <= self.now
            {
                self.reader = Reader::Waits;
                self.tell(Input::Wanted { compute });
            }
            self.listen();
        }
        Ok(())
    }

    fn end(mut self) -> HostReport {
        self.report.elapsed = self.processor;
        self.report.ledger = *self.planner.ledger();
        self.report.busy = self.devices.iter().map(|d| d.usage().busy).collect();
        self.report
    }

    fn next_event(&self) -> Option<Nanos> {
        let devices = self.devices.iter().filter_map(|device| device.next_event());
        match (self.reader, self.host.hears) {
            (Reader::Computes(_), Hears::AtReads) => Some(self.processor),
            (Reader::Computes(_), Hears::AtOnce) => devices.chain([self.processor]).min(),
            (Reader::Waits, _) => devices.min(),
        }
    }

    /// Tells of every fetch that has ended by now. Devices are called at the times they name.
    fn complete(&mut self) {
        let mut done = core::mem::take(&mut self.done);
        for disk in 0..self.devices.len() {
            while let Some(at) = self.devices[disk].next_event().filter(|at| *at <= self.now) {
                self.devices[disk].advance(at, &mut done);
                for completion in done.drain(..) {
                    self.tell_end(disk, completion);
                }
            }
        }
        self.done = done;
    }

    fn tell_end(&mut self, disk: usize, Completion { id, at, outcome }: Completion) {
        let lane = &mut self.lanes[disk];
        let found = lane.submitted.iter().position(|(sent, _)| *sent == id);
        let submitted = found.map_or(at, |found| lane.submitted.remove(found).1);
        let service = at.since(submitted.max(lane.last_end));
        lane.last_end = at;
        self.report.completed += 1;
        self.report.response = plus(self.report.response, at.since(submitted));
        let block = BlockNo(id as u32);
        self.tell(match outcome {
            Outcome::Done => Input::Fetched { block, service },
            Outcome::Short { .. } | Outcome::Failed { .. } => Input::Failed { block },
        });
    }

    fn listen(&mut self) {
        loop {
            match self.planner.poll() {
                Output::Idle => return,
                Output::Serve { position, .. } | Output::Lost { position, .. } => {
                    let reference = self.reads.references.get(position.0 as usize);
                    self.take(reference.map_or(Nanos(0), |r| r.compute));
                }
                Output::Fetch { block, disk, .. } => self.fetch(block, usize::from(disk.0)),
            }
        }
    }

    /// The reader takes its block, or goes on without, and computes.
    fn take(&mut self, compute: Nanos) {
        self.report.compute = plus(self.report.compute, compute);
        self.work(compute);
        self.reader = Reader::Computes(compute);
        self.tell(Input::Taken);
    }

    fn fetch(&mut self, block: BlockNo, disk: usize) {
        self.report.driver = plus(self.report.driver, self.host.driver);
        self.work(self.host.driver);
        let id = u64::from(block.0);
        self.lanes[disk].submitted.push((id, self.now));
        let request = Request {
            id,
            at: self.reads.places[block.0 as usize].at,
            bytes: self.host.block_bytes,
        };
        self.devices[disk].submit(self.now, request);
    }

    /// The processor gets work; what it waited for that is stall.
    fn work(&mut self, time: Nanos) {
        let idle = self.now.since(self.processor);
        self.report.stall = plus(self.report.stall, idle);
        self.processor = plus(self.processor.max(self.now), time);
    }

    fn tell(&mut self, input: Input) {
        self.planner.handle(self.now, input);
    }
}

fn plus(a: Nanos, b: Nanos) -> Nanos {
    Nanos(a.0.saturating_add(b.0))
}
