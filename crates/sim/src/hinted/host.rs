//! The host: a reference string read by one process, a planner, and devices.
//!
//! All references are announced beforehand, over a cache of K blocks, under the conditions of Kimbrel et al. 1996,
//! section 3:
//!
//! ```text
//! a reference   the process asks for a block, takes it, and computes for as long as the trace says
//! a fetch       is at its device at once, and takes half a millisecond of the processor from then on
//! ```
//!
//! Work of the processor is in one queue, so its time splits without rest:
//!
//! ```text
//! elapsed = compute + driver + stall
//!
//! processor  |driver|driver|  compute  |driver|  compute  |   stall   |  compute  |
//!            ^ two fetches start       ^ one more         ^ asks      ^ arrives
//! ```
//!
//! Stall is time in which the processor has nothing to do. The reader's last computation counts. Devices get everything
//! at once, queue and reorder by themselves. Of one instant, ended fetches come first, then the reader, then a round of
//! the planner's decisions; when it notices that a fetch ended is a choice: see [`Notice`].
//!
//! Example: one disk of 15 ms, two blocks, no computing: asked at 0, the first is taken at 15 ms and the second, whose
//! fetch began at 0 behind it, at 30. Elapsed are 30 ms, 1 of driver and 29 of stall.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use forerun_core::hinted::{BlockNo, Planner, Started};
use forerun_core::{Bytes, Nanos};

use super::ledger::Ledger;
use super::{BLOCK_BYTES, HostError, Reads, Setup, refused};
use crate::device::{Completion, Device, Outcome, Request};
use crate::times::Times;

/// Processor time of a fetch (Kimbrel et al. 1996, section 3.1, a DECstation 5000/200).
pub const DRIVER_OVERHEAD: Nanos = Nanos(500_000);

/// When it is noticed that a fetch has ended, so that the next one can be decided on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Notice {
    /// At the end of the instant at which it ended.
    #[default]
    AtOnce,
    /// When a reader asks for a block, takes one, or waits.
    AtReads,
}

impl Notice {
    /// All, by name.
    pub const LIST: [(&'static str, Self); 2] =
        [("at-once", Self::AtOnce), ("at-reads", Self::AtReads)];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::AtReads => "at-reads",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Notice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::LIST.iter().find(|(name, _)| *name == text);
        let names = || Self::LIST.map(|(name, _)| name).join(" or ");
        named
            .map(|(_, notice)| *notice)
            .ok_or_else(|| format!("must be {}", names()))
    }
}

/// Parameters of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// When it is noticed that a fetch ended.
    pub notice: Notice,
    /// Processor time of a fetch.
    pub driver: Nanos,
    /// Size of a block.
    pub block_bytes: Bytes,
}

