//! Requests on their way to the backend, in the order of the engine's decisions.
//!
//! Filled under the engine's lock, emptied without it, by one thread at a time. A thread that finds
//! another at it leaves: that one looks again after each request. So requests are not overtaken,
//! and a backend that completes one inside `submit` does not recurse.
//!
//! Except one whose frames a reader copies out of for long, into a page that is not there: that one is
//! held, looked at each time the queue is emptied, and goes out first once its frames are clear. It ends if the engine
//! gives it up meanwhile.
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
    /// Those whose frames are copied out of for long.
    held: VecDeque<Box<Request>>,
    /// A request was taken out and not handed over yet.
    busy: bool,
}

impl DispatchQueue {
    /// Adds requests at the end. The caller holds the engine's lock.
    pub(crate) fn put(&self, requests: impl Iterator<Item = Box<Request>>) {
        self.0.lock().requests.extend(requests);
    }

    /// Takes the first request, to be handed over before [`DispatchQueue::end`] is called; none if there
    /// is none, or while another is being handed over. A held one is the first once it is clear.
    pub(crate) fn begin(&self, is_clear: impl Fn(&Request) -> bool) -> Option<Box<Request>> {
        let mut waiting = self.0.lock();
        if waiting.busy {
            return None;
        }
        let clear = waiting.held.iter().position(|request| is_clear(request));
        let held = clear.and_then(|at| waiting.held.remove(at));
        let request = held.or_else(|| waiting.requests.pop_front())?;
        waiting.busy = true;
        Some(request)
    }

    /// The request taken last is not clear for long.
    pub(crate) fn hold(&self, request: Box<Request>) {
        self.0.lock().held.push_back(request);
    }

    /// The request taken last was handed over.
    pub(crate) fn end(&self) {
        self.0.lock().busy = false;
    }
}
