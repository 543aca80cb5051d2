//! Queued: one request at a time for the device inside, in the order of a scheduler.
//!
//! Holds submitted requests, gives the device one, and when that ends asks the [`Scheduler`] for
//! the next, which may be a seek of the scheduler's own:
//!
//! ```text
//! submit -> waiting, by position -> [pick] -> device (one at a time) -> completion
//! ```
//!
//! Where the scheduler asks for it, a request that continues a waiting one becomes a part of that,
//! as in a block layer. All parts of a request end when it ends.
//!
//! A device that works on several requests at once gets less than it can do: see
//! [`scheduled`](crate::scheduled), which refuses that.

use std::collections::BTreeMap;

use forerun_core::{Bytes, Nanos};

use super::{Layer, Wrapped};
use crate::device::scheduler::{Head, Next, Scheduler, Waiting};
use crate::device::{Completion, Device, Outcome, Process, Request, Usage};

/// A device with a scheduler in front. See the [module](self).
pub type Queued<D> = Wrapped<Queue, D>;

/// Requests that wait in front of a device, and their scheduler.
#[derive(Debug)]
pub struct Queue {
    scheduler: Box<dyn Scheduler>,
    waiting: Waiting,
    /// The requests that became one, by its number, in the order of their positions.
    parts: BTreeMap<u64, Vec<Request>>,
    serving: Serving,
    /// The device is left idle until then.
    wake: Option<Nanos>,
    /// Where the request last given to the device ends.
    head: Bytes,
    /// Where the device ends, if it has an end.
    end: Option<Bytes>,
    usage: Usage,
    /// See [`Scheduler::is_congested`].
    is_congested: bool,
}

/// The device's last request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Serving {
    Nothing,
    /// The request that was the given one in order of arrival.
    Request(Request, u64),
    /// A request of no bytes, made by the scheduler.
    Seek,
}

impl<D: Device> Queued<D> {
    /// The device, behind this scheduler.
    pub fn new(scheduler: Box<dyn Scheduler>, inner: D) -> Self {
        let layer = Queue {
            scheduler,
            waiting: Waiting::default(),
            parts: BTreeMap::new(),
            serving: Serving::Nothing,
            wake: None,
            head: Bytes(0),
            end: inner.capacity(),
            usage: Usage::default(),
            is_congested: false,
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
        self.wake = None;
        let Some((serving, request)) = self.pick(now) else {
            return;
        };
        self.serving = serving;
        let is_seek = serving == Serving::Seek;
        self.usage.switches += u64::from(!is_seek && request.at != self.head);
        self.head = request.end();
        inner.submit(now, request);
    }

    /// Requests came or went.
    fn note_length(&mut self) {
        let is_serving = matches!(self.serving, Serving::Request(..));
        let requests = self.waiting.len() + usize::from(is_serving);
        self.is_congested = self.scheduler.is_congested(requests, self.is_congested);
    }

    /// The next request, if any waits; the oldest if the scheduler names one that does not wait, or
    /// waits for a time that is over, which must not keep the others waiting.
    fn pick(&mut self, now: Nanos) -> Option<(Serving, Request)> {
        let (at, end) = (self.head, self.end);
        let picked = self.scheduler.pick(&self.waiting, Head { now, at, end });
        let named = match picked {
            Some(Next::Seek(at)) => {
                let seek = Request::new(u64::MAX, at, Bytes(0));
                return Some((Serving::Seek, seek));
            }
            Some(Next::Wait(until)) if until > now => {
                self.wake = Some(until);
                return None;
            }
            Some(Next::Serve(key)) => Some(key),
            _ => None,
        };
        let named = named.filter(|key| self.waiting.get(*key).is_some());
        let key = named.or_else(|| self.waiting.oldest())?;
        let request = self.waiting.remove(key)?;
        Some((Serving::Request(request, key.1), request))
    }

    /// A request waits, alone or as a part of another one.
    fn insert(&mut self, now: Nanos, request: Request) {
        let most = self.scheduler.merge_max();
        let merged = match most {
            Bytes(0) => None,
            most => self.waiting.merge(&request, most),
        };
        let number = merged.map_or(self.usage.requests, |key| key.1);
        if merged.is_none() {
            self.waiting.insert(number, now, request);
        }
        if most > Bytes(0) {
            let parts = self.parts.entry(number).or_default();
            let at = parts.partition_point(|part| part.at < request.at);
            parts.insert(at, request);
        }
    }

    /// The served request has ended: so have its parts.
    fn end(&mut self, ended: Completion, done: &mut Vec<Completion>) {
        let Serving::Request(request, number) = self.serving else {
            return;
        };
        let parts = self.parts.remove(&number);
        for part in parts.unwrap_or_else(|| vec![request]) {
            self.scheduler.ended(ended.at, &part);
            done.push(Completion {
                id: part.id,
                at: ended.at,
                outcome: outcome_of(&part, &request, ended.outcome),
            });
        }
    }
}

/// How a part of a request ended.
fn outcome_of(part: &Request, whole: &Request, outcome: Outcome) -> Outcome {
    let Outcome::Short { bytes } = outcome else {
        return outcome;
    };
    let end = whole.at.0.saturating_add(bytes.0);
    let there = end.saturating_sub(part.at.0);
    match there >= part.bytes.0 {
        true => Outcome::Done,
        false => Outcome::Short {
            bytes: Bytes(there),
        },
    }
}

impl Layer for Queue {
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        self.scheduler.came(now, &request);
        self.insert(now, request);
        // Whether it switches is known when the device gets it.
        self.usage.count(&request, false);
        self.start(inner, now);
        self.note_length();
    }

