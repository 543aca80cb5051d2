//! Findings as cells of text: for the table of the command line and the table of the report.

use super::reasons::{self, Reason};
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

/// The conditions that were changed, in words; none without any.
#[must_use]
pub fn measured_with(with: &[&str]) -> Option<String> {
    (!with.is_empty()).then(|| format!("Measured with {}.", with.join(" ")))
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
        cells.extend([figures(one), one.verdict.to_string()]);
    }
    let fit = fitted(finding).map(|fit| format!("fitted: {fit}; "));
    cells.push(fit.unwrap_or_default() + &note(finding));
    cells
}

/// The remark on the moment that was asked for: whether the verdict hangs on it or on the seed, and the
/// reason of a difference.
#[must_use]
pub fn note(finding: &Finding) -> String {
    let Some(one) = finding.measured.first() else {
        return String::new();
    };
    let mut note = String::new();
    if let Some(reason) = reason(finding) {
        note += &match reason {
            Some(reason) => format!("reason {reason}; "),
            None => "reason not established; ".to_owned(),
        };
    }
    if one.is_borderline {
        note += "borderline: another verdict by some seeds; ";
    }
    if finding.hangs_on_notice() {
        note += "hangs on when a free disk is noticed, which the paper leaves open; ";
    }
    if let Some(remark) = &finding.claim.note {
        note += &format!("{remark}; ");
    }
    note + &one.note
}

/// The reason of a claim that differs, as far as it is known. None of one that is met.
#[must_use]
pub fn reason(finding: &Finding) -> Option<Option<&'static Reason>> {
    let one = finding.measured.first()?;
    (!one.verdict.holds()).then(|| reasons::of(&finding.claim.id))
}

/// The numbers, and between which they lie where they hang on the seed.
#[must_use]
pub fn figures(one: &Measured) -> String {
    if one.range.is_empty() {
        return one.figures.to_string();
    }
    let ends = one.range.iter().map(|(least, most)| match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    });
    let ends: Vec<String> = ends.collect();
    format!("{} ({})", one.figures, ends.join(", "))
}

/// How the claims of a paper fared: a row of the overview.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Claims.
    pub claims: usize,
    /// Met, with nothing taken from the numbers compared.
    pub met: usize,
    /// Met by a fit.
    pub fitted: usize,
    /// Not met.
    pub differs: usize,
    /// Of those not met: with no cause that an experiment shows.
    pub not_established: usize,
}

impl Counts {
    /// One claim more.
    pub fn add(&mut self, verdict: Verdict, is_established: bool) {
        self.claims += 1;
        match verdict {
            Verdict::Met => self.met += 1,
            Verdict::Fitted => self.fitted += 1,
            Verdict::Differs => self.differs += 1,
        }
        self.not_established += usize::from(!verdict.holds() && !is_established);
    }

    /// The counts of findings.
    #[must_use]
    pub fn of(all: &Reproduction) -> Self {
        let mut counts = Self::default();
        for finding in &all.findings {
            let established = reason(finding)
                .flatten()
                .is_some_and(Reason::is_established);
            if let Some(one) = finding.measured.first() {
                counts.add(one.verdict, established);
            }
        }
        counts
    }

    /// Its cells, under [`OVERVIEW`].
    #[must_use]
    pub fn cells(&self) -> [String; 5] {
        let cells = [
            self.claims,
            self.met,
            self.fitted,
            self.differs,
            self.not_established,
        ];
        cells.map(|count| count.to_string())
    }
}

/// The columns of an overview of papers, behind that of the paper's name.
pub const OVERVIEW: [&str; 5] = ["claims", "met", "met, fitted", "differs", "not established"];

/// What was fitted, for the moment that was asked for.
#[must_use]
pub fn fitted(finding: &Finding) -> Option<&str> {
    finding.measured.first().and_then(Measured::fit)
}
