//! CSCAN: sweep upwards, return to the lowest request, and again.
//!
//! Always upwards, so every position waits equally long, and sequential streams are served in
//! their direction, which a disk's readahead rewards; Kimbrel et al. 1996 (section 3.2) chose it
//! over SCAN for that. It turns at the last request and returns to the first, as drivers do and as
//! we assume of the paper; with `to_edge=1` the arm goes to the end of the device and to its
//! beginning in between, as textbooks have it.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{Head, Next, Scheduler, Waiting};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "cscan",
        summary: "upwards, back to the lowest request, and again",
        source: "kimbrel96 section 3.2",
        unfit: "short queues: each return crosses the surface",
        knows: Knows::Online,
        params: &[Param {
            name: "to_edge",
            summary: "1 to go to the edges before returning; drivers do not",
            default: 0,
            min: 0,
            max: 1,
        }],
    },
    build: |values| {
        Box::new(Cscan {
            to_edge: values.get("to_edge") == 1,
            seeks: 0,
        })
    },
};

#[derive(Debug)]
struct Cscan {
    to_edge: bool,
    /// Seeks made since something was served: to the end, then to the beginning.
    seeks: u8,
}

impl Scheduler for Cscan {
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next> {
        let lowest = waiting.at_or_after(Bytes(0))?;
        if let Some(ahead) = waiting.at_or_after(head.at) {
            self.seeks = 0;
            return Some(Next::Serve(ahead));
        }
        if self.to_edge && self.seeks < 2 {
            self.seeks += 1;
            let edge = if self.seeks == 1 {
                head.end
            } else {
                Some(Bytes(0))
            };
            if let Some(edge) = edge {
                return Some(Next::Seek(edge));
            }
        }
        self.seeks = 0;
        Some(Next::Serve(lowest))
    }
}