impl Default for Host {
    /// The paper's half a millisecond and blocks of 8 KiB.
    fn default() -> Self {
        Self {
            notice: Notice::default(),
            driver: DRIVER_OVERHEAD,
            block_bytes: Bytes(BLOCK_BYTES),
        }
    }
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostReport {
    /// Counters of references and fetches.
    pub ledger: Ledger,
    /// From the first request to the end of the last computation.
    pub elapsed: Nanos,
    /// Computing time of the reader.
    pub compute: Nanos,
    /// Processor time of the fetches.
    pub driver: Nanos,
    /// Waiting time of the processor.
    pub stall: Nanos,
    /// Sum over fetches that ended of the time from submission to completion.
    pub response: Nanos,
    /// Fetches that ended.
    pub completed: u64,
    /// Of these, the ones that failed.
    pub failed: u64,
    /// Calls that made no sense to the planner: none, or there is a defect.
    pub refused: u64,
    /// Busy time of each device.
    pub busy: Vec<Nanos>,
    /// From the begin of each read to its end.
    pub responses: Times,
    /// Stall of the reads that waited.
    pub waits: Times,
}

impl HostReport {
    /// Blocks fetched.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.ledger.fetches
    }

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
/// A setup out of range, references without a place, fewer devices than disks, a method that leaves its reader waiting
/// for nothing, or times that no clock holds.
pub fn run(
    setup: &Setup,
    host: &Host,
    reads: &Reads,
    devices: Vec<Box<dyn Device>>,
) -> Result<HostReport, HostError> {
    reads.check_for(setup)?;
    if devices.len() < usize::from(setup.disks) {
        return Err(HostError::Devices(devices.len()));
    }
    let mut planner = setup.planner(&[])?;
    let hints = reads.hints().into_iter();
    let refused = hints.map(|hint| refused(planner.hint(hint))).sum();
    let disks = devices.into_iter().take(setup.disks.into()).map(Disk::new);
    let process = Process {
        planner,
        host,
        reads,
        disks: disks.collect(),
        submitted: 0,
        now: Nanos(0),
        free_at: Nanos(0),
        at: 0,
        state: State::Thinking { until: Nanos(0) },
        asked: None,
        is_noticed: false,
        is_taken: false,
        report: HostReport {
            refused,
            ..HostReport::default()
        },
    };
    process.run()
}

/// A fetch under way.
#[derive(Debug)]
struct Sent {
    block: BlockNo,
    at: Nanos,
    /// The reader's own, which the planner does not know of.
    is_own: bool,
}

#[derive(Debug)]
struct Disk {
    device: Box<dyn Device>,
    /// When it is to be asked next: it changes only when the device is.
    due: Option<Nanos>,
    sent: BTreeMap<u64, Sent>,
    /// When it ended a request last.
    ended: Nanos,
}

impl Disk {
    fn new(device: Box<dyn Device>) -> Self {
        Self {
            due: device.next_event(),
            device,
            sent: BTreeMap::new(),
            ended: Nanos(0),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Thinking {
        until: Nanos,
    },
    /// For the block at its place; the driver worked for so long meanwhile.
    Waiting {
        since: Nanos,
        driver: Nanos,
    },
    /// It has its block.
    Taking,
    Done,
}

/// The reference that was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    block: BlockNo,
    since: Nanos,
    /// Stall of the process before.
    stall: Nanos,
    /// Fetches of the reader's own: after one that failed another is made, and no more.
    own: u32,
    is_own_under_way: bool,
}

/// Own fetches of a block, at most: in place of one that failed, and once more.
const OWN_MAX: u32 = 2;

#[derive(Debug)]
struct Process<'a> {
    planner: Planner,
    host: &'a Host,
    reads: &'a Reads,
    disks: Vec<Disk>,
    /// Requests to all devices.
    submitted: u64,
    now: Nanos,
    /// When the processor is done with the driver's work.
    free_at: Nanos,
    /// The reference it is at.
    at: usize,
    state: State,
    asked: Option<Asked>,
    /// Since the last round the reader asked or took, or hints came.
    is_noticed: bool,
    /// A block was taken since the last round.
    is_taken: bool,
    report: HostReport,
}

impl Process<'_> {
    fn run(mut self) -> Result<HostReport, HostError> {
        // Announced blocks are decided on before the first read.
        self.round();
        loop {
            let next = self.next();
            if next.is_none_or(|next| next > self.now) && self.is_undecided() {
                self.decide();
                continue;
            }
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            let now = self.now;
            let is_due = |disk: &Disk| disk.due.is_some_and(|due| due <= now);
            match self.disks.iter().position(is_due) {
                Some(disk) => self.advance(disk),
                None => self.go_on(),
            }
        }
        if !matches!(self.state, State::Done) {
            return Err(HostError::Stranded(self.planner.board().cursor()));
        }
        if self.now.max(self.free_at).0 == u64::MAX {
            return Err(HostError::Time);
        }
        let devices = self.disks.iter().map(|disk| disk.device.usage().busy);
        self.report.busy = devices.collect();
        Ok(self.report)
    }

