//! Readers in the world: they think, take resident blocks, and ask the engine for the rest.
//!
//! Called by the event loop when a reader wakes. This half of the driver contract is the hit
//! path: blocks that are plain hits are taken straight from the table; the first touch of a block
//! with an armed access bit is noted and reported later; only missing, marked or in-flight blocks
//! make an [`Input::Read`]. It never carries out an output: that is [`carry`](super::carry).

use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::table::flag;
use forerun_core::{Block, Bytes, FileId, Input, Nanos, ReadId, ReaderId};

use super::carry::plus;
use super::reader::{Reading, State};
use super::{World, WorldError};
use crate::device::{Process, transfer_time};
use crate::workload::Step;

/// The timer tick by which Linux 2.6 counts the CPU time of programs.
const CPU_TICK: Nanos = Nanos(1_000_000);

/// A time as a system that counts in ticks sees it.
fn whole_ticks(time: Nanos) -> Nanos {
    Nanos(time.0 - time.0 % CPU_TICK.0)
}

impl World<'_, '_> {
    /// A reader is done with its step: it goes on, or the turn passes to another.
    fn end_step(&mut self, reader: usize) -> Result<(), WorldError> {
        let response = self.end_response(reader);
        if let Some(opener) = self.readers[reader].lane_of {
            return self.end_lane(reader, opener, response);
        }
        if let Some(owner) = self.readers[reader].lent_to.take() {
            self.pass_on(reader, owner);
            return self.think(owner);
        }
        if self.turns.is_none() {
            return self.think(reader);
        }
        let one = &mut self.readers[reader];
        self.owed = plus(self.now, one.hand_over(self.now));
        (one.reading, one.state) = (None, State::Away { since: self.now });
        self.next_turn()
    }

    /// A read is over, if there was one: its response, and its wait.
    fn end_response(&mut self, reader: usize) -> Nanos {
        let one = &mut self.readers[reader];
        let Some((asked, stalled)) = one.asked.take() else {
            return Nanos(0);
        };
        let response = self.now.max(one.free_at).since(asked);
        let wait = one.report.stall.since(stalled);
        self.responses.add(response);
        if wait.0 > 0 {
            self.waits.add(wait);
        }
        response
    }

    /// The next reader in turn that has a step left begins it; without one the process is done and
    /// closes its files.
    pub(super) fn next_turn(&mut self) -> Result<(), WorldError> {
        while let Some(reader) = self.turns.as_mut().and_then(Iterator::next) {
            let Some(one) = self.readers.get_mut(reader) else {
                return Err(WorldError::NoFile(reader));
            };
            if let Some(step) = one.steps.next() {
                one.come_back(self.now);
                one.report.driver = plus(one.report.driver, self.owed.since(self.now));
                one.free_at = self.owed;
                self.turn = Some(reader);
                self.begin_thinking(reader, step);
                return Ok(());
            }
        }
        // The processor may still be busy for the last one.
        if let Some(last) = self.turn.and_then(|last| self.readers.get_mut(last)) {
            last.report.driver = plus(last.report.driver, self.owed.since(self.now));
            last.free_at = self.owed;
        }
        for reader in 0..self.readers.len() {
            self.readers[reader].come_back(self.now);
            self.close(reader)?;
        }
        Ok(())
    }

    /// The reader's next step begins with thinking; or there is none, and it closes.
    pub(super) fn think(&mut self, reader: usize) -> Result<(), WorldError> {
        let one = &mut self.readers[reader];
        one.reading = None;
        match one.steps.next() {
            Some(step) => self.begin_step(reader, step),
            None if self.walking.is_some() => self.leave(reader),
            None => self.close(reader),
        }
    }

    /// A step of a reader, which it makes itself or leaves to one beside it.
    fn begin_step(&mut self, reader: usize, step: Step) -> Result<(), WorldError> {
        let Some(other) = step.on else {
            self.begin_thinking(reader, step);
            return Ok(());
        };
        if !self.readers[reader].beside.contains(&other) {
            return Err(WorldError::NoFile(other));
        }
        self.pass_on(reader, other);
        self.readers[other].lent_to = Some(reader);
        self.begin_thinking(other, step);
        Ok(())
    }

