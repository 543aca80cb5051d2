//! Strip: a window ends with the strip in which it begins (SASEQP).
//!
//! Each window is then the work of one device. The ramp goes on from the size that was decided, so
//! windows become as long as a strip and no longer, however deep the detector may go:
//!
//! ```text
//! strips of 4, ramp 1, 2, 4, 4 ..   decided   0    1 2    3 4 5 6     4 5 6 7 ..
//!                                   fetched   0    1 2    3         | 4 5 6 7 | 8 ..
//! ```
//!
//! Baek and Park 2009, section 3. Blocks of the demand are never cut off.

use alloc::boxed::Box;

use forerun_core::shape::{Shape, Strips, strips};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Shape>> = Method {
    spec: Spec {
        name: "strip",
        summary: "a window ends with the strip in which it begins",
        source: "baek09 section 3, SASEQP",
        unfit: "few readers: one disk works at a time",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(AtStrip),
};

#[derive(Debug)]
struct AtStrip;

impl Shape for AtStrip {
    fn end(&mut self, window: &dyn Strips) -> u64 {
        cut(window)
    }
}

/// Where the first strip ends that holds all that is wanted.
pub(super) fn cut(window: &dyn Strips) -> u64 {
    let mut ends = strips(window, window.end()).map(|(_, end)| end);
    let first = ends.find(|end| *end >= window.wanted());
    first.map_or(window.end(), |end| end.min(window.end()))
}