    /// Time of the next event.
    fn next(&self) -> Option<Nanos> {
        let own = match self.state {
            State::Thinking { until } => Some(until),
            State::Taking => Some(self.now),
            State::Waiting { .. } | State::Done => None,
        };
        self.disks
            .iter()
            .filter_map(|disk| disk.due)
            .chain(own)
            .min()
    }

    /// Whether something happened that is to be decided about, and that is noticed.
    fn is_undecided(&self) -> bool {
        let is_noticed = match self.host.notice {
            Notice::AtOnce => true,
            Notice::AtReads => self.is_noticed || self.is_waited_for(),
        };
        self.planner.is_stale() && is_noticed && !matches!(self.state, State::Done)
    }

    fn is_waited_for(&self) -> bool {
        let missing = |asked: &Asked| !self.planner.board().is_resident(asked.block);
        self.asked.as_ref().is_some_and(missing)
    }

    /// All that happens now was handed in.
    fn decide(&mut self) {
        self.is_taken = false;
        self.round();
        self.look();
    }

    fn round(&mut self) {
        while let Some(started) = self.planner.poll() {
            let Started {
                block,
                evict,
                demand,
            } = started;
            let is_own = |asked: &Asked| asked.is_own_under_way && asked.block == block;
            if self.asked.as_ref().is_some_and(is_own) {
                // The reader's fetch is the planner's, too.
                self.report.ledger.given_up(evict);
                self.report.refused += refused(self.planner.found(block));
                continue;
            }
            self.report.ledger.started(block, evict, demand);
            self.submit(block, false);
        }
        self.is_noticed = false;
    }

    fn submit(&mut self, block: BlockNo, is_own: bool) {
        let place = self.reads.places[block.0 as usize];
        let disk = &mut self.disks[usize::from(place.disk.0)];
        let (id, at) = (self.submitted, self.now);
        self.submitted += 1;
        let request = Request::new(id, place.at, self.host.block_bytes);
        disk.device.submit(at, request);
        disk.due = disk.device.next_event();
        disk.sent.insert(id, Sent { block, at, is_own });
        self.charge(self.host.driver);
    }

    /// The driver works, from now or from the end of its earlier work.
    fn charge(&mut self, cost: Nanos) {
        self.free_at = plus(self.free_at.max(self.now), cost);
        self.report.driver = plus(self.report.driver, cost);
        match &mut self.state {
            State::Thinking { until } => *until = plus(*until, cost),
            State::Waiting { driver, .. } => *driver = plus(*driver, cost),
            State::Taking | State::Done => {}
        }
    }

    fn advance(&mut self, disk: usize) {
        let mut done = Vec::new();
        let one = &mut self.disks[disk];
        one.device.advance(self.now, &mut done);
        one.due = one.device.next_event();
        for ended in done {
            self.complete(disk, &ended);
        }
    }

    fn complete(&mut self, disk: usize, ended: &Completion) {
        let disk = &mut self.disks[disk];
        let before = std::mem::replace(&mut disk.ended, self.now);
        let Some(sent) = disk.sent.remove(&ended.id) else {
            debug_assert!(false, "a device ended a request that it was not given");
            return;
        };
        let is_done = ended.outcome == Outcome::Done;
        self.report.completed += 1;
        self.report.failed += u64::from(!is_done);
        self.report.response = plus(self.report.response, ended.at.since(sent.at));
        let block = sent.block;
        let asked = self.asked.as_mut().filter(|asked| asked.block == block);
        if sent.is_own {
            return self.complete_own(is_done);
        }
        if is_done {
            // Time behind others in the device's queue is not its own.
            let service = self.now.since(sent.at.max(before));
            self.report.refused += refused(self.planner.fetched(block, service));
        } else {
            let fails_reader = asked.is_some();
            self.report.ledger.lost(block);
            self.report.refused += refused(self.planner.failed(block));
            if fails_reader {
                return self.fetch_own();
            }
        }
        self.look();
    }

