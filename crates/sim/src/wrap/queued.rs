//! Queued: one request at a time for the device inside, in the order of a scheduler.
//!
//! Holds what is submitted, gives the device one request, and when that ends asks the
//! [`Scheduler`] for the next, which may be a seek that nobody else asked for:
//!
//! ```text
//! submit -> waiting, by position -> [pick] -> device (one at a time) -> completion
//! ```
//!
//! A device that works on several requests at once gets less than it can do: see
//! [`scheduled`](crate::scheduled), which refuses that.

use forerun_core::{Bytes, Nanos};

use super::{Layer, Wrapped};
use crate::device::{Completion, Device, Request, Usage};
use crate::scheduler::{Next, Scheduler, Waiting};

/// A device with a scheduler in front. See the [module](self).
pub type Queued<D> = Wrapped<Queue, D>;

/// What waits in front of a device, and who decides what is next.
#[derive(Debug)]
pub struct Queue {
    scheduler: Box<dyn Scheduler>,
    waiting: Waiting,
    serving: Serving,
    /// Where the request last given to the device ends.
    head: Bytes,
    /// Where the device ends, if it has an end.
    end: Option<Bytes>,
    usage: Usage,
}

/// What the device was given last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Serving {
    Nothing,
    Request,
    /// A request of no bytes, which nobody but the scheduler asked for.
    Seek,
}

impl<D: Device> Queued<D> {
    /// The device, behind this scheduler.
    pub fn new(scheduler: Box<dyn Scheduler>, inner: D) -> Self {
        let layer = Queue {
            scheduler,
            waiting: Waiting::default(),
            serving: Serving::Nothing,
            head: Bytes(0),
            end: inner.capacity(),
            usage: Usage::default(),
        };
        Self { layer, inner }
    }
}

impl Queue {
    /// Gives the device its next request, if it is free and one waits.
    fn start<D: Device>(&mut self, inner: &mut D, now: Nanos) {
        if self.serving != Serving::Nothing || self.waiting.is_empty() {
            return;
        }
        let Some((serving, request)) = self.pick() else {
            return;
        };
        self.serving = serving;
        self.usage.switches += u64::from(serving == Serving::Request && request.at != self.head);
        self.head = request.end();
        inner.submit(now, request);
    }

    /// What is next; the oldest request where the scheduler names one that does not wait, which
    /// must not keep the others waiting.
    fn pick(&mut self) -> Option<(Serving, Request)> {
        let picked = self.scheduler.pick(&self.waiting, self.head, self.end);
        if let Some(Next::Seek(at)) = picked {
            let (id, bytes) = (u64::MAX, Bytes(0));
            return Some((Serving::Seek, Request { id, at, bytes }));
        }
        let named = match picked {
            Some(Next::Serve(key)) => self.waiting.remove(key),
            _ => None,
        };
        let oldest = || {
            self.waiting
                .oldest()
                .and_then(|key| self.waiting.remove(key))
        };
        let request = named.or_else(oldest)?;
        Some((Serving::Request, request))
    }
}

impl Layer for Queue {
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        self.waiting.insert(self.usage.requests, request);
        // Whether it switches is known when the device gets it.
        self.usage.count(&request, false);
        self.start(inner, now);
    }

    /// The next request starts when the one before ended, also where the caller comes later.
    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(next) = inner.next_event().filter(|next| *next <= now) {
            let before = done.len();
            inner.advance(next, done);
            let Some(ended) = done.get(before..).and_then(<[Completion]>::last) else {
                continue;
            };
            let at = ended.at;
            if self.serving == Serving::Seek {
                done.truncate(before);
            }
            self.serving = Serving::Nothing;
            self.start(inner, at);
        }
    }

    fn usage<D: Device>(&self, inner: &D) -> Usage {
        Usage {
            busy: inner.usage().busy,
            ..self.usage
        }
    }
}
