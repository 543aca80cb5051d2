//! Synchronisation: the atomics and locks of this crate's protocols.
//!
//! Named here once, so that a test program can compile the files that use them a second time over
//! ones that try every order of the threads' steps (`tests/interleavings`).
//!
//! The locks are those of the standard library, which take no memory beside themselves, without
//! poisoning: a thread that panics in here has reported it, and the others go on.

pub(crate) use std::sync::MutexGuard;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{PoisonError, TryLockError};
use std::time::Instant;

/// A lock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while another thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition that threads wait for, having released a lock.
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(held).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits no longer than until then.
    pub(crate) fn wait_until<'a, T>(
        &self,
        held: MutexGuard<'a, T>,
        end: Instant,
    ) -> MutexGuard<'a, T> {
        let left = end.saturating_duration_since(Instant::now());
        let woken = self.0.wait_timeout(held, left);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Lets another thread go on, of which only that much is known. It may have lost its processor to
/// us, and a thread with real-time priority, as an emulated disk's is, gives way only by sleeping.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing can wake it: the other side must not pay"
)]
pub(crate) fn give_way(looks: u32) {
    if looks < 16 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
}
