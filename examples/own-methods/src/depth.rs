//! Seek share: windows so long that switching takes at most a given part of the device's time.
//!
//! A window of n bytes occupies the device for s + n / r: switching cost s, transfer rate r. Switching is
//! a part p of that if n = s r (1 - p) / p, which is the competitive depth times (1 - p) / p. With
//! p = 50 % it is the competitive depth of Li et al. 2004, section 3; with 10 % nine times as much.

use forerun_core::Bytes;
use forerun_core::depth::{Depth, DeviceFacts, NEW_MAX, StreamFacts};
use forerun_core::spec::{Knows, Method, Param, Spec};

pub static SEEK_SHARE: Method<Box<dyn Depth>> = Method {
    spec: Spec {
        name: "seek-share",
        summary: "switching takes at most a part of the device's time",
        source: "example",
        unfit: "short streams: a long window is wasted where a stream ends",
        knows: Knows::Online,
        params: &[Param {
            name: "percent",
            summary: "the part; 50 is the competitive depth",
            default: 50,
            min: 2,
            max: 100,
        }],
    },
    build: |values| {
        Box::new(SeekShare {
            percent: values.get("percent"),
        })
    },
};

#[derive(Debug)]
struct SeekShare {
    percent: u64,
}

impl Depth for SeekShare {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        let depth = device.depth(stream.location).0;
        let limit = depth.saturating_mul(100 - self.percent) / self.percent;
        // A stream that has consumed little may end at once: the conformance suite checks the bound.
        let bound = NEW_MAX.0.max(stream.consumed.0);
        Bytes(limit.clamp(1, bound)).max(stream.asked)
    }
}
