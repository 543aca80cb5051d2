//! Both: whole stripes while an array is read as by one reader, single strips otherwise (MSP +
//! SASEQP).
//!
//! A window is cut at the end of its [strip] first. The strips that remain go through the
//! [counter](super::stripe), which widens the window if few read. So one reader has all disks, and
//! many have each disk for a strip at a time: the pair that Baek and Park 2009 recommend.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use super::strip;
use super::stripe::{PARAMS, Stripe};
use forerun_core::shape::{Shape, StripedWindow};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Shape>> = Method {
    spec: Spec {
        name: "both",
        summary: "whole stripes while an array is read as by one reader, else single strips",
        source: "baek09 sections 3 and 4, MSP+SASEQP",
        unfit: "few readers that are more than one: a strip at a time each",
        knows: Knows::Online,
        params: PARAMS,
    },
    build: |values| Box::new(Both(Stripe::new(values))),
};

#[derive(Debug)]
struct Both(Stripe);

impl Shape for Both {
    fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
        self.0.widen(window, strip::cut(window))
    }
}
