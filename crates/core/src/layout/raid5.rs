//! RAID-5: strips by turns on all members but one, which has the parity of the row.
//!
//! The member with parity is another one in each row ([`parity`] draws it), and no
//! read goes there: strips of one member follow each other but for that, once in as many rows as
//! there are members.

use alloc::boxed::Box;

use super::{Layout, parity};
use crate::spec::{Knows, Method, Spec};

pub(crate) const METHOD: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "raid5",
        summary: "strips by turns on all members but one a row, which has parity",
        source: "Patterson, Gibson and Katz, SIGMOD 1988; baek09 figure 1",
        unfit: "writing: parity is not modelled",
        knows: Knows::Online,
        params: parity::PARAMS,
    },
    build: |values| parity::build(1, values),
};
