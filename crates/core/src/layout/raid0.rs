//! RAID-0: strips of equal size, by turns on all members.
//!
//! Byte `o` lies in strip `s = o / strip`. Of `n` members that is member `s mod n`, in the row
//! `s div n` (Patterson, Gibson and Katz 1988, as level 0 without redundancy):
//!
//! ```text
//! member = s mod n        offset = (s div n) * strip + o mod strip
//! ```
//!
//! Strips of one member follow each other on it, so a long run of the file is one run on each
//! member. It is [RAID-10](super::raid10) with one copy.

use alloc::boxed::Box;

use super::Layout;
use super::raid10::Raid10;
use crate::spec::{Knows, Method, Param, Spec};

/// The strip of this and the other striped layouts.
pub(super) const STRIP: Param = Param {
    name: "strip_bytes",
    summary: "bytes that lie in one run on a member; 64 KiB is the default of btrfs and md's \
              smallest in common use",
    default: 64 << 10,
    min: 512,
    max: STRIP_MAX,
};

/// The longest strip, in bytes.
pub const STRIP_MAX: u64 = 1 << 30;

/// See the [module](self).
pub const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "raid0",
        summary: "strips by turns on all members",
        source: "Patterson, Gibson and Katz, SIGMOD 1988",
        unfit: "arrays with redundancy: parity and copies lie elsewhere",
        knows: Knows::Online,
        params: &[STRIP],
    },
    build: |values| {
        Box::new(Raid10 {
            strip: values.get("strip_bytes"),
            copies: 1,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Piece;

    #[test]
    fn a_window_across_strips_falls_into_pieces_that_follow_each_other_on_a_member() {
        let (strip, copies) = (16, 1);
        let raid = Raid10 { strip, copies };
        let piece = |member, offset, bytes| Piece {
            member,
            offset,
            bytes,
        };
        assert_eq!(raid.piece(8, 2), piece(0, 8, 8));
        assert_eq!(raid.piece(16, 2), piece(1, 0, 16));
        assert_eq!(raid.piece(32, 2), piece(0, 16, 16), "behind 8..16");
        assert_eq!(raid.piece(40, 1), piece(0, 40, 8), "one member is linear");
    }
}
