//! Competitive depth: the bytes that the device could transfer during one switch.
//!
//! depth = switching cost x transfer rate (Li et al. 2004, section 2.1): the device then spends
//! at most as long on switching as on transferring, and total device time is at most twice that of
//! an optimum that knows where every run ends. The switching cost is read from the device's profile
//! at the moving average of recent seek distances, the rate at the location of the read (section
//! 3.1). The ramp up to it is the detector's.
//!
//! It never gets past half the device on long runs; see [`growing`](forerun_core::depth::growing).
//!
//! The weight of the newest distance, which the paper leaves open: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::Bytes;
use forerun_core::depth::{Depth, DeviceFacts, StreamFacts};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Depth>> = Method {
    spec: Spec {
        name: "competitive",
        summary: "switching cost times transfer rate of the device",
        source: "li04 sections 2.1 and 3.1",
        unfit: "long runs alone with the device's memory: half the device time goes to switching",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Competitive),
};

#[derive(Debug)]
struct Competitive;

impl Depth for Competitive {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        device
            .profile
            .competitive_depth(device.distance, stream.location)
            .max(stream.asked)
    }
}
