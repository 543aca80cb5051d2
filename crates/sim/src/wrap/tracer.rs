//! Tracer: shows every request of a device, with its times, to a sink.
//!
//! For seeing a device's actual requests, in order, and the time of each. The sink is a closure, so
//! the caller decides which of them to keep and where.

use std::collections::BTreeMap;

use forerun_core::Nanos;

use super::{Layer, Wrapped};
use crate::device::{Completion, Device, Outcome, Request};

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

/// A device whose requests are shown. See the [module](self).
pub type Tracer<D, S> = Wrapped<Watch<S>, D>;

/// Remembers requests under way, until they can be shown.
pub struct Watch<S> {
    sink: S,
    open: BTreeMap<u64, (Nanos, Request)>,
}

impl<S> core::fmt::Debug for Watch<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Watch")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl<D: Device, S: FnMut(Traced)> Tracer<D, S> {
    /// The device, with every request shown to `sink` when it ends.
    pub fn new(inner: D, sink: S) -> Self {
        let open = BTreeMap::new();
        let layer = Watch { sink, open };
        Self { layer, inner }
    }
}

impl<S: FnMut(Traced)> Layer for Watch<S> {
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        self.open.insert(request.id, (now, request));
        inner.submit(now, request);
    }

    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        let before = done.len();
        inner.advance(now, done);
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
        let request = Request::new(9, Bytes(5), Bytes(7));
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
