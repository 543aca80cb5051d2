//! Published numbers: where a paper prints them, and how exactly.
//!
//! They stand in `published.toml`, those of texts and tables alone; a claim without an entry has its numbers from the
//! file of claims, or none.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::Broken;

/// Numbers of a paper's text or of one of its tables.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The claim that is about them.
    pub claim: String,
    /// The numbers.
    pub value: Vec<f64>,
    /// Where they stand.
    pub place: String,
    /// `text` or `table`.
    pub read: Read,
    /// How far from them the authors' own numbers may lie.
    pub uncertainty: String,
}

/// How numbers were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Read {
    /// From a sentence.
    Text,
    /// From a table.
    Table,
}

impl Read {
    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Table => "table",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    published: Vec<Published>,
}

/// All there are.
///
/// # Errors
/// The file is none.
pub fn all() -> Result<&'static [Published], Broken> {
    static ALL: OnceLock<Result<Vec<Published>, String>> = OnceLock::new();
    let read = || {
        let file: Result<File, _> = toml::from_str(include_str!("../published.toml"));
        file.map(|file| file.published).map_err(|e| e.to_string())
    };
    let all = ALL.get_or_init(read).as_deref();
    all.map_err(|error| Broken::Claims(error.clone()))
}

/// Those of a claim.
#[must_use]
pub fn of(claim: &str) -> Option<&'static Published> {
    all().ok()?.iter().find(|one| one.claim == claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LIST;
    use crate::claim::Claim;

    /// Each number is that of its claim, or within the claim's limits.
    #[test]
    fn published_numbers_are_those_of_the_claims() {
        let claims = LIST.iter().flat_map(|paper| paper.claims().unwrap().claims);
        let claims: Vec<Claim> = claims.collect();
        let mut seen = Vec::new();
        for one in all().unwrap() {
            assert!(!seen.contains(&&one.claim), "{} stands twice", one.claim);
            seen.push(&one.claim);
            let claim = claims.iter().find(|claim| claim.id == one.claim);
            let claim = claim.unwrap_or_else(|| panic!("there is no claim {}", one.claim));
            match &claim.value {
                Some(value) => assert_eq!(value.all(), one.value, "{}", one.claim),
                None => {
                    let limits = claim.low.unwrap_or(f64::MIN)..=claim.high.unwrap_or(f64::MAX);
                    assert!(
                        one.value.iter().all(|n| limits.contains(n)),
                        "{}",
                        one.claim
                    );
                }
            }
            assert!(!one.place.is_empty() && !one.uncertainty.is_empty());
        }
        assert!(seen.len() > 25);
    }

    #[test]
    fn a_value_that_is_missing_is_an_error() {
        let text =
            "[[published]]\nclaim = \"C1\"\nplace = \"1\"\nread = \"text\"\nuncertainty = \"0\"";
        let error = toml::from_str::<File>(text).err().unwrap().to_string();
        assert!(error.contains("missing field `value`"), "{error}");
    }
}
