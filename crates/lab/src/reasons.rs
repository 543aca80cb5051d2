//! Reasons of claims that differ, as far as experiments say.
//!
//! A reason is *established* if an [experiment](crate::experiments) shows it: with the supposed cause switched off the
//! claim is met, or its numbers move at least half of the way. All other claims that differ are *not established*, with
//! the experiments that were made. They stand in `reasons.toml`.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::{Broken, experiments};

/// The state of knowledge about a claim that differs.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The claim.
    pub claim: String,
    /// The cause, if it is established.
    pub cause: Option<String>,
    /// The knob that shows it, or another option.
    pub with: Option<String>,
    /// Experiments beside those of `experiments.toml`, and other things to know.
    #[serde(default)]
    pub tried: String,
}

impl Reason {
    /// Whether an experiment shows the cause.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.cause.is_some()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, &self.with) {
            (Some(cause), Some(with)) if with.starts_with("--") => {
                write!(f, "established: {cause} ({with})")?;
            }
            (Some(cause), Some(with)) => write!(f, "established: {cause} (--with {with})")?,
            _ => f.write_str("not established")?,
        }
        let mut tried = experiments::of(&self.claim);
        tried.extend((!self.tried.is_empty()).then(|| self.tried.clone()));
        write!(f, "; tried: {}", tried.join("; "))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    reasons: Vec<Reason>,
}

/// All there are.
///
/// # Errors
/// The file is none.
pub fn all() -> Result<&'static [Reason], Broken> {
    static ALL: OnceLock<Result<Vec<Reason>, String>> = OnceLock::new();
    let read = || {
        let file: Result<File, _> = toml::from_str(include_str!("../reasons.toml"));
        file.map(|file| file.reasons).map_err(|e| e.to_string())
    };
    let all = ALL.get_or_init(read).as_deref();
    all.map_err(|error| Broken::Claims(error.clone()))
}

/// That of a claim.
#[must_use]
pub fn of(claim: &str) -> Option<&'static Reason> {
    all().ok()?.iter().find(|one| one.claim == claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LIST;

    /// A cause without an experiment is a guess.
    #[test]
    fn every_established_cause_has_a_knob_of_its_paper() {
        let mut seen = Vec::new();
        for reason in all().unwrap() {
            assert!(
                !seen.contains(&&reason.claim),
                "{} stands twice",
                reason.claim
            );
            seen.push(&reason.claim);
            let has = |id: &str| {
                let of_paper = |paper: &&crate::Paper| {
                    let claims = paper.claims().unwrap().claims;
                    claims.iter().any(|claim| claim.id == id)
                };
                LIST.iter().find(of_paper)
            };
            let paper = has(&reason.claim).unwrap_or_else(|| panic!("no {}", reason.claim));
            assert_eq!(reason.cause.is_some(), reason.with.is_some(), "{reason:?}");
            if let Some(with) = &reason.with {
                let claims = paper.claims().unwrap().claims;
                let claim = claims.iter().find(|claim| claim.id == reason.claim);
                let shows = |one: &experiments::Experiment| {
                    (&one.claim, &one.with) == (&reason.claim, with)
                        && one.establishes(claim.unwrap())
                };
                let mut rows = experiments::all().unwrap().iter();
                assert!(rows.any(shows), "no experiment shows {reason:?}");
            }
            let rows = experiments::of(&reason.claim);
            assert!(!reason.tried.is_empty() || !rows.is_empty());
        }
    }
}