    /// One reader of a process goes on where another one stops: the processor is the other one's.
    fn pass_on(&mut self, from: usize, to: usize) {
        let one = &mut self.readers[from];
        let owed = one.hand_over(self.now);
        (one.reading, one.state) = (None, State::Away { since: self.now });
        let one = &mut self.readers[to];
        one.come_back(self.now);
        one.report.driver = plus(one.report.driver, owed);
        one.free_at = plus(self.now, owed);
        one.state = State::Reading;
    }

    /// The reader of its process that is at work, if it is not this one: the processor is that
    /// one's.
    pub(super) fn at_work(&self, reader: usize) -> usize {
        let is_away = |at: usize| matches!(self.readers[at].state, State::Away { .. });
        if !is_away(reader) || self.arriving.is_some() {
            return reader;
        }
        let owner = self.workload.owner(reader);
        let beside = self.readers[owner].beside.iter().copied();
        let mut all = core::iter::once(owner).chain(beside);
        all.find(|at| !is_away(*at)).unwrap_or(reader)
    }

    fn begin_thinking(&mut self, reader: usize, step: Step) {
        let one = &mut self.readers[reader];
        one.due = step.not_before.or(one.due);
        match one.sleeps(self.now, &step) {
            true => one.fall_asleep(self.now, step),
            false => one.begin_thinking(self.now, step, &mut self.processors),
        }
        let wake = one.wake;
        self.push(wake, reader);
    }

    /// A reader closes its file, and those beside it theirs.
    pub(super) fn close(&mut self, reader: usize) -> Result<(), WorldError> {
        for other in std::mem::take(&mut self.readers[reader].beside) {
            self.readers[other].come_back(self.now);
            self.close(other)?;
        }
        let id = ReaderId(reader as u32);
        self.drain()?;
        self.end_instant()?;
        let blocks = std::mem::take(&mut self.readers[reader].plain_hits);
        if blocks > 0 {
            self.handle(Input::Hits { reader: id, blocks })?;
        }
        self.readers[reader].state = State::Done;
        let one = &mut self.readers[reader];
        one.report.elapsed = self.now.max(one.free_at);
        self.is_taken = true;
        self.handle(Input::Close { reader: id })?;
        self.end_event()?;
        if self.workload.owner(reader) != reader {
            return Ok(());
        }
        self.open_next(self.readers[reader].process)
    }

    pub(super) fn open(&mut self, reader: usize) -> Result<(), WorldError> {
        let file = FileId(self.readers[reader].file as u32);
        let id = ReaderId(reader as u32);
        self.handle(Input::Open { reader: id, file })?;
        self.announce(self.workload.hints_at_open(reader))
    }

    /// A process is done: the next one that waited for that begins, or the same one goes on with
    /// the next file.
    fn open_next(&mut self, process: u32) -> Result<(), WorldError> {
        let next = self.opened;
        if self.walking.is_some() || self.arriving.is_some() || next == self.readers.len() {
            return Ok(());
        }
        self.opened = self.after_group(next);
        let process = match self.workload.ends_processes() {
            true => next as u32,
            false => process,
        };
        for reader in next..self.opened {
            self.readers[reader].begin_late(self.now);
            self.readers[reader].process = process;
        }
        self.readers[next].beside = (next + 1..self.opened).collect();
        (next..self.opened).try_for_each(|reader| self.open(reader))?;
        self.think(next)
    }

    pub(super) fn wake(&mut self, reader: usize) -> Result<(), WorldError> {
        let one = &mut self.readers[reader];
        let is_taking = matches!(one.state, State::Taking { .. });
        if one.wake > self.now && !(is_taking && self.copy_bytes_per_second == 0) {
            let wake = one.wake;
            self.push(wake, reader);
            return Ok(());
        }
        match one.state {
            State::Asleep(step) => {
                let awake = Step {
                    pause: Nanos(0),
                    not_before: None,
                    ..step
                };
                self.begin_thinking(reader, awake);
                Ok(())
            }
            State::Thinking(step) => self.begin(reader, &step),
            State::Taking { read, blocks } => self.take(reader, read, blocks),
            State::Reading => self.read(reader),
            State::Waiting { .. } | State::Away { .. } | State::Done => Ok(()),
        }
    }

