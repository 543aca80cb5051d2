//! LOOK: sweep up to the last request, then down to the first, and again.
//!
//! [SCAN](super::scan) without the way to the edge: it looks whether anything lies ahead before
//! going on. Positions in the middle are passed twice as evenly as those at the edges.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Spec};

use super::{Head, Key, Next, Scheduler, Waiting};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "look",
        summary: "up to the last request, down to the first, and again",
        source: "Merten, Some quantitative techniques for file organization, 1970",
        unfit: "sequential streams: half of the sweeps pass them backwards",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Look::default()),
};

/// The direction of a sweep, and the requests in it.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) is_downward: bool,
}

impl Look {
    /// The nearest request in the direction of the sweep.
    pub(super) fn ahead(&self, waiting: &Waiting, head: Bytes) -> Option<Key> {
        if self.is_downward {
            waiting.before(head)
        } else {
            waiting.at_or_after(head)
        }
    }
}

impl Scheduler for Look {
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next> {
        if let Some(ahead) = self.ahead(waiting, head.at) {
            return Some(Next::Serve(ahead));
        }
        let back = Look {
            is_downward: !self.is_downward,
        };
        let found = back.ahead(waiting, head.at)?;
        *self = back;
        Some(Next::Serve(found))
    }
}
