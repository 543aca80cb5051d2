//! A reader of the world: one open file, one sequential process, one clock of its own.
//!
//! ```text
//! think ---> read: [hits] -> ask engine -> wait -> take -> [hits] -> ... ---> think ---> ...
//! compute    |---------- driver: starting fetches, copying; stall: waiting --|
//! ```
//!
//! The clock is kept by adding up each part where it happens, and compared with the time the reader
//! was done: `elapsed = compute + driver + stall + idle`. The driver's work for a reader that waits
//! is taken off its stall: the processor is busy, the reader does not wait for the device.

use core::fmt;

use forerun_core::{Block, Bytes, Engine, Nanos};

use super::cpus::Cpus;
use crate::report::ReaderReport;
use crate::workload::{Step, Steps};

/// Blocks of one piece of a read.
const PIECE: u64 = Engine::READ_MAX as u64;

/// One application read under way; longer ones than the engine takes go in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    /// First byte of the read.
    pub(super) offset: u64,
    /// The byte after the last one that is taken.
    pub(super) stop: u64,
    /// The next block.
    pub(super) at: u64,
    /// The block after the last one that is taken.
    pub(super) stop_block: u64,
    /// The block after the last one asked for.
    pub(super) end: u64,
    /// The block after the last one of this piece: the engine takes no longer reads.
    pub(super) piece_end: u64,
    /// Its first block.
    pub(super) piece_begin: u64,
    /// Nothing of this piece has been shown to the engine yet.
    pub(super) fresh: bool,
    /// Bytes taken so far.
    pub(super) taken: u64,
    /// The block touched before this piece began: a detector judges whole reads by it.
    pub(super) before: Option<Block>,
}

impl Reading {
    /// The read of a step in a file of this size; `None` if nothing of it is in the file.
    pub(super) fn begin(
        step: &Step,
        file: Bytes,
        block_bytes: u64,
        before: Option<Block>,
    ) -> Option<Self> {
        let offset = step.offset.0;
        let reach = |bytes: Bytes| offset.saturating_add(bytes.0).min(file.0);
        let (end, stop) = (reach(step.bytes), reach(step.take).min(reach(step.bytes)));
        (offset < stop).then(|| {
            let (at, end) = (offset / block_bytes, end.div_ceil(block_bytes));
            let (stop_block, piece_end) = (stop.div_ceil(block_bytes), end.min(at + PIECE));
            Self {
                offset,
                stop,
                at,
                stop_block,
                end,
                piece_begin: at,
                piece_end,
                fresh: true,
                taken: 0,
                before,
            }
        })
    }

    /// Whether everything was taken.
    pub(super) fn is_complete(&self) -> bool {
        self.at >= self.stop_block
    }

    /// Takes the next `blocks` blocks and returns the reader's bytes of them.
    pub(super) fn take(&mut self, blocks: u64, block_bytes: u64) -> u64 {
        let from = (self.at * block_bytes).max(self.offset);
        self.at += blocks;
        let to = (self.at * block_bytes).min(self.stop);
        let bytes = to.saturating_sub(from);
        self.taken += bytes;
        if self.at == self.piece_end {
            self.piece_begin = self.at;
            self.piece_end = self.end.min(self.at + PIECE);
            self.fresh = true;
            self.before = self.last();
        }
        bytes
    }

    /// The block before the next one.
    pub(super) fn last(&self) -> Option<Block> {
        Some(Block(u32::try_from(self.at.checked_sub(1)?).ok()?))
    }

    /// Blocks of this piece before the next one.
    pub(super) fn head(&self) -> u32 {
        u32::try_from(self.at - self.piece_begin).unwrap_or(u32::MAX)
    }

    /// Number of blocks to ask the engine for.
    pub(super) fn wanted(&self) -> u32 {
        u32::try_from(self.piece_end - self.at).unwrap_or(u32::MAX)
    }
}

/// The present state of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Sleeps, then computes.
    Asleep(Step),
    /// Computes, then begins the read of this step.
    Thinking(Step),
    /// Others have their turns, since then.
    Away {
        /// Time at which it ended its last step.
        since: Nanos,
    },
    /// Goes on with its read when it is woken.
    Reading,
    /// Waits for an answer since then; the driver worked so long for it meanwhile.
    Waiting { since: Nanos, driver: Nanos },
    /// Was answered; takes this many blocks when it is woken.
    Taking { read: u32, blocks: u32 },
    /// Closed its file.
    Done,
}

