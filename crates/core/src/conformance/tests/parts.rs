//! Split methods that are wrong, each in one way, with the rule that finds it.

use alloc::boxed::Box;

use crate::conformance::Rule;
use crate::split::{Miss, Split};
use crate::units::Nanos;

/// The fault of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Nothing,
    Everything,
    CountsQuestions,
    LearnsInSecret,
}

pub(super) const PARTS: &[(Rule, Part)] = &[
    (Rule::PartInRange, Part::Nothing),
    (Rule::PartInRange, Part::Everything),
    (Rule::Deterministic, Part::CountsQuestions),
    (Rule::LearnsIsHonest, Part::LearnsInSecret),
];

/// A part that moves by each miss, and is wrong in one thing.
#[derive(Debug)]
pub(super) struct Moves {
    part: Part,
    percent: u8,
}

impl Moves {
    pub(super) fn boxed(part: Part) -> Box<dyn Split> {
        let percent = 25;
        Box::new(Self { part, percent })
    }
}

impl Split for Moves {
    fn learns(&self) -> bool {
        self.part != Part::LearnsInSecret
    }

    fn missed(&mut self, miss: Miss) {
        self.percent = match (self.part, miss) {
            (Part::Nothing, Miss::Prefetch) => self.percent.saturating_sub(1),
            (Part::Everything, Miss::Cache) => (self.percent + 1).min(100),
            (Part::Nothing | Part::Everything, _) => self.percent,
            (_, Miss::Prefetch) => self.percent.saturating_sub(1).max(1),
            (_, Miss::Cache) => (self.percent + 1).min(99),
        };
    }

    fn percent(&mut self, _now: Nanos) -> u8 {
        if self.part == Part::CountsQuestions {
            self.percent = self.percent % 99 + 1;
        }
        self.percent
    }
}
