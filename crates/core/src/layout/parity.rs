//! Rotating parity: the map that RAID-5 and RAID-6 share.
//!
//! Of `n` members each row of strips has `n - parities` with data. From row to row all places move
//! by one member, so that parity is spread evenly. Which way, and where row 0 begins, differs:
//!
//! ```text
//! left-symmetric, md (4 members, 1 parity)      right, btrfs
//!   row 0   0  1  2  P                            0  1  2  P
//!   row 1   4  5  P  3                            P  3  4  5
//!   row 2   8  P  6  7                            8  P  6  7
//! ```

use alloc::boxed::Box;

use super::{Layout, Piece, raid0};
use crate::spec::{Param, Values};

/// Values of [`ROTATION`].
const LEFT: u64 = 0;
const RIGHT: u64 = 1;

const ROTATION: Param = Param {
    name: "rotation",
    summary: "0: left-symmetric, the default of md; 1: to the right, as btrfs does",
    default: LEFT,
    min: LEFT,
    max: RIGHT,
};

pub(super) const PARAMS: &[Param] = &[raid0::STRIP, ROTATION];

/// The layout with so many strips of parity a row.
pub(super) fn build(parities: u64, values: &Values) -> Box<dyn Layout> {
    Box::new(Parity {
        strip: values.get(raid0::STRIP.name),
        parities,
        rotation: values.get(ROTATION.name),
    })
}

#[derive(Clone, Copy, Debug)]
struct Parity {
    strip: u64,
    parities: u64,
    rotation: u64,
}

impl Layout for Parity {
    fn unit(&self) -> u64 {
        self.strip
    }

    fn data_members(&self, members: usize) -> usize {
        members.saturating_sub(self.parities as usize).max(1)
    }

    fn accepts(&self, members: usize) -> bool {
        (self.parities as usize + 1..=usize::from(u16::MAX)).contains(&members)
    }

    fn piece(&self, offset: u64, members: usize) -> Piece {
        let data = self.data_members(members) as u64;
        let count = (members as u64).max(1);
        let (strip, within) = (offset / self.strip, offset % self.strip);
        let (row, turn) = (strip / data, strip % data);
        let member = match self.rotation {
            RIGHT => moved(turn, row % count, count),
            _ => {
                // Row 0 of RAID-6 has its second parity first.
                let first = moved(turn, self.parities.saturating_sub(1) % count, count);
                moved(first, count - row % count, count)
            }
        };
        Piece {
            member: member as usize,
            offset: row * self.strip + within,
            bytes: self.strip - within,
        }
    }
}

/// The place so many behind this one in a circle of `count`; neither is above `count`, which may be
/// the largest number there is.
fn moved(place: u64, by: u64, count: u64) -> u64 {
    let rest = count - by;
    if place >= rest {
        place - rest
    } else {
        place + by
    }
}
