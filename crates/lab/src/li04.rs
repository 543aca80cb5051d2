//! Li et al. 2004: competitive prefetching against Linux's readahead and an aggressive one.
//!
//! A server with one disk. Three kernels, changes of Linux 2.6.3, differ in how far they read ahead: 128 KiB, 1 MiB
//! (AP), and the bytes that the disk could transfer during a switch (CP). Four microbenchmarks and two
//! servers, from one request at a time to 64; without anticipatory scheduling (Figure 3) and with
//! it. The machine is that of [`server`](super::server). One step of that kernel is not known: a claim is met if it
//! holds both ways.
//!
//! ```text
//! drive        C1, C2     the depth and the estimates of the optimum, on the modelled drive
//! requests     C3 to C8   the microbenchmarks
//! applications C9 to C11  index search and media clips, stand-ins
//! ```

mod applications;
mod drive;
mod figures;
mod requests;
mod scenes;

use super::lab::Lab;
use super::{Answer, Claim, Paper};
use scenes::Version;

pub(super) const PAPER: Paper = Paper {
    name: "li04",
    claims: include_str!("../claims/li04.toml"),
    measure,
    exhibits: figures::ALL,
    has_notices: false,
};

fn measure(claim: &Claim, lab: &mut Lab) -> Answer {
    let of_requests = match claim.id.as_str() {
        "C1" => return drive::c1(),
        "C2" => return drive::c2(),
        "C3" => requests::c3,
        "C4" => requests::c4,
        "C5" => requests::c5,
        "C6" => requests::c6,
        "C7" => requests::c7,
        "C8" => requests::c8,
        "C9" => applications::c9,
        "C10" => applications::c10,
        _ => applications::c11,
    };
    let [quarter, two] =
        [Version::Quarter, Version::TwoPages].map(|version| of_requests(lab, version));
    let holds = |answer: &Answer| {
        let judged = || claim.judge(&answer.measured).holds();
        answer.holds.unwrap_or_else(judged)
    };
    let mut note = format!(
        "{}. With two pages off the next window for a page elsewhere: {}",
        quarter.note, two.measured
    );
    if lab.has_notes() {
        let corrected = of_requests(lab, Version::Corrected).measured;
        let parts = of_requests(lab, Version::Parts).measured;
        note += &format!(
            ". With windows in a congested queue, too: {corrected}. With requests of at most 512 KiB: {parts}"
        );
    }
    Answer {
        holds: Some(holds(&quarter) && holds(&two)),
        note,
        ..quarter
    }
}
