//! Wu 2010: readahead of Linux 2.6.24 (on-demand) beside that of 2.6.22 (legacy), on one disk.
//!
//! Windows of at most 1 MB on a Hitachi T7K250 whose own readahead is off, where not said
//! otherwise. Conditions that the paper leaves open are assumed here, once for all claims; the
//! notes have the results of other values:
//!
//! | assumed | value | because |
//! | --- | --- | --- |
//! | where files lie | from the middle of the capacity on | nothing is said; 28.72 MB/s follows from it |
//! | longest request | 512 KiB | Linux's `max_sectors_kb` |
//! | order of interleaved streams | one at random each time | by turns no window would ever open (W4) |
//! | bytes read of them | 100 MB in all | title of Figure 14; 3.44 s at 21.78 MB/s leave no more |
//! | processor time of a read | 26 us | follows from Figures 13 and 14, see W7 |
//! | how far the drive reads on | 128 KiB where on | fitted, see W6 |
//! | controller's time of a read | 0.1 ms | with the mean seek 8.6 ms; the drive's manual has 8.52 for both, see W4 |
//! | memory for pages of 128 MB | 100 MiB | the kernel and its tables take the rest |
//! | files of network clients | 100 MB, one behind the other | as the streams |
//!
//! Random orders are drawn with ten seeds, and rates are of all ten runs together.
//!
//! ```text
//! exact     W1, Figure 11     streams    W2 to W7
//! scenes    the runs          thrashing  W8, W9        figures   10, 11, 13, 14, 15
//! ```

mod exact;
mod figures;
mod scenes;
mod streams;
mod thrashing;

use super::lab::Lab;
use super::{Answer, Claim, Paper};

pub(super) const PAPER: Paper = Paper {
    name: "wu10",
    claims: include_str!("../claims/wu10.toml"),
    measure,
    exhibits: &[
        figures::FIGURE_10,
        figures::FIGURE_11,
        figures::FIGURE_13,
        figures::FIGURE_14,
        figures::FIGURE_15,
    ],
    has_notices: false,
};

fn measure(claim: &Claim, lab: &mut Lab) -> Answer {
    match claim.id.as_str() {
        "W1" => exact::w1(lab),
        "W2" => streams::w2(lab),
        "W3" => streams::w3(lab),
        "W4" => streams::w4(lab),
        "W5" => streams::w5(lab),
        "W6" => streams::w6(lab),
        "W7" => streams::w7(lab),
        "W8" => thrashing::w8(lab),
        _ => thrashing::w9(lab),
    }
}
