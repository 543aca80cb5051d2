//! Findings as cells of text: for the table of the command line and the table of the report.

use super::{Claim, Figures, Finding, Measured, Reproduction, Verdict};

/// The published numbers of a claim, or the range of the allowed ones.
fn published(claim: &Claim) -> String {
    let range = || Some(format!("{} to {}", claim.low?, claim.high?));
    let value = claim.value.as_ref().map(Figures::to_string);
    value.or_else(range).unwrap_or_else(|| "-".to_owned())
}

/// How many claims have each verdict, at the moment that was asked for.
#[must_use]
pub fn summary(all: &Reproduction) -> String {
    let first = |finding: &Finding| finding.measured.first().map(|one| one.verdict);
    let verdicts: Vec<Verdict> = all.findings.iter().filter_map(first).collect();
    let counts = Verdict::LIST.map(|verdict| {
        let count = verdicts.iter().filter(|one| **one == verdict).count();
        format!("{verdict}: {count}")
    });
    format!("claims: {}; {}", verdicts.len(), counts.join("; "))
}

/// Whether claims were measured for more than one moment at which a free disk is noticed.
#[must_use]
pub fn has_notices(all: &Reproduction) -> bool {
    all.findings
        .iter()
        .any(|finding| finding.measured.len() > 1)
}

/// The columns of a table of claims: measured and verdict once for each moment at which a free disk
/// is noticed.
#[must_use]
pub fn head(all: &Reproduction) -> Vec<String> {
    let measured = all.findings.first().map_or(&[][..], |f| &f.measured);
    let has_notices = has_notices(all);
    let columns = measured.iter().flat_map(|one| {
        let moment = one.notice.to_string();
        let measured = "measured".to_owned();
        [
            if has_notices { moment } else { measured },
            "verdict".to_owned(),
        ]
    });
    let first = ["id", "claim", "published"].map(str::to_owned);
    let columns = first.into_iter().chain(columns);
    columns.chain(["note".to_owned()]).collect()
}

/// The cells of a finding, under [`head`].
#[must_use]
pub fn cells(finding: &Finding) -> Vec<String> {
    let claim = &finding.claim;
    let mut cells = vec![claim.id.clone(), claim.what.clone(), published(claim)];
    for one in &finding.measured {
        cells.extend([one.figures.to_string(), one.verdict.to_string()]);
    }
    let fit = fitted(finding).map(|fit| format!("fitted: {fit}; "));
    cells.push(fit.unwrap_or_default() + &note(finding));
    cells
}

/// What is to be said of the moment that was asked for, and whether the verdict hangs on it.
#[must_use]
pub fn note(finding: &Finding) -> String {
    let note = finding.measured.first().map_or("", |one| &one.note);
    match finding.hangs_on_notice() {
        true => {
            format!("hangs on when a free disk is noticed, which the paper leaves open; {note}")
        }
        false => note.to_owned(),
    }
}

/// What was fitted, for the moment that was asked for.
#[must_use]
pub fn fitted(finding: &Finding) -> Option<&str> {
    finding.measured.first().and_then(Measured::fit)
}
