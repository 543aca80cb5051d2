//! SCAN: sweep up to the edge of the device, then down to the other, and again.
//!
//! The arm goes to the edge even if nothing waits there, by a request of no bytes; that is all
//! that tells it from [LOOK](super::look), and on a device without an end it is LOOK.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Spec};

use super::look::Look;
use super::{Head, Next, Scheduler, Waiting};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "scan",
        summary: "up to the edge, down to the other, and again",
        source: "Denning, Effects of scheduling on file memory operations, 1967",
        unfit: "light load: the way to the edge is for nothing",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Scan::default()),
};

#[derive(Debug, Default)]
struct Scan {
    sweep: Look,
    is_at_edge: bool,
}

impl Scheduler for Scan {
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next> {
        if waiting.is_empty() {
            return None;
        }
        let is_at_edge = core::mem::take(&mut self.is_at_edge);
        if let Some(ahead) = self.sweep.ahead(waiting, head.at) {
            return Some(Next::Serve(ahead));
        }
        let edge = if self.sweep.is_downward {
            Some(Bytes(0))
        } else {
            head.end
        };
        match edge {
            Some(edge) if !is_at_edge && edge != head.at => {
                self.is_at_edge = true;
                Some(Next::Seek(edge))
            }
            _ => self.sweep.pick(waiting, head),
        }
    }
}
