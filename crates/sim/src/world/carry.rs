//! The engine in the world: inputs go in, outputs are carried out, completions come back.
//!
//! This half of the driver contract is the slow path: the queue of touches and releases is
//! drained first, one input is handled, outputs are taken until the engine is idle. A fetch goes
//! to its device and costs its reader the driver's work for it, an answer wakes its reader.
//! Every output passes the [guard](super::guard).

use forerun_core::journal::Entry;
use forerun_core::units::Extent;
use forerun_core::{
    Block, Bytes, DeviceId, Fetch, FetchOutcome, FileId, Input, Nanos, Output, ReadId, RequestId,
    protocol::Served,
};

use super::reader::{Reading, State};
use super::walk::Errand;
use super::{World, WorldError, layout};
use crate::device::{Completion, Outcome, Process, Request, transfer_time};
use crate::workload::Visit;

impl World<'_, '_> {
    /// Hands the queue of touches and releases to the engine.
    pub(super) fn drain(&mut self) -> Result<(), WorldError> {
        while let Some(input) = self.later.pop_front() {
            let released = match input {
                Input::Release { read } => Some(read.0),
                _ => None,
            };
            self.is_taken |= released.is_some();
            self.handle(input)?;
            self.free_reads.extend(released);
        }
        Ok(())
    }

    pub(super) fn handle(&mut self, input: Input) -> Result<(), WorldError> {
        self.count()?;
        self.record.entry(&Entry::Input(self.now, input.clone()));
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll() {
            self.digest.decide(self.now, &output);
            self.count()?;
            self.record.entry(&Entry::Output(output));
            match output {
                Output::Fetch(fetch) => self.fetch(&fetch)?,
                Output::Serve { read, served } => self.serve(read, served)?,
                Output::OpenAhead { folder, entry } => {
                    let folder = folder.0;
                    self.note(Errand::Open(Visit { folder, entry }), &output)?;
                }
                Output::CloseAhead { reader } => self.note(Errand::Close(reader), &output)?,
                // A device that is simulated answers every request.
                Output::Cancel { .. } => {}
            }
        }
        self.run_errands()?;
        self.tell_congestion()
    }

    /// Tells the engine of queues that are congested by now, or no longer.
    pub(super) fn tell_congestion(&mut self) -> Result<(), WorldError> {
        for at in 0..self.devices.len() {
            let is_congested = self.devices[at].is_congested();
            if self.congested[at] != is_congested {
                self.congested[at] = is_congested;
                let device = DeviceId(at as u16);
                self.handle(Input::Congested {
                    device,
                    is_congested,
                })?;
            }
        }
        Ok(())
    }

    /// The engine opens or closes a file: carried out after its last output.
    fn note(&mut self, errand: Errand, output: &Output) -> Result<(), WorldError> {
        match &mut self.walking {
            Some(walking) => walking.note(errand),
            None => return self.rule(format!("{output}, and there are no folders")),
        }
        Ok(())
    }

    /// Sends a fetch to its device. The driver's work for it begins at the same time.
    fn fetch(&mut self, fetch: &Fetch) -> Result<(), WorldError> {
        let extent = fetch.extent;
        let Some(file) = self.files.get(extent.file.0 as usize) else {
            return self.rule(format!("fetch of {extent}, a file that is not there"));
        };
        let run = file.run_of(&extent, fetch.device, self.block_bytes);
        let Some(layout::DeviceExtent { at, bytes }) = run else {
            return self.rule(format!("fetch of {extent} from device {}", fetch.device));
        };
        let started = self.guard.fetch(fetch, file.blocks, &self.table);
        self.keep(started)?;
        let (device, id) = (usize::from(fetch.device.0), u64::from(fetch.request.0));
        let payer = match (&self.turns, &self.walking) {
            (Some(_), _) | (_, Some(_)) => self.turn,
            _ => file.last_reader.map(|reader| self.at_work(reader)),
        };
        let process = payer.map_or(0, |reader| self.readers[reader].process);
        let request = Request::new(id, at, bytes).by(Process(process));
        self.devices[device].submit(self.now, request);
        self.due[device] = self.devices[device].next_event();
        match payer {
            Some(reader) => self.readers[reader].charge(self.now, self.driver_per_fetch),
            None => self.owed = plus(self.owed.max(self.now), self.driver_per_fetch),
        }
        Ok(())
    }