    pub(super) fn begin(&mut self, reader: usize, step: &Step) -> Result<(), WorldError> {
        let one = &mut self.readers[reader];
        one.report.reads += 1;
        let bytes = self.files[one.file].bytes;
        one.reading = Reading::begin(step, bytes, self.block_bytes, one.previous);
        let asked = one.due.take().unwrap_or(self.now);
        one.asked = one.reading.map(|_| (asked, one.report.stall));
        one.state = State::Reading;
        self.read(reader)
    }

    /// Takes the blocks of an answer and gives them free; at once if the engine requires it. If the
    /// processor is still busy the rest of the read, or the thinking after it, begins later.
    fn take(&mut self, reader: usize, read: u32, blocks: u32) -> Result<(), WorldError> {
        self.taken(reader, u64::from(blocks));
        self.later.push_back(Input::Release { read: ReadId(read) });
        if self.engine.wants_releases() {
            self.drain()?;
            self.end_event()?;
        }
        let one = &mut self.readers[reader];
        one.state = State::Reading;
        if one.reading.is_none_or(|reading| reading.is_complete()) {
            return self.end_step(reader);
        }
        let wake = one.wake;
        if wake > self.now || !self.joins_instants {
            // In the other case device events may come before it goes on.
            self.push(wake.max(self.now), reader);
            return Ok(());
        }
        self.read(reader)
    }

    /// Moves a reader past blocks it took; returns its bytes of them.
    fn taken(&mut self, reader: usize, blocks: u64) -> Bytes {
        let one = &mut self.readers[reader];
        let Some(reading) = &mut one.reading else {
            return Bytes(0);
        };
        let bytes = reading.take(blocks, self.block_bytes);
        one.previous = reading.last();
        one.report.bytes.0 += bytes;
        Bytes(bytes)
    }

    /// Goes on with a read: resident blocks, then the engine for the rest.
    fn read(&mut self, reader: usize) -> Result<(), WorldError> {
        if !self.engine.sees_every_read() {
            let bytes = self.hits(reader);
            let one = &mut self.readers[reader];
            one.wake = self.now;
            if self.copy_bytes_per_second > 0 && bytes.0 > 0 {
                one.charge(self.now, transfer_time(bytes, self.copy_bytes_per_second));
                let wake = one.wake;
                self.push(wake, reader);
                return Ok(());
            }
        }
        match self.readers[reader].reading {
            Some(reading) if !reading.is_complete() => self.ask(reader),
            _ => self.end_step(reader),
        }
    }

    /// The hit path: no engine. Takes resident blocks up to the first that is not a plain hit.
    fn hits(&mut self, reader: usize) -> Bytes {
        let file = FileId(self.readers[reader].file as u32);
        let mut bytes = 0;
        let mut touched: Option<(Block, u32)> = None;
        while let Some(reading) = self.readers[reader].reading.filter(|r| !r.is_complete()) {
            let block = Block(reading.at as u32);
            let Some(found) = self.table.find(file, block) else {
                break;
            };
            if found.flags & (flag::FILLING | flag::MARK | flag::VACANT) != 0 {
                break;
            }
            let again = self.readers[reader].previous == Some(block);
            if found.flags & flag::ARMED != 0 && !again && self.table.disarm(found.frame) {
                touched = self.touch(reader, touched, block);
            }
            if reading.fresh {
                self.readers[reader].plain_hits += 1;
            }
            bytes += self.taken(reader, 1).0;
            if reading.at + 1 == reading.piece_end {
                self.queue_touch(reader, touched.take());
            }
        }
        self.queue_touch(reader, touched);
        Bytes(bytes)
    }

    /// Adds a block to the run of touched ones; a run it does not continue is queued.
    fn touch(
        &mut self,
        reader: usize,
        run: Option<(Block, u32)>,
        block: Block,
    ) -> Option<(Block, u32)> {
        match run {
            Some((first, count)) if first.0.checked_add(count) == Some(block.0) => {
                Some((first, count + 1))
            }
            run => {
                self.queue_touch(reader, run);
                Some((block, 1))
            }
        }
    }

    fn queue_touch(&mut self, reader: usize, run: Option<(Block, u32)>) {
        if let Some((first, count)) = run {
            let reader = self.opener(reader);
            self.later.push_back(Input::Touch {
                reader,
                first,
                count,
            });
        }
    }

