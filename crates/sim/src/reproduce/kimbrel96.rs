//! kimbrel96: what it says about `synth`, the one trace that is not lost, and its theorems.
//!
//! The paper prints batches (Table 6) only for the comparison on applications; for Figure 3 and
//! Table 2, which show `synth`, it prints neither batches nor reverse aggressive's F. Those used
//! here were found by search, so a claim met with them says that the method can make the
//! published number, not that the authors used these values. Every such note says so, and gives
//! the number with Table 6's batches beside it. See `docs/design/0004-hinted.md`.
//!
//! A comparison over all traces is refuted where `synth` refutes it, and met in part where it
//! holds there. Stand-ins for the nine lost traces are not written; what needs them is not
//! measured.

mod notes;
mod synth;
mod tables;

use self::notes::Answer;
use super::lab::Lab;
use super::{Broken, Claims, Finding, Paper, Reproduction, Step, Verdict};

pub(super) const PAPER: Paper = Paper {
    name: "kimbrel96",
    claims: include_str!("../claims/kimbrel96.toml"),
    measure,
};

fn measure(claims: &Claims, step: Step) -> Result<Reproduction, Broken> {
    let mut lab = Lab::default();
    let steps = claims.claims.len() + 1;
    let mut all = Reproduction::default();
    for claim in &claims.claims {
        step(steps, &claim.id);
        let Answer {
            measured,
            holds,
            note,
        } = notes::answer(claim, &mut lab)?;
        let verdict = match (holds, &measured) {
            (Some(verdict), _) => verdict,
            (None, Some(measured)) => claim.judge(measured),
            (None, None) => Verdict::NotMeasured,
        };
        all.findings.push(Finding {
            claim: claim.clone(),
            measured,
            verdict,
            note,
        });
    }
    step(steps, "tables and plots");
    all.tables = tables::all(&mut lab)?;
    all.bars = synth::bars(&mut lab)?;
    Ok(all)
}
