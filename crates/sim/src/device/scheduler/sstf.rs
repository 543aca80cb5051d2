//! Shortest seek time first: the request nearest to where the last one ended.
//!
//! Nearest by position, the only measure of an operating system. Of two equally near the one ahead
//! is taken. Requests far from where others keep coming can wait without bound.

use forerun_core::spec::{Knows, Method, Spec};

use super::{Head, Next, Scheduler, Waiting};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "sstf",
        summary: "the nearest position first",
        source: "Denning, Effects of scheduling on file memory operations, 1967",
        unfit: "steady load: a request far away can wait for ever",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Sstf),
};

#[derive(Debug)]
struct Sstf;

impl Scheduler for Sstf {
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next> {
        let head = head.at;
        let (ahead, behind) = (waiting.at_or_after(head), waiting.before(head));
        let nearest = match (ahead, behind) {
            (Some(ahead), Some(behind)) if head.0 - behind.0.0 < ahead.0.0 - head.0 => Some(behind),
            (ahead, behind) => ahead.or(behind),
        };
        nearest.map(Next::Serve)
    }
}
