//! Kimbrel et al. 1996: its claims about `synth`, its theorems, and its comparison of five methods
//! over ten traces and eleven arrays.
//!
//! Nine of the traces are lost; [stand-ins](forerun_sim::hinted::stand_in) take their place, so their
//! claims are checked as orders and shapes, and every such note says so.
//!
//! Aggressive and forestall run with the batches of Table 6. The paper prints it only for the
//! comparison on applications: for Figure 3 and Table 2, which show `synth`, it prints neither
//! batches nor reverse aggressive's F. Those used there were found by search, so a claim met with
//! them says that the method can make the published number, not that the authors used these
//! values. Every such note says so, and gives the number with Table 6's batches beside it. See
//! `docs/design/0004-hinted.md`. On all traces reverse aggressive has, as in the paper, the best
//! parameters of a grid for each trace and array.
//!
//! ```text
//! methods   which parameters a method has where       notes        K1 to K10 and K18
//! tables    tables 2, 4, 5, 7, 8                      comparisons  K11 to K13
//! figures   figures 2 to 10                           loads        K14 to K17
//! stand_ins fits of each
//! ```

mod comparisons;
mod figures;
mod loads;
mod methods;
mod notes;
mod numbers;
mod stand_ins;
mod tables;

use super::lab::Lab;
use super::{Answer, Claim, Paper};

pub(super) const PAPER: Paper = Paper {
    name: "kimbrel96",
    claims: include_str!("../claims/kimbrel96.toml"),
    measure,
    exhibits: EXHIBITS,
    has_notices: true,
};

static EXHIBITS: &[super::Exhibit] = &[
    tables::TABLE_2,
    tables::TABLE_4,
    tables::TABLE_5,
    tables::TABLE_7,
    tables::TABLE_8,
    figures::FIGURE_2,
    figures::FIGURE_3,
    figures::FIGURE_4,
    figures::FIGURE_5,
    figures::FIGURE_6,
    figures::FIGURE_7,
    figures::FIGURE_8,
    figures::FIGURE_9,
    figures::FIGURE_10,
    stand_ins::STAND_INS,
    tables::RUNS,
];

fn measure(claim: &Claim, lab: &mut Lab) -> Answer {
    match claim.id.as_str() {
        "K11" => comparisons::k11(lab),
        "K12" => comparisons::k12(lab),
        "K13" => comparisons::k13(lab),
        "K14" => loads::k14(lab),
        "K15" => loads::k15(lab),
        "K16" => loads::k16(lab),
        "K17" => loads::k17(lab),
        _ => notes::answer(claim, lab),
    }
}
