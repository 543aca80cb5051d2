//! What threads share by: the atomics and locks of this crate's protocols.
//!
//! Named here once, so that a test program can compile the files that use them a second time over
//! ones that try every order of the threads' steps (`tests/interleavings`).

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

pub(crate) use parking_lot::{Condvar, Mutex};

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
