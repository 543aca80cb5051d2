//! RAID-5: strips by turns on all members but one, which has the parity of the row.
//!
//! The member with parity is another one in each row ([`parity`](super::parity) draws it), and no
//! read goes there: strips of one member follow each other but for that, once in as many rows as
//! there are members.

use alloc::boxed::Box;

use super::parity::{LEFT, Parity, RIGHT};
use super::{Layout, Piece, raid0};
use crate::spec::{Knows, Method, Param, Spec};

pub(crate) const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "raid5",
        summary: "strips by turns on all members but one a row, which has parity",
        source: "Patterson, Gibson and Katz, SIGMOD 1988; baek09 figure 1",
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
        Box::new(Raid5(Parity {
            strip: values.get("strip_bytes"),
            parities: 1,
            rotation: values.get("rotation"),
        }))
    },
};

#[derive(Debug)]
struct Raid5(Parity);

impl Layout for Raid5 {
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
        (2..=usize::from(u16::MAX)).contains(&members)
    }
}
