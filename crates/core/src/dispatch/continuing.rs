//! Continue where the device stands, for a slice of time; then the one that is due first.
//!
//! A reader that keeps up asks for its next window while the last one is being transferred. If the
//! device is given that window next it need not switch, however short the windows are: depth no
//! longer has to pay for the switch alone, and far less memory does the work of longer windows.
//!
//! Control law: a run that starts gets a slice, in competitive depths, which is to say in switches'
//! worth of transfer:
//!
//! ```text
//! slice = clamp(round_switches / runs that wait, SLICE_MIN, slice_switches)
//! ```
//!
//! While the run is shorter than its slice, a fetch that continues it goes first; else the one
//! that is [due](super) first. So one switch is paid for a slice's worth of transfer: at most
//! 1 / (slice + 1) of the device's time goes to switching while readers keep up, and with n of them
//! each waits at most n slices for its turn. The two parameters are the two ends of that bargain:
//! how little may be lost where few wait, and how long a round may take where many do.
//!
//! The idea is that of anticipatory scheduling (Iyer and Druschel, SOSP 2001), without its waiting:
//! prefetching has the next request ready. A slow reader gets no slice, only its window.

use alloc::boxed::Box;

use super::{Dispatch, Head, SLICE_MAX, Waiting};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::Bytes;

pub(super) const METHOD: Method<Box<dyn Dispatch>> = Method {
    spec: Spec {
        name: "continuing",
        summary: "continue where the device stands for a slice of time, then the reader that is due",
        source: "after Iyer and Druschel, SOSP 2001",
        unfit: "single reads that must not wait behind slices",
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
                name: "round_switches",
                summary: "shorter slices for many: a round of all that wait takes about so many \
                          competitive depths; 2048 are 16 s on a disk of 8 ms",
                default: 2048,
                min: 1,
                max: 1_048_576,
            },
        ],
    },
    build: |values| {
        Box::new(Continuing {
            slice_switches: values[0],
            round_switches: values[1],
        })
    },
};

/// No slice is shorter than so many competitive depths, however many wait: 4 leave a fifth of the
/// device's time to switching, and the depth itself would leave half.
const SLICE_MIN: u64 = 4;

#[derive(Debug)]
struct Continuing {
    slice_switches: u64,
    round_switches: u64,
}

impl Dispatch for Continuing {
    fn holds_back(&self) -> bool {
        true
    }

    fn slice(&self, depth: Bytes, runs: usize) -> Bytes {
        let fair = self.round_switches / (runs as u64).max(1);
        let switches = fair.max(SLICE_MIN).min(self.slice_switches);
        Bytes(depth.0.saturating_mul(switches))
    }

    fn next(&self, head: &Head, waiting: &mut dyn Iterator<Item = Waiting>) -> usize {
        let goes_on = head.run < head.slice;
        let mut first_due = (u64::MAX, 0);
        for (index, fetch) in (0..).zip(waiting) {
            if goes_on && fetch.position == head.position {
                return index;
            }
            first_due = first_due.min((fetch.due, index));
        }
        first_due.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: Continuing = Continuing {
        slice_switches: 32,
        round_switches: 2048,
    };

    #[test]
    fn a_run_goes_on_until_its_slice_is_used_up() {
        let next = |run, waiting: &[(u64, u64)]| {
            let head = Head {
                position: 500,
                run: Bytes(run),
                slice: Bytes(400),
            };
            let waiting = waiting.iter();
            let mut waiting = waiting.map(|&(position, due)| Waiting { position, due });
            METHOD.next(&head, &mut waiting)
        };
        assert_eq!(next(0, &[(10, 1), (20, 2), (500, 3)]), 2, "it continues");
        assert_eq!(next(399, &[(10, 1), (500, 2)]), 1);
        assert_eq!(next(400, &[(10, 1), (500, 2)]), 0, "then the due one");
        assert_eq!(next(400, &[(10, 2), (20, 1)]), 1);
        assert_eq!(next(0, &[(10, 1), (20, 1)]), 0, "and of those the oldest");
        assert_eq!(next(0, &[]), 0);
    }

    #[test]
    fn the_more_wait_the_shorter_a_slice_within_its_bounds() {
        let slice = |runs| METHOD.slice(Bytes(100), runs).0;
        assert_eq!([0, 1, 10, 64].map(slice), [3200; 4]);
        assert_eq!([65, 128, 256].map(slice), [3100, 1600, 800]);
        assert_eq!([512, 5000].map(slice), [400; 2]);
        for runs in 64..512 {
            let round = slice(runs) * runs as u64;
            assert!(round <= 204_800, "{runs} runs: a round of {round}");
        }
    }
}
