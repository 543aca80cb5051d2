//! The median of a claim's measurements, one a seed, and whether its verdict hangs on the seed.
//!
//! ```text
//! seeds 1 to 5:  1.02  1.10  1.09  1.07  1.12     at least 1.08: median 1.09, met, borderline (1.02 and 1.07 differ)
//! ```

use forerun_sim::hinted::host::Notice;

use super::{Answer, Claim, Figures, Measured, Verdict};

impl Measured {
    /// The measurements of a claim, the first of which has the note. None is a claim without a number.
    pub(super) fn of(claim: &Claim, notice: Notice, answers: Vec<Answer>) -> Self {
        let verdicts: Vec<Verdict> = answers.iter().map(|one| verdict(claim, one)).collect();
        let all: Vec<&[f64]> = answers.iter().map(|one| one.measured.all()).collect();
        let range = range(&all);
        let figures = median(&answers);
        let holds = match answers.iter().all(|one| one.holds.is_none()) {
            true => claim.judge(&figures),
            false => {
                let held = verdicts.iter().filter(|verdict| verdict.holds()).count();
                Verdict::from(2 * held > verdicts.len())
            }
        };
        let first = answers.into_iter().next();
        let (fitted, note) = first.map_or_else(Default::default, |one| (one.fitted, one.note));
        Self {
            notice,
            is_borderline: verdicts.iter().any(|one| *one != holds),
            verdict: holds.fitted(fitted.is_some()),
            figures,
            range,
            fitted,
            note,
        }
    }
}

/// The verdict by one seed.
fn verdict(claim: &Claim, answer: &Answer) -> Verdict {
    let judged = || claim.judge(&answer.measured);
    answer.holds.map_or_else(judged, Verdict::from)
}

/// The numbers at a place of all measurements, sorted.
fn sorted(all: &[&[f64]], place: usize) -> Vec<f64> {
    let numbers = all.iter().filter_map(|one| one.get(place).copied());
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// The median of each number.
fn median(answers: &[Answer]) -> Figures {
    let all: Vec<&[f64]> = answers.iter().map(|one| one.measured.all()).collect();
    let places = 0..all.iter().map(|one| one.len()).max().unwrap_or(0);
    let middle = |place| {
        let numbers = sorted(&all, place);
        numbers[numbers.len() / 2]
    };
    match answers.first().map(|one| &one.measured) {
        Some(Figures::One(_)) if places.len() == 1 => Figures::One(middle(0)),
        _ => Figures::Several(places.map(middle).collect()),
    }
}

/// The least and the most of each number, if they differ anywhere.
fn range(all: &[&[f64]]) -> Vec<(f64, f64)> {
    let places = 0..all.iter().map(|one| one.len()).max().unwrap_or(0);
    let ends = |place| {
        let numbers = sorted(all, place);
        (numbers[0], numbers[numbers.len() - 1])
    };
    let ends: Vec<(f64, f64)> = places.map(ends).collect();
    match ends.iter().all(|(least, most)| least == most) {
        true => Vec::new(),
        false => ends,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::{answer, judged};

    fn claim(rest: &str) -> Claim {
        let text = format!("source = \"s\"\n[[claims]]\nid = \"X1\"\nwhat = \"w\"\n{rest}");
        crate::Claims::read(&text).unwrap().claims.remove(0)
    }

    fn of(rest: &str, answers: Vec<Answer>) -> (&'static str, bool, Vec<f64>, usize) {
        let one = Measured::of(&claim(rest), Notice::default(), answers);
        let (verdict, range) = (one.verdict.name(), one.range.len());
        (
            verdict,
            one.is_borderline,
            one.figures.all().to_vec(),
            range,
        )
    }

    #[test]
    fn the_median_is_judged_and_a_seed_that_disagrees_makes_it_borderline() {
        let range = "kind = \"range\"\nlow = 1.08\nhigh = 1.97";
        let answers = |numbers: [f64; 5]| numbers.map(|n| answer(vec![n], "")).to_vec();
        let crossing = of(range, answers([1.02, 1.1, 1.09, 1.07, 1.12]));
        assert_eq!(crossing, ("met", true, vec![1.09], 1));
        let inside = of(range, answers([1.2, 1.1, 1.09, 1.3, 1.12]));
        assert_eq!(inside, ("met", false, vec![1.12], 1));
        let outside = of(range, answers([1.0, 1.07, 1.09, 1.0, 1.2]));
        assert_eq!(outside, ("differs", true, vec![1.07], 1));
        let alike = of(range, answers([1.1; 5]));
        assert_eq!(alike, ("met", false, vec![1.1], 0));
    }

    #[test]
    fn an_order_holds_if_it_does_by_most_seeds() {
        let order = "kind = \"order\"";
        let answers = |holds: [bool; 5]| holds.map(|one| judged(one, vec![1.0, 2.0], "")).to_vec();
        let most = of(order, answers([true, false, true, true, false]));
        assert_eq!(most, ("met", true, vec![1.0, 2.0], 0));
        let few = of(order, answers([true, false, false, true, false]));
        assert_eq!(few, ("differs", true, vec![1.0, 2.0], 0));
        assert_eq!(of(order, vec![judged(true, vec![], "")]).0, "met");
    }

    #[test]
    fn each_number_has_its_own_median() {
        let pairs = [[1.0, 9.0], [2.0, 8.0], [3.0, 7.0], [4.0, 6.0], [5.0, 5.0]];
        let answers = pairs.map(|pair| answer(pair.to_vec(), "")).to_vec();
        let one = Measured::of(&claim("kind = \"order\""), Notice::default(), answers);
        assert_eq!(one.figures.all(), [3.0, 7.0]);
        assert_eq!(one.range, [(1.0, 5.0), (5.0, 9.0)]);
    }
}
