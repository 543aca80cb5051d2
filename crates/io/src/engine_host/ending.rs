//! The end of a driver and of its journal, also of a driver whose last requests never end.
//!
//! A request that was handed over owns memory of the arena until it ends, so nothing is taken down
//! while one is in flight; where that would be for ever, it is left to the end of the process.

use std::io;
use std::mem;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::EngineHost;

impl EngineHost {
    /// Forbids reads and hints from now on, waits until nothing is in flight, and halts the backend. False if
    /// something still was when the time was over: then nothing is halted, ever.
    pub(crate) fn halt(&self, until: Option<Instant>) -> bool {
        let mut state = self.state.lock();
        state.stopped = true;
        while state.in_flight > 0 && !self.abandoned.load(Ordering::Acquire) {
            state = match until {
                None => self.landed.wait(state),
                Some(until) if until > Instant::now() => self.landed.wait_until(state, until),
                Some(_) => {
                    self.abandoned.store(true, Ordering::Release);
                    state
                }
            }
        }
        // Under the lock: a request that the engine makes later finds it halted, and no request was made before. It would
        // be put where no thread of the backend takes it.
        self.halted.store(true, Ordering::Release);
        drop(state);
        let abandoned = self.abandoned.load(Ordering::Acquire);
        match self.backend.get() {
            // Its end would wait for the thread that hangs, in any thread that dropped it.
            Some(backend) if abandoned => mem::forget(backend.clone()),
            Some(backend) => backend.stop(),
            None => {}
        }
        !abandoned
    }

    /// The lines that were gathered.
    fn take_lines(&self) -> String {
        let mut state = self.state.lock();
        state.journal.as_mut().map(mem::take).unwrap_or_default()
    }

    /// Writes the lines there are by now.
    pub(crate) fn write_journal(&self) {
        self.journal.write(|| self.take_lines());
    }

    /// The same, unless another thread writes: then these lines are for the next one that leaves.
    pub(crate) fn try_write_journal(&self) {
        self.journal.try_write(|| self.take_lines());
    }

    /// Writes the last lines and closes the journal.
    pub(crate) fn close_journal(&self) -> io::Result<()> {
        self.write_journal();
        self.state.lock().journal = None;
        self.journal.close()
    }

    /// The error that ended the journal before its end, if one did.
    pub(crate) fn journal_error(&self) -> Option<io::Error> {
        self.journal.error()
    }
}
