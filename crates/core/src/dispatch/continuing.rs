//! Continue where the device stands, for a slice of time; then the one that is due first.
//!
//! A reader that keeps up asks for its next window while the last one is being transferred. If the
//! device is given that window next it need not switch, however short the windows are: depth no
//! longer has to pay for the switch alone, and far less memory does the work of longer windows.
//!
//! Control law: a run that starts gets a slice, in bytes, of a round that has a bound in time:
//!
//! ```text
//! slice = clamp(longest wait x rate / (runs that wait + 2) - D, SLICE_MIN x D, slice_switches x D)
//! ```
//!
//! with D the competitive depth, a switch's worth of transfer. While the run is shorter than its slice, a
//! fetch that continues it goes first; else the one that is [due](super) first. A single read, which is due
//! at once, cuts a run of SLICE_MIN x D or more short; of reads at random of D at most that are due within two rounds, 128 D at most,
//! the next one upward goes, as an elevator does (C-SCAN), so that a crowd at random has short seeks. A slice of s depths leaves
//! 1 / (s + 1) of the device's time to switching, and with n readers that keep up each waits n switches
//! and slices for its turn. The two parameters are the two ends of that bargain: how little may be lost
//! where few wait, and how long a round may take where many do.
//!
//! Example: 64 readers of a disk of 8 ms and 80 MB/s, D 640 kB: 3 s x 80 MB/s / 66 - D is a slice of 3.0 MB.
//!
//! The idea is that of anticipatory scheduling (Iyer and Druschel, SOSP 2001), without its waiting:
//! prefetching has the next request ready. A slow reader gets no slice, only its window.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Dispatch, Head, SLICE_MAX, Waiting};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::Bytes;

pub(super) const METHOD: Method<Box<dyn Dispatch>> = Method {
    spec: Spec {
        name: "continuing",
        summary: "continue where the device stands for a slice of time, then the reader that is due",
        source: "after Iyer and Druschel, SOSP 2001",
        unfit: "many readers at random beside streams, whose longest wait has no bound in seconds",
        knows: Knows::Online,
        params: &[
            Param {
                name: "slice_switches",
                summary: "longest slice, in competitive depths; 32 leaves 3 % of the device's \
                          time to switching",
                default: 32,
                min: 1,
                max: SLICE_MAX,
            },
            Param {
                name: "longest_wait_ms",
                summary: "shorter slices for many: so long each of them waits for its turn",
                default: 3000,
                min: 1,
                max: 3_600_000,
            },
        ],
    },
    build: |values| {
        Box::new(Continuing {
            slice_switches: values.get("slice_switches"),
            longest_wait_ms: values.get("longest_wait_ms"),
        })
    },
};

/// No slice is shorter than so many competitive depths, however many wait: 3 leave a quarter of the
/// device's time to switching, and the depth itself would leave half. A round of 256 readers of a disk of 8 ms
/// takes 8.2 s with 3, and 10.2 s with 4, which leave a fifth. A run that got as much is cut for a single read, which
/// waits 24 ms of a disk of 8 ms then: with 6, pages at random beside 64 streams waited for two whole slices, 109 ms in place of 99.
const SLICE_MIN: u64 = 3;

/// Short reads due within so many depths of the first that has a turn go in the order of their places: 64 readers at random on the
/// model of a disk of 2000 take 1.00 of the time in which the drive sorts all of them, 1.10 with half of these depths,
/// and 1.34 in the order of their turns. A stream beside them waits a second longer on a disk of 8 ms.
const SWEEP: u64 = 128;
/// The same in rounds, of a depth for each that waits: with two all that had their turn in the last one are in reach.
const ROUNDS: u64 = 2;

/// Turns of a round beside those of the runs that wait: that of the reader which had the last one and
/// is about to ask again, and one for the order in a round, which differs from the last round's.
const OTHERS: u128 = 2;

#[derive(Debug)]
struct Continuing {
    slice_switches: u64,
    longest_wait_ms: u64,
}

impl Dispatch for Continuing {
    fn slice(&self, depth: Bytes, second: Bytes, runs: usize) -> Bytes {
        let round = u128::from(second.0) * u128::from(self.longest_wait_ms) / 1000;
        let turn = u64::try_from(round / (runs as u128 + OTHERS)).unwrap_or(u64::MAX);
        let times = |switches: u64| depth.0.saturating_mul(switches);
        let shortest = times(SLICE_MIN.min(self.slice_switches));
        let fair = turn.saturating_sub(depth.0);
        Bytes(fair.max(shortest).min(times(self.slice_switches)))
    }

