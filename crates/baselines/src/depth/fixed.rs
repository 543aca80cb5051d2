//! Fixed depth: always the same limit.
//!
//! Linux readahead (`read_ahead_kb`, 128 KiB by default); "AP" of Li et al. 2004 if it is large.
//! Constant, so wrong for every device but one: too short where a switch is expensive, wasteful
//! where it is cheap.

use alloc::boxed::Box;

use forerun_core::Bytes;
use forerun_core::depth::{Depth, DeviceFacts, NEW_MAX, StreamFacts};
use forerun_core::spec::{Knows, Method, Param, Spec};

pub(super) const METHOD: Method<Box<dyn Depth>> = Method {
    spec: Spec {
        name: "fixed",
        summary: "the same limit for every stream and device",
        source: "Linux read_ahead_kb; li04 section 4 (AP)",
        unfit: "devices whose switching cost times rate differs from the constant",
        knows: Knows::Online,
        params: &[Param {
            name: "depth_bytes",
            summary: "longest window; 128 KiB is the Linux default",
            default: 128 << 10,
            min: 512,
            max: NEW_MAX.0,
        }],
    },
    build: |values| {
        Box::new(Fixed {
            depth: Bytes(values.get("depth_bytes")),
        })
    },
};

#[derive(Debug)]
struct Fixed {
    depth: Bytes,
}

impl Depth for Fixed {
    fn limit(&self, _stream: &StreamFacts, _device: &DeviceFacts<'_>) -> Bytes {
        self.depth
    }

    /// Linux takes an array for one disk.
    fn is_for_each_device(&self) -> bool {
        false
    }
}