/// See the [module](self).
pub(super) struct Reader<'a> {
    pub(super) file: usize,
    /// The process that reads: a reader that begins when another one ends is the same one's.
    pub(super) process: u32,
    /// The reader whose step it makes.
    pub(super) lent_to: Option<usize>,
    /// Readers that are there for steps of this one.
    pub(super) beside: Vec<usize>,
    pub(super) steps: Steps<'a>,
    pub(super) state: State,
    pub(super) reading: Option<Reading>,
    pub(super) previous: Option<Block>,
    /// Blocks hit on the hit path, not reported yet.
    pub(super) plain_hits: u64,
    /// Time at which the processor is done with the driver's work for this reader.
    pub(super) free_at: Nanos,
    /// Time at which it goes on, unless it waits.
    pub(super) wake: Nanos,
    /// Computing counted before it began.
    waited: Nanos,
    /// Processor time of all its bursts, that under way included.
    bursts: Nanos,
    /// Its processor time by the last report to the engine.
    pub(super) cpu_told: Nanos,
    /// The reader whose file it reads in an open loop.
    pub(super) lane_of: Option<usize>,
    /// When its next read is due, if that was said.
    pub(super) due: Option<Nanos>,
    /// When its read began or was due, and its stall before.
    pub(super) asked: Option<(Nanos, Nanos)>,
    pub(super) report: ReaderReport,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.file)
            .field("state", &self.state)
            .finish()
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: usize, steps: Steps<'a>) -> Self {
        Self {
            file,
            process: 0,
            lent_to: None,
            beside: Vec::new(),
            steps,
            state: State::Away { since: Nanos(0) },
            reading: None,
            previous: None,
            plain_hits: 0,
            free_at: Nanos(0),
            wake: Nanos(0),
            waited: Nanos(0),
            bursts: Nanos(0),
            cpu_told: Nanos(0),
            lane_of: None,
            due: None,
            asked: None,
            report: ReaderReport::default(),
        }
    }

    /// The driver works `cost` for this reader, from now or from the end of its earlier work for
    /// it. Nothing is charged to one that is away or done: its time is others'.
    pub(super) fn charge(&mut self, now: Nanos, cost: Nanos) {
        if matches!(self.state, State::Away { .. } | State::Done) {
            return;
        }
        self.free_at = Nanos(self.free_at.max(now).0.saturating_add(cost.0));
        self.report.driver.0 = self.report.driver.0.saturating_add(cost.0);
        match &mut self.state {
            State::Waiting { driver, .. } => driver.0 = driver.0.saturating_add(cost.0),
            _ => self.wake.0 = self.wake.0.saturating_add(cost.0),
        }
    }

    /// The processor is the next reader's; for how long it is still busy for this one, which is
    /// the next one's from now on.
    pub(super) fn hand_over(&mut self, now: Nanos) -> Nanos {
        let owed = self.free_at.since(now);
        self.free_at = now;
        self.report.driver = self.report.driver.since(owed);
        owed
    }

    /// Whether it sleeps before it computes.
    pub(super) fn sleeps(&self, now: Nanos, step: &Step) -> bool {
        let from = now.max(self.free_at);
        step.pause.0 > 0 || step.not_before.is_some_and(|due| due > from)
    }

    /// It does so once the processor is done with the driver's work.
    pub(super) fn fall_asleep(&mut self, now: Nanos, step: Step) {
        let from = now.max(self.free_at);
        let paused = Nanos(from.0.saturating_add(step.pause.0));
        self.wake = step.not_before.map_or(paused, |due| due.max(paused));
        self.state = State::Asleep(step);
        self.report.idle.0 = self.report.idle.0.saturating_add(self.wake.since(from).0);
    }

    /// It begins to think for so long, once the processor is done with the driver's work and one is
    /// free.
    pub(super) fn begin_thinking(&mut self, now: Nanos, step: Step, processors: &mut Cpus) {
        let ready = now.max(self.free_at);
        let begin = processors.begin(ready, step.think);
        self.state = State::Thinking(step);
        self.report.idle.0 = self.report.idle.0.saturating_add(begin.since(ready).0);
        self.report.compute.0 = self.report.compute.0.saturating_add(step.think.0);
        self.bursts.0 = self.bursts.0.saturating_add(step.think.0);
        self.wake = Nanos(begin.0.saturating_add(step.think.0));
    }

    /// Its processor time by now; none once it is done.
    pub(super) fn computed(&self, now: Nanos) -> Option<Nanos> {
        let computed = self.report.compute.since(self.waited);
        let is_done = self.state == State::Done;
        (!is_done).then(|| computed.since(self.to_come(now)))
    }

    /// The same of its own bursts alone, where it is one of several of a process.
    pub(super) fn computed_here(&self, now: Nanos) -> Nanos {
        self.bursts.since(self.to_come(now))
    }

    /// The part of a burst that is still to come.
    fn to_come(&self, now: Nanos) -> Nanos {
        match self.state {
            State::Thinking(step) => self.wake.since(now).min(step.think),
            _ => Nanos(0),
        }
    }

    /// Its turn has come, or the end: the other readers' time since then is computing to it.
    pub(super) fn come_back(&mut self, now: Nanos) {
        if let State::Away { since } = self.state {
            let away = now.since(since);
            self.report.compute.0 = self.report.compute.0.saturating_add(away.0);
            self.report.away.0 = self.report.away.0.saturating_add(away.0);
        }
    }

    /// It begins when others have ended.
    pub(super) fn begin_late(&mut self, now: Nanos) {
        self.come_back(now);
        self.free_at = now;
        self.report.opened = now;
        self.state = State::Away { since: now };
        self.waited = self.report.compute;
    }

    /// The wait is over: the reader goes on as soon as the processor is free.
    pub(super) fn answered(&mut self, now: Nanos, next: State) {
        if let State::Waiting { since, driver } = self.state {
            self.wake = now.max(self.free_at);
            let stalled = self.wake.since(since).since(driver);
            self.report.stall.0 = self.report.stall.0.saturating_add(stalled.0);
            self.report.longest_stall = self.report.longest_stall.max(stalled);
        }
        self.state = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(offset: u64, bytes: u64, take: u64) -> Option<Reading> {
        let (bytes, take) = (Bytes(bytes), Bytes(take));
        let step = Step {
            on: None,
            pause: Nanos(0),
            not_before: None,
            think: Nanos(0),
            offset: Bytes(offset),
            bytes,
            take,
        };
        Reading::begin(&step, Bytes(10_000), 4096, None)
    }

    #[test]
    fn a_read_covers_the_blocks_its_bytes_lie_in() {
        let mut read = reading(4000, 200, 200).unwrap();
        assert_eq!((read.at, read.stop_block, read.end), (0, 2, 2));
        assert_eq!(read.take(1, 4096), 96);
        assert_eq!(read.take(1, 4096), 104);
        assert!(read.is_complete());
    }

    #[test]
    fn nothing_past_the_end_of_the_file_is_read() {
        let mut read = reading(8192, 1 << 40, 1 << 40).unwrap();
        assert_eq!(read.wanted(), 1);
        assert_eq!(read.take(1, 4096), 1808);
        assert_eq!(reading(10_000, 1, 1), None);
        assert_eq!(reading(0, 0, 0), None);
        assert_eq!(reading(u64::MAX, u64::MAX, u64::MAX), None);
    }

    #[test]
    fn a_long_read_goes_in_pieces_each_fresh_at_first() {
        let step = Step::read(0, 1 << 30, 0);
        let most = Engine::READ_MAX;
        let file_bytes = Bytes((4 * u64::from(most) + 904) * 4096);
        let mut read = Reading::begin(&step, file_bytes, 4096, Some(Block(7))).unwrap();
        assert_eq!(read.wanted(), most);
        read.fresh = false;
        read.take(u64::from(most) - 24, 4096);
        assert_eq!(
            (read.wanted(), read.fresh, read.before),
            (24, false, Some(Block(7)))
        );
        read.take(24, 4096);
        assert_eq!(
            (read.wanted(), read.fresh, read.before),
            (most, true, Some(Block(most - 1)))
        );
        for _ in 0..3 {
            read.take(most.into(), 4096);
        }
        assert_eq!(read.wanted(), 904);
    }

    #[test]
    fn a_retried_read_asks_for_more_than_it_takes() {
        let read = reading(0, 10_000, 4096).unwrap();
        assert_eq!((read.wanted(), read.stop_block), (3, 1));
    }

    #[test]
    fn work_of_the_driver_during_a_wait_is_no_stall() {
        let mut reader = Reader::new(0, Box::new(core::iter::empty()));
        reader.state = State::Waiting {
            since: Nanos(10),
            driver: Nanos(0),
        };
        reader.charge(Nanos(10), Nanos(5));
        assert_eq!(reader.free_at, Nanos(15));
        reader.answered(Nanos(40), State::Reading);
        assert_eq!((reader.wake, reader.report.stall), (Nanos(40), Nanos(25)));
        assert_eq!(reader.report.driver, Nanos(5));
    }
}