    fn next(&self, head: &Head, waiting: &mut dyn Iterator<Item = Waiting>) -> usize {
        let waiting: Vec<(usize, Waiting)> = waiting.enumerate().collect();
        let Some(&(oldest, first)) = waiting.iter().min_by_key(|(_, fetch)| fetch.due) else {
            return 0;
        };
        let depths = |count: u64| head.depth.0.saturating_mul(count);
        let is_cut = first.due == 0 && head.run.0 >= depths(SLICE_MIN);
        let continues = |(_, fetch): &&(usize, Waiting)| fetch.position == head.position;
        if head.run < head.slice
            && !is_cut
            && let Some((index, _)) = waiting.iter().find(continues)
        {
            return *index;
        }
        if !first.is_short {
            return oldest;
        }
        // One that is due at once takes others along if it is their turn.
        let turns = waiting.iter().filter(|(_, fetch)| fetch.due > 0);
        let turn = turns.min_by_key(|(_, fetch)| fetch.due);
        let sweep = SWEEP.min(ROUNDS * (waiting.len() as u64 + 1));
        let last = match turn {
            Some((_, turn)) if turn.is_short => turn.due.saturating_add(depths(sweep)),
            _ => 0,
        };
        let may_go = |fetch: &Waiting| fetch.is_short && fetch.due <= last;
        let near = waiting.iter().filter(|(_, fetch)| may_go(fetch));
        // Upward from where the arm stands, then from the begin.
        let next = near.min_by_key(|(_, fetch)| fetch.position.wrapping_sub(head.position));
        next.map_or(oldest, |(index, _)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: Continuing = Continuing {
        slice_switches: 32,
        longest_wait_ms: 3000,
    };

    #[test]
    fn a_run_goes_on_until_its_slice_is_used_up() {
        let next = |run, waiting: &[(u64, u64)]| {
            let head = Head {
                position: 500,
                run: Bytes(run),
                slice: Bytes(400),
                depth: Bytes(50),
                ..Head::default()
            };
            let waiting = waiting.iter();
            let mut waiting = waiting.map(|&(position, due)| Waiting::new(position, due));
            METHOD.next(&head, &mut waiting)
        };
        assert_eq!(next(0, &[(10, 1), (20, 2), (500, 3)]), 2, "it continues");
        assert_eq!(next(399, &[(10, 1), (500, 2)]), 1);
        assert_eq!(next(400, &[(10, 1), (500, 2)]), 0, "then the due one");
        assert_eq!(next(400, &[(10, 2), (20, 1)]), 1);
        assert_eq!(next(0, &[(10, 1), (20, 1)]), 0, "and of those the oldest");
        assert_eq!(next(0, &[]), 0);
        let single = (70, 0);
        assert_eq!(next(149, &[(500, 1), single]), 0, "a short run goes on");
        assert_eq!(next(150, &[(500, 1), single]), 1, "a long one is cut");
        assert_eq!(next(400, &[(500, 1), (10, 1), single]), 2);
    }

    #[test]
    fn short_reads_that_are_due_soon_go_in_the_order_of_their_places() {
        let stream = |position, due| Waiting::new(position, due);
        let page = |position, due| Waiting {
            is_short: true,
            ..Waiting::new(position, due)
        };
        let next = |waiting: &[Waiting]| {
            let head = Head {
                position: 500,
                depth: Bytes(8),
                ..Head::default()
            };
            METHOD.next(&head, &mut waiting.iter().copied())
        };
        // Two rounds of three and the next one, and of two.
        let [soon, sooner] = [4, 3].map(|turns| 10 + 8 * ROUNDS * turns);
        let pages = [page(10, 10), page(900, soon), page(600, soon)];
        assert_eq!(next(&pages), 2);
        assert_eq!(next(&[page(10, 10), page(600, sooner)]), 1);
        assert_eq!(next(&[page(10, 10), page(600, sooner + 1)]), 0, "later");
        assert_eq!(next(&[page(10, 10), page(20, sooner)]), 0, "all below");
        assert_eq!(next(&[page(10, 0), page(20, 10), page(600, soon)]), 2);
        let mut crowd = [page(600, 10 + 8 * SWEEP); 100];
        crowd[0] = page(10, 10);
        assert_eq!(next(&crowd), 1);
        crowd[1..].fill(page(600, 11 + 8 * SWEEP));
        assert_eq!(next(&crowd), 0, "later than a crowd's sweep");
        assert_eq!(next(&[page(10, 0), stream(20, 10), page(600, 11)]), 0);
        assert_eq!(next(&[page(10, 10), stream(600, 11)]), 0);
        assert_eq!(next(&[stream(10, 10), page(600, 11)]), 0);
    }

    #[test]
    fn the_more_wait_the_shorter_a_slice_within_its_bounds() {
        // A depth of 640 is 8 ms, and a round 240,000.
        let slice = |runs| METHOD.slice(Bytes(640), Bytes(80_000), runs).0;
        assert_eq!([0, 1, 9].map(slice), [32 * 640; 3]);
        assert_eq!([23, 30, 62].map(slice), [8_960, 6_860, 3_110]);
        assert_eq!([92, 5000, usize::MAX].map(slice), [3 * 640; 3]);
        for runs in 10..92 {
            let round = (slice(runs) + 640) * (runs as u64 + 2);
            assert!(round <= 240_000, "{runs} runs: a round of {round}");
        }
    }
}