    /// The reader that the engine knows: the one that opened the file.
    fn opener(&self, reader: usize) -> ReaderId {
        ReaderId(self.readers[reader].lane_of.unwrap_or(reader) as u32)
    }

    /// Asks the engine for the rest of a read, and waits.
    fn ask(&mut self, reader: usize) -> Result<(), WorldError> {
        // From now on it waits: the driver's work for fetches before its read is no stall.
        self.readers[reader].state = State::Waiting {
            since: self.now,
            driver: Nanos(0),
        };
        if self.is_held(reader) {
            self.held.push_back(reader);
            return Ok(());
        }
        self.drain()?;
        self.end_instant()?;
        let (read, opener) = (self.number_read(reader), self.opener(reader));
        let one = &mut self.readers[reader];
        self.files[one.file].last_reader = Some(reader);
        let Some(reading) = &mut one.reading else {
            return Ok(());
        };
        let fresh = std::mem::replace(&mut reading.fresh, false);
        let access = Access::new(Block(reading.at as u32), reading.wanted())
            .with_head(reading.head())
            .with_previous(reading.before);
        let input = Input::Read {
            read,
            reader: opener,
            access,
            fresh,
            wants: Wants::Blocks,
        };
        self.handle(input)?;
        self.end_event()
    }

    /// Whether a reader has to wait for room in a queue. One whose block is on its way asks for nothing.
    fn is_held(&self, reader: usize) -> bool {
        let one = &self.readers[reader];
        let process = Process(one.process);
        if self
            .devices
            .iter()
            .all(|device| !device.is_full_for(process))
        {
            return false;
        }
        let (file, at) = (one.file as u32, one.reading.map(|reading| reading.at));
        let found = at.and_then(|at| self.table.find(FileId(file), Block(at as u32)));
        found.is_none_or(|found| found.flags & flag::FILLING == 0)
    }

    /// Readers go on while there is room for their requests.
    pub(super) fn let_on(&mut self) -> Result<(), WorldError> {
        while let Some(reader) = self.held.front().copied() {
            if self.is_held(reader) {
                return Ok(());
            }
            self.held.pop_front();
            self.readers[reader].answered(self.now, State::Reading);
            self.read(reader)?;
        }
        Ok(())
    }

    /// An event after a read at the very time it was taken is an instant of its own, as is an event
    /// after a close.
    fn end_instant(&mut self) -> Result<(), WorldError> {
        match self.joins_instants && self.is_taken && self.engine.is_undecided() {
            true => self.decide(),
            false => Ok(()),
        }
    }

    /// Reports the processor time of readers to the engine, with each timer tick.
    pub(super) fn tell_cpu_times(&mut self) -> Result<(), WorldError> {
        if self.now < self.cpu_told || !self.engine.uses_cpu_time() || self.walking.is_some() {
            return Ok(());
        }
        self.cpu_told = plus(self.now, CPU_TICK);
        for reader in 0..self.opened {
            let time = self.computed(reader).map(whole_ticks);
            if let Some(time) = time.filter(|time| *time > self.readers[reader].cpu_told) {
                self.readers[reader].cpu_told = time;
                let reader = ReaderId(reader as u32);
                self.handle(Input::CpuTime { reader, time })?;
            }
        }
        Ok(())
    }

    /// Processor time of a reader's process by now; none once it is done.
    fn computed(&self, reader: usize) -> Option<Nanos> {
        let one = &self.readers[reader];
        let owner = &self.readers[self.workload.owner(reader)];
        if self.turns.is_some() || owner.beside.is_empty() {
            return one.computed(self.now);
        }
        let beside = owner.beside.iter().map(|other| &self.readers[*other]);
        let bursts = beside.map(|other| other.computed_here(self.now).0);
        let all = bursts.sum::<u64>() + owner.computed_here(self.now).0;
        (one.state != State::Done).then_some(Nanos(all))
    }

    /// The smallest free read number.
    fn number_read(&mut self, reader: usize) -> ReadId {
        let free = self
            .free_reads
            .pop_first()
            .unwrap_or(self.reads.len() as u32);
        match self.reads.get_mut(free as usize) {
            Some(slot) => *slot = Some(reader),
            None => self.reads.push(Some(reader)),
        }
        ReadId(free)
    }
}
