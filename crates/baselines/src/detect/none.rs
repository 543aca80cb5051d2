//! No detection: blocks are fetched when they are asked for, and no others.
//!
//! The baseline, and the choice for reads known to be random.

use alloc::boxed::Box;

use forerun_core::detect::{Access, Ahead, Cause, Detect, Window};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "none",
        summary: "demand reads only",
        source: "baseline",
        unfit: "everything with a pattern",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Never),
};

#[derive(Debug)]
struct Never;

impl Detect for Never {
    fn trigger(&mut self, _: Cause, _: &Access, _: &dyn Ahead) -> Option<Window> {
        None
    }
}
