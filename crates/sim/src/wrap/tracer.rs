//! Tracer: shows every request of a device, with its times, to a sink.
//!
//! For seeing what a device was really asked, in which order, and how long each request took.
//! The sink is a closure, so whoever wants a trace decides what is kept of it and where.

use std::collections::BTreeMap;

use forerun_core::{Bytes, Nanos, Profile};

use crate::device::{Completion, Device, Outcome, Request, Usage};
use crate::needs::Needs;

/// A request that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traced {
    /// The request.
    pub request: Request,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// How it ended.
    pub outcome: Outcome,
}

/// See the [module](self).
pub struct Tracer<D, S> {
    inner: D,
    sink: S,
    open: BTreeMap<u64, (Nanos, Request)>,
}

impl<D: core::fmt::Debug, S> core::fmt::Debug for Tracer<D, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tracer")
            .field("inner", &self.inner)
            .field("open", &self.open)
            .finish()
    }
}

impl<D: Device, S: FnMut(Traced)> Tracer<D, S> {
    /// The device, with every request shown to `sink` when it ends.
    pub fn new(inner: D, sink: S) -> Self {
        Self {
            inner,
            sink,
            open: BTreeMap::new(),
        }
    }
}

impl<D: Device, S: FnMut(Traced)> Device for Tracer<D, S> {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.open.insert(request.id, (now, request));
        self.inner.submit(now, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let before = done.len();
        self.inner.advance(now, done);
        for ended in done.iter().skip(before) {
            if let Some((submitted, request)) = self.open.remove(&ended.id) {
                let Completion { at, outcome, .. } = *ended;
                (self.sink)(Traced {
                    request,
                    submitted,
                    ended: at,
                    outcome,
                });
            }
        }
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn servers(&self) -> u32 {
        self.inner.servers()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.inner.capacity()
    }

    fn least(&self, needs: &Needs) -> Nanos {
        self.inner.least(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::instant::Instant;
    use forerun_core::Bytes;

    #[test]
    fn every_request_reaches_the_sink_once() {
        let mut seen = Vec::new();
        let mut device = Tracer::new(Instant::default(), |traced: Traced| seen.push(traced));
        let request = Request {
            id: 9,
            at: Bytes(5),
            bytes: Bytes(7),
        };
        device.submit(Nanos(3), request);
        device.advance(Nanos(3), &mut Vec::new());
        device.advance(Nanos(4), &mut Vec::new());
        drop(device);
        let (submitted, ended) = (Nanos(3), Nanos(3));
        assert_eq!(
            seen,
            [Traced {
                request,
                submitted,
                ended,
                outcome: Outcome::Done
            }]
        );
    }
}