    pub(super) fn complete(&mut self, device: usize, ended: Completion) -> Result<(), WorldError> {
        self.drain()?;
        let request = RequestId(u32::try_from(ended.id).unwrap_or(u32::MAX));
        let Some(fetch) = self.guard.completed(request) else {
            return self.rule(format!(
                "device {device} ended {}, which it was not asked",
                ended.id
            ));
        };
        let outcome = self.outcome(&fetch.extent, ended.outcome);
        self.guard.set_failing(match outcome {
            FetchOutcome::Failed { error } => Some((fetch.extent, error)),
            _ => None,
        });
        let handled = self.handle(Input::Completed { request, outcome });
        self.guard.set_failing(None);
        handled?;
        self.end_event()
    }

    /// The device's outcome in blocks; a block that did not arrive whole did not arrive.
    fn outcome(&self, extent: &Extent, outcome: Outcome) -> FetchOutcome {
        match outcome {
            Outcome::Done => FetchOutcome::Done,
            Outcome::Short { bytes } => {
                let blocks = (bytes.0 / self.block_bytes).min(u64::from(extent.count) - 1) as u32;
                FetchOutcome::Short { blocks }
            }
            Outcome::Failed { error } => FetchOutcome::Failed { error },
        }
    }

    fn serve(&mut self, read: ReadId, served: Served) -> Result<(), WorldError> {
        let waiting = self.reads.get_mut(read.0 as usize).and_then(Option::take);
        let Some(reader) = waiting else {
            return self.rule(format!("answer to read {read}, which no reader waits for"));
        };
        let one = &self.readers[reader];
        let (Some(reading), State::Waiting { .. }) = (one.reading, one.state) else {
            return self.rule(format!("answer to reader {reader}, which does not wait"));
        };
        let (file, first) = (FileId(one.file as u32), Block(reading.at as u32));
        match served {
            Served::Blocks { count } => {
                if count == 0 || count > reading.wanted() {
                    return self.rule(format!("{count} blocks for read {read}"));
                }
                self.keep(
                    self.guard
                        .served(&Extent { file, first, count }, &self.table),
                )?;
                self.answer_blocks(reader, read, count, reading);
            }
            Served::Failed { error } => {
                self.keep(self.guard.failed(file, first, error))?;
                self.answer_end(reader, read, reading.taken == 0);
            }
            Served::End => self.answer_end(reader, read, false),
        }
        Ok(())
    }

    fn answer_blocks(&mut self, reader: usize, read: ReadId, count: u32, mut reading: Reading) {
        let blocks = u64::from(count).min(reading.stop_block - reading.at);
        self.is_answered = true;
        let one = &mut self.readers[reader];
        one.answered(
            self.now,
            State::Taking {
                read: read.0,
                blocks: blocks as u32,
            },
        );
        let mut taken = self.now;
        if self.copy_bytes_per_second > 0 {
            let bytes = Bytes(reading.take(blocks, self.block_bytes));
            one.charge(self.now, transfer_time(bytes, self.copy_bytes_per_second));
            taken = one.wake;
        }
        self.push(taken, reader);
    }

    /// The read returns its blocks so far, or an error.
    fn answer_end(&mut self, reader: usize, read: ReadId, is_error: bool) {
        self.free_reads.insert(read.0);
        let one = &mut self.readers[reader];
        one.report.errors += u64::from(is_error);
        one.reading = None;
        one.answered(self.now, State::Reading);
        let wake = one.wake;
        self.push(wake, reader);
    }
}

pub(super) fn plus(a: Nanos, b: Nanos) -> Nanos {
    Nanos(a.0.saturating_add(b.0))
}
