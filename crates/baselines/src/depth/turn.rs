//! A turn's worth: one window as long as the slice that a reader would get in its turn at the device.
//!
//! For a device whose requests are ordered outside of the engine, first come first served: the page cache of a kernel. Where the
//! engine sends requests itself, short windows of one reader follow each other while it has its
//! [slice](forerun_core::dispatch); here every window costs a switch, so a window is a whole slice, by the same law:
//!
//! ```text
//! window = clamp(longest wait x rate / (streams + 2) - D, 2 D, depths_max x D)
//! ```
//!
//! with D the competitive depth. It grows only while its reader waits, as [`growing`](forerun_core::depth::growing); the
//! detector's ramp doubles it from a short one, so about as many bytes are wasted as were used. A slice may have 32 D,
//! because it is fetched in parts as its reader comes; a window is fetched as a whole, so it has 8 D at most. Example:
//! 64 readers of a disk of 8 ms and 80 MB/s: 3 s x 80 MB/s / 66 - 0.64 MB is 3.0 MB; of 10 readers each has 5.1 MB.

use alloc::boxed::Box;

use forerun_core::Bytes;
use forerun_core::depth::{Depth, DeviceFacts, StreamFacts};
use forerun_core::spec::{Knows, Method, Param, Spec};

pub(super) const METHOD: Method<Box<dyn Depth>> = Method {
    spec: Spec {
        name: "turn",
        summary: "a whole slice of the device in one window, while the reader waits",
        source: "dispatch continuing, for a device that serves in order of arrival",
        unfit: "an engine that orders requests: it gives slices by short windows, in less memory",
        knows: Knows::Online,
        params: &[
            Param {
                name: "longest_wait_ms",
                summary: "shorter windows for many: so long each of them waits for its turn",
                default: 3000,
                min: 1,
                max: 3_600_000,
            },
            Param {
                name: "depths_max",
                summary: "longest window, in competitive depths; 8 leaves a ninth of the device's time to switching",
                default: 8,
                min: 2,
                max: 64,
            },
        ],
    },
    build: |values| {
        Box::new(Turn {
            longest_wait_ms: values.get("longest_wait_ms"),
            depths_max: values.get("depths_max"),
        })
    },
};

/// A window of s depths leaves 1 / (s + 1) of the device's time to switching: a third at most, as the dispatch method
/// `continuing` has it.
const LEAST: u64 = 2;

#[derive(Debug)]
struct Turn {
    longest_wait_ms: u64,
    depths_max: u64,
}

impl Depth for Turn {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        let competitive = device.depth(stream.location).0;
        let rate = u128::from(device.profile.rate(stream.location));
        let round = rate * u128::from(self.longest_wait_ms) / 1000;
        let turn = u64::try_from(round / u128::from(device.streams.saturating_add(2)));
        let turn = turn.unwrap_or(u64::MAX).saturating_sub(competitive);
        let (least, most) = (
            competitive.saturating_mul(LEAST),
            competitive.saturating_mul(self.depths_max),
        );
        let turn = Bytes(turn.clamp(least, most));
        // At a first window no reader can have waited.
        let may_grow = stream.waited || stream.consumed.0 == 0;
        let allowed = match may_grow {
            true => turn,
            false => turn.min(stream.last_window),
        };
        allowed.max(Bytes(competitive)).max(stream.asked)
    }
}

#[cfg(test)]
mod tests {
    use forerun_core::{Nanos, Profile};

    use super::*;

    #[test]
    fn many_streams_get_shorter_windows_and_readers_that_do_not_wait_no_longer_ones() {
        let disk = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let limit = |streams, waited| {
            let mut stream = StreamFacts::default();
            (stream.asked, stream.waited) = (Bytes(4096), waited);
            stream.consumed = Bytes(100_000_000);
            let device = DeviceFacts::new(&disk, Bytes(0), streams);
            METHOD.of(&[3000, 32]).limit(&stream, &device).0
        };
        assert_eq!(limit(1, true), 32 * 640_000);
        assert_eq!(limit(10, true), 240_000_000 / 12 - 640_000);
        assert_eq!(limit(64, true), 240_000_000 / 66 - 640_000);
        assert_eq!(limit(1000, true), 2 * 640_000);
        assert_eq!(limit(1, false), 640_000);
    }
}
