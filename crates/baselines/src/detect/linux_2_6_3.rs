//! Readahead of Linux 2.6.0 to 2.6.3, which Li et al. 2004 measured: two windows from the second page on.
//!
//! The [rule of that time](crate::pages), in which
//!
//! - the first read begins a window only if it is at the file's first page;
//! - a seek reads as many pages as the next size says;
//! - the window ahead is read at once, at the first page that finds none.
//!
//! Example: a limit of 32 pages, a file read whole.
//!
//! ```text
//! page   next size   read       current    ahead
//!    0   16          [0, 16)    [0, 16)
//!    1   18          [16, 34)   [0, 16)    [16, 34)
//!    8   32                     [0, 16)    [16, 34)
//!   16   32                     [16, 34)              the one ahead is the current one
//!   17   32          [34, 66)   [16, 34)   [34, 66)
//! ```
//!
//! **Open:** how much a page elsewhere takes off the next size. Linux 2.5 took a quarter and left at
//! least 4, Linux 2.6.7 took 2; of 2.6.3 no source was read. `miss_step` is 0 for the quarter, 1 for
//! 2: then a file not read from its beginning has no window until 4 pages in a row were missing.
//!
//! `slow_start` is the change of Li et al. 2004, section 2: 16 pages at first and at a seek, then
//! twice as many in each window. With it and `competitive` depth this is competitive prefetching.

use alloc::boxed::Box;

use forerun_core::detect::Detect;
use forerun_core::spec::{Knows, Method, Param, Spec};

use crate::pages::{CORRECTED, Pages, Version};

/// The rule at a seek and under congestion, by two examples.
///
/// A seek, from page 3 to page 100, by either reading of the open step ([module](self)): the next size at page 3 is 22.
///
/// ```text
/// page   a quarter off          two pages off
///  100   [100, 117)   22 - 5    [100, 120)   22 - 2
///  101   [117, 136)   17 + 2    [120, 142)   20 + 2    ahead
/// ```
///
/// Congestion: the queue is congested while the reader is at pages 1 to 17. The window of page 1 is refused and
/// counts as read; `corrected`, [16, 34) is read at page 1 and [34, 66) at page 17, as above.
///
/// ```text
/// page   next size   read                      current    ahead
///    0   16          [0, 16)                   [0, 16)
///    1   15          refused                   [0, 16)    [16, 34)   16 - 1
///   16   29          page 16 alone             [16, 34)              32 - 3
///   17   25          refused; page 17 alone    [16, 34)   [34, 65)   29 - 1, then - 3
///   18   24          page 18 alone             [16, 34)   [34, 65)   + 2 - 3, and so up to page 34
///   35   7           [65, 75); page 35 alone   [34, 65)   [65, 75)   8 + 2 read, then - 3
/// ```
pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "linux-2.6.3",
        summary: "page by page, two windows from the second page on",
        source: "Linux 2.6.0 to 2.6.3; Li et al. 2004 sections 2 and 3",
        unfit: "small random reads, more streams than memory for two windows each, a congested queue",
        knows: Knows::Online,
        params: &[
            CORRECTED,
            Param {
                name: "miss_step",
                summary: "what a page elsewhere takes off the next size: 0 a quarter, but not below 4 pages; 1 two pages",
                default: 0,
                min: 0,
                max: 1,
            },
            Param {
                name: "slow_start",
                summary: "1: windows of 16 pages at first and at a seek, then doubled (Li et al. 2004); 0: as \
                          shipped, 2 pages more for each page read",
                default: 0,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |values| {
        let flag = |name| values.get(name) == 1;
        Box::new(Pages::new(Version {
            begins_at_start: true,
            shrunk: if flag("miss_step") {
                by_two
            } else {
                by_a_quarter
            },
            has_average: false,
            doubles_from: flag("slow_start").then_some(SLOW_START),
            is_corrected: flag("corrected"),
        }))
    },
};

/// Pages of the first window of a slow start.
const SLOW_START: u32 = 16;
/// The quarter leaves at least so many.
const QUARTER_MIN: u32 = 4;

pub(super) fn by_two(size: u32) -> u32 {
    size.saturating_sub(2)
}

fn by_a_quarter(size: u32) -> u32 {
    (size - size / 4).max(QUARTER_MIN)
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::pages::tests::Step::{Congested, Read};
    use crate::pages::tests::{Step, alone, windows};

    /// With a quarter off for a page elsewhere, then with 2.
    const AS_SHIPPED: [&[u64]; 2] = [&[0, 0, 0], &[0, 1, 0]];

    fn of(values: &[u64], limit: u32, steps: &[Step]) -> Vec<(u32, u32, u32)> {
        windows(&mut *METHOD.of(values), limit, steps)
    }

    #[test]
    fn the_window_ahead_is_read_at_the_first_page_without_one() {
        let whole = [(0, 0, 16), (1, 16, 34), (17, 34, 66), (35, 66, 98)];
        for values in AS_SHIPPED {
            assert_eq!(of(values, 32, &[Read(0, 36)]), whole);
            assert_eq!(of(values, 32, &[Read(0, 9), Read(9, 36)]), whole);
        }
    }

    #[test]
    fn a_page_elsewhere_takes_a_quarter_or_two_pages() {
        // At page 3 the next size is 22.
        let begin = [(0, 0, 16), (1, 16, 34)];
        for (values, seek) in [
            (AS_SHIPPED[0], [(100, 100, 117), (101, 117, 136)]),
            (AS_SHIPPED[1], [(100, 100, 120), (101, 120, 142)]),
        ] {
            let expected = [begin, seek].concat();
            assert_eq!(of(values, 32, &[Read(0, 4), Read(100, 102)]), expected);
        }
        // The first read elsewhere than at the file's beginning.
        let quarter = vec![(50, 50, 54), (51, 54, 60), (55, 60, 74)];
        assert_eq!(of(AS_SHIPPED[0], 32, &[Read(50, 56)]), quarter);
        let two = [alone(50..54), vec![(54, 54, 56), (55, 56, 60)]].concat();
        assert_eq!(of(AS_SHIPPED[1], 32, &[Read(50, 56)]), two);
    }

    #[test]
    fn the_state_goes_on_when_a_congested_queue_refuses_a_window() {
        let steps = [
            Read(0, 1),
            Congested(true),
            Read(1, 18),
            Congested(false),
            Read(18, 36),
        ];
        // [16, 34) and [34, 65) are refused. From page 17 on each page adds 2 and takes 3.
        let mut expected = [vec![(0, 0, 16)], alone(16..35), vec![(35, 65, 75)]].concat();
        expected.extend(alone(35..36));
        for values in AS_SHIPPED {
            assert_eq!(of(values, 32, &steps), expected);
        }
        let corrected = [(0, 0, 16), (1, 16, 34), (17, 34, 66), (35, 66, 98)];
        assert_eq!(of(&[1, 0, 0], 32, &steps), corrected);
    }

    #[test]
    fn a_slow_start_doubles_from_16_pages_on_and_begins_anew_at_a_seek() {
        let steps = [Read(0, 114), Read(1000, 1002)];
        let expected = [
            (0, 0, 16),
            (1, 16, 48),
            (17, 48, 112),
            (49, 112, 240),
            (113, 240, 368),
            (1000, 1000, 1016),
            (1001, 1016, 1048),
        ];
        assert_eq!(of(&[0, 0, 1], 128, &steps), expected);
    }
}
