//! Fixed: a part that does not change.
//!
//! Right for a load that is known. 25 % is where Li and Shen 2005 begin, section 3.3; a server that
//! reads everything once gains by more, one with a hot set by less.

use alloc::boxed::Box;

use forerun_core::Nanos;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::split::Split;

use super::PERCENT;

pub(crate) const METHOD: Method<Box<dyn Split>> = Method {
    spec: Spec {
        name: "fixed",
        summary: "a part that does not change",
        source: "Li and Shen 2005 section 3.3, where the allocation begins",
        unfit: "loads whose share of blocks read again changes",
        knows: Knows::Online,
        params: &[PERCENT],
    },
    build: |values| {
        Box::new(Fixed {
            percent: values.get("percent") as u8,
        })
    },
};

#[derive(Debug)]
struct Fixed {
    percent: u8,
}

impl Split for Fixed {
    fn percent(&mut self, _now: Nanos) -> u8 {
        self.percent
    }
}
