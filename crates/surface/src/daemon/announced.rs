//! Announced reads as clients send them, and the counts of their outcomes.
//!
//! `forerun ctl MOUNT hint` sends ranges in parts and adds up the answers; a mount takes them apart and opens the files.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Files of one part of a list: a busy disk opens so many in [`PATIENCE`].
pub const PART_PATHS_MAX: usize = 32;

/// How long a client waits for the answer to a part: longer than a store is asked for an object.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A range of a file that will be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Below the mount point.
    pub path: String,
    /// Start position.
    pub offset: u64,
    /// Its length; to the end of the file if there is none.
    pub bytes: Option<u64>,
}

/// The fate of announced ranges.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Taken {
    /// Ranges that will be read ahead.
    pub taken: u64,
    /// Ranges that will not, by reason.
    pub refused: Vec<RefusedRanges>,
    /// There is no room for more before some of them were read.
    pub is_full: bool,
}

/// Ranges that were refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefusedRanges {
    /// The reason.
    pub why: String,
    /// How many.
    pub ranges: u64,
    /// The path of the first of them.
    pub first: String,
}

impl Taken {
    /// Counts ranges as refused.
    pub fn refuse(&mut self, why: &str, ranges: u64, first: &str) {
        match self.refused.iter_mut().find(|refused| refused.why == why) {
            Some(refused) => refused.ranges += ranges,
            None => self.refused.push(RefusedRanges {
                why: why.to_owned(),
                ranges,
                first: first.to_owned(),
            }),
        }
    }

    /// Adds the answer to the next part of a list.
    pub fn add(&mut self, more: &Self) {
        self.taken += more.taken;
        self.is_full |= more.is_full;
        for RefusedRanges { why, ranges, first } in &more.refused {
            self.refuse(why, *ranges, first);
        }
    }
}

/// Why ranges are refused that follow one there was no room for.
pub const FULL: &str = "no room: more is announced than this memory can keep in order; announce the \
                        rest when half of it was read";
