//! How answers of a store go wrong, and how often: `503=100` is one answer in a hundred.
//!
//! Drawn from the seed and the number of the request, so that a run with the same order of requests
//! meets the same faults.

use crate::content;

/// How an answer goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// This status, and S3's error of it.
    Status(u16),
    /// A reset in place of an answer.
    Reset,
    /// Half of the body, and the end of the connection.
    Truncated,
    /// A body at a sixteenth of a connection's rate.
    Slow,
}

impl Fault {
    /// Whether it is one of the body alone.
    pub(super) fn is_of_body(self) -> bool {
        matches!(self, Self::Truncated | Self::Slow)
    }
}

/// How many answers go wrong, and in which ways.
#[derive(Clone, Default, Debug)]
pub struct Faults {
    /// The seed of the draws.
    pub seed: u64,
    /// Each way with the number of answers that one of them is among.
    pub ways: Vec<(Fault, u64)>,
}

impl Faults {
    /// The fault of the request of this number.
    #[must_use]
    pub fn of(&self, number: u64) -> Option<Fault> {
        let mut ways = self.ways.iter().zip(1..);
        let drawn = ways
            .find(|((_, among), way)| content::tag(self.seed, *way, number).is_multiple_of(*among));
        drawn.map(|((fault, _), _)| *fault)
    }
}

/// A way to go wrong and its frequency, as people type it.
///
/// # Errors
/// No such way, or no number from 1 on.
pub fn parse(text: &str) -> Result<(Fault, u64), String> {
    let wanted = || {
        format!(
            "`{text}`: give 429, 503, reset, truncated or slow, and one in how many answers, as \
             503=100"
        )
    };
    let (way, among) = text.split_once('=').ok_or_else(wanted)?;
    let fault = match way {
        "429" => Fault::Status(429),
        "503" => Fault::Status(503),
        "reset" => Fault::Reset,
        "truncated" => Fault::Truncated,
        "slow" => Fault::Slow,
        _ => return Err(wanted()),
    };
    let among = among.parse().ok().filter(|among| *among > 0);
    Ok((fault, among.ok_or_else(wanted)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_in_so_many_goes_wrong_and_the_same_ones_again() {
        let ways = ["503=100", "reset=200"].map(|text| parse(text).unwrap());
        let faults = Faults {
            seed: 3,
            ways: ways.to_vec(),
        };
        let drawn: Vec<_> = (0..100_000).map(|number| faults.of(number)).collect();
        let count = |fault| drawn.iter().filter(|one| **one == Some(fault)).count();
        assert!((900..1100).contains(&count(Fault::Status(503))));
        assert!((420..580).contains(&count(Fault::Reset)));
        assert!((0..100_000).all(|number| faults.of(number) == drawn[number as usize]));
    }

    #[test]
    fn a_way_that_is_none_is_refused_with_the_list() {
        for wrong in ["503", "404=10", "503=0", "reset=x", ""] {
            assert!(parse(wrong).unwrap_err().contains("truncated"), "{wrong}");
        }
    }
}
