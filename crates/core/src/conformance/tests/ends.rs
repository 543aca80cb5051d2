//! Shape methods that are wrong, each in one way, with the rule that finds it.

use alloc::boxed::Box;

use crate::conformance::Rule;
use crate::shape::{Shape, StripedWindow};

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
    fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
        let start = u64::from(window.start.0);
        match self.end {
            End::AtStart => start,
            End::BeyondRoom => window.room + 1,
            End::WithinStrip => start + (window.end - start).div_ceil(2),
            End::BeforeWanted => {
                let strip = window.layout.strip(window.start);
                strip.map_or(window.end, |s| (start + u64::from(s.left)).min(window.end))
            }
        }
    }
}
