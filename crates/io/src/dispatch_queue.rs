//! Requests on their way to the backend, in the order of the engine's decisions.
//!
//! Filled under the engine's lock, emptied without it, by one thread at a time. A thread that finds
//! another at it leaves: that one looks again after each request. So requests are not overtaken,
//! and a backend that completes one inside `submit` does not recurse.
//!
//! Compiled a second time by `tests/interleavings`, which tries this in every order.

use std::collections::VecDeque;

use crate::backend::Request;
use crate::sync::Mutex;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct DispatchQueue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Box<Request>>,
    /// A request was taken out and not handed over yet.
    busy: bool,
}

impl DispatchQueue {
    /// Adds requests at the end. The caller holds the engine's lock.
    pub(crate) fn put(&self, requests: impl Iterator<Item = Box<Request>>) {
        self.0.lock().requests.extend(requests);
    }

    /// Takes the first request, to be handed over before [`DispatchQueue::end`] is called; none if there
    /// is none, or while another is being handed over.
    pub(crate) fn begin(&self) -> Option<Box<Request>> {
        let mut waiting = self.0.lock();
        if waiting.busy {
            return None;
        }
        let request = waiting.requests.pop_front()?;
        waiting.busy = true;
        Some(request)
    }

    /// The request taken last was handed over.
    pub(crate) fn end(&self) {
        self.0.lock().busy = false;
    }
}
