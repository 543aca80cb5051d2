//! First in, first out: unread blocks apart, and the one that arrived first goes first.
//!
//! The order that every access history gives to blocks never accessed, in a prefetch cache of its
//! own: PC-AccessHistory of Li and Shen 2005, section 4.2, the baseline that tells the gain of the
//! partition from that of the order. Blocks whose reader has closed the file keep their place, as
//! in the paper. The rest is that of every [`prefetch_cache`].
//!
//! Example: windows 0..32 of one reader and 100..132 of another arrive. Blocks 0, 1, 2.. go, the
//! ones that the first reader comes to next.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::reclaim::Reclaim;
use forerun_core::spec::{Knows, Method, Spec};

use crate::prefetch_cache::{self, Rules};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "fifo",
        summary: "blocks fetched ahead apart: the one that arrived first goes first",
        source: "Li and Shen 2005 section 4.2 (PC-AccessHistory)",
        unfit: "more streams than memory: the next blocks of each reader go first",
        knows: Knows::Online,
        params: Rules::PARAMS,
    },
    build: |values| prefetch_cache::by_arrival(Rules::of(values)),
};
