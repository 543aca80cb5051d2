//! Baek and Park 2009: windows on a striped array, with and without regard to its strips.
//!
//! Four combinations: SEQP is the readahead of Linux 2.6.18, SASEQP cuts its windows at strips, MSP
//! widens them to whole stripes while one reader is at work. Bandwidth on five disks, from 1 reader
//! to 256.
//!
//! The paper leaves open how its RAID driver asks the disks (it is the authors' own, with a cache
//! of 512 MB), how their drives are set, and where its files lie. Here all of that is Linux's md,
//! with the anticipatory scheduler as it was published, on drives by their figures: no value was
//! searched for. Results of other choices are in the notes of the claims that differ.
//!
//! ```text
//! exact    B1 and B2                        scenes    the runs by the paper's names
//! streams  B3, B4, B5, B8, B10              figures   8, 9 and 10
//! server   B6, B7, B9
//! ```

mod exact;
mod figures;
mod scenes;
mod server;
mod streams;

use super::lab::Lab;
use super::{Answer, Claim, Paper};

pub(super) const PAPER: Paper = Paper {
    name: "baek09",
    claims: include_str!("../claims/baek09.toml"),
    measure,
    exhibits: &[figures::FIGURE_8, figures::FIGURE_9, figures::FIGURE_10],
    has_notices: false,
};

fn measure(claim: &Claim, lab: &mut Lab) -> Answer {
    match claim.id.as_str() {
        "B1" => exact::b1(),
        "B2" => exact::b2(),
        "B3" => streams::b3(lab),
        "B4" => streams::b4(lab),
        "B5" => streams::b5(lab),
        "B6" => server::b6(lab),
        "B7" => server::b7(lab),
        "B8" => streams::b8(lab),
        "B9" => server::b9(lab),
        _ => streams::b10(lab),
    }
}
