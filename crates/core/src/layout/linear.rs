//! Linear: one device holds the file, one byte behind the other.
//!
//! The layout of a file about which nothing is known.

use alloc::boxed::Box;

use super::{Layout, Piece};
use crate::spec::{Knows, Method, Spec};

pub(crate) const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "linear",
        summary: "one device holds the whole file in one run",
        source: "baseline",
        unfit: "arrays: their members are taken for one device",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Linear),
};

#[derive(Debug)]
struct Linear;

impl Layout for Linear {
    fn piece(&self, offset: u64, _: usize) -> Piece {
        Piece {
            member: 0,
            offset,
            bytes: u64::MAX - offset.min(u64::MAX - 1),
        }
    }

    fn unit(&self) -> u64 {
        1
    }

    fn accepts(&self, members: usize) -> bool {
        members == 1
    }
}
