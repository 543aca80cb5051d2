//! Split and shape methods that are wrong, each in one way, with the rule that finds it.

use alloc::boxed::Box;

use crate::conformance::Rule;
use crate::shape::{Shape, Strips};
use crate::split::{Miss, Split};
use crate::units::{Block, Nanos};

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

/// The fault of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    AtStart,
    BeyondRoom,
    WithinStrip,
    BeforeWanted,
}

pub(super) const ENDS: &[(Rule, End)] = &[
    (Rule::EndInside, End::AtStart),
    (Rule::EndInside, End::BeyondRoom),
    (Rule::EndsWithStrip, End::WithinStrip),
    (Rule::EndsWithStrip, End::BeforeWanted),
];

/// Windows as they were decided, but for one thing.
#[derive(Debug)]
pub(super) struct Ends {
    end: End,
}

impl Ends {
    pub(super) fn boxed(end: End) -> Box<dyn Shape> {
        Box::new(Self { end })
    }
}

impl Shape for Ends {
    fn end(&mut self, window: &dyn Strips) -> u64 {
        let start = u64::from(window.start().0);
        match self.end {
            End::AtStart => start,
            End::BeyondRoom => window.room() + 1,
            End::WithinStrip => start + (window.end() - start).div_ceil(2),
            End::BeforeWanted => {
                let strip = window.strip(Block(window.start().0));
                strip.map_or(window.end(), |s| {
                    (start + u64::from(s.left)).min(window.end())
                })
            }
        }
    }
}
