//! The end of a driver, also of one whose last requests never end.
//!
//! A request that was handed over owns memory of the arena until it ends, so nothing is taken down
//! while one is in flight; where that would be for ever, it is left to the end of the process.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Shared;

impl Shared {
    /// Forbids reads from now on, waits until nothing is in flight, and halts the backend. False if
    /// something still was when the time was over: then nothing is halted, ever.
    pub(crate) fn halt(&self, until: Option<Instant>) -> bool {
        let mut control = self.control.lock();
        control.stopped = true;
        while control.in_flight > 0 && !self.abandoned.load(Ordering::Acquire) {
            control = match until {
                None => self.landed.wait(control),
                Some(until) if until > Instant::now() => self.landed.wait_until(control, until),
                Some(_) => {
                    self.abandoned.store(true, Ordering::Release);
                    control
                }
            }
        }
        drop(control);
        self.halted.store(true, Ordering::Release);
        let abandoned = self.abandoned.load(Ordering::Acquire);
        match self.backend.get() {
            // Its end would wait for the thread that hangs, whoever dropped it.
            Some(backend) if abandoned => std::mem::forget(backend.clone()),
            Some(backend) => backend.stop(),
            None => {}
        }
        !abandoned
    }

    /// The error that ended the journal before its end, if one did.
    pub(crate) fn journal_error(&self) -> Option<std::io::Error> {
        self.journal.error()
    }
}
