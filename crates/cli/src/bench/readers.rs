//! The readers of a bench in real time: a thread each, started together, checked as they read.
//!
//! Called by `engine` and `kernel` with an open file for each reader. Readers wait at a gate until
//! all of them exist; the clock starts when it opens. The first failure, or wrong byte, stops all
//! of them and is the run's error.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use forerun_core::Nanos;
use forerun_io::generated;
use forerun_sim::workload::Step;
use indicatif::ProgressBar;

use super::Responses;
use super::plan::Plan;
use crate::failure::Failure;
use crate::files::plain;

/// A reader needs a frame or two: 64 KiB would do, and 16,384 readers then take 4 GiB of
/// address space, not 128.
const STACK_BYTES: usize = 256 << 10;

/// A thread maps a stack and another one for its signals, each with a guard page.
const MAPS_EACH: usize = 4;

/// Maps of a process beside those of its readers: its program, libraries and memory.
const MAPS_LEFT: usize = 2048;

/// An open file of one reader.
pub trait Source: Send {
    /// As `pread(2)`.
    ///
    /// # Errors
    /// Errors of the read.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// Elapsed time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Times {
    /// From the opening of the gate to the end of the last reader.
    pub elapsed: Nanos,
    /// Each reader's time.
    pub readers: Vec<Nanos>,
    /// Bytes they got.
    pub bytes: u64,
    /// Responses of their reads.
    pub responses: Responses,
}

/// Distributions that readers share: readers that use the same one rarely wait for each other.
const LANES: usize = 32;

/// Shared state of all threads.
pub(super) struct Race<'a> {
    plan: &'a Plan,
    bar: &'a ProgressBar,
    gate: RwLock<()>,
    stopped: AtomicBool,
    responses: [Mutex<Responses>; LANES],
}

/// A reader at its next step.
pub(super) struct Turn<'a> {
    /// Its number.
    pub(super) reader: usize,
    /// The file that it reads.
    pub(super) file: usize,
    /// When the clock of its steps began.
    pub(super) begun: Instant,
    /// Its step.
    pub(super) step: &'a Step,
}

/// The result of one reader: its time and its bytes.
type End = Result<(Nanos, u64), Failure>;

/// Runs a reader over each source, in the plan's order of readers.
///
/// # Errors
/// The first failure of any reader, or a thread that cannot be started.
pub fn run<S: Source>(plan: &Plan, bar: &ProgressBar, sources: Vec<S>) -> Result<Times, Failure> {
    if plan.pattern.is_one_process() {
        return in_turns(plan, bar, sources);
    }
    let race = Race::new(plan, bar);
    thread::scope(|scope| {
        let closed = race.gate.write();
        let readers = sources.into_iter().enumerate();
        let threads: Vec<_> = readers
            .map(|(reader, source)| race.start(scope, reader, source))
            .collect();
        let begun = Instant::now();
        drop(closed);
        // All of them are waited for before the first failure is looked at.
        let ends: Vec<End> = threads
            .into_iter()
            .map(|thread| thread.and_then(join))
            .collect();
        let elapsed = nanos(begun.elapsed());
        let ends: Vec<_> = ends.into_iter().collect::<Result<_, _>>()?;
        let bytes = ends.iter().map(|(_, bytes)| bytes).sum();
        Ok(Times {
            elapsed,
            readers: ends.into_iter().map(|(time, _)| time).collect(),
            bytes,
            responses: race.responses(),
        })
    })
}

/// Whether a process with so many maps at most has room for so many threads. One that finds no room for its second
/// stack ends the process.
pub(super) fn check_room(threads: usize, maps_max: usize) -> Result<(), Failure> {
    let most = maps_max.saturating_sub(MAPS_LEFT) / MAPS_EACH;
    match threads > most {
        true => Err(Failure::Usage(format!(
            "{threads} readers at once: from 1 to {most} threads have room in a process here \
             (the sysctl vm.max_map_count is {maps_max})"
        ))),
        false => Ok(()),
    }
}

/// Most maps of a process; the kernel's default where it does not tell.
pub(super) fn maps_max() -> usize {
    let told = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let told = told.and_then(|text| text.trim().parse().ok());
    told.unwrap_or(65_530)
}

/// All readers as one process: each makes its next step when its turn comes.
fn in_turns<S: Source>(
    plan: &Plan,
    bar: &ProgressBar,
    mut sources: Vec<S>,
) -> Result<Times, Failure> {
    let race = Race::new(plan, bar);
    let workload = plan.workload()?;
    let mut steps: Vec<_> = (0..sources.len()).map(|r| workload.steps(r)).collect();
    let mut buffer = Vec::with_capacity(plan.read_bytes as usize);
    let mut bytes = 0;
    let begun = Instant::now();
    for reader in workload.turns().into_iter().flatten() {
        if let Some(step) = steps[reader].next() {
            let turn = Turn {
                reader,
                file: plan.readers[reader],
                begun,
                step: &step,
            };
            race.step(&turn, &mut sources[reader], &mut buffer)?;
            bytes += step.take.0;
        }
    }
    let elapsed = nanos(begun.elapsed());
    Ok(Times {
        elapsed,
        readers: vec![elapsed; sources.len()],
        bytes,
        responses: race.responses(),
    })
}

