//! Calls of code that is not the driver's: callbacks, wakers, sources, hosts, writers.
//!
//! Such a call runs on the thread that has an answer or a request in hand, often the only one of a backend. A panic
//! that unwound through it would end that thread, and every other reader would wait for ever. So a panic ends here, after
//! the panic hook has reported it: the code that panicked goes without its result, and all others go on.

use std::panic::{self, AssertUnwindSafe};

/// The result of a call; none if it panicked.
pub(crate) fn guarded<R>(call: impl FnOnce() -> R) -> Option<R> {
    panic::catch_unwind(AssertUnwindSafe(call)).ok()
}
