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

use forerun_core::shape::{Shape, StripedWindow};
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
    fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
        cut(window)
    }
}

/// Where the first strip ends that holds all that is wanted.
pub(super) fn cut(window: &StripedWindow<'_>) -> u64 {
    let mut ends = window.strips(window.end).map(|(_, end)| end);
    let first = ends.find(|end| *end >= window.wanted);
    first.map_or(window.end, |end| end.min(window.end))
}

#[cfg(test)]
mod tests {
    use super::super::stripe::tests::{array, window};
    use super::*;

    #[test]
    fn a_window_ends_with_the_strip_that_holds_what_is_asked_for() {
        let array = array();
        for (start, wanted, end) in [
            (0, 1, 4),
            (0, 4, 4),
            (0, 5, 8),
            (3, 4, 4),
            (3, 9, 12),
            (9, 10, 12),
        ] {
            let window = window(&array, start, wanted, 32);
            assert_eq!(METHOD.of(&[]).end(&window), end, "{start}, {wanted}");
        }
        let short = window(&array, 0, 1, 3);
        assert_eq!(METHOD.of(&[]).end(&short), 3, "no longer than it was");
    }
}
