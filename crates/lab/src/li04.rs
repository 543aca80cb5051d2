//! Li et al. 2004: competitive prefetching against Linux's readahead and an aggressive one.
//!
//! A server with one disk. Three kernels differ in how far they read ahead: 128 KiB, 1 MiB (AP),
//! and the bytes that the disk could transfer during a switch (CP). Four microbenchmarks and two
//! servers, from one request at a time to 64; without anticipatory scheduling (Figure 3) and with
//! it. The machine is that of [`server`](super::server).
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

pub(super) const PAPER: Paper = Paper {
    name: "li04",
    claims: include_str!("../claims/li04.toml"),
    measure,
    exhibits: figures::ALL,
    has_notices: false,
};

fn measure(claim: &Claim, lab: &mut Lab) -> Answer {
    match claim.id.as_str() {
        "C1" => drive::c1(),
        "C2" => drive::c2(),
        "C3" => requests::c3(lab),
        "C4" => requests::c4(lab),
        "C5" => requests::c5(lab),
        "C6" => requests::c6(lab),
        "C7" => requests::c7(lab),
        "C8" => requests::c8(lab),
        "C9" => applications::c9(lab),
        "C10" => applications::c10(lab),
        _ => applications::c11(lab),
    }
}
