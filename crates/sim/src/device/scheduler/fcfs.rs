//! First come, first served: the order of arrival, at any positions.
//!
//! The order of a device without a scheduler. Fair, and the baseline for the others.

use forerun_core::spec::{Knows, Method, Spec};

use super::{Head, Next, Scheduler, Waiting};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "fcfs",
        summary: "in the order of arrival",
        source: "baseline",
        unfit: "deep queues on a disk: the arm crosses the surface for each request",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Fcfs),
};

#[derive(Debug)]
struct Fcfs;

impl Scheduler for Fcfs {
    fn pick(&mut self, waiting: &Waiting, _head: Head) -> Option<Next> {
        waiting.oldest().map(Next::Serve)
    }
}
