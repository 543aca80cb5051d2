//! What is measured for each claim, and what is to be said about it.

use super::super::lab::{DISK, Lab};
use super::super::{Broken, Claim, Figures, Verdict, theory};
use super::synth::{ARRAYS, BATCHES, aggressive, methods, reverse, rounded, seconds, service_ms};
use crate::hinted::host::HostReport;

/// Instances of K18; the test `hinted_theory` has ten times as many.
const INSTANCES: u64 = 2_000;
const INSTANCES_SEED: u64 = 18;

/// What came out for a claim.
pub(super) struct Answer {
    pub(super) measured: Option<Figures>,
    /// The verdict where the numbers alone do not give it.
    pub(super) holds: Option<Verdict>,
    pub(super) note: String,
}

fn numbers(numbers: Vec<f64>, note: impl Into<String>) -> Answer {
    let measured = match numbers.as_slice() {
        [one] => Figures::One(*one),
        _ => Figures::Several(numbers),
    };
    Answer {
        measured: Some(measured),
        holds: None,
        note: note.into(),
    }
}

pub(super) fn answer(claim: &Claim, lab: &mut Lab) -> Result<Answer, Broken> {
    match claim.id.as_str() {
        "K1" => {
            let both = theory::figure_1()?.map(|units| units as f64);
            Ok(numbers(
                both.to_vec(),
                "unit model; optimum by search over all schedules",
            ))
        }
        "K2" => {
            let fetched = fetches(lab, 1, |_| "demand-opt".to_owned())?;
            Ok(numbers(fetched, "depends on no disk"))
        }
        "K3" => {
            let fetched = fetches(lab, 4, |_| "fixed-horizon".to_owned())?;
            Ok(numbers(fetched, "depends on no disk"))
        }
        "K4" => {
            let fetched = fetches(lab, 2, aggressive)?;
            let table_6 = fetches(lab, 2, |_| "aggressive".to_owned())?;
            Ok(numbers(fetched, searched(2, &table_6, "fetches")))
        }
        "K5" => k5(lab),
        "K6" => {
            let elapsed = each(lab, 4, |_| "fixed-horizon".to_owned(), elapsed_s)?;
            Ok(numbers(
                elapsed,
                format!("{DISK}; computing takes 0.3 s more than the paper's"),
            ))
        }
        "K7" => {
            let elapsed = each(lab, 4, aggressive, elapsed_s)?;
            let table_6 = each(lab, 4, |_| "aggressive".to_owned(), elapsed_s)?;
            Ok(numbers(elapsed, searched(4, &table_6, "s")))
        }
        "K8" => k8(lab, claim),
        "K9" => {
            let unused = |run: &HostReport| run.ledger.evicted_unused as f64;
            let searched_for = unused(lab.synth(&aggressive(3), 3)?);
            let table_6 = unused(lab.synth("aggressive", 3)?);
            let note = format!(
                "the batch of {} was found by search, the paper prints none for this figure; \
                 with Table 6's batch {table_6}",
                BATCHES[2]
            );
            Ok(numbers(vec![searched_for], note))
        }
        "K10" => k10(lab),
        "K11" => k11(lab),
        "K12" => k12(lab),
        "K18" => k18(),
        _ => Ok(missing(claim)),
    }
}

fn each(
    lab: &mut Lab,
    disks: u16,
    policy: impl Fn(u16) -> String,
    figure: impl Fn(&HostReport) -> f64,
) -> Result<Vec<f64>, Broken> {
    let one = |disks| Ok(figure(lab.synth(&policy(disks), disks)?));
    (1..=disks).map(one).collect()
}

fn fetches(lab: &mut Lab, disks: u16, policy: impl Fn(u16) -> String) -> Result<Vec<f64>, Broken> {
    each(lab, disks, policy, |run| run.ledger.fetches as f64)
}

fn elapsed_s(run: &HostReport) -> f64 {
    rounded(seconds(run.elapsed), 1)
}

fn searched(disks: usize, table_6: &[f64], unit: &str) -> String {
    let batches: Vec<String> = BATCHES.iter().take(disks).map(u32::to_string).collect();
    let table_6 = Figures::Several(table_6.to_vec());
    format!(
        "{DISK}; the batches {} were found by search, the paper prints none for this figure; \
         with Table 6's batches {table_6} {unit}",
        batches.join(", ")
    )
}

fn k5(lab: &mut Lab) -> Result<Answer, Broken> {
    let fetched = fetches(lab, 3, reverse)?;
    let table_6 = fetches(lab, 3, |_| "reverse-aggressive".to_owned())?;
    let note = format!(
        "the parameters were found by search, the paper does not print its own: F 4, 8, 40 and \
         backward batches 40, 40, 4, forward batch 40; with the default F and Table 6's batches \
         both ways {}; depends on no disk",
        Figures::Several(table_6)
    );
    Ok(numbers(fetched, note))
}

