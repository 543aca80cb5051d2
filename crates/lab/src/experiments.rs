//! Experiments: claims measured with one condition changed, as `forerun-lab reproduce PAPER --only CLAIM --with KNOB=VALUE`
//! prints them.
//!
//! A reason of a difference is *established* if the claim is met with the supposed cause switched off, or if every
//! number that was out of its limits moves at least half of the way to them and none leaves them. Each row of
//! `experiments.toml` has both results, so that anyone can judge:
//!
//! ```text
//! P11  handlers-memory=20   without it 2.902, with it 0.915, limit 0.4: 1.987 of the way of 2.502, established
//! ```

use std::sync::OnceLock;

use serde::Deserialize;

use crate::claim::{Claim, Figures, Kind};
use crate::{Broken, Verdict};

/// A claim, measured with conditions changed. The medians of five seeds, if its runs are drawn.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The claim.
    pub claim: String,
    /// The changed conditions, as they are given to `--with`, with blanks between them; or another option.
    pub with: String,
    /// One seed in the place of five: a trial, which establishes nothing.
    #[serde(default)]
    pub is_trial: bool,
    /// The numbers without it.
    pub without: Vec<f64>,
    /// The numbers with it.
    pub measured: Vec<f64>,
    /// Whether the claim is met by these.
    pub is_met: bool,
    /// Where the claim is an order or a shape: the limit of each number, `nan` for one without.
    #[serde(default)]
    pub limits: Vec<f64>,
}

impl Experiment {
    /// Whether it shows a cause.
    #[must_use]
    pub fn establishes(&self, claim: &Claim) -> bool {
        if self.is_trial {
            return false;
        }
        let allowed = |at: usize| match self.limits.get(at) {
            Some(limit) if self.without[at] < *limit => Some((*limit, f64::MAX)),
            Some(limit) => (!limit.is_nan()).then_some((f64::MIN, *limit)),
            None => allowed(claim, at),
        };
        let outside = |numbers: &[f64], at: usize| {
            let beyond = |(low, high): (f64, f64)| (low - numbers[at]).max(numbers[at] - high);
            allowed(at).map_or(0.0, beyond).max(0.0)
        };
        let moves = |at| outside(&self.measured, at) <= outside(&self.without, at) / 2.0;
        let mut places = 0..self.without.len().min(self.measured.len());
        let was_outside = places.clone().any(|at| outside(&self.without, at) > 0.0);
        self.is_met || was_outside && places.all(moves)
    }
}

/// Between which numbers a claim allows one.
fn allowed(claim: &Claim, at: usize) -> Option<(f64, f64)> {
    let number = |figures: &Option<Figures>| match figures {
        Some(Figures::One(one)) => Some(*one),
        Some(Figures::Several(several)) => several.get(at).copied(),
        None => None,
    };
    match claim.kind {
        Kind::Within => {
            let (value, tolerance) = (number(&claim.value)?, number(&claim.tol)?);
            Some((value * (1.0 - tolerance), value * (1.0 + tolerance)))
        }
        Kind::Range => Some((claim.low?, claim.high?)),
        _ => None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    experiments: Vec<Experiment>,
}

/// All there are.
///
/// # Errors
/// The file is none.
pub fn all() -> Result<&'static [Experiment], Broken> {
    static ALL: OnceLock<Result<Vec<Experiment>, String>> = OnceLock::new();
    let read = || {
        let file: Result<File, _> = toml::from_str(include_str!("../experiments.toml"));
        file.map(|file| file.experiments).map_err(|e| e.to_string())
    };
    let all = ALL.get_or_init(read).as_deref();
    all.map_err(|error| Broken::Claims(error.clone()))
}

