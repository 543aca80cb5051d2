//! A read that a source carries out without a thread of the driver's.
//!
//! A read of a server is mostly waiting. A source that can wait for many servers on few threads takes the
//! read away with it ([`Source::begin`](super::Source::begin)), and ends it when its bytes are there: so a
//! server that is silent holds no threads, however many ranges were asked of it.
//!
//! ```text
//! driver -- begin --> source: keeps the Pending, and returns
//!                      ...   target().fill as bytes arrive
//! reader <----------- end(how far it came)   or dropped: EIO
//! ```

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::arena::Target;
use crate::backend::{Outcome, Request, Sink};

/// See the [module](self). One that is dropped has failed, with `EIO`.
pub struct Pending(Option<(Box<Request>, Arc<dyn Sink>)>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.request()).finish()
    }
}

impl Pending {
    pub(crate) fn new(request: Box<Request>, sink: Arc<dyn Sink>) -> Self {
        Self(Some((request, sink)))
    }

    /// Gives the request back, unread.
    pub(crate) fn into_request(mut self) -> Option<Box<Request>> {
        self.0.take().map(|(request, _)| request)
    }

    fn request(&self) -> Option<&Request> {
        self.0.as_ref().map(|(request, _)| &**request)
    }

    /// Where in the source the target begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.request().map_or(0, |request| request.offset)
    }

    /// Bytes at the front of the target that are there already.
    #[must_use]
    pub fn skip(&self) -> usize {
        self.request().map_or(0, |request| request.skip)
    }

    /// The memory to fill; none once it has ended.
    pub fn target(&mut self) -> Option<&mut Target> {
        let request = self.0.as_mut().map(|(request, _)| request);
        request.map(|request| &mut request.target)
    }

    /// The read has ended, as a [`read`](super::Source::read) with this result.
    pub fn end(mut self, read: io::Result<usize>) {
        let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        self.complete(read.map(|bytes| bytes as u64).map_err(number));
    }

    fn complete(&mut self, outcome: Outcome) {
        if let Some((request, sink)) = self.0.take() {
            sink.completed(request, outcome);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.complete(Err(libc::EIO));
    }
}
