//! Li and Shen 2005: a prefetch cache apart from other pages, and its order of reclaim.
//!
//! Six kernels differ in reclaim alone: one list for all pages (AccessHistory), a prefetch cache
//! given up in the order of arrival (PC-AccessHistory), from the longest stream, the one not
//! accessed for longest, the one whose owner computed most since then (PC-Coldest+), and with
//! announcements (the approximated optimum). 512 MB, up to 1,000 requests at a time. The machine is
//! that of [`server`](super::server).
//!
//! ```text
//! requests      P3 to P6, P8, P10   the microbenchmarks
//! applications  P1, P2, P7, P9      index search and media clips, stand-ins
//!               P11                 bookkeeping
//! ```

mod applications;
mod figures;
mod requests;
mod scenes;

use super::lab::Lab;
use super::{Answer, Claim, Paper, lists};

pub(super) const PAPER: Paper = Paper {
    name: "li05",
    claims: include_str!("../claims/li05.toml"),
    measure,
    exhibits: figures::ALL,
    has_notices: false,
};

fn measure(claim: &Claim, lab: &mut Lab) -> Answer {
    let answer = match claim.id.as_str() {
        "P1" => applications::p1(lab),
        "P2" => applications::p2(lab),
        "P3" => requests::p3(lab),
        "P4" => requests::p4(lab),
        "P5" => requests::p5(lab),
        "P6" => requests::p6(lab),
        "P7" => applications::p7(lab),
        "P8" => requests::p8(lab),
        "P9" => applications::p9(lab),
        "P10" => requests::p10(lab),
        _ => applications::p11(lab),
    };
    match claim.id.as_str() {
        id @ ("P1" | "P2" | "P7") => lists::fitted(id, lab, answer),
        _ => answer,
    }
}
