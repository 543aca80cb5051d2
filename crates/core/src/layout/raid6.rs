//! RAID-6: strips by turns on all members but two, which have the parities of the row.
//!
//! As [RAID-5](super::raid5) with one member more; [`parity`](super::parity) draws the rotation. In
//! md's left-symmetric form row 0 is `Q 0 1 .. P`, in that of btrfs `0 1 .. P Q`.

use alloc::boxed::Box;

use super::parity::{LEFT, Parity, RIGHT};
use super::{Layout, Piece, raid0};
use crate::spec::{Knows, Method, Param, Spec};

pub(crate) const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "raid6",
        summary: "strips by turns on all members but two a row, which have parity",
        source: "Chen et al., ACM Computing Surveys 1994",
        unfit: "writing: parity is not modelled",
        knows: Knows::Online,
        params: &[
            raid0::STRIP,
            Param {
                name: "rotation",
                summary: "0: left-symmetric, the default of md; 1: to the right, as btrfs does",
                default: LEFT,
                min: LEFT,
                max: RIGHT,
            },
        ],
    },
    build: |values| {
        Box::new(Raid6(Parity {
            strip: values.get("strip_bytes"),
            parities: 2,
            rotation: values.get("rotation"),
        }))
    },
};

#[derive(Debug)]
struct Raid6(Parity);

impl Layout for Raid6 {
    fn piece(&self, offset: u64, members: usize) -> Piece {
        self.0.piece(offset, members)
    }

    fn unit(&self) -> u64 {
        self.0.strip
    }

    fn data_members(&self, members: usize) -> usize {
        self.0.data_members(members)
    }

    fn accepts(&self, members: usize) -> bool {
        (3..=usize::from(u16::MAX)).contains(&members)
    }
}