/// The least and the most of the three methods on one to four disks.
fn k8(lab: &mut Lab, claim: &Claim) -> Result<Answer, Broken> {
    let horizon = |_| "fixed-horizon".to_owned();
    let mut means = each(lab, 4, horizon, service_ms)?;
    means.extend(each(lab, 4, aggressive, service_ms)?);
    means.extend(each(lab, 4, reverse, service_ms)?);
    let least = means.iter().copied().fold(f64::MAX, f64::min);
    let most = means.iter().copied().fold(0.0, f64::max);
    let limits = claim.low.unwrap_or(0.0)..=claim.high.unwrap_or(f64::MAX);
    let outside = means.iter().filter(|mean| !limits.contains(*mean)).count();
    let table_6 = each(lab, 2, |_| "aggressive".to_owned(), service_ms)?;
    let note = format!(
        "least and most over three methods on 1 to 4 disks, of the time a disk works on a \
         request; by method (fixed horizon, aggressive, reverse aggressive), disks rising: {}. \
         {outside} of {} lie outside. Aggressive is above in the batches of 40 and 8 that its \
         counts need on 1 and 2 disks; with Table 6's batches it is at {} there. The paper does not say over which \
         runs, or from when to when, it means",
        Figures::Several(means.clone()),
        means.len(),
        Figures::Several(table_6)
    );
    Ok(numbers(vec![least, most], note))
}

fn k10(lab: &mut Lab) -> Result<Answer, Broken> {
    let mut stalls = Vec::new();
    for policy in ["fixed-horizon".to_owned(), aggressive(3), reverse(3)] {
        stalls.push(seconds(lab.synth(&policy, 3)?.stall));
    }
    let table_6 = seconds(lab.synth("aggressive", 3)?.stall);
    let note = format!(
        "seconds of fixed horizon, aggressive, reverse aggressive; equal at the paper's resolution \
         of 0.1 s. Starting a few fetches does not take the processor as long as a cold cache's \
         first read takes the disk: with Table 6's larger batch aggressive stalls {table_6} s"
    );
    Ok(numbers(stalls, note))
}

/// The largest of a method's time over demand's, over all arrays.
fn k11(lab: &mut Lab) -> Result<Answer, Broken> {
    let mut worst = (0.0, String::new());
    for disks in ARRAYS {
        let demand = lab.synth("demand-opt", disks)?.elapsed.0 as f64;
        for (_, policy) in methods(disks).into_iter().skip(1) {
            let ratio = lab.synth(&policy, disks)?.elapsed.0 as f64 / demand;
            if ratio > worst.0 {
                worst = (ratio, format!("{policy} on {disks} disks"));
            }
        }
    }
    let (ratio, at) = worst;
    let note = format!(
        "synth only, the other nine traces are lost and not stood in for; the number is the \
         largest elapsed time over optimal demand fetching's on 11 arrays, of {at}"
    );
    Ok(in_part(ratio < 1.0, rounded(ratio, 3), note))
}

/// By how much per cent forestall is slower than the better of the two, at most; all in the
/// batches of Table 6, which section 5 names.
fn k12(lab: &mut Lab) -> Result<Answer, Broken> {
    let mut worst = (f64::MIN, 0);
    for disks in ARRAYS {
        let horizon = lab.synth("fixed-horizon", disks)?.elapsed;
        let better = lab.synth("aggressive", disks)?.elapsed.min(horizon);
        let own = lab.synth("forestall", disks)?.elapsed;
        let slower = (own.0 as f64 / better.0 as f64 - 1.0) * 100.0;
        if slower > worst.0 {
            worst = (slower, disks);
        }
    }
    let note = format!(
        "synth only, the other nine traces are lost and not stood in for; per cent slower than \
         the better one, at most over 11 arrays (on {} disks), in Table 6's batches",
        worst.1
    );
    Ok(in_part(worst.0 <= 2.0, rounded(worst.0, 2), note))
}

fn in_part(holds: bool, measured: f64, note: String) -> Answer {
    let verdict = if holds {
        Verdict::MetInPart
    } else {
        Verdict::Differs
    };
    Answer {
        holds: Some(verdict),
        ..numbers(vec![measured], note)
    }
}

fn k18() -> Result<Answer, Broken> {
    let bounds = theory::check(INSTANCES_SEED, INSTANCES)?;
    let over = |units: u64| rounded(units as f64 / bounds.optimum_units.max(1) as f64, 4);
    let note = format!(
        "bounds broken on {} random instances of up to 3 disks; elapsed over the optimum, summed \
         up: aggressive {}, reverse aggressive {}",
        bounds.instances,
        over(bounds.aggressive_units),
        over(bounds.reverse_units)
    );
    let holds = bounds.broken == 0 && bounds.instances == INSTANCES;
    Ok(Answer {
        holds: Some(Verdict::from(holds)),
        ..numbers(vec![bounds.broken as f64], note)
    })
}

fn missing(claim: &Claim) -> Answer {
    Answer {
        measured: None,
        holds: None,
        note: format!(
            "needs the lost traces {}; generators that stand in for them are missing",
            claim.lost.join(", ")
        ),
    }
}
