//! A claim of a paper, and whether a measurement meets it.
//!
//! Claims are facts, so they stand in a TOML file beside the code (`claims/`) and not in it; here
//! one is read and judged. Its measurement, and the remark on a difference, are the paper's own
//! module.

use std::fmt;

use serde::Deserialize;

/// The claims of a paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Title, place and year.
    pub source: String,
    /// In the order of the paper.
    pub claims: Vec<Claim>,
}

/// One number or several.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Figures {
    /// One.
    One(f64),
    /// Several, in the order in which the claim names them.
    Several(Vec<f64>),
}

/// How a measurement is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Equal.
    Exact,
    /// Within a tolerance, relative.
    Within,
    /// From the lowest to the highest allowed.
    Range,
    /// An order holds.
    Order,
    /// A comparison holds.
    Shape,
}

/// A statement of a paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// In words.
    pub what: String,
    /// How it is judged.
    pub kind: Kind,
    /// The published numbers. Beside an order or a shape they are shown and not compared.
    pub value: Option<Figures>,
    /// Relative tolerance, of all numbers or of each.
    pub tol: Option<Figures>,
    /// Least allowed.
    pub low: Option<f64>,
    /// Most allowed.
    pub high: Option<f64>,
    /// Resolution at which numbers are equal.
    pub step: Option<f64>,
    /// Traces it is about that are lost; stand-ins take their place.
    #[serde(default)]
    pub lost: Vec<String>,
    /// A remark on the claim itself: what the paper leaves open, or where it contradicts itself.
    pub note: Option<String>,
}

/// How a claim fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It holds, and nothing was taken from the figures it is compared with.
    Met,
    /// It holds by a parameter that was searched, or an input that was made, from those figures.
    Fitted,
    /// It does not hold.
    Differs,
}

impl Verdict {
    /// All there are.
    pub const LIST: [Self; 3] = [Self::Met, Self::Fitted, Self::Differs];

    /// Whether the claim holds, by whichever means.
    #[must_use]
    pub fn holds(self) -> bool {
        self != Self::Differs
    }

    /// The verdict if something was fitted: a claim that does not hold stays one.
    #[must_use]
    pub fn fitted(self, is_fitted: bool) -> Self {
        match self {
            Self::Met if is_fitted => Self::Fitted,
            other => other,
        }
    }

    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Fitted => "met, fitted",
            Self::Differs => "differs",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Met } else { Self::Differs }
    }
}

impl Figures {
    /// The numbers.
    #[must_use]
    pub fn all(&self) -> &[f64] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    /// The number at a place; a single one stands at all.
    fn at(&self, at: usize) -> Option<f64> {
        match self {
            Self::One(one) => Some(*one),
            Self::Several(several) => several.get(at).copied(),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.all().iter().map(f64::to_string).collect();
        f.pad(&shown.join(", "))
    }
}

impl Claims {
    /// Reads the text of a claims file.
    ///
    /// # Errors
    /// It is not one; in words.
    pub fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

impl Claim {
    /// The published numbers, or the limits of the allowed ones.
    #[must_use]
    pub fn published(&self) -> Option<Figures> {
        let limits = || Some(Figures::Several(vec![self.low?, self.high?]));
        self.value.clone().or_else(limits)
    }

    /// Whether these numbers meet it. An order or a shape has no numbers to be compared with;
    /// its measurement says whether it holds.
    #[must_use]
    pub fn judge(&self, measured: &Figures) -> Verdict {
        let pairs = measured.all().iter().enumerate();
        let published = self.value.as_ref();
        let complete = match published {
            Some(Figures::Several(several)) => several.len() == measured.all().len(),
            _ => !measured.all().is_empty(),
        };
        let holds = pairs.fold(complete, |holds, (at, measured)| {
            let published = published.and_then(|figures| figures.at(at));
            holds && self.holds(at, *measured, published)
        });
        Verdict::from(holds)
    }

    fn holds(&self, at: usize, measured: f64, published: Option<f64>) -> bool {
        match (self.kind, published) {
            (Kind::Exact, Some(published)) => {
                (measured - published).abs() <= self.step.unwrap_or(0.0) / 2.0
            }
            (Kind::Within, Some(published)) => {
                let tolerance = self.tol.as_ref().and_then(|tol| tol.at(at));
                (measured / published - 1.0).abs() <= tolerance.unwrap_or(0.0)
            }
            (Kind::Range, _) => {
                let (low, high) = (self.low.unwrap_or(f64::MIN), self.high.unwrap_or(f64::MAX));
                (low..=high).contains(&measured)
            }
            (Kind::Exact | Kind::Within | Kind::Order | Kind::Shape, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(rest: &str) -> Claim {
        let text = format!("source = \"s\"\n[[claims]]\nid = \"X1\"\nwhat = \"w\"\n{rest}");
        Claims::read(&text).unwrap().claims.remove(0)
    }

    fn judged(claim: &Claim, measured: &[f64]) -> &'static str {
        claim.judge(&Figures::Several(measured.to_vec())).name()
    }

    #[test]
    fn each_kind_is_judged_in_its_way() {
        let exact = claim("kind = \"exact\"\nvalue = [7, 6]");
        assert_eq!(judged(&exact, &[7.0, 6.0]), "met");
        assert_eq!(judged(&exact, &[7.0, 6.1]), "differs");
        assert_eq!(judged(&exact, &[7.0]), "differs");
        let within = claim("kind = \"within\"\ntol = [0.02, 0.1]\nvalue = [100, 100]");
        assert_eq!(judged(&within, &[101.0, 109.0]), "met");
        assert_eq!(judged(&within, &[103.0, 100.0]), "differs");
        let range = claim("kind = \"range\"\nlow = 3.0\nhigh = 4.0");
        assert_eq!(judged(&range, &[3.0, 3.5]), "met");
        assert_eq!(judged(&range, &[3.0, 4.5]), "differs");
        assert_eq!(judged(&range, &[f64::NAN]), "differs");
        let step = claim("kind = \"exact\"\nvalue = 0\nstep = 0.1");
        assert_eq!(judged(&step, &[0.04, 0.0]), "met");
        assert_eq!(judged(&step, &[0.06]), "differs");
        assert_eq!(judged(&step, &[]), "differs");
    }

    #[test]
    fn only_a_claim_that_holds_is_met_by_a_fit() {
        let after = |fitted| Verdict::LIST.map(|verdict| verdict.fitted(fitted).name());
        assert_eq!(after(true), ["met, fitted", "met, fitted", "differs"]);
        assert_eq!(after(false), ["met", "met, fitted", "differs"]);
        assert_eq!(Verdict::LIST.map(Verdict::holds), [true, true, false]);
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        assert!(Claims::read("source = \"s\"\nclaim = []").is_err());
    }
}
