//! The nine lost traces of Kimbrel et al. 1996, as workloads: their
//! [stand-ins](crate::hinted::stand_in).
//!
//! All files of a stand-in lie in one, as on the array; one reader reads a block of 8 KiB at a
//! time. Computing after a read becomes computing before the next one here, and computing after the
//! last is left out.

use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::{Bytes, Nanos};

use super::{SEED, Step, Steps, Workload};
use crate::hinted::BLOCK_BYTES;
use crate::hinted::stand_in::{StandIn, Trace, cscope, dinero, glimpse, ld, postgres, xds};

macro_rules! lost {
    ($($name:ident = $stand_in:path;)*) => {
        $(pub(super) const $name: Method<Box<dyn Workload>> = Method {
            spec: Spec {
                name: $stand_in.name,
                summary: $stand_in.summary,
                source: "a stand-in: kimbrel96 section 3.1, Table 3",
                unfit: "published seconds; it shows orders and shapes",
                knows: Knows::Online,
                params: &[SEED],
            },
            build: |v| Box::new(Lost::of(&$stand_in, v.get("seed"))),
        };)*
    };
}

lost! {
    DINERO = dinero::DINERO;
    CSCOPE_1 = cscope::CSCOPE_1;
    CSCOPE_2 = cscope::CSCOPE_2;
    CSCOPE_3 = cscope::CSCOPE_3;
    GLIMPSE = glimpse::GLIMPSE;
    LD = ld::LD;
    JOIN = postgres::JOIN;
    SELECT = postgres::SELECT;
    XDS = xds::XDS;
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Lost(Trace);

impl Lost {
    /// The stand-in of this seed.
    #[must_use]
    pub fn of(stand_in: &StandIn, seed: u64) -> Self {
        Self(stand_in.trace(seed))
    }
}

impl Workload for Lost {
    fn files(&self) -> Vec<Bytes> {
        let last = self.0.addresses.iter().max().copied();
        vec![Bytes(last.map_or(0, |last| (last + 1) * BLOCK_BYTES))]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let mut before = Nanos(0);
        Box::new(self.0.references.iter().map(move |reference| {
            let think = std::mem::replace(&mut before, reference.compute);
            let address = self.0.addresses[reference.block.0 as usize];
            Step::read(address * BLOCK_BYTES, BLOCK_BYTES, think.0)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stand_in_is_a_workload_that_reads_what_it_reads() {
        for stand_in in crate::hinted::stand_in::LIST {
            let made = super::super::parse(stand_in.name).unwrap();
            let steps = made.steps(0);
            let offsets: Vec<u64> = steps.map(|step| step.offset.0 / BLOCK_BYTES).collect();
            let trace = stand_in.trace(1);
            let blocks = trace.references.iter().map(|r| r.block.0 as usize);
            let expected: Vec<u64> = blocks.map(|block| trace.addresses[block]).collect();
            assert_eq!(offsets, expected, "{}", stand_in.name);
        }
    }
}
