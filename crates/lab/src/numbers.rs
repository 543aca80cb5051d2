//! Numbers of an answer, as they are printed.

use super::{Answer, Figures};

/// An answer of these numbers, which the claim's kind judges.
pub(super) fn answer(numbers: Vec<f64>, note: impl Into<String>) -> Answer {
    let measured = match numbers.as_slice() {
        [one] => Figures::One(*one),
        _ => Figures::Several(numbers),
    };
    Answer {
        measured,
        holds: None,
        fitted: None,
        note: note.into(),
    }
}

/// An answer that was judged already.
pub(super) fn judged(holds: bool, numbers: Vec<f64>, note: impl Into<String>) -> Answer {
    Answer {
        holds: Some(holds),
        ..answer(numbers, note)
    }
}

impl Answer {
    /// The same with its fit: the parameter, the published figure, and the figure without.
    pub(super) fn fitted(mut self, fit: impl Into<String>) -> Self {
        self.fitted = Some(fit.into());
        self
    }
}

/// A number with a given number of places behind the point.
pub(super) fn rounded(value: f64, places: i32) -> f64 {
    let unit = 10f64.powi(places);
    (value * unit).round() / unit
}

/// The greatest of some numbers.
pub(super) fn best(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(0.0, f64::max)
}

/// The least of some numbers.
pub(super) fn least(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::MAX, f64::min)
}

/// Numbers as notes show them.
pub(super) fn shown(numbers: &[f64]) -> String {
    let all: Vec<String> = numbers.iter().map(|n| format!("{n:.2}")).collect();
    all.join(", ")
}

/// Numbers by the requests at a time they were measured with: `1.02 at 1, 0.98 at 10`.
pub(super) fn by_level(numbers: &[f64], levels: &[u64]) -> String {
    let all = numbers.iter().zip(levels);
    let all: Vec<String> = all.map(|(n, level)| format!("{n:.2} at {level}")).collect();
    all.join(", ")
}
