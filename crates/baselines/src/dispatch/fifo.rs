//! First come, first served.
//!
//! Every fetch goes to the device at once and keeps its place: fair, and as Linux with the
//! scheduler `none`. Streams that alternate make a device switch with every window.

use alloc::boxed::Box;

use forerun_core::Bytes;
use forerun_core::dispatch::{Dispatch, Head, SLICE_MAX, Waiting};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Dispatch>> = Method {
    spec: Spec {
        name: "fifo",
        summary: "first come, first served, at once",
        source: "Linux, I/O scheduler none",
        unfit: "several streams on a device that pays for switching",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Fifo),
};

#[derive(Debug)]
struct Fifo;

impl Dispatch for Fifo {
    fn slice(&self, depth: Bytes, _: Bytes, _: usize) -> Bytes {
        Bytes(depth.0.saturating_mul(SLICE_MAX))
    }

    fn next(&self, _: &Head, _: &mut dyn Iterator<Item = Waiting>) -> usize {
        0
    }
}
