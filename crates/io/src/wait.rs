//! Where the engine's answer to a read goes.
//!
//! A thread that waits for its read has one place, used again for each: it waits for one at a time.
//! A read that was only asked to tell when its blocks are there has a call in its place, and no
//! thread. The engine's lock holder puts the answer in, and wakes or calls once the lock is free.
//!
//! Compiled a second time by `tests/interleavings`, which tries this in every order.

use std::sync::Arc;

use forerun_core::{ReadId, Served};

use crate::sync::{Condvar, Mutex};

/// Called with the answer, on the thread that brings it: it must not take long.
pub(crate) type Call = Box<dyn FnOnce(Served) + Send>;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Waiter {
    place: Mutex<Waiting>,
    answered: Condvar,
}

#[derive(Default)]
struct Waiting {
    answer: Option<(ReadId, Served)>,
    call: Option<Call>,
}

thread_local! {
    static WAITER: Arc<Waiter> = Arc::default();
}

impl Waiter {
    /// This thread's waiter.
    pub(crate) fn of_this_thread() -> Arc<Self> {
        WAITER.try_with(Arc::clone).unwrap_or_default()
    }

    /// A waiter for one answer, which goes to this call.
    pub(crate) fn calling(call: Call) -> Arc<Self> {
        let place = Waiting {
            answer: None,
            call: Some(call),
        };
        Arc::new(Self {
            place: Mutex::new(place),
            answered: Condvar::default(),
        })
    }

    /// Puts the answer in, without waking anyone yet.
    pub(crate) fn answer(&self, read: ReadId, served: Served) {
        self.place.lock().answer = Some((read, served));
    }

    /// Wakes the thread if it sleeps, or calls.
    pub(crate) fn wake(&self) {
        let mut place = self.place.lock();
        let Some(call) = place.call.take() else {
            drop(place);
            self.answered.notify_one();
            return;
        };
        let answer = place.answer.take();
        drop(place);
        if let Some((_, served)) = answer {
            call(served);
        }
    }

    /// Waits for the answer and takes it.
    pub(crate) fn wait(&self) -> (ReadId, Served) {
        let mut place = self.place.lock();
        loop {
            match place.answer.take() {
                Some(answer) => return answer,
                None => place = self.answered.wait(place),
            }
        }
    }
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.place.lock();
        write!(f, "Waiter {{ answer: {:?} }}", place.answer)
    }
}