/// Those of a claim, in words: `handlers-memory=0 gives 1.31, 1.01`.
#[must_use]
pub fn of(claim: &str) -> Vec<String> {
    let all = all().unwrap_or_default().iter();
    let own = all.filter(|one| one.claim == claim);
    own.map(|one| {
        let measured = Figures::Several(one.measured.clone());
        let met = if one.is_met { ", which meets it" } else { "" };
        let seed = if one.is_trial { " (one seed)" } else { "" };
        format!("{} gives {measured}{met}{seed}", one.with)
    })
    .collect()
}

impl Experiment {
    /// Its verdict by the numbers, where they say it.
    #[must_use]
    pub fn judged(&self, claim: &Claim) -> Option<Verdict> {
        let is_judged = matches!(claim.kind, Kind::Within | Kind::Range | Kind::Exact);
        is_judged.then(|| claim.judge(&Figures::Several(self.measured.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LIST;
    use crate::knobs::Knobs;

    fn claim(rest: &str) -> Claim {
        let text = format!("source = \"s\"\n[[claims]]\nid = \"X1\"\nwhat = \"w\"\n{rest}");
        crate::Claims::read(&text).unwrap().claims.remove(0)
    }

    fn establishes(rest: &str, without: &[f64], measured: &[f64], limits: &[f64]) -> bool {
        let one = Experiment {
            claim: "X1".into(),
            with: "seed=1".into(),
            is_trial: false,
            without: without.to_vec(),
            measured: measured.to_vec(),
            is_met: false,
            limits: limits.to_vec(),
        };
        one.establishes(&claim(rest))
    }

    #[test]
    fn half_of_the_way_to_the_limits_establishes_a_cause_and_less_does_not() {
        let within = "kind = \"within\"\nvalue = [2.0, 1.0]\ntol = 0.1";
        // The limit is 1.8, so half of the way from 1.0 is 1.4.
        assert!(establishes(within, &[1.0, 1.0], &[1.41, 1.0], &[]));
        assert!(!establishes(within, &[1.0, 1.0], &[1.39, 1.0], &[]));
        let range = "kind = \"range\"\nlow = 0\nhigh = 0.4";
        assert!(establishes(range, &[2.4], &[1.39], &[]));
        assert!(!establishes(range, &[2.4], &[3.0], &[]));
        // Far beyond the other limit is no way towards them.
        assert!(!establishes(range, &[0.6], &[-0.2], &[]));
        // Numbers that were within are no way, either: another thing fails the claim.
        assert!(!establishes(range, &[0.3], &[0.2], &[]));
        let shape = "kind = \"shape\"";
        assert!(establishes(
            shape,
            &[1.86, 9.0],
            &[1.31, 7.0],
            &[1.05, f64::NAN]
        ));
        assert!(!establishes(shape, &[1.86], &[1.5], &[1.05]));
        assert!(!establishes(shape, &[1.86], &[1.31], &[]));
    }

    /// Rows are results of commands: of a claim, a knob of its paper, and a verdict that the numbers have.
    #[test]
    fn every_row_is_of_a_claim_and_of_knobs_of_its_paper() {
        for one in all().unwrap() {
            let paper = LIST.iter().find_map(|paper| {
                let claims = paper.claims().unwrap().claims;
                let claim = claims.into_iter().find(|claim| claim.id == one.claim)?;
                Some((paper, claim))
            });
            let (paper, claim) = paper.unwrap_or_else(|| panic!("no {}", one.claim));
            let mut knobs = Knobs::default();
            if !one.with.starts_with("--notice ") {
                let mut texts = one.with.split(' ');
                texts.try_for_each(|with| knobs.set(with)).unwrap();
            }
            assert_eq!(knobs.unfit(&[paper.name]), None, "{one:?}");
            assert_eq!(one.without.len(), one.measured.len(), "{one:?}");
            if let Some(verdict) = one.judged(&claim) {
                // Claims of li04 hold for two readings of the kernel, of which the numbers are one.
                assert!(verdict.holds() || !one.is_met, "{one:?}");
            }
        }
    }
}
