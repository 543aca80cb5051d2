//! RAID-6: strips by turns on all members but two, which have the parities of the row.
//!
//! As [RAID-5](super::raid5) with one member more; [`parity`] draws the rotation. In
//! md's left-symmetric form row 0 is `Q 0 1 .. P`, in that of btrfs `0 1 .. P Q`.

use alloc::boxed::Box;

use super::{Layout, parity};
use crate::spec::{Knows, Method, Spec};

pub(crate) const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "raid6",
        summary: "strips by turns on all members but two a row, which have parity",
        source: "Chen et al., ACM Computing Surveys 1994",
        unfit: "writing: parity is not modelled",
        knows: Knows::Online,
        params: parity::PARAMS,
    },
    build: |values| parity::build(2, values),
};
