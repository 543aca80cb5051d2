//! Readahead of Linux 2.6.7 to 2.6.10, which Li and Shen 2005 measured: one window at a time until a long run.
//!
//! The [rule of that time](crate::pages), in which the length of runs decides:
//!
//! ```text
//! run      pages in a row, at most twice the limit
//! average  half the limit at first; at a jump (average [+ 1 if below run] + run) / 2
//! E        (run + average + 1) / 2 if the run is longer than the average, else the average
//! ```
//!
//! - A seek, and the end of a window with none ahead, read min(E, limit) pages.
//! - A window ahead is read only while E > limit. Else the next window is asked for when the current
//!   one is consumed, and the reader waits for it.
//! - A page elsewhere takes 2 off the next size.
//!
//! Example: a limit of 32 pages, a file read whole.
//!
//! ```text
//! page   run   E    read       current    ahead
//!    0     1   16   [0, 16)    [0, 16)               half the limit
//!   16    17   17   [16, 33)   [16, 33)
//!   33    34   25   [33, 58)   [33, 58)
//!   47    48   32              [33, 58)              not above the limit
//!   48    49   33   [58, 90)   [33, 58)   [58, 90)   (49 + 16 + 1) / 2 is above it
//! ```

use alloc::boxed::Box;

use forerun_core::detect::Detect;
use forerun_core::spec::{Knows, Method, Spec};

use super::linux_2_6_3::by_two;
use crate::pages::{CORRECTED, Pages, Version};

/// The rule at a seek and under congestion, by two examples.
///
/// A seek, from page 7 to page 100: the run of 8 pages goes into the average.
///
/// ```text
/// page   run   average   read
///    0     1   16        [0, 16)
///    7     8   16
///  100     1   12        [100, 112)    (16 + 8) / 2
/// ```
///
/// Congestion: the queue is congested while the reader is at pages 0 to 15.
///
/// ```text
/// page    as shipped                corrected   current
///    0    refused; page 0 alone     [0, 16)     [0, 16)    the same in both
///    1    page 1 alone                          [0, 16)    and so each page up to 15
///   16    [16, 33)                  [16, 33)    [16, 33)
/// ```
pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "linux-2.6.10",
        summary: "page by page, one window at a time until a long run",
        source: "Linux 2.6.7 to 2.6.10; Li and Shen 2005 sections 3.3 and 4",
        unfit: "files shorter than about two windows, interleaved streams, a congested queue",
        knows: Knows::Online,
        params: &[CORRECTED],
    },
    build: |values| Box::new(Pages::new(version(values.get("corrected") == 1))),
};

fn version(is_corrected: bool) -> Version {
    Version {
        begins_at_start: false,
        shrunk: by_two,
        has_average: true,
        doubles_from: None,
        is_corrected,
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use forerun_core::Block;

    use super::*;
    use crate::pages::tests::Step::{Congested, Lost, Read};
    use crate::pages::tests::{Step, alone, windows};

    fn of(is_corrected: bool, limit: u32, steps: &[Step]) -> Vec<(u32, u32, u32)> {
        windows(&mut Pages::new(version(is_corrected)), limit, steps)
    }

    #[test]
    fn windows_follow_the_length_of_runs() {
        let whole = vec![
            (0, 0, 16),
            (16, 16, 33),
            (33, 33, 58),
            (48, 58, 90),
            (59, 90, 122),
            (91, 122, 154),
        ];
        // A jump at page 8: the average is (16 + 8) / 2; one at 104: (12 + 4) / 2; one at 209: (8 + 1 + 9) / 2, as
        // the run was longer.
        let seeks = vec![
            (0, 0, 16),
            (100, 100, 112),
            (200, 200, 208),
            (208, 208, 217),
            (300, 300, 309),
        ];
        // Single pages: 16, 8, 4, 2 pages, then none; four missing in a row, and it begins again.
        let singles = [
            vec![
                (0, 0, 16),
                (100, 100, 108),
                (200, 200, 204),
                (300, 300, 302),
            ],
            {
                let mut off = alone(400..404);
                off.extend([(404, 404, 407), (407, 407, 412)]);
                off
            },
        ];
        // A reader that stays where it is reads nothing more.
        let again = vec![(500, 500, 516)];
        for (steps, expected) in [
            (vec![Read(0, 92)], whole.clone()),
            (vec![Read(0, 50), Read(50, 92)], whole.clone()),
            // Page 7 again, as by reads that are not whole pages.
            (vec![Read(0, 8), Read(7, 92)], whole),
            (
                vec![Read(0, 8), Read(100, 104), Read(200, 209), Read(300, 301)],
                seeks,
            ),
            (
                vec![
                    Read(0, 1),
                    Read(100, 101),
                    Read(200, 201),
                    Read(300, 301),
                    Read(400, 408),
                ],
                singles.concat(),
            ),
            (vec![Read(500, 501), Read(500, 501), Read(501, 502)], again),
        ] {
            assert_eq!(of(false, 32, &steps), expected);
            assert_eq!(of(true, 32, &steps), expected);
        }
        assert_eq!(of(false, 1, &[Read(0, 3)]), alone(0..3));
    }

    #[test]
    fn a_congested_queue_refuses_windows_unless_that_is_corrected() {
        let steps = [Congested(true), Read(0, 16), Congested(false), Read(16, 17)];
        let mut expected = alone(0..16);
        expected.push((16, 16, 33));
        assert_eq!(of(false, 32, &steps), expected);
        assert_eq!(of(true, 32, &steps), [(0, 0, 16), (16, 16, 33)]);
    }

    #[test]
    fn lost_pages_are_read_alone_and_refused_ones_are_not_lost() {
        let mut lost = Pages::new(version(false));
        let steps = [Read(0, 8), Lost(8, 12), Read(8, 17)];
        let expected = [vec![(0, 0, 16)], alone(8..12), vec![(16, 16, 33)]].concat();
        assert_eq!(windows(&mut lost, 32, &steps), expected);
        assert!(lost.inside_window(Block(20)) && !lost.inside_window(Block(33)));
        let mut refused = Pages::new(version(false));
        windows(&mut refused, 32, &[Congested(true), Read(0, 2)]);
        assert!(!refused.inside_window(Block(5)));
    }
}