    fn next_event<D: Device>(&self, inner: &D) -> Option<Nanos> {
        self.wake.into_iter().chain(inner.next_event()).min()
    }

    /// The next request starts when the one before ended, also where the caller comes later.
    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        let mut ended = Vec::new();
        while let Some(next) = self.next_event(inner).filter(|next| *next <= now) {
            inner.advance(next, &mut ended);
            if let Some(one) = ended.pop() {
                self.end(one, done);
                self.serving = Serving::Nothing;
                self.note_length();
                self.start(inner, one.at);
            } else if self.wake == Some(next) {
                self.start(inner, next);
            }
        }
    }

    fn is_full_for<D: Device>(&self, _: &D, process: Process) -> bool {
        let most = self.scheduler.requests_max(process);
        most.is_some_and(|most| self.waiting.len() >= most)
    }

    fn is_congested<D: Device>(&self, inner: &D) -> bool {
        self.is_congested || inner.is_congested()
    }

    fn usage<D: Device>(&self, inner: &D) -> Usage {
        Usage {
            busy: inner.usage().busy,
            ..self.usage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::{ErrorCode, Profile};

    use crate::device::scheduler;
    use crate::device::switching::Switching;

    /// Number, end and time of each of these requests of a given size at a time; all but the first
    /// wait for that one.
    fn ends(requests: &[(u64, u64)], merge: u64) -> (Vec<(u64, u64)>, u64) {
        let profile = Profile::constant(Nanos(1_000), 1_000_000_000).unwrap();
        let text = format!("anticipatory(merge_bytes={merge})");
        let inner = Switching::new(profile);
        let mut device = Queued::new(scheduler::parse(&text).unwrap(), inner);
        device.submit(Nanos(0), Request::new(99, Bytes(100_000), Bytes(0)));
        for (id, &(at, bytes)) in (0..).zip(requests) {
            device.submit(Nanos(0), Request::new(id, Bytes(at), Bytes(bytes)));
        }
        let mut done = Vec::new();
        device.advance(Nanos(u64::MAX - 1), &mut done);
        let ends = done.iter().skip(1).map(|one| (one.id, one.at.0));
        (ends.collect(), device.inner.usage().requests)
    }

    #[test]
    fn requests_that_follow_each_other_are_one_and_end_together() {
        // Behind, before, and in between: one request of 40 bytes, one switch.
        let (done, requests) = ends(&[(20, 10), (30, 10), (0, 10), (10, 10)], 512);
        assert_eq!(requests, 3, "two runs, as 10..20 continues 0..10");
        assert_eq!(done.len(), 4);
        assert_eq!(done[0].1, done[1].1);
        let (_, requests) = ends(&[(20, 10), (30, 10), (10, 10), (0, 10)], 512);
        assert_eq!(requests, 2);
        let (done, requests) = ends(&[(20, 10), (30, 10), (10, 10), (0, 10)], 0);
        assert_eq!((done.len(), requests), (4, 5));
    }

    #[test]
    fn no_merged_request_is_longer_than_the_most() {
        let (done, requests) = ends(&[(0, 10), (10, 10), (20, 10)], 20);
        assert_eq!((done.len(), requests), (3, 3));
    }

    #[test]
    fn a_part_ends_as_well_as_its_share_of_the_whole() {
        let whole = Request::new(0, Bytes(100), Bytes(40));
        let part = |at| Request::new(1, Bytes(at), Bytes(20));
        let short = Outcome::Short { bytes: Bytes(30) };
        assert_eq!(outcome_of(&part(100), &whole, short), Outcome::Done);
        let ten = Outcome::Short { bytes: Bytes(10) };
        assert_eq!(outcome_of(&part(120), &whole, short), ten);
        let error = ErrorCode(5);
        let failed = Outcome::Failed { error };
        assert_eq!(outcome_of(&part(100), &whole, failed), failed);
    }
}