fn join(thread: ScopedJoinHandle<'_, End>) -> End {
    thread
        .join()
        .unwrap_or_else(|_| Err(Failure::Run("a reader's thread panicked".to_owned())))
}

impl<'a> Race<'a> {
    pub(super) fn new(plan: &'a Plan, bar: &'a ProgressBar) -> Self {
        Self {
            plan,
            bar,
            gate: RwLock::new(()),
            stopped: AtomicBool::new(false),
            responses: Default::default(),
        }
    }
}

impl Race<'_> {
    /// Whether a reader has failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A reader has failed: the others end with their next step.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Starts a reader's thread, which waits at the gate.
    fn start<'scope, S: Source + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        reader: usize,
        mut source: S,
    ) -> Result<ScopedJoinHandle<'scope, End>, Failure> {
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let started = builder.spawn_scoped(scope, move || self.reader(reader, &mut source));
        started.map_err(|e| {
            self.stopped.store(true, Ordering::Relaxed);
            Failure::Run(format!("cannot start reader {reader}: {e}"))
        })
    }

    /// One reader from the gate to its end.
    fn reader(&self, reader: usize, source: &mut dyn Source) -> End {
        let workload = self.plan.workload_of(reader)?;
        let mut buffer = Vec::with_capacity(self.plan.read_bytes as usize);
        drop(self.gate.read());
        let begun = Instant::now();
        let mut bytes = 0;
        for step in workload.steps(0) {
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            let due = Duration::from_nanos(step.not_before.unwrap_or_default().0);
            thread::sleep(due.saturating_sub(begun.elapsed()));
            let turn = Turn {
                reader,
                file: self.plan.readers[reader],
                begun,
                step: &step,
            };
            let read = self.step(&turn, source, &mut buffer);
            read.inspect_err(|_| self.stopped.store(true, Ordering::Relaxed))?;
            bytes += step.take.0;
        }
        Ok((nanos(begun.elapsed()), bytes))
    }

    /// Responses of all readers so far.
    pub(super) fn responses(&self) -> Responses {
        let mut all = Responses::default();
        for lane in &self.responses {
            all.join(&lane.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all
    }

    /// Computes, then reads, and checks the bytes.
    pub(super) fn step(
        &self,
        turn: &Turn<'_>,
        source: &mut dyn Source,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Turn {
            reader, file, step, ..
        } = *turn;
        if step.think > Nanos(0) {
            thread::sleep(Duration::from_nanos(step.think.0));
        }
        buffer.resize(step.take.0 as usize, 0);
        // As in virtual time: a read that is late has waited since it was due.
        let asked = match step.not_before {
            None => Instant::now(),
            Some(due) => turn.begun + Duration::from_nanos(due.0),
        };
        self.read(file, source, buffer, step.offset.0)?;
        let lane = self.responses[reader % LANES].lock();
        lane.unwrap_or_else(PoisonError::into_inner)
            .add(nanos(asked.elapsed()));
        self.check(file, buffer, step.offset.0)?;
        self.bar.inc(step.take.0);
        Ok(())
    }

    /// Fills the buffer from `offset` on.
    fn read(
        &self,
        file: usize,
        source: &mut dyn Source,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), Failure> {
        let mut got = 0;
        while got < buffer.len() {
            let at = offset + got as u64;
            match source.read_at(&mut buffer[got..], at) {
                Ok(0) => {
                    return Err(self.failed(file, at, "the file ends here, but did not before"));
                }
                Ok(count) => got += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(file, at, &plain(&e))),
            }
        }
        Ok(())
    }

    /// Checks the bytes of a file that was generated.
    fn check(&self, file: usize, buffer: &[u8], offset: u64) -> Result<(), Failure> {
        let content = &self.plan.content;
        match content.files()[file].index {
            Some(index) => generated::check(content.seed(), index, offset, buffer)
                .map_err(|at| self.failed(file, at, "wrong byte")),
            None => Ok(()),
        }
    }

    fn failed(&self, file: usize, at: u64, why: &str) -> Failure {
        match &self.plan.content.files()[file].path {
            Some(path) => Failure::broken(path, format!("byte {at}: {why}")),
            None => Failure::Run(format!("file {file}, byte {at}: {why}")),
        }
    }
}

pub(super) fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_without_room_for_their_threads_are_refused() {
        assert!(check_room(15_870, 65_530).is_ok());
        let refused = check_room(16_384, 65_530).unwrap_err().to_string();
        assert!(
            refused.contains("16384") && refused.contains("15870"),
            "{refused}"
        );
        assert!(check_room(1, 0).is_err());
    }
}
