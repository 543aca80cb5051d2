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
//! driver -- give up --> source: on_give_up, drops it; bytes filled so far have arrived
//! ```

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::arena::Target;
use crate::backend::{Outcome, Request, Sink};
use crate::sync::Mutex;

/// The error of a read that was given up.
pub(crate) const GIVEN_UP: i32 = libc::ECANCELED;

/// Lets the driver give a request up that a source has taken.
#[derive(Default)]
pub struct GiveUp(Mutex<Asked>);

#[derive(Default)]
enum Asked {
    /// No source has taken it.
    #[default]
    No,
    /// By calling this.
    Can(Box<dyn FnOnce() + Send>),
    /// It is asked for.
    Yes,
}

impl fmt::Debug for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GiveUp").field(&self.is_asked()).finish()
    }
}

impl GiveUp {
    /// Whether the request is to be given up.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(*self.0.lock(), Asked::Yes)
    }

    /// Gives it up, now or when a source takes it.
    pub(crate) fn ask(&self) {
        let before = std::mem::replace(&mut *self.0.lock(), Asked::Yes);
        if let Asked::Can(give_up) = before {
            give_up();
        }
    }

    /// How it is done.
    fn can(&self, give_up: impl FnOnce() + Send + 'static) {
        let mut asked = self.0.lock();
        if matches!(*asked, Asked::Yes) {
            drop(asked);
            return give_up();
        }
        let before = std::mem::replace(&mut *asked, Asked::Can(Box::new(give_up)));
        // A function of before is dropped without the lock.
        drop(asked);
        drop(before);
    }
}

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

    /// Registers a function, called at most once and from any thread, that ends the read early: it hangs, and others
    /// want its memory. The function should have the pending read dropped soon, but not before it returns. Bytes
    /// [filled](Target::fill) until then, from the front on, count as read.
    pub fn on_give_up(&self, give_up: impl FnOnce() + Send + 'static) {
        if let Some(asked) = self.request().and_then(|request| request.given_up.as_ref()) {
            asked.can(give_up);
        }
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
        let given_up = self.request().and_then(|request| request.given_up.as_ref());
        let is_given_up = given_up.is_some_and(|it| it.is_asked());
        self.complete(Err(if is_given_up { GIVEN_UP } else { libc::EIO }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    /// Looks at its end whether the read is given up.
    struct Looks(Arc<GiveUp>, Sender<bool>);

    impl Drop for Looks {
        fn drop(&mut self) {
            let _ = self.1.send(self.0.is_asked());
        }
    }

    #[test]
    fn a_function_that_another_one_replaces_is_dropped_without_the_lock() {
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let give_up = Arc::<GiveUp>::default();
            let looks = Looks(give_up.clone(), tell);
            give_up.can(move || drop(looks));
            give_up.can(|| ());
        });
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(false));
    }
}