    /// A fetch of the reader's own ended; without an answer after two of them the read is over, too.
    fn complete_own(&mut self, is_done: bool) {
        let Some(asked) = &mut self.asked else { return };
        asked.is_own_under_way = false;
        match is_done || asked.own >= OWN_MAX {
            true => self.answer(),
            false => self.fetch_own(),
        }
    }

    /// The reader fetches its block itself.
    fn fetch_own(&mut self) {
        let Some(asked) = &mut self.asked else { return };
        asked.own += 1;
        asked.is_own_under_way = true;
        let block = asked.block;
        self.report.ledger.fetched_alone();
        self.submit(block, true);
    }

    /// It is the reader's turn.
    fn go_on(&mut self) {
        match self.state {
            State::Thinking { .. } => self.begin(),
            State::Taking => self.take(),
            State::Waiting { .. } | State::Done => {}
        }
    }

    /// It asks for the next block, or has read all.
    fn begin(&mut self) {
        let Some(reference) = self.reads.references.get(self.at) else {
            self.report.elapsed = self.now.max(self.free_at);
            self.state = State::Done;
            return;
        };
        // From now on it waits: the driver's work for other blocks is no stall.
        let since = self.now;
        let driver = Nanos(0);
        self.state = State::Waiting { since, driver };
        if self.is_taken && self.is_undecided() {
            // A block taken at this very time is an instant of its own.
            self.decide();
        }
        let block = reference.block;
        self.report.ledger.asked(self.planner.board(), block);
        let compute = self.thought();
        self.report.refused += refused(self.planner.kept(block, true));
        self.report.refused += refused(self.planner.asked(block, compute));
        self.is_noticed = true;
        self.asked = Some(Asked {
            block,
            since,
            stall: self.report.stall,
            own: 0,
            is_own_under_way: false,
        });
        let board = self.planner.board();
        if !board.is_resident(block) && !board.is_in_flight(block) {
            self.round();
        }
        self.look();
    }

    /// Computing time before the reference it is at.
    fn thought(&self) -> Nanos {
        let before = self.at.checked_sub(1);
        before.map_or(Nanos(0), |before| self.reads.references[before].compute)
    }

    /// Whether the block it waits for is there, or on its way.
    fn look(&mut self) {
        let (Some(asked), State::Waiting { .. }) = (&self.asked, self.state) else {
            return;
        };
        let (board, block) = (self.planner.board(), asked.block);
        if asked.is_own_under_way {
            return;
        }
        if board.is_resident(block) {
            return self.answer();
        }
        let is_busy = board.disks().any(|disk| board.in_flight(disk) > 0);
        let is_to_come = board.is_in_flight(block) || board.is_awaited(block) && is_busy;
        if !is_to_come {
            self.fetch_own();
        }
    }

    /// It goes on at once, or when the processor has done the driver's work.
    fn answer(&mut self) {
        if let State::Waiting { since, driver } = self.state {
            let stalled = self.now.max(self.free_at).since(since).since(driver);
            self.report.stall = plus(self.report.stall, stalled);
            self.state = State::Taking;
        }
    }

    fn take(&mut self) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let block = asked.block;
        self.report.ledger.read(block);
        self.report.refused += refused(self.planner.passed(block, true));
        self.report.refused += refused(self.planner.kept(block, false));
        (self.is_noticed, self.is_taken) = (true, true);
        let ready = self.now.max(self.free_at);
        self.report.responses.add(ready.since(asked.since));
        let wait = self.report.stall.since(asked.stall);
        if wait.0 > 0 {
            self.report.waits.add(wait);
        }
        self.at += 1;
        let compute = self.thought();
        self.report.compute = plus(self.report.compute, compute);
        self.state = State::Thinking {
            until: plus(ready, compute),
        };
    }
}

fn plus(a: Nanos, b: Nanos) -> Nanos {
    Nanos(a.0.saturating_add(b.0))
}
