//! Where a thread waits for the engine's answer to its read.
//!
//! One per thread, used again for each of its reads: a thread waits for one read at a time. The
//! engine's lock holder puts the answer in and wakes the thread once the lock is free.

use std::sync::Arc;

use forerun_core::{ReadId, Served};
use parking_lot::{Condvar, Mutex};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    answer: Mutex<Option<(ReadId, Served)>>,
    answered: Condvar,
}

thread_local! {
    static WAITER: Arc<Waiter> = Arc::default();
}

impl Waiter {
    /// This thread's waiter.
    pub(crate) fn of_this_thread() -> Arc<Self> {
        WAITER.try_with(Arc::clone).unwrap_or_default()
    }

    /// Puts the answer in, without waking anyone yet.
    pub(crate) fn answer(&self, read: ReadId, served: Served) {
        *self.answer.lock() = Some((read, served));
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake(&self) {
        self.answered.notify_one();
    }

    /// Waits for the answer and takes it.
    pub(crate) fn wait(&self) -> (ReadId, Served) {
        let mut answer = self.answer.lock();
        loop {
            match answer.take() {
                Some(answer) => return answer,
                None => self.answered.wait(&mut answer),
            }
        }
    }
}
