//! Measure methods that are wrong, each in one way, with the rule that finds it.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::conformance::Rule;
use crate::measure::{self, Confidence, Measure, Sample};
use crate::profile::Profile;
use crate::units::{Bytes, Nanos};

/// The defect of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Guess {
    SendsNothing,
    ShrinksWithLength,
    CountsQuestions,
}

pub(super) const ESTIMATES: &[(Rule, Guess)] = &[
    (Rule::LimitPositive, Guess::SendsNothing),
    (Rule::LongerTakesLonger, Guess::ShrinksWithLength),
    (Rule::Deterministic, Guess::CountsQuestions),
];

/// Online, but for one thing.
#[derive(Debug)]
pub(super) struct Guesses {
    inner: Box<dyn Measure>,
    guess: Guess,
    questions: AtomicU64,
}

impl Guesses {
    pub(super) fn new(guess: Guess) -> Self {
        Self {
            inner: measure::LIST[0].of(&[]),
            guess,
            questions: AtomicU64::new(0),
        }
    }
}

impl Measure for Guesses {
    fn told(&mut self, profile: &Profile) {
        self.inner.told(profile);
    }

    fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    fn limit(&self) -> u32 {
        match self.guess {
            Guess::SendsNothing => 0,
            _ => self.inner.limit(),
        }
    }

    fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos {
        let asked = self.questions.fetch_add(1, Ordering::Relaxed);
        match self.guess {
            Guess::ShrinksWithLength => Nanos(u64::MAX - bytes.0),
            Guess::CountsQuestions => Nanos(asked),
            Guess::SendsNothing => self.inner.expected(distance, bytes),
        }
    }

    fn ended(&mut self, sample: &Sample) {
        self.inner.ended(sample);
    }

    fn lost(&mut self, in_flight: u32) {
        self.inner.lost(in_flight);
    }

    fn give_up(&mut self) {
        self.inner.give_up();
    }

    fn confidence(&self) -> Confidence {
        self.inner.confidence()
    }
}
