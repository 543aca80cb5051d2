//! Whole: windows as they were decided. Linux, and any array that is taken for one disk.

use alloc::boxed::Box;

use forerun_core::shape::{Shape, StripedWindow};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Shape>> = Method {
    spec: Spec {
        name: "whole",
        summary: "windows as they were decided",
        source: "baseline; SEQP of baek09 section 2.4",
        unfit: "arrays with many readers, and with few",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Whole),
};

#[derive(Debug)]
struct Whole;

impl Shape for Whole {
    fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
        window.end
    }
}
