//! Meter: the busy time of a device, and the response times of its requests.
//!
//! A device goes into an array or a scene and cannot be asked any more; the counts of the [`Meter`]
//! over it stay with the caller. It changes nothing about the device.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use forerun_core::Nanos;

use super::{Layer, Wrapped};
use crate::device::{Completion, Device, Outcome, Request};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Meter(Rc<RefCell<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    busy: Nanos,
    completed: u64,
    failed: u64,
    response: u128,
    submitted: BTreeMap<u64, Nanos>,
}

impl Meter {
    /// The device, watched by this meter.
    #[must_use]
    pub fn over(&self, inner: Box<dyn Device>) -> Box<dyn Device> {
        let layer = self.clone();
        Box::new(Wrapped { layer, inner })
    }

    /// How long it worked.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        self.0.borrow().busy
    }

    /// Requests that ended.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.0.borrow().completed
    }

    /// Sum over them of the time from submission to completion.
    #[must_use]
    pub fn response(&self) -> Nanos {
        Nanos(u64::try_from(self.0.borrow().response).unwrap_or(u64::MAX))
    }

    /// Requests that did not end well.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.0.borrow().failed
    }
}

impl Layer for Meter {
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        inner.submit(now, request);
        let mut counts = self.0.borrow_mut();
        counts.submitted.insert(request.id, now);
        counts.busy = inner.usage().busy;
    }

    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        let before = done.len();
        inner.advance(now, done);
        let mut counts = self.0.borrow_mut();
        for one in done.iter().skip(before) {
            let submitted = counts.submitted.remove(&one.id).unwrap_or(one.at);
            counts.completed += 1;
            counts.failed += u64::from(one.outcome != Outcome::Done);
            counts.response += u128::from(one.at.since(submitted).0);
        }
        counts.busy = inner.usage().busy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Bytes;

    use crate::hinted::constant::Constant;

    #[test]
    fn it_does_what_the_device_does() {
        let make = || Meter::default().over(Box::new(Constant::new(Nanos(3_000_000))));
        crate::conformance::device(&make, 1).unwrap();
    }

    #[test]
    fn it_counts_responses() {
        let meter = Meter::default();
        let mut device = meter.over(Box::new(Constant::new(Nanos(10))));
        for id in 0..2 {
            let (at, bytes) = (Bytes(0), Bytes(1));
            device.submit(Nanos(0), Request::new(id, at, bytes));
        }
        device.advance(Nanos(20), &mut Vec::new());
        assert_eq!((meter.response(), meter.busy()), (Nanos(30), Nanos(20)));
    }
}
