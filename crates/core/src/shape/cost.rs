//! Cost: a window ends where it pays the fewest switches for its blocks.
//!
//! Each disk that a window occupies switches to it, whether for a block or for a strip. A window
//! that is shorter than a stripe therefore ends at the end of a strip, unless that costs more than
//! it saves:
//!
//! ```text
//! switches for each block, strips of 16     8..24: 2/16    8..16: 1/8    0..24: 2/24    0..16: 1/16
//!                                           as it is       (more)        (more)         cut
//! ```
//!
//! From a stripe on all disks are occupied already, the strips of one disk follow each other on it,
//! and a longer window is cheaper in any case: it stays as it is. So single strips and whole
//! stripes come from one rule: how long a window is depends on the [depth](crate::depth), which is
//! as many competitive depths as there are disks (Li et al. 2004, section 4), and on the share of
//! memory where many read.
//!
//! Goes beyond Baek and Park 2009, whose threshold decides by the number of readers alone.

use alloc::boxed::Box;

use super::{Shape, StripedWindow};
use crate::spec::{Knows, Method, Spec};

pub(crate) const METHOD: Method<Box<dyn Shape>> = Method {
    spec: Spec {
        name: "cost",
        summary: "a window ends where it pays the fewest switches for its blocks",
        source: "after baek09 sections 3 and 4; li04 section 4",
        unfit: "arrays whose disks differ",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Cost),
};

#[derive(Debug)]
struct Cost;

impl Shape for Cost {
    fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
        let (start, end) = (u64::from(window.start.0), window.end);
        let spread = window.layout.spread() as u64;
        // Switches and blocks of the cheapest end so far.
        let mut best = (1, 0, end);
        let (mut switches, mut in_row) = (0, 0);
        let mut before = None;
        for (strip, behind) in window.strips(end) {
            // Elsewhere in the array the disks switch again.
            in_row = match before.replace(strip.number) == strip.number.checked_sub(1) {
                true => in_row + 1,
                false => 1,
            };
            switches += u64::from(in_row <= spread);
            if behind < window.wanted && behind < end {
                continue;
            }
            let behind = behind.min(end);
            let blocks = behind - start;
            let (best_switches, best_blocks, _) = best;
            if u128::from(switches) * u128::from(best_blocks)
                <= u128::from(best_switches) * u128::from(blocks)
            {
                best = (switches, blocks, behind);
            }
        }
        best.2
    }
}
