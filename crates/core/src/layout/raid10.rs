//! RAID-10: strips by turns on groups of members that are copies of each other.
//!
//! Member `g * copies` and those behind it hold the same, so a strip can be read from any of them;
//! the engine takes the one that will be done first. One group alone is RAID-1.
//!
//! ```text
//! 4 members, 2 copies     row 0   0 0 1 1      strip s: group s mod 2, row s div 2
//!                         row 1   2 2 3 3
//! ```

use alloc::boxed::Box;

use super::{Layout, Piece, raid0};
use crate::spec::{Knows, Method, Param, Spec};

pub(crate) const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "raid10",
        summary: "strips by turns on groups of members with equal content",
        source: "Patterson, Gibson and Katz, SIGMOD 1988, level 1 in stripes",
        unfit: "far and offset layouts of md",
        knows: Knows::Online,
        params: &[
            raid0::STRIP,
            Param {
                name: "copies",
                summary: "members of a group; 2 is the default of md and btrfs",
                default: 2,
                min: 1,
                max: 16,
            },
        ],
    },
    build: |values| {
        Box::new(Raid10 {
            strip: values.get("strip_bytes"),
            copies: values.get("copies"),
        })
    },
};

#[derive(Debug)]
pub(super) struct Raid10 {
    pub(super) strip: u64,
    pub(super) copies: u64,
}

impl Layout for Raid10 {
    fn piece(&self, offset: u64, members: usize) -> Piece {
        let groups = (members as u64 / self.copies).max(1);
        let (strip, within) = (offset / self.strip, offset % self.strip);
        let first = (strip % groups) * self.copies;
        Piece {
            member: if members == 0 { 0 } else { first as usize },
            offset: (strip / groups) * self.strip + within,
            bytes: self.strip - within,
        }
    }

    fn unit(&self) -> u64 {
        self.strip
    }

    fn copies(&self) -> usize {
        self.copies as usize
    }

    fn accepts(&self, members: usize) -> bool {
        let copies = self.copies as usize;
        (copies..=usize::from(u16::MAX)).contains(&members) && members.is_multiple_of(copies)
    }
}
